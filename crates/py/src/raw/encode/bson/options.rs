//! The interface of the BSON encoder: options, sinks, errors and calls to Python code.

use onecopy_text::{ByteSink, Policy};
use onecopy_wire::bson::{SUBTYPE_OLD_UUID, SUBTYPE_UUID, Tag};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::raw::binary::FreshBytes;
use crate::raw::encode::state::TooDeep;
use crate::raw::encode::{Fixed, Natives};
use crate::raw::ndarray::Memory;

/// The error of the BSON encoder.
#[derive(Debug)]
pub(crate) enum BsonStop {
    /// A Python exception.
    Python(PyErr),
    /// The sink cannot grow.
    Full,
    /// The nesting is too deep. `is_circular` is `true` if a container contains itself.
    TooDeep { is_circular: bool },
    /// The document exceeds [`Style::max_bytes`] or the 32-bit lengths of BSON.
    TooLong,
    /// A string contains the lone surrogate `unit` at the index `at`.
    Surrogate { at: usize, unit: u32 },
    /// An integer exceeds 64 bits.
    Int,
    /// A key contains a NUL.
    NulInKey,
    /// The option `check_keys` forbids this key.
    KeyForm,
    /// A key is not a `str`, but of this class.
    Key { class: String },
    /// Python code changed a `dict` during the iteration.
    Changed,
    /// BSON cannot represent this class, and `default` is not set.
    Unknown { class: String },
    /// An object of this class cannot be a document.
    NotADocument { class: String },
    /// BSON cannot represent this value. `kind` is its type in the error message.
    Value { kind: &'static str, reason: String },
}

impl From<PyErr> for BsonStop {
    fn from(error: PyErr) -> BsonStop {
        BsonStop::Python(error)
    }
}

impl From<onecopy_text::SinkFull> for BsonStop {
    fn from(_: onecopy_text::SinkFull) -> BsonStop {
        BsonStop::Full
    }
}

impl From<TooDeep> for BsonStop {
    fn from(TooDeep { is_circular }: TooDeep) -> BsonStop {
        BsonStop::TooDeep { is_circular }
    }
}

/// An error of the encoder, with the path of the failed value, for example `$.rows[3].price`.
#[derive(Debug)]
pub(crate) struct EncodeFailure {
    pub(crate) stop: BsonStop,
    pub(crate) path: String,
    /// The value or key that BSON cannot represent.
    pub(crate) culprit: Option<Py<PyAny>>,
}

/// The way in which an object is written.
pub(crate) enum ObjectForm<'py> {
    /// [`ObjectForms::other`] has written the value. The encoder only writes this tag.
    Put(Tag),
    /// Written as this string with this tag.
    Text(Tag, Bound<'py, PyString>),
    /// The BSON type "code with scope". The second field is the scope.
    Code(Bound<'py, PyString>, Bound<'py, PyAny>),
    /// This object is written instead.
    Instead(Bound<'py, PyAny>),
    /// This object is written instead, without `check_keys`: the keys of a `DBRef` begin with a
    /// dollar sign.
    Unchecked(Bound<'py, PyAny>),
    /// A NumPy array or scalar. It is boxed because the other variants are smaller.
    Memory(Box<Memory<'py>>),
    /// An instance of a subclass of list or tuple, written as an array.
    Items,
    /// A list of alternating keys and values, written as a document.
    Pairs(Bound<'py, PyList>),
}

/// Writes objects of the types that the encoder does not support. The methods may run any Python
/// code.
pub(crate) trait ObjectForms<'py> {
    /// Writes an object without its tag and key, or returns another form. `None` if the encoder
    /// must call `ObjectForms::default`.
    fn other(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<ObjectForm<'py>>, BsonStop>;

    /// Applies the option `datetime_range` to a datetime outside of the years 1 to 9999. Returns
    /// its milliseconds since 1970.
    fn ranged(&self, ms: i64) -> Result<i64, BsonStop>;

    /// Calls the caller's function `default`. Separate from `other`, so that nested calls need less
    /// stack.
    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, BsonStop>;
}

/// The options that affect the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// `true` if keys with a leading dollar sign or a dot are an error.
    pub(crate) check_keys: bool,
    /// The policy for lone surrogates: one of [`Policy::BASIC`].
    pub(crate) surrogates: Policy,
    /// The maximum nesting depth.
    pub(crate) max_depth: usize,
    pub(crate) max_bytes: usize,
    pub(crate) uuid: UuidForm,
    pub(crate) natives: Natives,
}

/// The subtype and byte order of UUIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UuidForm {
    Standard,
    PythonLegacy,
    JavaLegacy,
    CsharpLegacy,
    Unspecified,
}

impl UuidForm {
    /// Returns the subtype and bytes of a UUID. `None` for `Unspecified`.
    pub(crate) fn binary(self, mut bytes: [u8; 16]) -> Option<(u8, [u8; 16])> {
        match self {
            UuidForm::Standard => return Some((SUBTYPE_UUID, bytes)),
            UuidForm::Unspecified => return None,
            UuidForm::PythonLegacy => {}
            UuidForm::JavaLegacy => {
                bytes[..8].reverse();
                bytes[8..].reverse();
            }
            UuidForm::CsharpLegacy => {
                bytes[..4].reverse();
                bytes[4..6].reverse();
                bytes[6..8].reverse();
            }
        }
        Some((SUBTYPE_OLD_UUID, bytes))
    }
}

/// The destination of documents. The encoder writes the length of a document last, at its start.
/// The start must be in memory, or [`Sink::patch_at`] must overwrite it.
pub(crate) trait Sink: ByteSink {
    /// Returns the number of bytes that are no longer in the buffer.
    fn before(&self) -> usize {
        0
    }

    /// Overwrites written bytes from offset `at` on.
    fn patch_at(&mut self, at: usize, bytes: &[u8]);

    /// Sets the estimated size of the output, before the sink grows.
    fn expect(&mut self, _n_bytes: usize) {}
}

impl Sink for FreshBytes<'_, '_> {
    fn patch_at(&mut self, at: usize, bytes: &[u8]) {
        self.committed_mut()[at..][..bytes.len()].copy_from_slice(bytes);
    }

    fn expect(&mut self, n_bytes: usize) {
        FreshBytes::expect(self, n_bytes);
    }
}

impl Sink for Vec<u8> {
    fn patch_at(&mut self, at: usize, bytes: &[u8]) {
        self[at..][..bytes.len()].copy_from_slice(bytes);
    }
}

impl Sink for Fixed<'_> {
    fn before(&self) -> usize {
        self.settled()
    }

    fn patch_at(&mut self, at: usize, bytes: &[u8]) {
        self.patch_settled(at, bytes);
    }
}
