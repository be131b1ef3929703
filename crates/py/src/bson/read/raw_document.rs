//! `RawDocument`: a BSON document that decodes a field at each access. `mapping.rs` contains its
//! methods.

use std::sync::Arc;

use onecopy_wire::bson::read::{Elements, document_len};
use pyo3::prelude::*;

use super::failure::{DecodeFailure, Extent};
use super::options::{BsonReadOptions, Document, Given, OwnedBsonReadOptions};

/// A BSON document in a buffer. Each access to a field decodes this field again.
///
/// ``RawDocument(buffer, /, *, compat=None, tz_aware=True, datetime_range='error',
/// uuid_representation='standard', errors='strict', decimals='decimal128', array_keys='any',
/// max_depth=1000, max_bytes=2147483647)``: `buffer` is any object with a buffer of exactly one
/// document. The `RawDocument` keeps a ``bytes``, or a view of one, alive. It copies any other
/// buffer. The options are those of `decode`.
///
/// A mapping from `str` to values. Nested documents, also those in arrays, are `RawDocument`
/// objects over the same buffer. If a key occurs several times, its last value is returned, as in
/// `decode`. `keys` lists a malformed key with its replacement, but a lookup of this key fails.
///
/// Raises `BSONDecodeError`. Its offset is relative to the start of the whole buffer. The
/// constructor checks only the length and the end of the document. Each access to a field checks
/// only the lengths of the other fields.
///
/// Copies: a ``bytes`` or a view of one is not copied, any other buffer is copied once. Each access
/// to a value copies it as `decode` does.
///
/// >>> doc = onecopy.bson.RawDocument(b'\x0c\0\0\0\x10a\0\x01\0\0\0\0')
/// >>> doc['a'], 'b' in doc
/// (1, False)
#[pyclass(frozen, mapping, module = "onecopy.bson")]
pub(crate) struct RawDocument {
    /// The owner of the bytes: a `bytes`, or a memoryview of one.
    pub(super) owner: Py<PyAny>,
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) settings: Option<Arc<OwnedBsonReadOptions>>,
}

/// The position of a raw document in its buffer.
#[derive(Clone, Copy)]
pub(super) struct Parent<'a> {
    pub(super) owner: &'a Py<PyAny>,
    /// The offset of the document in `owner`, in bytes.
    pub(super) at: usize,
    pub(super) settings: Option<&'a Arc<OwnedBsonReadOptions>>,
}

impl Parent<'_> {
    /// Creates the nested document at the offset `at` of the parent document.
    pub(super) fn inner<'py>(
        self,
        py: Python<'py>,
        at: usize,
        len: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = RawDocument {
            owner: self.owner.clone_ref(py),
            at: self.at + at,
            len,
            settings: self.settings.cloned(),
        };
        Ok(Bound::new(py, made)?.into_any())
    }
}

impl RawDocument {
    /// Creates a `RawDocument` for `bytes`, or a list of them for `Extent::All`. `owner` owns the
    /// bytes.
    pub(super) fn of<'py>(
        owner: &Bound<'py, PyAny>,
        bytes: &[u8],
        extent: Extent,
        options: &Given<'py>,
    ) -> Result<Bound<'py, PyAny>, DecodeFailure> {
        let py = owner.py();
        let settings = settings(options);
        if extent == Extent::One {
            let made = RawDocument::checked(owner, 0, bytes, &settings)?;
            return Ok(Bound::new(py, made)?.into_any());
        }
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let len = document_len(rest, options.rules.max_bytes);
            let len = len.map_err(|e| DecodeFailure::Read(e.later_by(at)))?;
            let document = rest.get(..len).unwrap_or(rest);
            let made = RawDocument::checked(owner, at, document, &settings);
            all.push(made.map_err(|e| e.later_by(at))?);
            at += len;
        }
        Ok(all.into_pyobject(py)?)
    }

    /// Creates the `RawDocument` for the slice `document` at the offset `at` of the owner.
    pub(super) fn of_part<'py>(
        owner: &Bound<'py, PyAny>,
        at: usize,
        document: &[u8],
        options: &Given<'py>,
    ) -> Result<Bound<'py, PyAny>, DecodeFailure> {
        let made = RawDocument::checked(owner, at, document, &settings(options))?;
        Ok(Bound::new(owner.py(), made)?.into_any())
    }

    fn checked(
        owner: &Bound<'_, PyAny>,
        at: usize,
        document: &[u8],
        settings: &Arc<OwnedBsonReadOptions>,
    ) -> Result<RawDocument, DecodeFailure> {
        let max_bytes = settings.rules.max_bytes;
        let is_good = document_len(document, max_bytes).and_then(|_| Elements::of(document));
        is_good.map_err(DecodeFailure::Read)?;
        Ok(RawDocument {
            owner: owner.clone().unbind(),
            at,
            len: document.len(),
            settings: Some(settings.clone()),
        })
    }
}

/// Copies the options, and selects dicts for nested documents.
fn settings(options: &Given<'_>) -> Arc<OwnedBsonReadOptions> {
    Arc::new(BsonReadOptions {
        document: Document::Dict,
        ..options.kept()
    })
}
