//! Request bodies that are received when the handler asks for them: `Expect: 100-continue` (RFC 9110, 10.1.1).

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use onecopy_wire::http::ChunkedError;

use crate::connection::{ASKED, Connection};
use crate::event_loop::Shared;
use crate::lock;
use crate::request::RequestBody;

/// The body of a request whose client waits to be asked for it. Where nobody asks, the client is not told to go on, gets the answer,
/// and the connection ends behind it.
pub struct AwaitedBody {
    awaiting: Arc<Awaiting>,
    /// Not kept alive: a handler may keep this for longer than the server runs.
    connection: Weak<Connection>,
    shared: Weak<Shared>,
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

/// What stands between the handler and the connection.
pub(crate) struct Awaiting {
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

impl Awaiting {
    fn new() -> Awaiting {
        Awaiting {
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
        shared: &Arc<Shared>,
        connection: &Arc<Connection>,
        awaiting: &Arc<Awaiting>,
        announced: Option<u64>,
    ) -> AwaitedBody {
        AwaitedBody {
            awaiting: Arc::clone(awaiting),
            connection: Arc::downgrade(connection),
            shared: Arc::downgrade(shared),
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
        if self.awaiting.ask() {
            match (self.shared.upgrade(), self.connection.upgrade()) {
                (Some(shared), Some(connection)) => shared.signal(&connection, ASKED),
                _ => self.awaiting.settle(Err(BodyError::Stopped)),
            }
        }
        self.awaiting.wait()
    }

    /// Why it will not come, where that is known by now. Does not wait.
    #[must_use]
    pub fn error(&self) -> Option<BodyError> {
        match *lock(&self.awaiting.stage) {
            Stage::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl Clone for AwaitedBody {
    fn clone(&self) -> AwaitedBody {
        AwaitedBody {
            awaiting: Arc::clone(&self.awaiting),
            connection: Weak::clone(&self.connection),
            shared: Weak::clone(&self.shared),
            announced: self.announced,
        }
    }
}

impl fmt::Debug for AwaitedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a body of {:?} bytes that is awaited", self.announced)
    }
}

/// The right of a handler to wait for its request's body. Half of the handlers that may run at once have it: clients that are asked,
/// and then send nothing, never hold them all.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    pub(crate) awaiting: Arc<Awaiting>,
}

impl Seat {
    /// `None`: all are taken. A server with one handler has none.
    pub(crate) fn take(shared: &Arc<Shared>) -> Option<Seat> {
        let mut awaited = lock(&shared.awaited);
        if awaited.len() >= shared.config.handler_threads / 2 {
            return None;
        }
        let awaiting = Arc::new(Awaiting::new());
        awaited.push(Arc::clone(&awaiting));
        Some(Seat {
            shared: Arc::clone(shared),
            awaiting,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut awaited = lock(&self.shared.awaited);
        awaited.retain(|awaiting| !Arc::ptr_eq(awaiting, &self.awaiting));
    }
}
