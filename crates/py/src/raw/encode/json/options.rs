//! The options, callbacks, target and errors of the JSON encoder.

use std::cell::Cell;

use onecopy_text::{ByteSink, Policy};
use onecopy_wire::json::KeySegments;
use onecopy_wire::{NonFinite, WriteError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::ucs2_text::Ucs2Text;
use crate::raw::encode::standard_types::Natives;
use crate::raw::encode::state::TooDeep;
use crate::raw::ndarray::Memory;

/// The reason for a failure.
#[derive(Debug)]
pub(crate) enum JsonStop {
    /// An exception from Python code or a failed allocation.
    Python(PyErr),
    /// The chunk cannot grow: no memory is left, the target is full, or its write failed.
    Full,
    /// Containers are nested too deeply. `is_circular` is `true` if one contains itself.
    TooDeep { is_circular: bool },
    /// A string contains the lone surrogate `unit` at the code unit `at`.
    Surrogate { at: usize, unit: u32 },
    /// The options do not allow this NaN or infinity.
    NonFinite,
    /// An integer has more bits than `big_ints` allows.
    BigInt,
    /// Python code changed a `dict` during the iteration.
    Changed,
    /// Python code changed a NumPy array during the call.
    ArrayChanged,
    /// A `datetime64` is outside of the years 0 to 9999, or has no unit.
    Moment,
    /// This row has a wrong type or length, or the columns differ in length.
    Row { index: usize },
    /// JSON cannot represent this class, and `default` is not set.
    Unknown { class: String },
    /// A key of a `dict` has this class instead of `str`.
    Key { class: String },
    /// JSON cannot represent a date, time or decimal.
    Value(WriteError),
}

impl From<TooDeep> for JsonStop {
    fn from(TooDeep { is_circular }: TooDeep) -> JsonStop {
        JsonStop::TooDeep { is_circular }
    }
}

/// A failure of the encoder, with the path of the value, such as `$.rows[3].price`.
#[derive(Debug)]
pub(crate) struct EncodeFailure {
    pub(crate) stop: JsonStop,
    pub(crate) path: String,
}

/// The output for an object without a built-in type.
pub(crate) enum ObjectForm<'py> {
    /// JSON text.
    Text(Vec<u8>),
    /// A replacement object.
    Instead(Bound<'py, PyAny>),
    /// A NumPy array or scalar in memory. The box keeps the other variants small.
    Memory(Box<Memory<'py>>),
    /// An instance of a class derived from list or tuple.
    Items,
    /// A list of alternating keys and values, written as an object.
    Pairs(Bound<'py, PyList>),
}

/// The functions for objects that the encoder does not support. They may run any Python code.
pub(crate) trait ObjectForms<'py> {
    /// Returns the output for `object`. `None` if JSON cannot represent its type.
    fn other(&self, object: &Bound<'py, PyAny>) -> Result<Option<ObjectForm<'py>>, JsonStop>;

    /// Calls the user's function `default` for an unsupported object. A separate method needs less
    /// stack in nested calls.
    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, JsonStop>;

    /// Returns the JSON of an `int` that the encoder does not write as a number.
    fn big_int(&self, object: &Bound<'py, PyAny>) -> Result<Vec<u8>, JsonStop>;

    /// Converts a key to a `str`, if the options allow its type.
    fn key(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyString>, JsonStop>;

    /// Returns a list of the alternating keys and values of `dict`, sorted by key. The encoder
    /// itself sorts plain `str` keys.
    fn sorted(&self, dict: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, JsonStop>;
}

/// The options that affect the output bytes.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) sort_keys: bool,
    /// One level of indentation; `None` for output without line breaks.
    pub(crate) indent: Option<Vec<u8>>,
    pub(crate) ensure_ascii: bool,
    /// The policy for lone surrogates. [`Policy::BackslashReplace`] writes the escape `\uXXXX`.
    pub(crate) surrogates: Policy,
    pub(crate) nan: NonFinite,
    /// `true` if integers of up to 64 bits are numbers; `false` for a limit of 53 bits.
    pub(crate) exact_ints: bool,
    /// `true` if integers of more than 53 bits become strings; `false` if they are an error. Has no
    /// effect if `exact_ints` is set.
    pub(crate) text_ints: bool,
    /// `true` if keys such as numbers and dates become their JSON value in quotes.
    pub(crate) scalar_keys: bool,
    pub(crate) max_depth: usize,
    pub(crate) natives: Natives,
}

impl Style {
    /// Returns `true` if the faster encoder loop supports these options. The slower loop supports
    /// all options, but only `JsonShape::Value`.
    pub(crate) fn is_plain(&self) -> bool {
        !self.sort_keys
            && self.indent.is_none()
            && !self.ensure_ascii
            && self.exact_ints
            && self.surrogates == Policy::Strict
    }
}
/// The chunk and the encoding of the JSON encoder's output.
pub(crate) struct JsonTarget<'a> {
    pub(crate) chunk: &'a mut dyn ByteSink,
    /// `true` if Python code may run when the chunk grows.
    pub(crate) runs_python: bool,
    /// `true` while the chunk contains Latin-1, `false` after its conversion to UTF-8. `None` if it
    /// contains UTF-8 from the start.
    pub(crate) latin1: Option<&'a Cell<bool>>,
    /// The memory of the resulting `str` for UCS-2 text. `None` if the result is not a `str`.
    pub(crate) ucs2: Option<&'a Ucs2Text>,
}

impl<'a> JsonTarget<'a> {
    /// Creates a target for a UTF-8 chunk. Growing `chunk` must not run Python code.
    pub(crate) fn new(chunk: &'a mut dyn ByteSink) -> JsonTarget<'a> {
        JsonTarget {
            chunk,
            runs_python: false,
            latin1: None,
            ucs2: None,
        }
    }
}

/// The meaning of the root object: a value, a row or a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JsonShape<'k> {
    /// One value of any supported type.
    Value,
    /// A list or tuple of values, written as an object with these keys.
    Row(&'k KeySegments),
    /// A list or tuple of rows, not empty. It is written as an array of objects.
    Rows(&'k KeySegments),
    /// A tuple of columns of the same length, not empty. It is written as an array of row objects.
    Columns(&'k KeySegments),
}
