//! The interface of the BSON encoder: its options, the trait by which it calls Python code, its
//! sinks, and the reasons for which it fails.

use onecopy_text::{ByteSink, Policy};
use onecopy_wire::bson::{SUBTYPE_OLD_UUID, SUBTYPE_UUID, Tag};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::raw::binary::FreshBytes;
use crate::raw::encode::state::TooDeep;
use crate::raw::encode::{Fixed, Natives};
use crate::raw::ndarray::Memory;

/// The reason for which the BSON encoder has failed.
#[derive(Debug)]
pub(crate) enum BsonStop {
    /// Python code that was called, or an allocation, has raised this exception.
    Python(PyErr),
    /// The sink cannot grow: no memory is left, or the destination buffer is full.
    Full,
    /// Containers are nested more deeply than allowed; `is_circular` is `true` if one contains
    /// itself.
    TooDeep { is_circular: bool },
    /// The document is larger than [`Style::max_bytes`], or too large for the lengths in BSON,
    /// which have 32 bits.
    TooLong,
    /// A text contains the lone surrogate `unit`, at position `at` in its code units.
    Surrogate { at: usize, unit: u32 },
    /// An integer does not fit in 64 bits with a sign.
    Int,
    /// A key contains NUL.
    NulInKey,
    /// A key begins with a dollar or contains a dot, and the option `check_keys` forbids it.
    KeyForm,
    /// A key is not a `str` but an object of this class.
    Key { class: String },
    /// Python code has changed a `dict` while the encoder iterated over it.
    Changed,
    /// BSON cannot represent an object of this class, and `default` is not set.
    Unknown { class: String },
    /// The root (the argument of the call) is an object of this class, which is not written as a
    /// document.
    NotADocument { class: String },
    /// BSON cannot represent a value, although it supports the value's type. `kind` is the name of
    /// the type for the error message, such as `datetime`.
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

/// A failure of the encoder, with the path of the value that it could not write, such as
/// `$.rows[3].price`.
#[derive(Debug)]
pub(crate) struct EncodeFailure {
    pub(crate) stop: BsonStop,
    pub(crate) path: String,
    /// The value or key that cannot be represented; `None` for other failures.
    pub(crate) culprit: Option<Py<PyAny>>,
}

/// The form in which an object that is not of a built-in type is written.
pub(crate) enum ObjectForm<'py> {
    /// [`ObjectForms::other`] has written the value. The encoder must write this tag.
    Put(Tag),
    /// The text that the encoder writes instead of the object, and the tag for it.
    Text(Tag, Bound<'py, PyString>),
    /// A text and an object that is written as a document: the BSON type "code with scope".
    Code(Bound<'py, PyString>, Bound<'py, PyAny>),
    /// The encoder writes this object instead of the original object.
    Instead(Bound<'py, PyAny>),
    /// The encoder writes this object instead of the original object. The option `check_keys` does
    /// not apply to keys inside it, because those of a `DBRef` begin with a dollar.
    Unchecked(Bound<'py, PyAny>),
    /// A NumPy array or scalar, which is read from its memory.
    Memory(Memory<'py>),
    /// An instance of a class derived from list or tuple: its items are written as an array.
    Items,
    /// A list of keys (each a `str`) and values, alternately, which are written as a document.
    Pairs(Bound<'py, PyList>),
}

/// Writes objects of types that the encoder itself does not support, or determines their form. Any
/// Python code may run.
pub(crate) trait ObjectForms<'py> {
    /// Writes the value of an object, without its tag and key, or returns the [`ObjectForm`] in
    /// which it is to be written.
    fn other(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<ObjectForm<'py>>, BsonStop>;

    /// Returns the milliseconds since 1970 to write for a datetime outside of the years 1 to 9999,
    /// or an error, as the option `datetime_range` requires.
    fn ranged(&self, ms: i64) -> Result<i64, BsonStop>;

    /// Calls the caller's function `default` for an object for which [`ObjectForms::other`]
    /// returned `None`. The encoder calls this method after `other` has returned, so that the
    /// variables of `other` are not on the stack. This matters because the function may start
    /// another encoder.
    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, BsonStop>;
}

/// The options that determine the bytes of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// `true` if a key must not begin with a dollar or contain a dot.
    pub(crate) check_keys: bool,
    /// The handling of lone surrogates: one of [`Policy::BASIC`].
    pub(crate) surrogates: Policy,
    /// The largest depth of nested containers.
    pub(crate) max_depth: usize,
    /// The largest size of a document, in bytes.
    pub(crate) max_bytes: usize,
    pub(crate) uuid: UuidForm,
    pub(crate) natives: Natives,
}

/// The subtype and byte order in which UUIDs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UuidForm {
    Standard,
    PythonLegacy,
    JavaLegacy,
    CsharpLegacy,
    Unspecified,
}

impl UuidForm {
    /// Returns the BSON binary subtype and the bytes with which a UUID is written; `None` for
    /// `Unspecified`, which does not define how a UUID is written.
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

/// The destination of documents. The length at the start of a document is written when the document
/// ends. Therefore a document that has not ended is contiguous in the sink's memory, or its start
/// can be overwritten by [`Sink::patch_at`].
pub(crate) trait Sink: ByteSink {
    /// Returns the number of bytes of the output that were already copied to the destination, so
    /// that they are no longer in the memory to which the encoder writes.
    fn before(&self) -> usize {
        0
    }

    /// Overwrites the bytes at offset `at` of the output, which must have been written before.
    fn patch_at(&mut self, at: usize, bytes: &[u8]);

    /// Receives the estimated final size of the output, in bytes. It is called before the sink
    /// grows.
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
