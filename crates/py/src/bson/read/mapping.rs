//! The Python methods of `RawDocument`: a mapping that decodes its fields on access.

use std::sync::Arc;

use onecopy_text::convert::with_kernels;
use onecopy_text::{Stage, Tally};
use onecopy_wire::bson::Tag;
use onecopy_wire::bson::read::{Element, Elements, Reason, document_len};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PySlice, PyString};

use super::decode::objects;
use super::failure::{DecodeFailure, Extent, read_failed};
use super::fields::{DocumentPart, PartInput, find, item, key, with_utf8};
use super::options::{BsonReadOptions, Given};
use super::raw_document::{Parent, RawDocument};
use crate::ledger;
use crate::raw::buffer::{BufferBytes, immutable};
use crate::raw::stack;

impl RawDocument {
    /// Calls `run` with the bytes of the document.
    #[inline(always)]
    fn with_bytes<'py, R>(
        &self,
        py: Python<'py>,
        run: impl FnOnce(&[u8]) -> Result<R, DecodeFailure>,
    ) -> PyResult<R> {
        stack::check(py)?;
        let bytes = BufferBytes::of(self.owner.bind_borrowed(py))?;
        let document = bytes.as_slice().get(self.at..self.at + self.len);
        let made = match document {
            Some(document) => run(document),
            None => Err(read_failed(Reason::Changed, 0)),
        };
        made.map_err(|e| e.later_by(self.at).into_py(py))
    }

    #[inline]
    fn options<'py>(&self, py: Python<'py>) -> Given<'py> {
        match &self.settings {
            None => BsonReadOptions::usual(),
            Some(settings) => settings.bind(py),
        }
    }

    fn parent(&self) -> Parent<'_> {
        Parent {
            owner: &self.owner,
            at: self.at,
            settings: self.settings.as_ref(),
        }
    }

    /// Returns the decoded value of a key, if any.
    #[inline]
    fn value_of<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        with_utf8(key, |key| {
            self.with_bytes(py, |document| match find(document, key)? {
                Some(element) => self.value(py, document, &element).map(Some),
                None => Ok(None),
            })
        })
    }

    /// Decodes a BSON value. A nested document becomes a `RawDocument`.
    #[inline]
    fn value<'py>(
        &self,
        py: Python<'py>,
        document: &[u8],
        element: &Element<'_>,
    ) -> Result<Bound<'py, PyAny>, DecodeFailure> {
        if element.tag == Tag::Document.byte() {
            let made = self
                .parent()
                .inner(py, element.value_at, element.value.len());
            return Ok(made?);
        }
        let options = self.options(py);
        let mut tally = Tally::default();
        let is_kept = ledger::is_kept();
        let made = with_kernels(PartInput {
            py,
            document,
            part: DocumentPart::Value(element),
            options: &options,
            parent: self.parent(),
            tally: is_kept.then_some(&mut tally),
        });
        if is_kept {
            ledger::enter(py, &mut tally, Stage::Decode)?;
        }
        made
    }

    /// Returns the fields as a `dict`. Nested documents are `RawDocument` objects.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = self.options(py);
        let mut tally = Tally::default();
        let is_kept = ledger::is_kept();
        let made = self.with_bytes(py, |document| {
            with_kernels(PartInput {
                py,
                document,
                part: DocumentPart::All,
                options: &options,
                parent: self.parent(),
                tally: is_kept.then_some(&mut tally),
            })
        })?;
        ledger::enter(py, &mut tally, Stage::Decode)?;
        Ok(made)
    }

    /// Returns a dict of the document's keys, in order; each value is `None`.
    fn all_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.options(py);
        self.with_bytes(py, |document| {
            let keys = PyDict::new(py);
            let mut elements = Elements::of(document).map_err(DecodeFailure::Read)?;
            while let Some(element) = elements.next_element().map_err(DecodeFailure::Read)? {
                keys.set_item(key(py, &element, &options)?, py.None())?;
            }
            Ok(keys)
        })
    }
}

#[pymethods]
impl RawDocument {
    #[new]
    #[pyo3(signature = (buffer, /, **options))]
    #[pyo3(
        text_signature = "(buffer, /, *, compat=None, tz_aware=True, datetime_range='error', \
        uuid_representation='standard', errors='strict', decimals='decimal128', array_keys='any', \
        max_depth=1000, max_bytes=2147483647)"
    )]
    fn new(
        buffer: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<RawDocument> {
        let py = buffer.py();
        let owner = immutable(buffer.as_borrowed())?;
        let (settings, max_bytes) = match options {
            None => (None, usize::MAX),
            Some(keywords) => {
                let options = Given::of_keywords("RawDocument", keywords)?;
                let max_bytes = options.rules.max_bytes;
                (Some(Arc::new(options.kept())), max_bytes)
            }
        };
        let bytes = BufferBytes::of(owner.as_borrowed())?;
        let document = bytes.as_slice();
        let is_good = document_len(document, max_bytes).and_then(|_| Elements::of(document));
        is_good.map_err(|e| super::error::to_py(py, e))?;
        let len = document.len();
        drop(bytes);
        Ok(RawDocument {
            owner: owner.unbind(),
            at: 0,
            len,
            settings,
        })
    }

    /// The bytes of the document, as a memoryview of the buffer that contains it. Nothing is
    /// copied.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = PyMemoryView::from(self.owner.bind(py))?;
        let view = view.call_method1("cast", ("B",))?;
        let end = (self.at + self.len) as isize;
        view.get_item(PySlice::new(py, self.at as isize, end, 1))
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.value_of(key)?;
        found.ok_or_else(|| PyKeyError::new_err((key.clone().unbind(),)))
    }

    /// The value of a key, or the default if the document does not contain the key.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.value_of(key)?.or(default))
    }

    /// The value at a path of keys and indices, separated by dots (``a.b.3.c``). Returns the
    /// default if there is no such value.
    #[pyo3(signature = (path, default=None))]
    fn lookup<'py>(
        &self,
        path: &Bound<'py, PyString>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = path.py();
        let found = with_utf8(path, |path| {
            self.with_bytes(py, |document| {
                let (mut at, mut part, mut is_array) = (0, document, false);
                let mut steps = path.split(|&byte| byte == b'.').peekable();
                while let Some(step) = steps.next() {
                    let found = if is_array {
                        item(part, step)
                    } else {
                        find(part, step)
                    };
                    let found = found.map_err(|e| e.later_by(at))?;
                    let Some(element) = found else {
                        return Ok(None);
                    };
                    if steps.peek().is_none() {
                        let inner = RawDocument {
                            owner: self.owner.clone_ref(py),
                            at: self.at + at,
                            len: part.len(),
                            settings: self.settings.clone(),
                        };
                        let made = inner.value(py, part, &element);
                        return made.map(Some).map_err(|e| e.later_by(at));
                    }
                    is_array = element.tag == Tag::Array.byte();
                    if !is_array && element.tag != Tag::Document.byte() {
                        return Ok(None);
                    }
                    at += element.value_at;
                    part = element.value;
                }
                Ok(None)
            })
        });
        Ok(found?.or(default))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = key.py();
        with_utf8(key, |key| {
            self.with_bytes(py, |document| Ok(find(document, key)?.is_some()))
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.all_keys(py)?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.all_keys(py)?.try_iter()?.into_any())
    }

    /// The keys of the document, without decoding its values.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.all_keys(py)?.call_method0("keys")
    }

    /// The decoded values of the document. Nested documents are `RawDocument` objects.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.fields(py)?.call_method0("values")
    }

    /// The key-value pairs of the document. Nested documents are `RawDocument` objects.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.fields(py)?.call_method0("items")
    }

    /// Decodes the document and its nested documents to dicts. The result is that of
    /// `onecopy.bson.decode`.
    fn decode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = self.options(py);
        self.with_bytes(py, |document| objects(py, document, Extent::One, &options))
    }

    /// Compares the document with another object. Two raw documents are equal if their bytes are
    /// equal. Any other mapping is compared with the decoded document.
    fn __eq__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        if let Ok(other) = other.cast::<RawDocument>() {
            let other = other.get();
            let is_equal = self.with_bytes(py, |this| {
                Ok(other.with_bytes(py, |other| Ok(this == other))?)
            })?;
            return Ok(is_equal.into_pyobject(py)?.to_owned().into_any());
        }
        let mapping = py.import("collections.abc")?.getattr("Mapping")?;
        if !other.is_instance(&mapping)? {
            return Ok(py.NotImplemented().into_bound(py));
        }
        let other = py.get_type::<PyDict>().call1((other,))?;
        let this = self.decode(py)?;
        this.rich_compare(other, pyo3::basic::CompareOp::Eq)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let bytes = self.raw(py)?.call_method0("tobytes")?;
        Ok(format!("RawDocument({})", bytes.repr()?))
    }

    /// Returns the arguments for unpickling: the bytes of the document, and the options.
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<((Bound<'py, PyAny>,), Bound<'py, PyDict>)> {
        let bytes = self.raw(py)?.call_method0("tobytes")?;
        let keywords = match &self.settings {
            Some(settings) => settings.bind(py).keywords(py)?,
            None => PyDict::new(py),
        };
        Ok(((bytes,), keywords))
    }
}
