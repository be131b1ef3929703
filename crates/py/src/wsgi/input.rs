//! `wsgi.input`: the body of a request.

use std::fs::File;
use std::io::{Read, Seek};

use onecopy_serve::{AwaitedBody, BodyError, RequestBody};
use pyo3::exceptions::{PyConnectionAbortedError, PyOSError, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::guard::Guarded;
use crate::raw::binary::{self, BytesMemory};
use crate::raw::gil;

/// The body of a request: `read`, `readline`, `readlines`, and iteration over lines (PEP 3333).
///
/// The whole body is received before the application is called. Therefore reads never wait for the
/// client, and the body is never truncated or malformed. ``read()`` of a whole body returns the
/// object into which the body was received, without a copy.
///
/// One case differs: a client that waits for ``100 Continue`` (``Expect: 100-continue``). The first
/// read then receives the whole body, with the GIL released. If the body does not arrive, the read
/// raises an `OSError`: `ConnectionAbortedError` if the client disconnected or the server was
/// stopped, `TimeoutError` after the time limit.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Input(Guarded<InputSource>);

enum InputSource {
    Memory {
        bytes: Py<PyBytes>,
        at: usize,
    },
    /// A body in a file, with a buffer for lines.
    File {
        file: std::io::BufReader<File>,
        left: u64,
    },
    /// A body that has not been received.
    Awaited(AwaitedBody),
}

impl Input {
    pub(crate) fn new(py: Python<'_>, body: RequestBody) -> PyResult<Input> {
        Ok(Input(Guarded::new(
            "request body",
            InputSource::of(py, body)?,
        )))
    }
}

/// Returns the maximum number of bytes to read. A missing or negative `size` means no limit.
fn most(size: Option<isize>) -> usize {
    size.and_then(|n| usize::try_from(n).ok())
        .unwrap_or(usize::MAX)
}

/// Returns the exception for an incomplete body.
fn not_come(error: BodyError) -> PyErr {
    let words = error.to_string();
    match error {
        BodyError::Gone | BodyError::Stopped => PyConnectionAbortedError::new_err(words),
        BodyError::Late => PyTimeoutError::new_err(words),
        _ => PyOSError::new_err(words),
    }
}

impl InputSource {
    fn of(py: Python<'_>, body: RequestBody) -> PyResult<InputSource> {
        Ok(match body {
            RequestBody::None => InputSource::Memory {
                bytes: PyBytes::new(py, b"").unbind(),
                at: 0,
            },
            RequestBody::Memory(chunk) => InputSource::Memory {
                bytes: BytesMemory::finish(py, chunk)?.unbind(),
                at: 0,
            },
            RequestBody::File(mut file, left) => {
                file.rewind()?;
                InputSource::File {
                    file: std::io::BufReader::with_capacity(64 << 10, file),
                    left,
                }
            }
            RequestBody::Awaited(body) => InputSource::Awaited(body),
        })
    }

    /// Receives the whole body, if necessary.
    fn receive(&mut self, py: Python<'_>) -> PyResult<()> {
        if let InputSource::Awaited(body) = self {
            let come = gil::detach(py, || body.receive()).map_err(not_come)?;
            *self = InputSource::of(py, come)?;
        }
        Ok(())
    }

    fn read<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        if most == 0 {
            return Ok(PyBytes::new(py, b"")); // the client does not send its body
        }
        self.receive(py)?;
        match self {
            InputSource::Memory { bytes, at } => {
                let whole = bytes.bind(py);
                let rest = &whole.as_bytes()[*at..];
                let n = rest.len().min(most);
                let is_whole = *at == 0 && n == rest.len();
                *at += n;
                Ok(match is_whole {
                    true => whole.clone(),
                    false => PyBytes::new(py, &rest[..n]),
                })
            }
            InputSource::File { file, left } => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(most);
                let made = PyBytes::new_with(py, n, |buffer| {
                    gil::detach(py, || file.read_exact(buffer)).map_err(PyOSError::from_io)
                })?;
                *left -= n as u64;
                Ok(made)
            }
            InputSource::Awaited(_) => Err(not_come(BodyError::Taken)), // `receive` has been called
        }
    }

    /// Returns the next line with its line end, but at most `most` bytes. Empty at the end of the
    /// body.
    fn line<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        use std::io::BufRead;
        if most == 0 {
            return Ok(PyBytes::new(py, b""));
        }
        self.receive(py)?;
        match self {
            InputSource::Memory { bytes, at } => {
                let rest = &bytes.as_bytes(py)[*at..];
                let rest = &rest[..rest.len().min(most)];
                let n = rest
                    .iter()
                    .position(|b| *b == b'\n')
                    .map_or(rest.len(), |i| i + 1);
                *at += n;
                Ok(PyBytes::new(py, &rest[..n]))
            }
            InputSource::File { file, left } => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(most);
                let mut line = Vec::new();
                gil::detach(py, || {
                    file.by_ref().take(n as u64).read_until(b'\n', &mut line)
                })?;
                *left -= line.len() as u64;
                Ok(PyBytes::new(py, &line))
            }
            InputSource::Awaited(_) => Err(not_come(BodyError::Taken)),
        }
    }
}

trait FromIo {
    fn from_io(error: std::io::Error) -> PyErr;
}

impl FromIo for PyOSError {
    fn from_io(error: std::io::Error) -> PyErr {
        error.into()
    }
}

#[pymethods]
impl Input {
    /// Returns up to ``size`` bytes, or all remaining bytes if ``size`` is negative or None.
    /// Returns an empty ``bytes`` at the end.
    #[pyo3(signature = (size=None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.lock(py)?.read(py, most(size))
    }

    /// Returns the next line with its line end, but at most ``size`` bytes. Returns an empty
    /// ``bytes`` at the end.
    #[pyo3(signature = (size=None, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.lock(py)?.line(py, most(size))
    }

    /// Returns the remaining lines as a list. With ``hint``, stops when the lines have at least
    /// ``hint`` bytes.
    #[pyo3(signature = (hint=None, /))]
    fn readlines<'py>(&self, py: Python<'py>, hint: Option<isize>) -> PyResult<Bound<'py, PyList>> {
        let lines = PyList::empty(py);
        let mut source = self.0.lock(py)?;
        let enough = hint
            .filter(|n| *n > 0)
            .map_or(usize::MAX, isize::unsigned_abs);
        let mut n_bytes = 0;
        while n_bytes < enough {
            let line = source.line(py, usize::MAX)?;
            if line.as_bytes().is_empty() {
                break;
            }
            n_bytes += line.as_bytes().len();
            lines.append(line)?;
        }
        Ok(lines)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let line = self.0.lock(py)?.line(py, usize::MAX)?;
        Ok((!line.as_bytes().is_empty()).then_some(line))
    }
}

/// Creates the buffer for a body: the memory of a new `bytes`.
pub(crate) fn buffer(n_bytes: usize) -> onecopy_text::Chunk {
    binary::BytesMemory::chunk(n_bytes).unwrap_or_default()
}
