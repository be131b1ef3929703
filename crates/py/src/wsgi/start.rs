//! `start_response` and `write` of PEP 3333, and the state of a response.

use std::sync::{Arc, Mutex, MutexGuard};

use onecopy_wire::lock::lock;

use onecopy_serve::{Response, ResponseWriter, SharedBytes, WriteError};
use pyo3::exceptions::{
    PyBrokenPipeError, PyConnectionAbortedError, PyRuntimeError, PyTimeoutError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::lines::FieldLines;
use crate::raw::environ::latin1;
use crate::raw::gil;
use crate::raw::pinned_bytes::PinnedBytes;

/// The function ``start_response`` of PEP 3333. A WSGI application calls it with the status and the
/// headers to begin its response. It returns itself as the function ``write``. When ``write(data)``
/// returns, all ``bytes`` have been sent, except for at most 256 KiB that are buffered for the
/// client.
///
/// Raises (by ``write``):
///     BrokenPipeError: the client has closed the connection.
///     TimeoutError: the client received nothing for ``write_timeout`` seconds.
///     ConnectionAbortedError: the server was stopped.
///     RuntimeError: the application has returned.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct StartResponse {
    state: Mutex<ResponseState>,
    lines: Arc<Mutex<FieldLines>>,
}

#[derive(Default)]
struct ResponseState {
    response: Option<Response>,
    /// Sends the blocks of `write`. `None` after the application has returned.
    writer: Option<ResponseWriter>,
    /// `true` after `write` has sent the head.
    is_begun: bool,
    write_error: Option<WriteError>,
    /// A header field that the server omitted, if any.
    left_out: Option<Box<str>>,
    /// `true` after the head was sent or the request has ended.
    is_sent: bool,
}

/// The calls of the application for one request.
pub(super) enum Said {
    Nothing,
    /// The application has called `start_response`, but not `write`.
    Head(Response),
    /// `write` has sent the head and a part of the body.
    Begun {
        /// The error of a block that was not sent.
        failed: Option<WriteError>,
        /// A header field that the server omitted, if any.
        left_out: Option<Box<str>>,
    },
}

impl StartResponse {
    /// Creates an unused object. All requests of a server share `lines`, the cache of header lines.
    pub(crate) fn new(lines: &Arc<Mutex<FieldLines>>) -> StartResponse {
        StartResponse {
            state: Mutex::default(),
            lines: Arc::clone(lines),
        }
    }

    /// Prepares the object for a response. If `writer` is `None`, `write` fails.
    pub(crate) fn open(&self, writer: Option<ResponseWriter>) {
        *self.state() = ResponseState {
            writer,
            ..ResponseState::default()
        };
    }

    /// Locks the state, briefly, and never while Python code runs.
    fn state(&self) -> MutexGuard<'_, ResponseState> {
        lock(&self.state)
    }

    /// Returns the response so far, and ends the request. Later calls to `write` fail.
    pub(super) fn take(&self) -> Said {
        let mut state = self.state();
        state.writer = None;
        state.is_sent = true;
        match state.response.take() {
            _ if state.is_begun => Said::Begun {
                failed: state.write_error,
                left_out: state.left_out.take(),
            },
            Some(response) => Said::Head(response),
            None => Said::Nothing,
        }
    }

    /// Returns `true` if `write` has sent the head.
    pub(super) fn has_written(&self) -> bool {
        self.state().is_begun
    }

    /// Sends a block of the body, and before the first block the head. May wait for the client,
    /// with the GIL released. An empty block has no effect.
    fn write(&self, bytes: &Bound<'_, PyBytes>) -> PyResult<()> {
        if bytes.as_bytes().is_empty() {
            return Ok(());
        }
        let (mut writer, head) = {
            let mut state = self.state();
            let Some(writer) = state.writer.clone() else {
                return Err(write_error(WriteError::Ended));
            };
            let head = state.response.take();
            state.is_begun |= head.is_some();
            state.is_sent |= head.is_some();
            if let Some(head) = &head {
                state.left_out = head.left_out().map(Into::into);
            }
            (writer, head)
        };
        let begins = head.is_some();
        let block = SharedBytes::new(PinnedBytes::new(bytes.clone()));
        let written = gil::detach(bytes.py(), || {
            head.map_or(Ok(()), |head| writer.begin(head))?;
            writer.write(block)
        });
        let mut state = self.state();
        if begins && state.writer.is_some() {
            state.writer = Some(writer);
        }
        written.map_err(|error| {
            state.write_error = Some(error);
            drop(state);
            write_error(error)
        })
    }

    fn start(
        &self,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let exc_info = exc_info.filter(|e| !e.is_none());
        let (was_called, is_sent) = {
            let state = self.state();
            (state.response.is_some(), state.is_sent)
        };
        match exc_info {
            Some(exc_info) if is_sent => {
                // PEP 3333: the head was already sent, so the application's exception is raised
                // again.
                return Err(PyErr::from_value(exc_info.get_item(1)?));
            }
            None if was_called || is_sent => {
                return Err(PyRuntimeError::new_err(
                    "start_response was called before\n\
                     call it again only with `exc_info` (PEP 3333)",
                ));
            }
            _ => {}
        }
        // If another thread holds the lock, the fields are parsed again.
        let mut lines = self.lines.try_lock().ok();
        let response = response_of(status, headers, lines.as_deref_mut())?;
        drop(lines);
        self.state().response = Some(response);
        Ok(())
    }
}

#[pymethods]
impl StartResponse {
    /// ``start_response(status, headers, exc_info=None)`` begins the response. ``write(data)``
    /// sends a block of the body.
    #[pyo3(signature = (status, headers=None, exc_info=None, /))]
    fn __call__<'py>(
        slf: Bound<'py, Self>,
        status: &Bound<'py, PyAny>,
        headers: Option<&Bound<'py, PyAny>>,
        exc_info: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        match headers {
            Some(headers) => slf.get().start(status, headers, exc_info)?,
            None => {
                let bytes = status.cast::<PyBytes>().map_err(|_| {
                    PyTypeError::new_err(
                        "write takes bytes; start_response takes a status and a list of headers",
                    )
                })?;
                slf.get().write(bytes)?;
            }
        }
        Ok(slf)
    }
}

/// Returns the exception for a block that could not be sent.
fn write_error(error: WriteError) -> PyErr {
    let message = error.to_string();
    match error {
        WriteError::Gone => PyBrokenPipeError::new_err(message),
        WriteError::Stalled => PyTimeoutError::new_err(message),
        WriteError::Stopped => PyConnectionAbortedError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// Creates a response from `str` objects. Copies: the status and each header field are copied once,
/// into the head.
fn response_of(
    status: &Bound<'_, PyAny>,
    headers: &Bound<'_, PyAny>,
    mut lines: Option<&mut FieldLines>,
) -> PyResult<Response> {
    let line = latin1(status.as_borrowed()).ok_or_else(|| {
        PyTypeError::new_err("the status is not a str of Latin-1 characters, as \"200 OK\"")
    })?;
    let (code, reason) = line.split_at(line.len().min(3));
    let code: Option<u16> = str::from_utf8(code).ok().and_then(|code| code.parse().ok());
    let reason = match reason {
        [] => Some(reason),
        [b' ', reason @ ..] => Some(reason),
        _ => None,
    };
    let (Some(code @ 200..=599), Some(reason)) = (code, reason) else {
        return Err(PyValueError::new_err(format!(
            "{:?} is not a status\n\
             write three digits from 200 to 599, a space and a reason: \"200 OK\"",
            String::from_utf8_lossy(line)
        )));
    };
    let wrong = |error: onecopy_serve::HeaderError| PyValueError::new_err(error.to_string());
    let mut response = Response::new(code).reason(reason).map_err(wrong)?;
    let mut add = |field: &Bound<'_, PyAny>| -> PyResult<()> {
        let pair = field.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
        let Some(pair) = pair else {
            return Err(PyTypeError::new_err(
                "a header is not a tuple of a name and a value",
            ));
        };
        if let Some(lines) = &mut lines
            && let Some(line) = lines.get(pair)
        {
            response.line(line);
            return Ok(());
        }
        let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
        let name = latin1(name)
            .and_then(|name| str::from_utf8(name).ok())
            .ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "the header name {name:?} is not a str of ASCII characters"
                ))
            })?;
        let bytes = latin1(value).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "the value of `{name}` is not a str of Latin-1 characters: {value:?}\n\
                 encode it, as RFC 8187 does"
            ))
        })?;
        if let Some(lines) = &mut lines {
            lines.keep(pair, name, bytes);
        }
        response.field(name, bytes).map_err(wrong)
    };
    match headers.cast::<PyList>() {
        Ok(list) => list.iter().try_for_each(|field| add(&field))?,
        Err(_) => {
            for field in headers.try_iter()? {
                add(&field?)?;
            }
        }
    }
    Ok(response)
}
