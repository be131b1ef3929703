//! `wsgi.input`: the body of a request, which is there whole.

use std::fs::File;
use std::io::{Read, Seek};

use onecopy_serve::RequestBody;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::guard::Guarded;
use crate::raw::binary::{self, BytesMemory};

/// The body of a request: `read`, `readline`, `readlines`, and its lines one by one (PEP 3333).
///
/// It was received whole before the application was called: reading never waits for the client, and a body that was cut off or
/// malformed never comes here. ``read()`` of a body that nothing was read of is the object that it was received in, no copy made.
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
}

impl Input {
    pub(crate) fn new(py: Python<'_>, body: RequestBody) -> PyResult<Input> {
        let source = match body {
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
        };
        Ok(Input(Guarded::new("request body", source)))
    }
}

/// A size as `read` takes it: all where it is negative or not there.
fn most(size: Option<isize>) -> usize {
    size.and_then(|n| usize::try_from(n).ok())
        .unwrap_or(usize::MAX)
}

impl Source {
    fn read<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
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
                    py.detach(|| file.read_exact(room))
                        .map_err(PyOSError::from_io)
                })?;
                *left -= n as u64;
                Ok(made)
            }
        }
    }

    /// The next line with its end, cut at `most`; empty at the end.
    fn line<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        use std::io::BufRead;
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
                py.detach(|| file.by_ref().take(n as u64).read_until(b'\n', &mut line))?;
                *left -= line.len() as u64;
                Ok(PyBytes::new(py, &line))
            }
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
