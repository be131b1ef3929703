//! The interface of the JSON encoder: its options, the trait through which it calls Python code,
//! its target, and its errors.

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

/// The reason why the JSON encoder has failed.
#[derive(Debug)]
pub(crate) enum JsonStop {
    /// An exception that Python code or a failed allocation has raised.
    Python(PyErr),
    /// The chunk cannot grow because no memory is left, because the target buffer is full, or
    /// because writing a full chunk to the target has failed.
    Full,
    /// Containers are nested more deeply than allowed; `is_circular` is `true` if a container
    /// contains itself.
    TooDeep { is_circular: bool },
    /// A string contains the lone surrogate `unit`, at the index `at` in its code units.
    Surrogate { at: usize, unit: u32 },
    /// A float is NaN or an infinity, and the options do not allow it.
    NonFinite,
    /// An integer needs more bits than the option `big_ints` allows.
    BigInt,
    /// Python code changed a `dict` while the encoder iterated over it.
    Changed,
    /// Python code changed a NumPy array while it was being written.
    ArrayChanged,
    /// A `datetime64` is outside of the years 0 to 9999, or has no unit.
    Moment,
    /// The row with this index (from 0) is not a list or tuple with one value for each name, or the
    /// columns differ in length.
    Row { index: usize },
    /// JSON cannot represent an object of this class, and `default` is not set.
    Unknown { class: String },
    /// A key of a `dict` is not a `str`, but an object of the class with this name.
    Key { class: String },
    /// A date, time or decimal cannot be represented in JSON.
    Value(WriteError),
}

impl From<TooDeep> for JsonStop {
    fn from(TooDeep { is_circular }: TooDeep) -> JsonStop {
        JsonStop::TooDeep { is_circular }
    }
}

/// A failure of the encoder, with the path of the value that cannot be written, such as
/// `$.rows[3].price`.
#[derive(Debug)]
pub(crate) struct EncodeFailure {
    pub(crate) stop: JsonStop,
    pub(crate) path: String,
}

/// What the encoder writes for an object whose type is not built in.
pub(crate) enum ObjectForm<'py> {
    /// JSON text, which is written unchanged.
    Text(Vec<u8>),
    /// The encoder writes this object instead of the original object.
    Instead(Bound<'py, PyAny>),
    /// A NumPy array or scalar, which is read from its memory. It is boxed because the other forms
    /// are much smaller.
    Memory(Box<Memory<'py>>),
    /// An instance of a class derived from list or tuple: its items are written as an array.
    Items,
    /// A list in which keys (each a `str`) and values alternate. It is written as an object.
    Pairs(Bound<'py, PyList>),
}

/// The functions that the encoder calls for an object whose type it does not support itself. They
/// determine how the object is written. They may run any Python code.
pub(crate) trait ObjectForms<'py> {
    /// Returns what the encoder writes for `object`, for example another object or JSON text.
    /// Returns `None` if JSON cannot represent the type of `object`.
    fn other(&self, object: &Bound<'py, PyAny>) -> Result<Option<ObjectForm<'py>>, JsonStop>;

    /// Calls the user's function `default` for an object for which [`ObjectForms::other`] has
    /// returned `None`. `default` may call an encoder again, and such calls may be deeply nested.
    /// They need less stack because this method is separate from `other`.
    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, JsonStop>;

    /// Returns the JSON, usually the digits, of an `int` that the encoder itself does not write as
    /// a number.
    fn big_int(&self, object: &Bound<'py, PyAny>) -> Result<Vec<u8>, JsonStop>;

    /// Converts a key that is not a `str` to a `str`. Returns an error if the options do not allow
    /// such a key.
    fn key(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyString>, JsonStop>;

    /// Returns a list in which the keys and values of `dict` alternate, sorted by key. The encoder
    /// calls this method only if it cannot sort the keys itself, for example because the class of a
    /// key is not exactly `str`.
    fn sorted(&self, dict: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, JsonStop>;
}

/// The options that affect the bytes of the output.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) sort_keys: bool,
    /// The characters of one level of indentation; `None` for output without line breaks.
    pub(crate) indent: Option<Vec<u8>>,
    pub(crate) ensure_ascii: bool,
    /// The handling of lone surrogates. [`Policy::BackslashReplace`] writes them as the escape
    /// `\uXXXX`.
    pub(crate) surrogates: Policy,
    pub(crate) nan: NonFinite,
    /// `true` if all integers of up to 64 bits are written as numbers; `false` if only integers of
    /// up to 53 bits are, which a JavaScript number represents exactly.
    pub(crate) exact_ints: bool,
    /// `true` if integers of more than 53 bits are written as strings of their digits; `false` if
    /// they are an error. The field is ignored if `exact_ints` is set.
    pub(crate) text_ints: bool,
    /// `true` if keys that are numbers, `None`, dates, UUIDs or enumeration members are written as
    /// the text of their JSON value, in quotes.
    pub(crate) scalar_keys: bool,
    pub(crate) max_depth: usize,
    pub(crate) natives: Natives,
}

impl Style {
    /// Returns `true` if these options are supported by the faster of the two encoder loops. The
    /// slower loop supports all options, but of the variants of [`JsonShape`] only
    /// `JsonShape::Value`.
    pub(crate) fn is_plain(&self) -> bool {
        !self.sort_keys
            && self.indent.is_none()
            && !self.ensure_ascii
            && self.exact_ints
            && self.surrogates == Policy::Strict
    }
}
/// The destination of the JSON encoder: the chunk to which it writes, and the encoding in which it
/// writes.
pub(crate) struct JsonTarget<'a> {
    pub(crate) chunk: &'a mut dyn ByteSink,
    /// `true` if any Python code may run when the chunk grows.
    pub(crate) runs_python: bool,
    /// `true` while the contents of the chunk are Latin-1, `false` after they were converted to
    /// UTF-8. The encoder converts them before it writes a character outside of Latin-1, or JSON
    /// text that is not ASCII. `None` if the contents are UTF-8 from the start.
    pub(crate) latin1: Option<&'a Cell<bool>>,
    /// The memory of the resulting `str`, to which the encoder writes UCS-2 text directly. All
    /// other output is written to the Latin-1 chunk. `None` if the result is not a `str`.
    pub(crate) ucs2: Option<&'a Ucs2Text>,
}

impl<'a> JsonTarget<'a> {
    /// Creates a target for a chunk of UTF-8. The growth of `chunk` must not run Python code.
    pub(crate) fn new(chunk: &'a mut dyn ByteSink) -> JsonTarget<'a> {
        JsonTarget {
            chunk,
            runs_python: false,
            latin1: None,
            ucs2: None,
        }
    }
}

/// What the object to encode represents: one JSON value, one row of a table, or a table. A table is
/// given as rows or as columns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JsonShape<'k> {
    /// One value of any supported type.
    Value,
    /// A row: a list or tuple of values. It is written as an object with these keys.
    Row(&'k KeySegments),
    /// A list or tuple of rows (at least one). It is written as an array of objects.
    Rows(&'k KeySegments),
    /// A tuple of columns, which are lists or tuples of the same length (at least 1). It is written
    /// as an array that contains an object for each row.
    Columns(&'k KeySegments),
}
