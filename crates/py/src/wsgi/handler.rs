//! `Wsgi`: calls the WSGI application for each request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use onecopy_serve::{
    Body, BodyPolicy, Chunks, Handler, NoItems, Request, RequestBody, Response, StreamEnd,
};
use onecopy_text::Chunk;
use onecopy_wire::http::{BodyFraming, Conditions, Method, TargetForm, Version};
use pyo3::exceptions::{PyAssertionError, PyOSError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::body;
use super::files::Files;
use super::input::{self, Input};
use super::lines::FieldLines;
use super::start::{Said, StartResponse};
use crate::errors;
use crate::raw::environ::{Other, Strings};
use crate::raw::gil;
use crate::raw::pinned_bytes::references;

/// Properties of a server for each request's environ, such as its name.
pub(crate) struct ServerVariables {
    pub(crate) name: String,
    pub(crate) port: String,
    pub(crate) scheme: &'static str,
    pub(crate) multithread: bool,
    pub(crate) multiprocess: bool,
}

/// The error stream of the application (`wsgi.errors`).
#[derive(Clone)]
pub(crate) struct Log(Arc<Py<PyAny>>);

impl Log {
    /// Logs an exception that the application raised, with its traceback.
    pub(crate) fn failed(&self, py: Python<'_>, what: &str, error: &PyErr) {
        let write = || -> PyResult<()> {
            let traceback = py.import(intern!(py, "traceback"))?;
            let parts = (error.get_type(py), error.value(py), error.traceback(py));
            let lines = traceback.call_method1(intern!(py, "format_exception"), parts)?;
            let text = PyString::new(py, "").call_method1(intern!(py, "join"), (lines,))?;
            self.write(py, &format!("{what}\n{text}"))
        };
        if let Err(second) = write() {
            second.write_unraisable(py, None);
        }
    }

    fn warn(&self, py: Python<'_>, text: &str) {
        if let Err(error) = self.write(py, &format!("{text}\n")) {
            error.write_unraisable(py, None);
        }
    }

    fn write(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let errors = self.0.bind(py);
        errors.call_method1(intern!(py, "write"), (format!("onecopy: {text}"),))?;
        errors.call_method0(intern!(py, "flush"))?;
        Ok(())
    }
}

/// The request handler for a WSGI application.
pub(crate) struct Wsgi {
    app: Py<PyAny>,
    /// The folder of a `Files` application. It is served without Python code.
    files: Option<onecopy_serve::Files>,
    /// The items of the WSGI environ that all requests share (PEP 3333).
    template: Py<PyDict>,
    strings: Mutex<Strings>,
    lines: Arc<Mutex<FieldLines>>,
    /// `StartResponse` objects for reuse by later requests.
    spare: Mutex<Vec<Py<StartResponse>>>,
    log: Log,
    /// `true` after the first warning about an omitted header field.
    has_warned: AtomicBool,
}

/// The maximum number of `StartResponse` objects for reuse.
const MOST_SPARE: usize = 8;

impl Wsgi {
    pub(crate) fn new(py: Python<'_>, app: Py<PyAny>, place: &ServerVariables) -> PyResult<Wsgi> {
        let errors = py.import("sys")?.getattr("stderr")?;
        let template = PyDict::new(py);
        let no_input = Bound::new(py, Input::new(py, RequestBody::None)?)?.into_any();
        template.set_item("REQUEST_METHOD", "GET")?;
        template.set_item("SCRIPT_NAME", "")?;
        template.set_item("PATH_INFO", "/")?;
        template.set_item("QUERY_STRING", "")?;
        template.set_item("SERVER_NAME", &place.name)?;
        template.set_item("SERVER_PORT", &place.port)?;
        template.set_item("SERVER_PROTOCOL", "HTTP/1.1")?;
        template.set_item(
            "SERVER_SOFTWARE",
            concat!("onecopy/", env!("CARGO_PKG_VERSION")),
        )?;
        template.set_item("REMOTE_ADDR", "")?;
        template.set_item("REMOTE_PORT", "")?;
        template.set_item("wsgi.version", (1, 0))?;
        template.set_item("wsgi.url_scheme", place.scheme)?;
        if place.scheme == "https" {
            // Apache sets this variable, and PEP 3333 mentions it.
            template.set_item("HTTPS", "on")?;
        }
        template.set_item("wsgi.input", &no_input)?;
        template.set_item("wsgi.input_terminated", true)?;
        template.set_item("wsgi.errors", &errors)?;
        template.set_item("wsgi.multithread", place.multithread)?;
        template.set_item("wsgi.multiprocess", place.multiprocess)?;
        template.set_item("wsgi.run_once", false)?;
        template.set_item("wsgi.file_wrapper", py.get_type::<super::FileWrapper>())?;
        let files = app.bind(py).cast_exact::<Files>().ok();
        Ok(Wsgi {
            files: files.map(|files| files.get().0.clone()),
            app,
            template: template.unbind(),
            strings: Mutex::new(Strings::new()),
            lines: Arc::new(Mutex::new(FieldLines::new())),
            spare: Mutex::default(),
            log: Log(Arc::new(errors.unbind())),
            has_warned: AtomicBool::new(false),
        })
    }

    fn environ<'py>(
        &self,
        py: Python<'py>,
        request: &Request<'_>,
        body: RequestBody,
    ) -> PyResult<Bound<'py, PyDict>> {
        let Some(head) = request.head() else {
            return Err(PyRuntimeError::new_err("a request without a head")); // Never the case for a socket.
        };
        // This thread holds the GIL, so it must not wait for the lock. New strings are used
        // instead.
        let mut own = None;
        let mut shared = match self.strings.try_lock() {
            Ok(strings) => Some(strings),
            Err(TryLockError::Poisoned(strings)) => Some(strings.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let strings = match &mut shared {
            Some(strings) => &mut **strings,
            None => own.insert(Strings::new()),
        };
        let environ = strings.environ(self.template.bind(py), head)?;
        if head.method() != Method::Get {
            let method = strings.other(py, Other::Method, head.method_name().as_bytes())?;
            environ.set_item(intern!(py, "REQUEST_METHOD"), method)?;
        }
        let (path, query) = head.path_and_query_bytes();
        if path.contains(&b'%') {
            let decoded = percent_decoded(path);
            environ.set_item(
                intern!(py, "PATH_INFO"),
                strings.other(py, Other::Path, &decoded)?,
            )?;
        } else if path != b"/" {
            environ.set_item(
                intern!(py, "PATH_INFO"),
                strings.other(py, Other::Path, path)?,
            )?;
        }
        if let Some(query) = query.filter(|q| !q.is_empty()) {
            let query = strings.other(py, Other::Query, query)?;
            environ.set_item(intern!(py, "QUERY_STRING"), query)?;
        }
        if head.target_form() == TargetForm::Absolute
            && head.header("host").is_none()
            && let Some(authority) = head.authority()
        {
            // HTTP/1.0 allows a request without the field `Host`. Its target then contains the
            // authority.
            environ.set_item(intern!(py, "HTTP_HOST"), authority)?;
        }
        if head.version() == Version::Http10 {
            environ.set_item(intern!(py, "SERVER_PROTOCOL"), intern!(py, "HTTP/1.0"))?;
        }
        // Clients of a unix socket have no address.
        if let Some(peer) = request.peer() {
            let (address, port) = strings.peer(py, peer)?;
            environ.set_item(intern!(py, "REMOTE_ADDR"), address)?;
            environ.set_item(intern!(py, "REMOTE_PORT"), port)?;
        }
        drop(shared);
        match body {
            RequestBody::None => {
                if let Some(length) = head.header("content-length") {
                    let length = String::from_utf8_lossy(length);
                    environ.set_item(intern!(py, "CONTENT_LENGTH"), &*length)?;
                }
            }
            body => {
                if let Some(n_bytes) = body.n_bytes() {
                    environ.set_item(intern!(py, "CONTENT_LENGTH"), n_bytes.to_string())?;
                }
                environ.set_item(intern!(py, "wsgi.input"), Input::new(py, body)?)?;
            }
        }
        Ok(environ)
    }

    fn call(&self, py: Python<'_>, request: &Request<'_>, body: RequestBody) -> PyResult<Response> {
        let environ = self.environ(py, request, body)?;
        let start = self.start(py)?;
        start.get().open(request.writer());
        let called = self.app.bind(py).call1((environ, &start));
        let answered =
            called.and_then(|result| body::of(&result, start.get().has_written(), &self.log));
        match (answered, start.get().take()) {
            (Ok(answered), Said::Head(mut response)) => {
                self.give_back(start);
                if let Some(name) = response.left_out() {
                    self.warn_left_out(py, name);
                }
                let (body, n_bytes) = answered.into_body();
                if let Some(n_bytes) = n_bytes {
                    response.announce(n_bytes);
                }
                let body = match body {
                    Body::Chunks(chunks) => self.logged(*chunks).into(),
                    body => body,
                };
                Ok(in_ranges(response.body(body), request))
            }
            (Ok(answered), Said::Begun { left_out, .. }) => {
                self.give_back(start);
                if let Some(name) = left_out {
                    self.warn_left_out(py, &name);
                }
                Ok(Response::new(200).body(answered.into_body().0))
            }
            (Ok(_), Said::Nothing) => Err(PyAssertionError::new_err(
                "the application gave a body before it called start_response",
            )),
            (Err(error), Said::Begun { failed, .. }) => {
                // An exception after the client has disconnected is not a failure of the
                // application.
                if failed.is_none() || !error.is_instance_of::<PyOSError>(py) {
                    self.log.failed(py, &failed_at(request), &error);
                }
                Ok(Response::new(200).body(Body::Items(Box::new(NoItems))))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Logs one warning that the server omits a header field.
    fn warn_left_out(&self, py: Python<'_>, name: &str) {
        if self.has_warned.swap(true, Ordering::Relaxed) {
            return;
        }
        self.log.warn(
            py,
            &format!(
                "the application sets `{name}`, which describes the connection and is left out of \
                 its answers (hop-by-hop, PEP 3333); this warning is not repeated"
            ),
        );
    }

    /// Returns a new or reused `StartResponse` object.
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, StartResponse>> {
        let spare = self.spare.try_lock().ok().and_then(|mut spare| spare.pop());
        match spare {
            Some(start) => Ok(start.into_bound(py)),
            None => Bound::new(py, StartResponse::new(&self.lines)),
        }
    }

    /// Keeps a `StartResponse` for reuse, unless the application still refers to it.
    fn give_back(&self, start: Bound<'_, StartResponse>) {
        if references(start.as_any()) == 1
            && let Ok(mut spare) = self.spare.try_lock()
            && spare.len() < MOST_SPARE
        {
            spare.push(start.unbind());
        }
    }

    /// Returns the chunks of a row stream. Its errors are logged like those of the application.
    fn logged(&self, chunks: Chunks) -> Chunks {
        let log = self.log.clone();
        chunks.on_error(|_| failed()).on_end(move |end| {
            if let StreamEnd::Failed(error) = end {
                gil::try_attach(|py| {
                    let error = errors::from_chunks(py, &error);
                    log.failed(py, "a row stream failed", &error);
                });
            }
        })
    }
}

impl Handler for Wsgi {
    fn handle(&self, request: Request<'_>) -> Response {
        self.handle_body(request, RequestBody::None)
    }

    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        if let Some(files) = &self.files {
            return files.handle(request);
        }
        let awaited = match &body {
            RequestBody::Awaited(body) => Some(body.clone()),
            _ => None,
        };
        let answered = gil::try_attach(|py| match self.call(py, &request, body) {
            Ok(response) => response,
            Err(error) => {
                // The client did not send its body, so the application got an exception.
                if error.is_instance_of::<PyOSError>(py)
                    && let Some(error) = awaited.and_then(|body| body.error())
                {
                    return self.refuse(error.status(), &error.to_string());
                }
                self.log.failed(py, &failed_at(&request), &error);
                failed()
            }
        });
        answered.unwrap_or_else(failed)
    }

    fn is_quick(&self) -> bool {
        self.files.is_some()
    }

    fn begins_early(&self) -> bool {
        self.files.is_none() // `StartResponse.write` begins the response
    }

    fn body_chunk(&self, n_bytes: usize) -> Chunk {
        gil::try_attach(|_| input::buffer(n_bytes)).unwrap_or_default()
    }

    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        // CGI has no body of unknown length: without CONTENT_LENGTH, frameworks read nothing. The
        // whole body must be received first.
        match head.head().map(|head| head.framing()) {
            Some(BodyFraming::Length(_)) => BodyPolicy::OnDemand,
            _ => BodyPolicy::Read,
        }
    }
}

/// Applies a client's range request to a whole file. A response that is encoded or already a range
/// is unchanged.
fn in_ranges(response: Response, request: &Request<'_>) -> Response {
    let is_file = matches!(response.body_ref(), Body::File(_)) && response.status() == 200;
    let is_get = request.method() == "GET";
    if !is_file || !(is_get || request.method() == "HEAD") {
        return response;
    }
    let has = |name: &str| response.headers().get(name).is_some();
    if has("Content-Range") || has("Content-Encoding") {
        return response;
    }
    response.in_ranges(&Conditions::of(request.headers()), is_get)
}

/// Returns a log line for a failed request, without the query, which may contain secrets.
fn failed_at(request: &Request<'_>) -> String {
    let (method, path) = (request.method(), request.path());
    format!("the application failed at {method} {path}")
}

fn failed() -> Response {
    Response::problem(500, "Internal Server Error", "the application failed")
}

/// Decodes percent-encoding (`%41` to `A`). Any other `%` is unchanged.
fn percent_decoded(path: &[u8]) -> Vec<u8> {
    let digit = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => decoded.push(*first),
        }
    }
    decoded
}
