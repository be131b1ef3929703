//! Converts an application's result (a `bytes` iterable, a file or a row stream) to a response
//! body.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use onecopy_serve::{Body, Chunks, FileBody, ItemSink, Items, Pulled, Pushed, SharedBytes};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyTuple};

use super::files::FileAnswer;
use super::handler::Log;
use crate::raw::gil;
use crate::raw::pinned_bytes::PinnedBytes;
use crate::stream::{Left, RowStream};
use crate::stream_output::Output;

/// A body of at most this many bytes is copied. A copy is faster than a reference to the Python
/// object.
const FEW_BYTES: usize = 1024;

/// ``environ["wsgi.file_wrapper"]``: a file as the body of a response (PEP 3333). The kernel sends
/// a regular file with sendfile(2), from its current position on, without reading it into memory.
/// Any other object with ``read`` is read block by block.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct FileWrapper {
    file: Py<PyAny>,
    block_bytes: usize,
}

#[pymethods]
impl FileWrapper {
    #[new]
    #[pyo3(signature = (filelike, block_size=65536, /))]
    fn new(filelike: Py<PyAny>, block_size: usize) -> PyResult<FileWrapper> {
        if block_size == 0 {
            return Err(PyValueError::new_err(
                "`block_size` is a number of bytes from 1",
            ));
        }
        Ok(FileWrapper {
            file: filelike,
            block_bytes: block_size,
        })
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let block = self
            .file
            .bind(py)
            .call_method1("read", (self.block_bytes,))?;
        Ok(block.is_truthy()?.then_some(block))
    }

    /// Closes the file, if it has a method `close`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        close(self.file.bind(py))
    }
}

fn close(object: &Bound<'_, PyAny>) -> PyResult<()> {
    match object.getattr_opt("close")? {
        Some(close) => close.call0().map(drop),
        None => Ok(()),
    }
}

/// An application's iterable. `close` is called after the response (PEP 3333).
pub(super) struct Closing {
    object: Option<Py<PyAny>>,
    log: Log,
}

impl Closing {
    pub(super) fn new(object: Bound<'_, PyAny>, log: &Log) -> Closing {
        Closing {
            object: Some(object.unbind()),
            log: log.clone(),
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else {
            return;
        };
        // During finalization, `close` cannot be called.
        gil::try_attach(|py| {
            if let Err(error) = close(object.bind(py)) {
                self.log
                    .failed(py, "closing the body of an answer failed", &error);
            }
            drop(object);
        });
    }
}

/// A regular file that the kernel sends. Afterwards, `close` of the application's file object is
/// called.
struct OpenFile {
    file: File,
    _closing: Closing,
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The items of an application's iterable: those already read, then the rest.
struct Iteration {
    ready: std::vec::IntoIter<SharedBytes>,
    iterator: Py<PyIterator>,
    closing: Closing,
}

impl Items for Iteration {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        for item in self.ready.by_ref() {
            match sink.push(item) {
                Pushed::Next => {}
                Pushed::Full => return Pulled::More,
                Pushed::Enough => return Pulled::Done,
            }
        }
        let pulled = gil::try_attach(|py| {
            for item in self.iterator.bind(py).clone() {
                let item = match item.and_then(|item| held(&item)) {
                    Ok(item) => item,
                    Err(error) => {
                        self.closing
                            .log
                            .failed(py, "the body of an answer broke off", &error);
                        return Pulled::Failed;
                    }
                };
                match sink.push(item) {
                    Pushed::Next => {}
                    Pushed::Full => return Pulled::More,
                    Pushed::Enough => return Pulled::Done,
                }
            }
            Pulled::Done
        });
        pulled.unwrap_or(Pulled::Failed) // there is no interpreter any more
    }
}

/// Converts a `bytes` item of the application's iterable to shared bytes, without a copy.
fn held(item: &Bound<'_, PyAny>) -> PyResult<SharedBytes> {
    let bytes = item.cast::<PyBytes>().map_err(|_| {
        PyTypeError::new_err(format!(
            "an item of the body is {}, not bytes\nencode text before it is given to the server",
            item.get_type()
        ))
    })?;
    Ok(SharedBytes::new(PinnedBytes::new(bytes.clone())))
}

/// The body of an application's response. It is created after the first non-empty item, because the
/// application may call `start_response` until then (PEP 3333).
pub(super) struct Answered {
    /// The items that have already been read from the iterable.
    ready: Vec<SharedBytes>,
    rest: BodyRest,
}

/// The part of the body after [`Answered::ready`].
enum BodyRest {
    Nothing,
    /// A copied short body; [`Answered::ready`] is empty.
    Few(Vec<u8>),
    Items(Py<PyIterator>, Closing),
    /// A file; [`Answered::ready`] is empty, like for `Found` and `Rows`.
    File(FileBody),
    Found(Body),
    Rows(Box<Chunks>),
}

impl Answered {
    /// Returns the body of the response, and its length in bytes if it is known.
    pub(super) fn into_body(mut self) -> (Body, Option<u64>) {
        match self.rest {
            BodyRest::Few(bytes) => {
                let n_bytes = bytes.len() as u64;
                (Body::Bytes(bytes), Some(n_bytes))
            }
            BodyRest::Nothing => {
                let n_bytes = self.ready.iter().map(|item| item.len() as u64).sum();
                let body = match self.ready.len() {
                    0 => Body::Empty,
                    1 => self.ready.pop().map_or(Body::Empty, Body::SharedBytes),
                    _ => Body::Parts(self.ready),
                };
                (body, Some(n_bytes))
            }
            BodyRest::File(file) => {
                let n_bytes = file.len_bytes() as u64;
                (Body::File(file), Some(n_bytes))
            }
            BodyRest::Found(body) => {
                let n_bytes = body.len_bytes().map(|n| n as u64);
                (body, n_bytes)
            }
            BodyRest::Rows(chunks) => (Body::Chunks(chunks), None),
            BodyRest::Items(iterator, closing) => {
                let items = Iteration {
                    ready: self.ready.into_iter(),
                    iterator,
                    closing,
                };
                (Body::Items(Box::new(items)), None)
            }
        }
    }
}

/// Converts the iterable that the application returned. With `has_written`, even a file or row
/// stream is only iterated over.
pub(super) fn of(result: &Bound<'_, PyAny>, has_written: bool, log: &Log) -> PyResult<Answered> {
    let mut ready = Vec::new();
    if let Ok(list) = result.cast_exact::<PyList>() {
        if list.len() == 1
            && let Ok(bytes) = list.get_item(0)?.cast::<PyBytes>()
            && bytes.as_bytes().len() <= FEW_BYTES
        {
            let rest = BodyRest::Few(bytes.as_bytes().to_vec());
            return Ok(Answered { ready, rest });
        }
        for item in list.iter() {
            push(&mut ready, &item)?;
        }
        let rest = BodyRest::Nothing;
        return Ok(Answered { ready, rest });
    }
    if let Ok(tuple) = result.cast_exact::<PyTuple>() {
        for item in tuple.iter_borrowed() {
            push(&mut ready, &item)?;
        }
        let rest = BodyRest::Nothing;
        return Ok(Answered { ready, rest });
    }
    if let (Ok(found), false) = (result.cast_exact::<FileAnswer>(), has_written) {
        let rest = BodyRest::Found(found.get().take()?);
        return Ok(Answered { ready, rest });
    }
    let closing = Closing::new(result.clone(), log);
    if has_written {
        return iterated(result, closing);
    }
    let wrapper = result.cast_exact::<FileWrapper>().ok();
    let inner = match wrapper {
        Some(wrapper) => wrapper.get().file.bind(result.py()),
        None => result,
    };
    if let Ok(stream) = inner.cast::<RowStream>() {
        let rest = match RowStream::chunks(stream, closing)? {
            Left::Rows(chunks) => BodyRest::Rows(Box::new(chunks)),
            Left::Bytes(bytes) => {
                ready.extend(bytes.map(SharedBytes::new));
                BodyRest::Nothing
            }
        };
        return Ok(Answered { ready, rest });
    }
    if wrapper.is_some()
        && let Some((file, offset, n_bytes)) = Output::source(inner)?
    {
        let file = OpenFile {
            file,
            _closing: closing,
        };
        let n_bytes = usize::try_from(n_bytes).unwrap_or(usize::MAX);
        let rest = BodyRest::File(FileBody::new(file, offset, n_bytes));
        return Ok(Answered { ready, rest });
    }
    iterated(result, closing)
}

/// Converts an iterable, but no file or row stream, to a body.
fn iterated(result: &Bound<'_, PyAny>, closing: Closing) -> PyResult<Answered> {
    let mut ready = Vec::new();
    let mut iterator = result.try_iter()?;
    while ready.is_empty() {
        let Some(item) = iterator.next() else {
            let rest = BodyRest::Nothing;
            return Ok(Answered { ready, rest });
        };
        push(&mut ready, &item?)?;
    }
    let rest = BodyRest::Items(iterator.unbind(), closing);
    Ok(Answered { ready, rest })
}

fn push(ready: &mut Vec<SharedBytes>, item: &Bound<'_, PyAny>) -> PyResult<()> {
    let item = held(item)?;
    if !item.is_empty() {
        ready.push(item);
    }
    Ok(())
}
