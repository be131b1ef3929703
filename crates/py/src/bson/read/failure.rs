//! `DecodeFailure`, the error of a decode call, and `Extent`.

use onecopy_wire::bson::read::{ReadError, Reason};
use pyo3::prelude::*;

use super::error;

/// How many documents a call decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// One document that fills the whole buffer.
    One,
    /// All documents in the buffer.
    All,
}

pub(super) enum DecodeFailure {
    Read(ReadError),
    Python(PyErr),
}

impl DecodeFailure {
    /// Adds `n_bytes` to the offset of a reader error.
    pub(super) fn later_by(self, n_bytes: usize) -> DecodeFailure {
        match self {
            DecodeFailure::Read(e) => DecodeFailure::Read(e.later_by(n_bytes)),
            DecodeFailure::Python(e) => DecodeFailure::Python(e),
        }
    }

    #[cold]
    pub(super) fn into_py(self, py: Python<'_>) -> PyErr {
        match self {
            DecodeFailure::Read(e) => error::to_py(py, e),
            DecodeFailure::Python(e) => e,
        }
    }
}

impl From<PyErr> for DecodeFailure {
    fn from(e: PyErr) -> DecodeFailure {
        DecodeFailure::Python(e)
    }
}

pub(super) fn read_failed(reason: Reason, offset_bytes: usize) -> DecodeFailure {
    DecodeFailure::Read(ReadError {
        reason,
        offset_bytes,
    })
}
