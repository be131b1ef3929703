//! `RawDocument`: the fields of a document, each read where it lies when it is asked for.

use std::sync::Arc;

use onecopy_text::convert::with_kernels;
use onecopy_text::{Stage, Tally};
use onecopy_wire::bson::Tag;
use onecopy_wire::bson::read::{Element, Elements, Reason, document_len};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PySlice, PyString};

use super::decode::{Extent, Failed, objects};
use super::fields::{Part, Value, find, item, key, read_failed, with_utf8};
use super::options::{Document, Given, Kept, Options};
use crate::ledger;
use crate::raw::buffer::{Bytes, immutable};
use crate::raw::stack;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RawDocument>()
}

/// A document in a buffer, each field of which is read where it lies when it is asked for.
///
/// ``RawDocument(buffer, /, *, types='onecopy', tz_aware=True, datetime_range='error', uuid_representation='standard',
/// on_invalid_utf8='strict', decimals='decimal128', array_keys='any', max_depth=1000, max_size=2147483647)``: any buffer,
/// which holds one document and nothing else; the document keeps it alive. If the buffer is not
/// ``bytes``, the document keeps a copy. The options are those of `decode`.
///
/// A mapping of `str` to values. Documents inside are `RawDocument` too, of the same buffer, in arrays as well. Of a key that stands
/// twice the last one counts, as for `decode`. A key that an error handler made of malformed text is listed, and not found by its name.
///
/// Raises `BSONDecodeError` with a byte of the whole buffer: the length and the end of the document when it is made; what stands
/// in front of a field and behind it when one is asked for, by lengths; what stands in other fields is not looked at.
///
/// Copies: none of a ``bytes`` or a view of one, one of any other buffer; of a value that is read
/// the one that `decode` makes.
///
/// >>> doc = onecopy.bson.RawDocument(b'\x0c\0\0\0\x10a\0\x01\0\0\0\0')
/// >>> doc['a'], 'b' in doc
/// (1, False)
#[pyclass(frozen, mapping, module = "onecopy.bson")]
pub(crate) struct RawDocument {
    /// A `bytes`, or a memoryview of one.
    owner: Py<PyAny>,
    at: usize,
    len: usize,
    settings: Option<Arc<Kept>>,
}

/// Where the documents lie that stay as they are.
#[derive(Clone, Copy)]
pub(super) struct Parent<'a> {
    owner: &'a Py<PyAny>,
    /// Where the document starts whose parts are told.
    at: usize,
    settings: Option<&'a Arc<Kept>>,
}

impl Parent<'_> {
    /// The document that lies `at` bytes behind the start of this one.
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
    /// The documents of these bytes, which the owner keeps: one, or a list of all.
    pub(super) fn of<'py>(
        owner: &Bound<'py, PyAny>,
        bytes: &[u8],
        extent: Extent,
        options: &Given<'py>,
    ) -> Result<Bound<'py, PyAny>, Failed> {
        let py = owner.py();
        let settings = settings(options);
        if extent == Extent::One {
            let made = RawDocument::checked(owner, 0, bytes, &settings)?;
            return Ok(Bound::new(py, made)?.into_any());
        }
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let len = document_len(rest, options.rules.max_size);
            let len = len.map_err(|e| Failed::Read(e.later_by(at)))?;
            let document = rest.get(..len).unwrap_or(rest);
            let made = RawDocument::checked(owner, at, document, &settings);
            all.push(made.map_err(|e| e.later_by(at))?);
            at += len;
        }
        Ok(all.into_pyobject(py)?)
    }

    /// The document that these bytes are, `at` bytes behind the start of the owner's. Offsets are from its start.
    pub(super) fn of_part<'py>(
        owner: &Bound<'py, PyAny>,
        at: usize,
        document: &[u8],
        options: &Given<'py>,
    ) -> Result<Bound<'py, PyAny>, Failed> {
        let made = RawDocument::checked(owner, at, document, &settings(options))?;
        Ok(Bound::new(owner.py(), made)?.into_any())
    }

    fn checked(
        owner: &Bound<'_, PyAny>,
        at: usize,
        document: &[u8],
        settings: &Arc<Kept>,
    ) -> Result<RawDocument, Failed> {
        let max_size = settings.rules.max_size;
        let is_good = document_len(document, max_size).and_then(|_| Elements::of(document));
        is_good.map_err(Failed::Read)?;
        Ok(RawDocument {
            owner: owner.clone().unbind(),
            at,
            len: document.len(),
            settings: Some(settings.clone()),
        })
    }

    /// Does something with the bytes of the document.
    #[inline(always)]
    fn with_bytes<'py, R>(
        &self,
        py: Python<'py>,
        run: impl FnOnce(&[u8]) -> Result<R, Failed>,
    ) -> PyResult<R> {
        stack::check(py)?;
        let bytes = Bytes::of(self.owner.bind_borrowed(py))?;
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
            None => Options::usual(),
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

    /// The value of a key, where there is one.
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

    /// The value of an element.
    #[inline]
    fn value<'py>(
        &self,
        py: Python<'py>,
        document: &[u8],
        element: &Element<'_>,
    ) -> Result<Bound<'py, PyAny>, Failed> {
        if element.tag == Tag::Document.byte() {
            let made = self
                .parent()
                .inner(py, element.value_at, element.value.len());
            return Ok(made?);
        }
        let options = self.options(py);
        let mut tally = Tally::default();
        let is_kept = ledger::is_kept();
        let made = with_kernels(Value {
            py,
            document,
            part: Part::Value(element),
            options: &options,
            parent: self.parent(),
            tally: is_kept.then_some(&mut tally),
        });
        if is_kept {
            ledger::enter(py, &mut tally, Stage::Decode)?;
        }
        made
    }

    /// The fields as a dict; documents inside stay as they are.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = self.options(py);
        let mut tally = Tally::default();
        let is_kept = ledger::is_kept();
        let made = self.with_bytes(py, |document| {
            with_kernels(Value {
                py,
                document,
                part: Part::All,
                options: &options,
                parent: self.parent(),
                tally: is_kept.then_some(&mut tally),
            })
        })?;
        ledger::enter(py, &mut tally, Stage::Decode)?;
        Ok(made)
    }

    /// The keys, in the order in which they first stand there.
    fn all_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.options(py);
        self.with_bytes(py, |document| {
            let keys = PyDict::new(py);
            let mut elements = Elements::of(document).map_err(Failed::Read)?;
            while let Some(element) = elements.next_element().map_err(Failed::Read)? {
                keys.set_item(key(py, &element, &options)?, py.None())?;
            }
            Ok(keys)
        })
    }
}

/// The options of documents whose parts are to become dicts where they are decoded.
fn settings(options: &Given<'_>) -> Arc<Kept> {
    Arc::new(Options {
        document: Document::Dict,
        ..options.kept()
    })
}

#[pymethods]
impl RawDocument {
    #[new]
    #[pyo3(signature = (buffer, /, **options))]
    #[pyo3(
        text_signature = "(buffer, /, *, types='onecopy', tz_aware=True, datetime_range='error', \
        uuid_representation='standard', on_invalid_utf8='strict', decimals='decimal128', array_keys='any', \
        max_depth=1000, max_size=2147483647)"
    )]
    fn new(
        buffer: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<RawDocument> {
        let py = buffer.py();
        let owner = immutable(buffer.as_borrowed())?;
        let (settings, max_size) = match options {
            None => (None, usize::MAX),
            Some(keywords) => {
                let options = Given::of_keywords("RawDocument", keywords)?;
                let max_size = options.rules.max_size;
                (Some(Arc::new(options.kept())), max_size)
            }
        };
        let bytes = Bytes::of(owner.as_borrowed())?;
        let document = bytes.as_slice();
        let is_good = document_len(document, max_size).and_then(|_| Elements::of(document));
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

    /// The bytes of the document, as a view of the buffer. Copies: none.
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

    /// The value of a key, or the default.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.value_of(key)?.or(default))
    }

    /// The value at a path of keys and indices with dots between them (``a.b.3.c``), or the default where there is none.
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

    /// The keys.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.all_keys(py)?.call_method0("keys")
    }

    /// The values; documents among them stay as they are.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.fields(py)?.call_method0("values")
    }

    /// Keys and values; documents among them stay as they are.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.fields(py)?.call_method0("items")
    }

    /// All of it as a dict, and so what stands inside: what `decode` gives.
    fn decode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = self.options(py);
        self.with_bytes(py, |document| objects(py, document, Extent::One, &options))
    }

    /// Another raw document is equal where its bytes are; any other mapping where what this one decodes to is.
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

    /// Bytes of its own, and the options.
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
