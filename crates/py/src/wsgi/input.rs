//! `wsgi.input`: the body of a request, which is there whole, or is received at the first read.

use std::fs::File;
use std::io::{Read, Seek};

use onecopy_serve::{AwaitedBody, BodyError, RequestBody};
use pyo3::exceptions::{PyConnectionAbortedError, PyOSError, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::guard::Guarded;
use crate::raw::binary::{self, BytesMemory};
use crate::raw::ending;

/// The body of a request: `read`, `readline`, `readlines`, and its lines one by one (PEP 3333).
///
/// It was received whole before the application was called: reading never waits for the client, and a body that was cut off or
/// malformed never comes here. ``read()`` of a body that nothing was read of is the object that it was received in, no copy made.
///
/// The body of a client that waits to be asked for it (``Expect: 100-continue``) is received whole at the first read, which waits for
/// that without the interpreter's lock. `OSError` where it does not come: `ConnectionAbortedError` where the client left or the server
/// was cut, `TimeoutError` past the limit of time.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Input(Guarded<Source>);

enum Source {
    Memory {
        bytes: Py<PyBytes>,
        at: usize,
    },
    /// What is read ahead of lines, and the rest.
    File {
        file: std::io::BufReader<File>,
        left: u64,
    },
    /// Not asked for yet, or in vain.
    Awaited(AwaitedBody),
}

impl Input {
    pub(crate) fn new(py: Python<'_>, body: RequestBody) -> PyResult<Input> {
        Ok(Input(Guarded::new("request body", Source::of(py, body)?)))
    }
}

/// A size as `read` takes it: all where it is negative or not there.
fn most(size: Option<isize>) -> usize {
    size.and_then(|n| usize::try_from(n).ok())
        .unwrap_or(usize::MAX)
}

/// The exception for a body that does not come.
fn not_come(error: BodyError) -> PyErr {
    let words = error.to_string();
    match error {
        BodyError::Gone | BodyError::Stopped => PyConnectionAbortedError::new_err(words),
        BodyError::Late => PyTimeoutError::new_err(words),
        _ => PyOSError::new_err(words),
    }
}

impl Source {
    fn of(py: Python<'_>, body: RequestBody) -> PyResult<Source> {
        Ok(match body {
            RequestBody::None => Source::Memory {
                bytes: PyBytes::new(py, b"").unbind(),
                at: 0,
            },
            RequestBody::Memory(chunk) => Source::Memory {
                bytes: BytesMemory::finish(py, chunk)?.unbind(),
                at: 0,
            },
            RequestBody::File(mut file, left) => {
                file.rewind()?;
                Source::File {
                    file: std::io::BufReader::with_capacity(64 << 10, file),
                    left,
                }
            }
            RequestBody::Awaited(body) => Source::Awaited(body),
        })
    }

    /// Asks for the body, where that was not done.
    fn receive(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Source::Awaited(body) = self {
            let come = ending::detach(py, || body.receive()).map_err(not_come)?;
            *self = Source::of(py, come)?;
        }
        Ok(())
    }

    fn read<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        if most == 0 {
            return Ok(PyBytes::new(py, b"")); // Nothing is asked for.
        }
        self.receive(py)?;
        match self {
            Source::Memory { bytes, at } => {
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
            Source::File { file, left } => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(most);
                let made = PyBytes::new_with(py, n, |room| {
                    ending::detach(py, || file.read_exact(room)).map_err(PyOSError::from_io)
                })?;
                *left -= n as u64;
                Ok(made)
            }
            Source::Awaited(_) => Err(not_come(BodyError::Taken)), // What was received is no such body.
        }
    }

    /// The next line with its end, cut at `most`; empty at the end.
    fn line<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        use std::io::BufRead;
        if most == 0 {
            return Ok(PyBytes::new(py, b""));
        }
        self.receive(py)?;
        match self {
            Source::Memory { bytes, at } => {
                let rest = &bytes.as_bytes(py)[*at..];
                let rest = &rest[..rest.len().min(most)];
                let n = rest
                    .iter()
                    .position(|b| *b == b'\n')
                    .map_or(rest.len(), |i| i + 1);
                *at += n;
                Ok(PyBytes::new(py, &rest[..n]))
            }
            Source::File { file, left } => {
                let n = usize::try_from(*left).unwrap_or(usize::MAX).min(most);
                let mut line = Vec::new();
                ending::detach(py, || {
                    file.by_ref().take(n as u64).read_until(b'\n', &mut line)
                })?;
                *left -= line.len() as u64;
                Ok(PyBytes::new(py, &line))
            }
            Source::Awaited(_) => Err(not_come(BodyError::Taken)),
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
    /// Up to ``size`` bytes, all that are left where it is negative or None; empty at the end.
    #[pyo3(signature = (size=None, /))]
    fn read<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.lock(py)?.read(py, most(size))
    }

    /// The next line with its end, or ``size`` bytes of it; empty at the end.
    #[pyo3(signature = (size=None, /))]
    fn readline<'py>(&self, py: Python<'py>, size: Option<isize>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.lock(py)?.line(py, most(size))
    }

    /// The lines that are left, or as many as have ``hint`` bytes together.
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

/// What a fresh body is received in: a `bytes` of its size.
pub(crate) fn room(n_bytes: usize) -> onecopy_text::Chunk {
    binary::BytesMemory::chunk(n_bytes).unwrap_or_default()
}
