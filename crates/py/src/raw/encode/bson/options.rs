//! The interface of the BSON encoder: its options, the trait through which it calls Python code,
//! the sinks (destinations) of its output, and its errors.

use onecopy_text::{ByteSink, Policy};
use onecopy_wire::bson::{SUBTYPE_OLD_UUID, SUBTYPE_UUID, Tag};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::raw::binary::FreshBytes;
use crate::raw::encode::state::TooDeep;
use crate::raw::encode::{Fixed, Natives};
use crate::raw::ndarray::Memory;

/// The reason why the BSON encoder has failed.
#[derive(Debug)]
pub(crate) enum BsonStop {
    /// An exception that Python code or a failed allocation has raised.
    Python(PyErr),
    /// The sink cannot grow: no memory is left, or the destination buffer is full.
    Full,
    /// Containers are nested more deeply than allowed; `is_circular` is `true` if a container
    /// contains itself.
    TooDeep { is_circular: bool },
    /// The document is larger than [`Style::max_bytes`], or exceeds the 32-bit lengths of BSON.
    TooLong,
    /// A string contains the lone surrogate `unit`, at the index `at` in its code units.
    Surrogate { at: usize, unit: u32 },
    /// An integer does not fit into a signed 64-bit integer.
    Int,
    /// A key contains a NUL character.
    NulInKey,
    /// A key begins with a dollar sign or contains a dot, which the option `check_keys` forbids.
    KeyForm,
    /// A key is an object of this class instead of a `str`.
    Key { class: String },
    /// Python code changed a `dict` while the encoder iterated over it.
    Changed,
    /// BSON cannot represent an object of this class, and `default` is not set.
    Unknown { class: String },
    /// The root (the argument of the call) is an object of this class, which cannot be written as a
    /// document.
    NotADocument { class: String },
    /// BSON supports the type of a value, but cannot represent this value. `kind` is the name of
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

/// A failure of the encoder, with the path of the value that cannot be written, such as
/// `$.rows[3].price`.
#[derive(Debug)]
pub(crate) struct EncodeFailure {
    pub(crate) stop: BsonStop,
    pub(crate) path: String,
    /// The value or key that cannot be represented; `None` for other failures.
    pub(crate) culprit: Option<Py<PyAny>>,
}

/// How an object that is not of a built-in type is written.
pub(crate) enum ObjectForm<'py> {
    /// [`ObjectForms::other`] has already written the value. The encoder still has to write the tag
    /// of the value, which this variant contains.
    Put(Tag),
    /// The string that the encoder writes instead of the object, and the tag of this string.
    Text(Tag, Bound<'py, PyString>),
    /// A code string and a scope, which is written as a document. Together they form the BSON type
    /// "code with scope".
    Code(Bound<'py, PyString>, Bound<'py, PyAny>),
    /// The encoder writes this object instead of the original object.
    Instead(Bound<'py, PyAny>),
    /// The encoder writes this object instead of the original object. The option `check_keys` does
    /// not apply to its keys, because the keys of a `DBRef` begin with a dollar sign.
    Unchecked(Bound<'py, PyAny>),
    /// A NumPy array or scalar, which is read from its memory. It is boxed because the other forms
    /// are much smaller.
    Memory(Box<Memory<'py>>),
    /// An instance of a class derived from list or tuple: its items are written as an array.
    Items,
    /// A list in which keys (each a `str`) and values alternate. It is written as a document.
    Pairs(Bound<'py, PyList>),
}

/// Handles objects whose types the encoder itself does not support. The methods write such an
/// object, or determine how the encoder writes it. They may run any Python code.
pub(crate) trait ObjectForms<'py> {
    /// Either writes the value of an object, without its tag and key, and returns
    /// `ObjectForm::Put`, or returns another [`ObjectForm`], which determines how the encoder
    /// writes the object. Returns `None` if the encoder must call `ObjectForms::default`.
    fn other(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<ObjectForm<'py>>, BsonStop>;

    /// Applies the option `datetime_range` to a datetime outside of the years 1 to 9999. Returns
    /// the milliseconds since 1970 to write, or an error.
    fn ranged(&self, ms: i64) -> Result<i64, BsonStop>;

    /// Calls the caller's function `default` for an object for which [`ObjectForms::other`] has
    /// returned `None`. `default` may start another encoder, and such calls may be deeply nested.
    /// This method is separate from `other`, so that the variables of `other` do not occupy the
    /// stack during the call.
    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, BsonStop>;
}

/// The options that affect the bytes of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// `true` if keys that begin with a dollar sign or contain a dot are an error.
    pub(crate) check_keys: bool,
    /// The handling of lone surrogates: one of [`Policy::BASIC`].
    pub(crate) surrogates: Policy,
    /// The maximum depth of nested containers.
    pub(crate) max_depth: usize,
    /// The maximum size of a document, in bytes.
    pub(crate) max_bytes: usize,
    pub(crate) uuid: UuidForm,
    pub(crate) natives: Natives,
}

/// How UUIDs are written: their subtype and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UuidForm {
    Standard,
    PythonLegacy,
    JavaLegacy,
    CsharpLegacy,
    Unspecified,
}

impl UuidForm {
    /// Returns the BSON binary subtype and the bytes with which a UUID is written. Returns `None`
    /// for `Unspecified`, with which UUIDs cannot be written.
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

/// The destination of documents. The length at the start of a document is written last. Therefore,
/// until a document ends, it must be contiguous in the sink's memory, or [`Sink::patch_at`] must be
/// able to overwrite its start.
pub(crate) trait Sink: ByteSink {
    /// Returns the number of bytes of the output that have already been copied to the destination,
    /// and are therefore no longer in the memory to which the encoder writes.
    fn before(&self) -> usize {
        0
    }

    /// Overwrites bytes of the output that have already been written, from offset `at` on.
    fn patch_at(&mut self, at: usize, bytes: &[u8]);

    /// Sets the estimated final size of the output, in bytes. The encoder calls this function
    /// before the sink grows.
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
