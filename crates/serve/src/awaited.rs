//! Request bodies: whole, or received when the handler asks for them: `Expect: 100-continue` (RFC 9110, 10.1.1).

use std::fmt;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use onecopy_text::Chunk;
use onecopy_wire::http::ChunkedError;

use crate::lock;

/// The body of a request: whole, or awaited.
#[derive(Debug, Default)]
pub enum RequestBody {
    /// There is none.
    #[default]
    None,
    /// In memory of the handler's choice ([`crate::Handler::body_room`]), received straight into it.
    Memory(Chunk),
    /// In a file that no folder names and that goes with the last who has it open; its position is at the start.
    File(File, u64),
    /// Not received yet: the client waits for `100 Continue`.
    Awaited(AwaitedBody),
}

impl RequestBody {
    /// Bytes of it; `None` where it is awaited and its length was not announced.
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

/// The body of a request whose client waits to be asked for it. Where nobody asks, the client is not told to go on, gets the answer,
/// and the connection ends behind it.
pub struct AwaitedBody {
    request: Arc<BodyRequest>,
    /// Notifies the connection that the body is requested. False if its server has ended.
    notify: Arc<dyn Fn() -> bool + Send + Sync>,
    announced: Option<u64>,
}

/// Why a body does not come. Emitted by [`AwaitedBody::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// The client left before all of it was there, or took nothing of what it was told. Nobody is left to be answered.
    Gone,
    /// No byte of it came for [`crate::Limits::body_stall`].
    Late,
    /// Its chunks are malformed, or more than [`crate::Limits::body_bytes`].
    Coding(ChunkedError),
    /// There is no memory for it, or no room in [`crate::Config::body_folder`].
    Store,
    /// The server was stopped, and the time for requests under way was over.
    Stopped,
    /// It was asked for after the handler had answered. Ask before that.
    Answered,
    /// It was received before: it comes once.
    Taken,
}

impl BodyError {
    /// The status to answer with.
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
            BodyError::Gone => "the client left before the request body was there",
            BodyError::Late => "the request body did not come in time",
            BodyError::Coding(error) => return error.fmt(f),
            BodyError::Store => "there is no room for the request body",
            BodyError::Stopped => "the server was stopped before the request body was there",
            BodyError::Answered => {
                "the request body was never asked for, and the answer has begun\nread it before that"
            }
            BodyError::Taken => "the request body was received before",
        })
    }
}

impl std::error::Error for BodyError {}

/// The request of a handler for a body, which its connection settles.
pub(crate) struct BodyRequest {
    stage: Mutex<Stage>,
    changed: Condvar,
}

enum Stage {
    Unasked,
    Asked,
    Come(RequestBody),
    Taken,
    Failed(BodyError),
}

impl BodyRequest {
    fn new() -> BodyRequest {
        BodyRequest {
            stage: Mutex::new(Stage::Unasked),
            changed: Condvar::new(),
        }
    }

    /// Whether the handler waits for it.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(*lock(&self.stage), Stage::Asked)
    }

    /// Says what came of it; the first word counts.
    pub(crate) fn settle(&self, come: Result<RequestBody, BodyError>) {
        let mut stage = lock(&self.stage);
        if !matches!(*stage, Stage::Unasked | Stage::Asked) {
            drop(stage); // Before the body: memory of a handler's may run foreign code where it is given back.
            return;
        }
        *stage = match come {
            Ok(body) => Stage::Come(body),
            Err(error) => Stage::Failed(error),
        };
        self.changed.notify_all();
    }

    /// Whether it is to be asked for now.
    fn ask(&self) -> bool {
        let mut stage = lock(&self.stage);
        let is_first = matches!(*stage, Stage::Unasked);
        if is_first {
            *stage = Stage::Asked;
        }
        is_first
    }

    fn wait(&self) -> Result<RequestBody, BodyError> {
        let waits = |stage: &mut Stage| matches!(stage, Stage::Unasked | Stage::Asked);
        let come = self.changed.wait_while(lock(&self.stage), waits);
        let mut stage = come.unwrap_or_else(PoisonError::into_inner);
        if let Stage::Failed(error) = *stage {
            return Err(error);
        }
        match std::mem::replace(&mut *stage, Stage::Taken) {
            Stage::Come(body) => Ok(body),
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

    /// Bytes of it, as the client announced them; `None` where it is chunked.
    #[must_use]
    pub fn announced(&self) -> Option<u64> {
        self.announced
    }

    /// Asks the client for the body, and waits until all of it is there. Never [`RequestBody::Awaited`].
    ///
    /// It waits for the client, for as long as the limits let it, and on the loop's other threads: not to be called by a thread that
    /// holds what they need, nor in a forked child.
    ///
    /// # Errors
    /// [`BodyError`]; the same again when asked again.
    pub fn receive(&self) -> Result<RequestBody, BodyError> {
        if self.request.ask() && !(self.notify)() {
            self.request.settle(Err(BodyError::Stopped));
        }
        self.request.wait()
    }

    /// Why it will not come, where that is known by now. Does not wait.
    #[must_use]
    pub fn error(&self) -> Option<BodyError> {
        match *lock(&self.request.stage) {
            Stage::Failed(error) => Some(error),
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

/// The permits of handlers to wait for the body of their request. Half of the handlers that may run
/// at once have one: clients that are sent `100 Continue`, and then send nothing, never hold them
/// all.
pub(crate) struct ExpectPermits {
    n_max: usize,
    requests: Mutex<Vec<Arc<BodyRequest>>>,
}

impl ExpectPermits {
    /// A server with one handler has none.
    pub(crate) fn new(n_handlers: usize) -> ExpectPermits {
        ExpectPermits {
            n_max: n_handlers / 2,
            requests: Mutex::default(),
        }
    }

    /// Returns a permit; `None` if all are taken.
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

    /// Fails the requests of all handlers that wait: the server has ended.
    pub(crate) fn stop(&self) {
        for request in lock(&self.requests).iter() {
            request.settle(Err(BodyError::Stopped));
        }
    }
}

/// A permit of [`ExpectPermits`], until it is dropped.
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
