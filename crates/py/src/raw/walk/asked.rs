//! What is asked of a walk, what it asks of others, and why it may end early.

use std::cell::Cell;

use onecopy_text::ByteSink;
use onecopy_wire::json::KeySegments;
use onecopy_wire::{NonFinite, WriteError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::beside::Beside;
use super::native::Natives;
use crate::raw::ndarray::Memory;

/// Why the walk ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Python's error, from code that ran or for memory.
    Python(PyErr),
    /// The chunk cannot grow.
    Full,
    /// There are more containers inside of each other than asked for; whether one holds itself.
    TooDeep { is_circular: bool },
    /// A lone surrogate, and its place in the text.
    Surrogate { at: usize, unit: u32 },
    /// NaN or an infinity.
    NonFinite,
    /// An `int` past 64 bits where that was not asked for.
    BigInt,
    /// A `dict` was changed by code that ran meanwhile.
    Changed,
    /// An array of NumPy's was changed by code that ran meanwhile.
    ArrayChanged,
    /// A `datetime64` is outside of the years 0 to 9999, or has no unit.
    Moment,
    /// A row, from 0, is no list or tuple of as many values as there are names; or a column is none of as many as the first.
    Row { index: usize },
    /// Nothing stands for an object of this type.
    Unknown { class: String },
    /// A key is of this type, which is no `str`.
    Key { class: String },
    /// A date, time or decimal has no form in JSON.
    Value(WriteError),
}

/// Where in the object a walk ended: what leads to it, as `$.rows[3].price`.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) stop: Stop,
    pub(crate) path: String,
}

/// What stands for an object that is none of CPython's own types.
pub(crate) enum Other<'py> {
    /// JSON text, to be put as it is.
    Text(Vec<u8>),
    /// Another object, to be written in its place.
    Instead(Bound<'py, PyAny>),
    /// An array or scalar of NumPy's, to be read from its memory.
    Memory(Memory<'py>),
    /// Nothing: it is a list or tuple of a class of its own, to be gone through as one.
    Items,
    /// A list of keys (each a `str`) and values in turn, to be written as an object.
    Pairs(Bound<'py, PyList>),
}

/// Makes JSON of all objects that the walk does not know. Any Python code may run here.
pub(crate) trait Others<'py> {
    /// The form of an object, if it has one.
    fn other(&self, object: &Bound<'py, PyAny>) -> Result<Option<Other<'py>>, Stop>;

    /// What the caller's function gives for an object that has no form. It is called by the walk itself, so that the
    /// variables of [`Others::other`] are off the stack: the function may nest another walk.
    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Stop>;

    /// What stands for an `int` past 64 bits: its digits, mostly.
    fn big_int(&self, object: &Bound<'py, PyAny>) -> Result<Vec<u8>, Stop>;

    /// What stands for a key that is no `str`.
    fn key(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyString>, Stop>;

    /// The keys and values of a `dict`, in turn, sorted by key.
    fn sorted(&self, dict: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, Stop>;
}

/// What to do with lone surrogates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Surrogates {
    /// Fail.
    #[default]
    Error,
    /// Put U+FFFD.
    Replace,
    /// Put their escape.
    Escape,
}

/// How JSON is written.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) sort_keys: bool,
    /// What each level of depth is moved in by; `None` for no line breaks at all.
    pub(crate) indent: Option<Vec<u8>>,
    pub(crate) ensure_ascii: bool,
    pub(crate) surrogates: Surrogates,
    pub(crate) nan: NonFinite,
    /// True if integers of up to 64 bits are written as they are.
    pub(crate) exact_ints: bool,
    /// True if, unless they are exact, integers past 53 bits are strings of their digits; else they
    /// are an error.
    pub(crate) text_ints: bool,
    pub(crate) max_depth: usize,
    pub(crate) natives: Natives,
}

impl Style {
    /// Whether the loop that knows no options serves; the only one that writes any [`Shape`].
    pub(crate) fn is_plain(&self) -> bool {
        !self.sort_keys
            && self.indent.is_none()
            && !self.ensure_ascii
            && self.exact_ints
            && self.surrogates == Surrogates::Error
    }
}
/// Where it goes.
pub(crate) struct Target<'a> {
    pub(crate) chunk: &'a mut dyn ByteSink,
    /// Whether any Python code may run where the chunk makes room.
    pub(crate) runs_python: bool,
    /// Of a chunk that may be in Latin-1: whether it is. The walk sets it to `false`, once, where a character is met that is not in
    /// Latin-1, or text of others; what is committed is UTF-8 then.
    pub(crate) latin1: Option<&'a Cell<bool>>,
    /// Where UCS-2 goes past a chunk in Latin-1, if it does.
    pub(crate) beside: Option<&'a Beside>,
}

impl<'a> Target<'a> {
    /// A chunk of UTF-8 that runs no code.
    pub(crate) fn new(chunk: &'a mut dyn ByteSink) -> Target<'a> {
        Target {
            chunk,
            runs_python: false,
            latin1: None,
            beside: None,
        }
    }
}

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'k> {
    /// The object itself.
    Value,
    /// The object is a row, to be written with these keys.
    Row(&'k KeySegments),
    /// The object is a list or tuple of rows, at least one.
    Rows(&'k KeySegments),
    /// The object is a tuple of columns, lists or tuples that are all of the same length, at least 1.
    Columns(&'k KeySegments),
}
