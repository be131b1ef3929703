//! `BSONDocuments`: the iterator of `decode_iter`.

use std::sync::{Mutex, TryLockError};

use onecopy_wire::bson::read::{ReadError, Reason, document_len};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::decode::objects;
use super::failure::{DecodeFailure, Extent};
use super::options::{Document, Given, OwnedBsonReadOptions, options_signature, with_options};
use super::raw_document::RawDocument;
use crate::raw::binary;
use crate::raw::buffer::{BufferBytes, immutable};
use crate::raw::function::{self, Args, Function};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BSONDocuments>()?;
    function::add::<DecodeIter>(module)
}

/// The size in bytes of one read from a file.
const READ_BYTES: usize = 64 << 10;

struct DecodeIter;

impl Function for DecodeIter {
    const NAME: &'static str = "bson_decode_iter";
    const SIGNATURE: &'static str = options_signature!("source");
    const DOC: &'static str = "\
An iterator over concatenated documents, each decoded when it is requested.

``source`` is any buffer (a copy of it is read if it is not ``bytes``); a binary file, read from
its position on in pieces of 64 KiB; or an iterable of buffers, split anywhere. The options and
errors are those of :func:`decode`; offsets are those in the whole. Iteration can continue after an
invalid document, unless its length is wrong: then the start of the next one is unknown, and the
iterator ends.

Memory: a piece, and a document that is longer or split over several. Copies: one, of each text
into its `str`; one more of a document that is split over several pieces.

>>> import io
>>> list(onecopy.bson.decode_iter(io.BytesIO(b'\\x05\\0\\0\\0\\0' * 2)))
[{}, {}]
";
    const PARAMETERS: &'static [&'static str] = with_options!("source");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = Given::of(args)?.kept();
        let source = args.required(0);
        let (piece, more) = if BufferBytes::is_buffer(source) {
            (Some(immutable(source)?.unbind()), None)
        } else if source.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "the source must be a bytes-like object, a binary file or an iterable of buffers, not 'str'",
            ));
        } else if let Some(read) = source.getattr_opt("read")? {
            (None, Some(More::File(read.unbind())))
        } else {
            (
                None,
                Some(More::Pieces(source.try_iter()?.into_any().unbind())),
            )
        };
        let state = IterState {
            piece,
            at: 0,
            parts: Vec::new(),
            before: 0,
            more,
        };
        let documents = BSONDocuments {
            options,
            state: Mutex::new(state),
        };
        Ok(Bound::new(py, documents)?.into_any())
    }
}

/// The source of the next buffers.
enum More {
    /// The method `read` of a Python file object.
    File(Py<PyAny>),
    /// An iterator over buffers.
    Pieces(Py<PyAny>),
}

struct IterState {
    /// The current buffer. `at` is the offset of its next byte.
    piece: Option<Py<PyAny>>,
    at: usize,
    /// The start of a document from an earlier buffer.
    parts: Vec<u8>,
    /// The offset of the next document in the whole input, in bytes.
    before: usize,
    more: Option<More>,
}

/// An iterator over concatenated documents. Each document is decoded when it is requested.
#[pyclass(frozen, module = "onecopy.bson")]
struct BSONDocuments {
    options: OwnedBsonReadOptions,
    /// The state of the iteration. A second thread gets an error instead of waiting.
    state: Mutex<IterState>,
}

#[pymethods]
impl BSONDocuments {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(PyValueError::new_err(
                    "the documents are being read already",
                ));
            }
        };
        let options = self.options.bind(py);
        let before = state.before;
        match state.next(py, &options) {
            Ok(made) => Ok(made),
            Err(e) => Err(e.later_by(before).into_py(py)),
        }
    }
}

impl IterState {
    /// Returns the next document. The offset in an error is relative to this document.
    fn next<'py>(
        &mut self,
        py: Python<'py>,
        options: &Given<'py>,
    ) -> Result<Option<Bound<'py, PyAny>>, DecodeFailure> {
        loop {
            if let Some(piece) = self.piece.take() {
                let piece = piece.into_bound(py);
                let made = self.in_piece(&piece, options);
                let is_over = matches!(made, Ok(None));
                if !is_over {
                    self.piece = Some(piece.unbind());
                    return made;
                }
            }
            if !self.take_piece(py)? {
                if self.parts.is_empty() {
                    return Ok(None);
                }
                self.end();
                return Err(no(Reason::End));
            }
        }
    }

    /// Returns the next document if `piece` contains its end. Otherwise moves the rest of `piece`
    /// to `parts`.
    fn in_piece<'py>(
        &mut self,
        piece: &Bound<'py, PyAny>,
        options: &Given<'py>,
    ) -> Result<Option<Bound<'py, PyAny>>, DecodeFailure> {
        let py = piece.py();
        let bytes = BufferBytes::of(piece.as_borrowed())?;
        loop {
            let rest = bytes.as_slice().get(self.at..).unwrap_or_default();
            if self.parts.is_empty() {
                if rest.is_empty() {
                    return Ok(None);
                }
                if rest.len() >= size_of::<u32>() {
                    let len = self.len_of(rest, options)?;
                    if let Some(document) = rest.get(..len) {
                        let start = self.at;
                        self.at += len;
                        self.before += len;
                        return self
                            .made(py, document, Some((piece, start)), options)
                            .map(Some);
                    }
                }
                if self.more.is_none() {
                    self.end();
                    return Err(no(Reason::End));
                }
                self.parts.extend_from_slice(rest);
                self.at += rest.len();
                return Ok(None);
            }
            let len = match self.parts.len() {
                0..4 => 4,
                _ => {
                    let parts = std::mem::take(&mut self.parts);
                    let len = self.len_of(&parts, options)?;
                    self.parts = parts;
                    len
                }
            };
            let n = rest.len().min(len - self.parts.len());
            self.parts.extend_from_slice(&rest[..n]);
            self.at += n;
            if self.parts.len() < len {
                return Ok(None);
            }
            if len > 4 {
                let document = std::mem::take(&mut self.parts);
                self.before += len;
                return self.made(py, &document, None, options).map(Some);
            }
        }
    }

    /// Returns the length of the document that begins with `start`. An invalid length ends the
    /// iteration.
    fn len_of(&mut self, start: &[u8], options: &Given<'_>) -> Result<usize, DecodeFailure> {
        document_len(start, options.rules.max_bytes).map_err(|e| {
            self.end();
            DecodeFailure::Read(e)
        })
    }

    fn end(&mut self) {
        self.more = None;
        self.parts = Vec::new();
        self.at = usize::MAX;
    }

    fn made<'py>(
        &self,
        py: Python<'py>,
        document: &[u8],
        place: Option<(&Bound<'py, PyAny>, usize)>,
        options: &Given<'py>,
    ) -> Result<Bound<'py, PyAny>, DecodeFailure> {
        if !matches!(options.document, Document::Raw) {
            return objects(py, document, Extent::One, options);
        }
        match place {
            Some((piece, at)) => RawDocument::of_part(piece, at, document, options),
            None => {
                let own = binary::make(py, document)?;
                RawDocument::of_part(&own, 0, document, options)
            }
        }
    }

    /// Loads the next buffer into `self.piece`. Returns `false` at the end.
    fn take_piece(&mut self, py: Python<'_>) -> Result<bool, DecodeFailure> {
        let next = match &self.more {
            None => None,
            Some(More::File(read)) => {
                let read = read.bind(py).call1((READ_BYTES,))?;
                let is_end = BufferBytes::of(read.as_borrowed())?.as_slice().is_empty();
                (!is_end).then_some(read)
            }
            Some(More::Pieces(pieces)) => {
                let next = pieces.bind(py).call_method0("__next__");
                match next {
                    Ok(next) => Some(next),
                    Err(e) if e.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => None,
                    Err(e) => return Err(e.into()),
                }
            }
        };
        let Some(next) = next else {
            self.more = None;
            return Ok(false);
        };
        self.piece = Some(immutable(next.as_borrowed())?.unbind());
        self.at = 0;
        Ok(true)
    }
}

fn no(reason: Reason) -> DecodeFailure {
    DecodeFailure::Read(ReadError {
        reason,
        offset_bytes: 0,
    })
}
