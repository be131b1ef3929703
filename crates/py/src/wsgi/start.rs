//! `StartResponse`: the functions `start_response` and `write` of PEP 3333, and the state of a
//! response.

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
/// headers to begin its response. It returns itself as the function ``write`` of PEP 3333. When
/// ``write(data)`` returns, all ``bytes`` have been sent, except for at most 256 KiB that are
/// buffered for the client.
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
    /// Sends the blocks that the application passes to `write`; `None` after the application has
    /// returned.
    writer: Option<ResponseWriter>,
    /// `true` after a call to `write` has sent the head of the response.
    is_begun: bool,
    write_error: Option<WriteError>,
    /// The name of a header field that the server omitted from the head of the response; `None` if
    /// all were sent.
    left_out: Option<Box<str>>,
    /// `true` after the head was sent or the request has ended. The head can then no longer be
    /// changed.
    is_sent: bool,
}

/// The result of the calls to `start_response` and `write` that the application made for one
/// request.
pub(super) enum Said {
    Nothing,
    /// The application has called `start_response`, but `write` has not sent anything yet.
    Head(Response),
    /// The application has called `write`, which has sent the head and a part of the body.
    Begun {
        /// The reason why a block of the body could not be sent; `None` if all blocks so far were
        /// sent.
        failed: Option<WriteError>,
        /// The name of a header field that the server omitted; `None` if it omitted none.
        left_out: Option<Box<str>>,
    },
}

impl StartResponse {
    /// Creates an unused object. `lines` is the cache of header lines, which all requests of a
    /// server share.
    pub(crate) fn new(lines: &Arc<Mutex<FieldLines>>) -> StartResponse {
        StartResponse {
            state: Mutex::default(),
            lines: Arc::clone(lines),
        }
    }

    /// Prepares the object for a response that `writer` sends. If `writer` is `None`, `write`
    /// cannot send anything.
    pub(crate) fn open(&self, writer: Option<ResponseWriter>) {
        *self.state() = ResponseState {
            writer,
            ..ResponseState::default()
        };
    }

    /// Locks the state. Only the thread of the request holds the lock, briefly, and never while
    /// Python code runs.
    fn state(&self) -> MutexGuard<'_, ResponseState> {
        lock(&self.state)
    }

    /// Returns the response that the application has begun, and ends the use of this object for the
    /// request. Later calls to `write` fail.
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

    /// Returns `true` if a call to `write` has sent the head of the response.
    pub(super) fn has_written(&self) -> bool {
        self.state().is_begun
    }

    /// Sends a block of the body. Before the first block, sends the head of the response. If the
    /// client is still receiving earlier blocks, waits with the GIL released. An empty block has no
    /// effect.
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
                // PEP 3333: the head was already sent, so the exception that the application has
                // caught is raised again.
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
        // If another thread holds the lock, the fields are parsed again, and not cached.
        let mut lines = self.lines.try_lock().ok();
        let response = response_of(status, headers, lines.as_deref_mut())?;
        drop(lines);
        self.state().response = Some(response);
        Ok(())
    }
}

#[pymethods]
impl StartResponse {
    /// Begins the response if it is called as ``start_response(status, headers, exc_info=None)``.
    /// Sends a block of the body if it is called as ``write(data)``.
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

/// Returns the exception that `write` raises for a block that could not be sent.
fn write_error(error: WriteError) -> PyErr {
    let message = error.to_string();
    match error {
        WriteError::Gone => PyBrokenPipeError::new_err(message),
        WriteError::Stalled => PyTimeoutError::new_err(message),
        WriteError::Stopped => PyConnectionAbortedError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// Creates a response with this status and these header fields, reading the characters of their
/// `str` objects. Copies: the status and each header field are copied once, into the head of the
/// response.
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
