//! [`RequestBody`]: the body of a request. Usually the body is received before the handler runs. If
//! the client sends `Expect: 100-continue` (RFC 9110, section 10.1.1), the handler can run first
//! and request the body.

use std::fmt;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex};

use onecopy_wire::lock::{lock, unpoisoned};

use onecopy_text::Chunk;
use onecopy_wire::http::ChunkedError;

/// The body of a request: no body, a received body, or a body that the client has not sent yet.
#[derive(Debug, Default)]
pub enum RequestBody {
    /// The request has no body.
    #[default]
    None,
    /// The body is in memory that the handler has provided ([`crate::Handler::body_chunk`]). If the
    /// client has announced the length of the body, bytes that arrive after the head are read
    /// directly into this memory.
    Memory(Chunk),
    /// The body is in an unnamed temporary file, which the system deletes when its last descriptor
    /// is closed. The number is the length of the body in bytes. The current position of the file
    /// is 0.
    File(File, u64),
    /// The body was not received yet: the client waits for `100 Continue`.
    Awaited(AwaitedBody),
}

impl RequestBody {
    /// Returns the length of the body in bytes. Returns `None` if the body was not received yet and
    /// the client has not announced its length.
    #[must_use]
    pub fn n_bytes(&self) -> Option<u64> {
        match self {
            RequestBody::None => Some(0),
            RequestBody::Memory(chunk) => Some(chunk.len() as u64),
            RequestBody::File(_, n_bytes) => Some(*n_bytes),
            RequestBody::Awaited(body) => body.announced(),
        }
    }
}

/// The body of a request whose client waits for `100 Continue`. If the handler does not receive the
/// body, the client gets only the response, and then the connection is closed.
pub struct AwaitedBody {
    request: Arc<BodyRequest>,
    /// A function that wakes the connection; the connection then sends `100 Continue` to the
    /// client. The function returns `false` if the server has ended.
    notify: Arc<dyn Fn() -> bool + Send + Sync>,
    announced: Option<u64>,
}

/// The reason why [`AwaitedBody::receive`] cannot receive a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// The client closed the connection before the body was complete, or it read no bytes of a
    /// response for the time [`crate::Limits::write_stall`]. No response can be sent to this
    /// client.
    Gone,
    /// No byte of the body arrived for the time [`crate::Limits::body_stall`].
    Late,
    /// The chunked coding is malformed, or the body is longer than [`crate::Limits::body_bytes`].
    Coding(ChunkedError),
    /// The body cannot be stored, because no memory is available for it, or because writing it to
    /// the folder [`crate::Config::body_folder`] failed.
    Store,
    /// The server was stopped, and the time limit [`crate::Limits::stop`] for requests in progress
    /// has expired.
    Stopped,
    /// The handler requested the body after it had delivered its response. The body can be
    /// requested only before the response.
    Answered,
    /// The body was already received; it can be received only once.
    Taken,
}

impl BodyError {
    /// Returns the status of the response that reports this error.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            BodyError::Gone => 400,
            BodyError::Late => 408,
            BodyError::Coding(error) => error.status(),
            BodyError::Store => 507,
            BodyError::Stopped => 503,
            BodyError::Answered | BodyError::Taken => 500,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BodyError::Gone => "the client disconnected before the request body was received",
            BodyError::Late => "the request body was not received in time",
            BodyError::Coding(error) => return error.fmt(f),
            BodyError::Store => "no space for the request body",
            BodyError::Stopped => "the server was stopped before the request body was received",
            BodyError::Answered => {
                "the request body was not read, and the response has begun\nread it before that"
            }
            BodyError::Taken => "the request body was received before",
        })
    }
}

impl std::error::Error for BodyError {}

/// The state that a connection and its handler share while the handler may request the body. The
/// connection stores the received body, or an error, in it.
pub(crate) struct BodyRequest {
    stage: Mutex<BodyStage>,
    changed: Condvar,
}

enum BodyStage {
    Unasked,
    Asked,
    Come(RequestBody),
    Taken,
    Failed(BodyError),
}

impl BodyRequest {
    fn new() -> BodyRequest {
        BodyRequest {
            stage: Mutex::new(BodyStage::Unasked),
            changed: Condvar::new(),
        }
    }

    /// Returns `true` if the handler has requested the body and waits for it.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(*lock(&self.stage), BodyStage::Asked)
    }

    /// Delivers the body, or an error, to the handler. Only the first call has an effect.
    pub(crate) fn settle(&self, come: Result<RequestBody, BodyError>) {
        let mut stage = lock(&self.stage);
        if !matches!(*stage, BodyStage::Unasked | BodyStage::Asked) {
            drop(stage); // First: dropping a body may run other code, in memory of a handler.
            return;
        }
        *stage = match come {
            Ok(body) => BodyStage::Come(body),
            Err(error) => BodyStage::Failed(error),
        };
        self.changed.notify_all();
    }

    /// Records that the handler requests the body. Returns `true` at the first call; the caller
    /// must then notify the connection.
    fn ask(&self) -> bool {
        let mut stage = lock(&self.stage);
        let is_first = matches!(*stage, BodyStage::Unasked);
        if is_first {
            *stage = BodyStage::Asked;
        }
        is_first
    }

    fn wait(&self) -> Result<RequestBody, BodyError> {
        let waits = |stage: &mut BodyStage| matches!(stage, BodyStage::Unasked | BodyStage::Asked);
        let come = self.changed.wait_while(lock(&self.stage), waits);
        let mut stage = unpoisoned(come);
        if let BodyStage::Failed(error) = *stage {
            return Err(error);
        }
        match std::mem::replace(&mut *stage, BodyStage::Taken) {
            BodyStage::Come(body) => Ok(body),
            _ => Err(BodyError::Taken),
        }
    }
}

impl AwaitedBody {
    pub(crate) fn new(
        request: &Arc<BodyRequest>,
        announced: Option<u64>,
        notify: impl Fn() -> bool + Send + Sync + 'static,
    ) -> AwaitedBody {
        AwaitedBody {
            request: Arc::clone(request),
            notify: Arc::new(notify),
            announced,
        }
    }

    /// Returns the length of the body in bytes that the client has announced; `None` for a body in
    /// the chunked coding.
    #[must_use]
    pub fn announced(&self) -> Option<u64> {
        self.announced
    }

    /// Requests the body from the client, and waits until it is complete. The result is never
    /// [`RequestBody::Awaited`].
    ///
    /// The call waits for the client (within the limits) and for other threads of the server. The
    /// calling thread must not hold a lock that these threads need. The method must not be called
    /// in the child of a fork.
    ///
    /// # Errors
    /// [`BodyError`]. A repeated call returns the same error. [`BodyError::Taken`] if an earlier
    /// call has returned the body.
    pub fn receive(&self) -> Result<RequestBody, BodyError> {
        if self.request.ask() && !(self.notify)() {
            self.request.settle(Err(BodyError::Stopped));
        }
        self.request.wait()
    }

    /// Returns the reason why the body cannot be received; `None` if no error has occurred so far.
    /// The call does not wait.
    #[must_use]
    pub fn error(&self) -> Option<BodyError> {
        match *lock(&self.request.stage) {
            BodyStage::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl Clone for AwaitedBody {
    fn clone(&self) -> AwaitedBody {
        AwaitedBody {
            request: Arc::clone(&self.request),
            notify: Arc::clone(&self.notify),
            announced: self.announced,
        }
    }
}

impl fmt::Debug for AwaitedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a body of {:?} bytes that is awaited", self.announced)
    }
}

/// Permits for handlers that wait for a request body. There are half as many permits as handlers
/// that may run at the same time. Therefore clients that never send a body cannot occupy all
/// handlers.
pub(crate) struct ExpectPermits {
    n_max: usize,
    requests: Mutex<Vec<Arc<BodyRequest>>>,
}

impl ExpectPermits {
    /// Creates `n_handlers / 2` permits, rounded down. `n_handlers` is the maximum number of
    /// handlers that run at the same time. If it is 1, there are no permits.
    pub(crate) fn new(n_handlers: usize) -> ExpectPermits {
        ExpectPermits {
            n_max: n_handlers / 2,
            requests: Mutex::default(),
        }
    }

    /// Returns a permit; `None` if all permits are in use.
    pub(crate) fn take(self: &Arc<Self>) -> Option<ExpectPermit> {
        let mut requests = lock(&self.requests);
        if requests.len() >= self.n_max {
            return None;
        }
        let request = Arc::new(BodyRequest::new());
        requests.push(Arc::clone(&request));
        Some(ExpectPermit {
            permits: Arc::clone(self),
            request,
        })
    }

    /// Returns an error to each handler that waits for a body, because the server has ended.
    pub(crate) fn stop(&self) {
        for request in lock(&self.requests).iter() {
            request.settle(Err(BodyError::Stopped));
        }
    }
}

/// A permit of [`ExpectPermits`] for one handler that waits for a request body. Dropping it makes
/// the permit available again.
pub(crate) struct ExpectPermit {
    permits: Arc<ExpectPermits>,
    pub(crate) request: Arc<BodyRequest>,
}

impl Drop for ExpectPermit {
    fn drop(&mut self) {
        let mut requests = lock(&self.permits.requests);
        requests.retain(|request| !Arc::ptr_eq(request, &self.request));
    }
}
