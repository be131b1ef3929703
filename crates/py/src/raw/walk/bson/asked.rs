//! What is asked of a walk, what it asks of others, and why it may end early.

use onecopy_text::ByteSink;
use onecopy_wire::bson::{SUBTYPE_OLD_UUID, SUBTYPE_UUID, Tag};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::raw::binary::FreshBytes;
use crate::raw::ndarray::Memory;
use crate::raw::walk::{Fixed, Natives};

/// Why the walk ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Python's error, from code that ran or for memory.
    Python(PyErr),
    /// The chunk cannot grow.
    Full,
    /// There are more containers inside of each other than asked for; whether one holds itself.
    TooDeep { is_circular: bool },
    /// The document would have more bytes than asked for.
    TooLong,
    /// A lone surrogate, and its place in the text.
    Surrogate { at: usize, unit: u32 },
    /// An `int` past 64 bits.
    Int,
    /// A key holds NUL.
    NulInKey,
    /// A key begins with a dollar or holds a dot, where keys are checked.
    KeyForm,
    /// A key is of this type, which is no `str`.
    Key { class: String },
    /// A `dict` was changed by code that ran meanwhile.
    Changed,
    /// Nothing stands for an object of this type.
    Unknown { class: String },
    /// What is to be a document is none, but of this type.
    NotADocument { class: String },
    /// A value of a type that has a form has none itself: which kind of value, and why.
    Value { kind: &'static str, reason: String },
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Stop {
        Stop::Python(error)
    }
}

impl From<onecopy_text::SinkFull> for Stop {
    fn from(_: onecopy_text::SinkFull) -> Stop {
        Stop::Full
    }
}

/// Where in the document a walk ended: what leads to it, as `$.rows[3].price`.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) stop: Stop,
    pub(crate) path: String,
    /// The value or key that has no form, where it is one.
    pub(crate) culprit: Option<Py<PyAny>>,
}

/// What stands for an object that is none of CPython's own types.
pub(crate) enum Other<'py> {
    /// A value of this tag, which was put.
    Put(Tag),
    /// Text, with this tag.
    Text(Tag, Bound<'py, PyString>),
    /// Text with a document behind it: code with its scope.
    Code(Bound<'py, PyString>, Bound<'py, PyAny>),
    /// Another object, to be written in its place.
    Instead(Bound<'py, PyAny>),
    /// As [`Other::Instead`]; its keys and those inside of it are not checked: those of a DBRef begin with a dollar.
    Unchecked(Bound<'py, PyAny>),
    /// An array or scalar of NumPy's, to be read from its memory.
    Memory(Memory<'py>),
    /// Nothing: it is a list or tuple of a class of its own, to be gone through as one.
    Items,
    /// A list of keys (each a `str`) and values in turn, to be written as a document.
    Pairs(Bound<'py, PyList>),
}

/// Writes all objects that the walk does not know. Any Python code may run here.
pub(crate) trait Others<'py> {
    /// Puts the value of an object, or says what stands for it. What is put is no more than the value.
    fn other(
        &self,
        object: &Bound<'py, PyAny>,
        out: &mut dyn ByteSink,
    ) -> Result<Option<Other<'py>>, Stop>;

    /// The milliseconds that are written for a moment outside of the years 1 to 9999.
    fn ranged(&self, ms: i64) -> Result<i64, Stop>;

    /// What the caller's function gives for an object that has no form. It is called by the walk itself, so that the
    /// variables of [`Others::other`] are off the stack: the function may nest another walk.
    fn default(&self, object: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Stop>;
}

/// How documents are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Whether keys may not begin with a dollar, nor hold a dot.
    pub(crate) check_keys: bool,
    /// Whether lone surrogates become U+FFFD; else they are an error.
    pub(crate) replace: bool,
    /// Levels of containers at most.
    pub(crate) max_depth: usize,
    /// Bytes of a document at most.
    pub(crate) max_size: usize,
    pub(crate) uuid: UuidForm,
    pub(crate) natives: Natives,
}

/// How a UUID is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UuidForm {
    Standard,
    PythonLegacy,
    JavaLegacy,
    CsharpLegacy,
    Unspecified,
}

impl UuidForm {
    /// The subtype and the bytes of a UUID; `None` where it has no form.
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

/// Where documents go: all of one is in one piece, or reached by [`Sink::patch_at`], until it ends.
pub(crate) trait Sink: ByteSink {
    /// Bytes in front of those that are committed, which are not among them any more.
    fn before(&self) -> usize {
        0
    }

    /// Overwrites what stands in front of those that are committed.
    fn patch_at(&mut self, at: usize, bytes: &[u8]);

    /// Told before it grows: how many bytes a document will have, as far as can be said by now.
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
