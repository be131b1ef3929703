//! `decode_iter`: one document at a time.

use std::sync::{Mutex, TryLockError};

use onecopy_wire::bson::read::{ReadError, Reason, document_len};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::decode::{Extent, Failed, objects};
use super::document::RawDocument;
use super::options::{Document, Given, Kept, options_signature, with_options};
use crate::raw::binary;
use crate::raw::buffer::{Bytes, immutable};
use crate::raw::method::{self, Args, Function};

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BSONDocuments>()?;
    method::add::<DecodeIter>(module)
}

/// Bytes that a file is asked for at once.
const READ_BYTES: usize = 64 << 10;

struct DecodeIter;

impl Function for DecodeIter {
    const NAME: &'static str = "bson_decode_iter";
    const SIGNATURE: &'static str = options_signature!("source");
    const DOC: &'static str = "\
An iterator over documents that stand one behind the other, each decoded when it is asked for.

``source`` is any buffer (a copy of it is read if it is not ``bytes``); a binary file, read from
its position on in pieces of 64 KiB; or an iterable of buffers, parted anywhere. The options, and what is raised, are those of :func:`decode`; offsets are those in the whole.
The document behind one that was wrong may be asked for, but where the length of that one was wrong: nobody knows where
it ends, and the iterator is at its end.

Memory: a piece, and a document that is longer or lies in several. Copies: one, of each text into its `str`; one more of a document
that lies in several pieces.

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
        let (piece, more) = if Bytes::is_buffer(source) {
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
        let state = State {
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

/// Where the next piece comes from.
enum More {
    /// The function that reads from a file.
    File(Py<PyAny>),
    /// An iterator of buffers.
    Pieces(Py<PyAny>),
}

struct State {
    /// A `bytes` or a view of a buffer, where one is under way, and where in it the next byte is.
    piece: Option<Py<PyAny>>,
    at: usize,
    /// The start of a document that goes on in the next piece.
    parts: Vec<u8>,
    /// Bytes before those, or before the next byte.
    before: usize,
    more: Option<More>,
}

/// Documents that stand one behind the other, each decoded when it is asked for.
#[pyclass(frozen, module = "onecopy.bson")]
struct BSONDocuments {
    options: Kept,
    /// Never waited for: who finds it taken is told.
    state: Mutex<State>,
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

impl State {
    /// The next document. Offsets are from its start.
    fn next<'py>(
        &mut self,
        py: Python<'py>,
        options: &Given<'py>,
    ) -> Result<Option<Bound<'py, PyAny>>, Failed> {
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

    /// The document that ends in this piece; `None` where none does, and all of it was taken.
    fn in_piece<'py>(
        &mut self,
        piece: &Bound<'py, PyAny>,
        options: &Given<'py>,
    ) -> Result<Option<Bound<'py, PyAny>>, Failed> {
        let py = piece.py();
        let bytes = Bytes::of(piece.as_borrowed())?;
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

    /// Bytes of the document that starts with these; nothing comes behind one whose length is wrong.
    fn len_of(&mut self, start: &[u8], options: &Given<'_>) -> Result<usize, Failed> {
        document_len(start, options.rules.max_size).map_err(|e| {
            self.end();
            Failed::Read(e)
        })
    }

    /// Nothing comes any more.
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
    ) -> Result<Bound<'py, PyAny>, Failed> {
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

    /// Takes the next piece; whether there was one.
    fn take_piece(&mut self, py: Python<'_>) -> Result<bool, Failed> {
        let next = match &self.more {
            None => None,
            Some(More::File(read)) => {
                let read = read.bind(py).call1((READ_BYTES,))?;
                let is_end = Bytes::of(read.as_borrowed())?.as_slice().is_empty();
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

fn no(reason: Reason) -> Failed {
    Failed::Read(ReadError {
        reason,
        offset_bytes: 0,
    })
}
