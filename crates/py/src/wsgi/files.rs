//! `Files`: serves the files of a folder as a WSGI application. onecopy's own server runs no Python
//! code for these requests.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use onecopy_wire::lock::lock;

use onecopy_serve::static_files::{FileRequest, FilesError, FilesOptions, encoded};
use onecopy_serve::{Body, BodyPart, FileBody, Response};
use onecopy_wire::http::{Conditions, reason_phrase};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::start::StartResponse;
use crate::raw::environ::latin1;
use crate::raw::gil;

/// The size in bytes of a file read without `sendfile`.
const BLOCK_BYTES: usize = 64 * 1024;

/// A WSGI application that serves the files in a folder and its subfolders. The public function
/// `onecopy.files` creates it.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Files(pub(super) onecopy_serve::Files);

/// The request header fields: their names in the environ and in HTTP.
const FIELDS: [(&str, &str); 7] = [
    ("HTTP_RANGE", "range"),
    ("HTTP_IF_RANGE", "if-range"),
    ("HTTP_IF_MATCH", "if-match"),
    ("HTTP_IF_NONE_MATCH", "if-none-match"),
    ("HTTP_IF_MODIFIED_SINCE", "if-modified-since"),
    ("HTTP_IF_UNMODIFIED_SINCE", "if-unmodified-since"),
    ("HTTP_ACCEPT_ENCODING", "accept-encoding"),
];

/// The status line, the header fields and the body. A body item is a `bytes`, or a file descriptor
/// with an offset and a length.
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
        let mut options = FilesOptions::default();
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

    /// Returns the answer to a request on onecopy's own server. The server sends this object
    /// without running Python code.
    fn __call__<'py>(
        &self,
        environ: &Bound<'py, PyDict>,
        start_response: &Bound<'py, StartResponse>,
    ) -> PyResult<FileAnswer> {
        let (is_head, response) = self.answer(environ)?;
        let (status, fields, body) = head_and_body(environ.py(), response)?;
        start_response.call1((status, fields))?;
        let body = if is_head { Body::Empty } else { body };
        Ok(FileAnswer(Mutex::new(Some(body))))
    }

    /// Returns the response with its body as a list, for other WSGI servers. The caller must close
    /// the file descriptors in the list.
    fn pieces<'py>(&self, environ: &Bound<'py, PyDict>) -> PyResult<InPieces<'py>> {
        let py = environ.py();
        let (is_head, response) = self.answer(environ)?;
        let (status, fields, body) = head_and_body(py, response)?;
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
                        BodyPart::Bytes(bytes) => pieces.append(PyBytes::new(py, bytes))?,
                        BodyPart::File(part) => file(part)?,
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
    /// Returns the response to the request in the environ. The `bool` is `true` for a HEAD request.
    fn answer(&self, environ: &Bound<'_, PyDict>) -> PyResult<(bool, Response)> {
        let py = environ.py();
        let text = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            let value = environ.get_item(name)?;
            Ok(value.unwrap_or_else(|| PyString::new(py, "").into_any()))
        };
        // PEP 3333: each character of a string represents one byte.
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
            // The URL of the folder has no slash at its end.
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
        let response = gil::detach(py, || {
            let fields = || fields.iter().map(|(name, value)| (*name, &value[..]));
            self.0.answer(&FileRequest {
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

/// Returns the status line, the header fields with the length, and the body.
fn head_and_body(
    py: Python<'_>,
    response: Response,
) -> PyResult<(String, Bound<'_, PyList>, Body)> {
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

/// The response of a `Files` application on onecopy's own server. Its body becomes Python objects
/// only if a middleware iterates over it.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct FileAnswer(Mutex<Option<Body>>);

#[pymethods]
impl FileAnswer {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let block = gil::detach(py, || self.next_block())?;
        Ok(block.map(|block| PyBytes::new(py, &block)))
    }

    /// Closes the file of the body.
    fn close(&self) {
        self.body().take();
    }
}

impl FileAnswer {
    /// Locks the body for a short time, without Python code.
    fn body(&self) -> MutexGuard<'_, Option<Body>> {
        lock(&self.0)
    }

    /// Removes the body and returns it. A second call is an error.
    pub(super) fn take(&self) -> PyResult<Body> {
        let body = self.body().take();
        body.ok_or_else(|| PyRuntimeError::new_err("an answer is sent once"))
    }

    fn next_block(&self) -> io::Result<Option<Vec<u8>>> {
        let mut body = self.body();
        let mut pieces = match body.take() {
            Some(Body::File(file)) => vec![BodyPart::File(file)],
            Some(Body::Pieces(pieces)) => pieces,
            memory => return Ok(memory.and_then(|body| body.bytes().map(<[u8]>::to_vec))),
        };
        pieces.retain(|piece| !matches!(piece, BodyPart::File(file) if file.len_bytes() == 0));
        if pieces.is_empty() {
            return Ok(None);
        }
        let block = match pieces.remove(0) {
            BodyPart::Bytes(bytes) => bytes,
            BodyPart::File(file) => {
                let mut block = vec![0; file.len_bytes().min(BLOCK_BYTES)];
                File::from(file.as_fd().try_clone_to_owned()?)
                    .read_exact_at(&mut block, file.offset_bytes())?;
                pieces.insert(0, BodyPart::File(file.part(block.len(), usize::MAX)));
                block
            }
        };
        *body = Some(Body::Pieces(pieces));
        Ok(Some(block))
    }
}
