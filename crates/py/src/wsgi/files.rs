//! A folder as a WSGI application: under our server answered without Python, under others in pieces that they send.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use onecopy_serve::static_files::{Ask, FilesError, Options, encoded};
use onecopy_serve::{Body, FileBody, Piece, Response};
use onecopy_wire::http::{Conditions, reason_phrase};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::start::StartResponse;
use crate::raw::ending;
use crate::raw::environ::latin1;

/// Bytes read at once, where the kernel does not send them.
const BLOCK_BYTES: usize = 64 * 1024;

/// The files below a folder; `onecopy.files` makes its public face.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Files(pub(super) onecopy_serve::Files);

/// Fields of a request that decide about the answer, as the environ names them and as HTTP does.
const FIELDS: [(&str, &str); 7] = [
    ("HTTP_RANGE", "range"),
    ("HTTP_IF_RANGE", "if-range"),
    ("HTTP_IF_MATCH", "if-match"),
    ("HTTP_IF_NONE_MATCH", "if-none-match"),
    ("HTTP_IF_MODIFIED_SINCE", "if-modified-since"),
    ("HTTP_IF_UNMODIFIED_SINCE", "if-unmodified-since"),
    ("HTTP_ACCEPT_ENCODING", "accept-encoding"),
];

/// Status line, header fields, and pieces: bytes, or a descriptor with an offset and a number of bytes.
type InPieces<'py> = (String, Bound<'py, PyList>, Bound<'py, PyList>);

#[pymethods]
impl Files {
    #[new]
    fn new(
        folder: PathBuf,
        listing: bool,
        hidden: bool,
        precompressed: bool,
        cache_control: Option<String>,
    ) -> PyResult<Files> {
        let mut options = Options::default();
        options.listing = listing;
        options.hidden = hidden;
        options.precompressed = precompressed;
        options.cache_control = cache_control;
        match onecopy_serve::Files::new(&folder, options) {
            Ok(files) => Ok(Files(files)),
            Err(FilesError::Open(e)) => match e.raw_os_error() {
                Some(number) => Err(PyOSError::new_err((number, e.to_string(), folder))),
                None => Err(e.into()),
            },
            Err(e) => Err(PyValueError::new_err(e.to_string())),
        }
    }

    /// The application under our own server: what it returns, the server sends.
    fn __call__<'py>(
        &self,
        environ: &Bound<'py, PyDict>,
        start_response: &Bound<'py, StartResponse>,
    ) -> PyResult<FileAnswer> {
        let (is_head, response) = self.answer(environ)?;
        let (status, fields, body) = told(environ.py(), response)?;
        start_response.call1((status, fields))?;
        let body = if is_head { Body::Empty } else { body };
        Ok(FileAnswer(Mutex::new(Some(body))))
    }

    /// The answer for other servers. The descriptors are the caller's.
    fn pieces<'py>(&self, environ: &Bound<'py, PyDict>) -> PyResult<InPieces<'py>> {
        let py = environ.py();
        let (is_head, response) = self.answer(environ)?;
        let (status, fields, body) = told(py, response)?;
        let pieces = PyList::empty(py);
        let file = |file: &FileBody| -> PyResult<()> {
            let number = file.as_fd().try_clone_to_owned()?.into_raw_fd();
            pieces.append((number, file.offset_bytes(), file.len_bytes()))
        };
        match body {
            _ if is_head => {}
            Body::File(part) => file(&part)?,
            Body::Pieces(parts) => {
                for part in &parts {
                    match part {
                        Piece::Bytes(bytes) => pieces.append(PyBytes::new(py, bytes))?,
                        Piece::File(part) => file(part)?,
                    }
                }
            }
            memory => {
                if let Some(bytes) = memory.bytes() {
                    pieces.append(PyBytes::new(py, bytes))?;
                }
            }
        }
        Ok((status, fields, pieces))
    }
}

impl Files {
    /// Whether only the head is asked for, and the answer to what an environ asks.
    fn answer(&self, environ: &Bound<'_, PyDict>) -> PyResult<(bool, Response)> {
        let py = environ.py();
        let text = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            let value = environ.get_item(name)?;
            Ok(value.unwrap_or_else(|| PyString::new(py, "").into_any()))
        };
        // PEP 3333: texts of Latin-1 characters, each of which is a byte.
        let bytes = |value: &Bound<'_, PyAny>, name: &str| -> PyResult<Vec<u8>> {
            latin1(value.as_borrowed())
                .map(<[u8]>::to_vec)
                .ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "`{name}` is not a str of Latin-1 characters (PEP 3333)"
                    ))
                })
        };
        let of = |name: &str| bytes(&text(name)?, name);
        let method = String::from_utf8_lossy(&of("REQUEST_METHOD")?).into_owned();
        let mut path = of("PATH_INFO")?;
        if path.is_empty() {
            // The folder's own place, asked for without its slash.
            path.push(b'/');
        }
        let location = [of("SCRIPT_NAME")?, path.clone()].concat();
        let location = encoded(&location);
        let query = of("QUERY_STRING")?;
        let query = str::from_utf8(&query)
            .ok()
            .filter(|query| !query.is_empty());
        let mut fields: Vec<(&str, Vec<u8>)> = Vec::new();
        for (key, name) in FIELDS {
            if environ.contains(key)? {
                fields.push((name, of(key)?));
            }
        }
        let response = ending::detach(py, || {
            let fields = || fields.iter().map(|(name, value)| (*name, &value[..]));
            self.0.answer(&Ask {
                method: &method,
                path: &path,
                location: &location,
                query,
                conditions: Conditions::of(fields()),
                codings: fields()
                    .filter(|(name, _)| *name == "accept-encoding")
                    .map(|(_, value)| value)
                    .collect(),
            })
        });
        Ok((method == "HEAD", response))
    }
}

/// Status line, header fields with the length, and the body.
fn told(py: Python<'_>, response: Response) -> PyResult<(String, Bound<'_, PyList>, Body)> {
    let (status, headers, body) = response.into_parts();
    let fields = PyList::empty(py);
    let latin1 = |bytes: &[u8]| bytes.iter().map(|b| char::from(*b)).collect::<String>();
    for (name, value) in headers.iter() {
        fields.append((latin1(name), latin1(value)))?;
    }
    if status != 304
        && let Some(n_bytes) = body.len_bytes()
    {
        fields.append((intern!(py, "Content-Length"), n_bytes.to_string()))?;
    }
    Ok((format!("{status} {}", reason_phrase(status)), fields, body))
}

/// What `Files` returns to our own server: a body that never comes to Python, unless somebody between wants to see it.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct FileAnswer(Mutex<Option<Body>>);

#[pymethods]
impl FileAnswer {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let block = ending::detach(py, || self.next_block())?;
        Ok(block.map(|block| PyBytes::new(py, &block)))
    }

    /// Lets the file go.
    fn close(&self) {
        self.body().take();
    }
}

impl FileAnswer {
    /// Held for moments; nothing of Python's runs meanwhile.
    fn body(&self) -> MutexGuard<'_, Option<Body>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body, once.
    pub(super) fn take(&self) -> PyResult<Body> {
        let body = self.body().take();
        body.ok_or_else(|| PyRuntimeError::new_err("an answer is sent once"))
    }

    fn next_block(&self) -> io::Result<Option<Vec<u8>>> {
        let mut body = self.body();
        let mut pieces = match body.take() {
            Some(Body::File(file)) => vec![Piece::File(file)],
            Some(Body::Pieces(pieces)) => pieces,
            memory => return Ok(memory.and_then(|body| body.bytes().map(<[u8]>::to_vec))),
        };
        pieces.retain(|piece| !matches!(piece, Piece::File(file) if file.len_bytes() == 0));
        if pieces.is_empty() {
            return Ok(None);
        }
        let block = match pieces.remove(0) {
            Piece::Bytes(bytes) => bytes,
            Piece::File(file) => {
                let mut block = vec![0; file.len_bytes().min(BLOCK_BYTES)];
                File::from(file.as_fd().try_clone_to_owned()?)
                    .read_exact_at(&mut block, file.offset_bytes())?;
                pieces.insert(0, Piece::File(file.part(block.len(), usize::MAX)));
                block
            }
        };
        *body = Some(Body::Pieces(pieces));
        Ok(Some(block))
    }
}
