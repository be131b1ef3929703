//! [`ResponseWriter`]: a response that a handler begins before it returns.

use std::fmt;
use std::sync::Arc;

use crate::body::SharedBytes;
use crate::response::Response;

/// A writer with which a handler begins its response before it returns, and sends the first blocks
/// of the body immediately.
///
/// When the handler returns, the body of the returned [`Response`] is the remaining part of the
/// body. The status and the header fields of the returned [`Response`] are ignored.
#[derive(Clone)]
pub struct ResponseWriter {
    sink: Arc<dyn AnswerSink>,
    /// The position at which the response starts, which identifies the response. Positions count
    /// the bytes of all responses on the connection. `None` until the handler's thread owns the
    /// connection.
    start: Option<u64>,
}

/// The reason why the response cannot begin or a block cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The client has closed the connection.
    Gone,
    /// The client read no bytes for the time [`crate::Limits::write_stall`].
    Stalled,
    /// The server was stopped, and the time limit [`crate::Limits::stop`] for requests in progress
    /// has expired.
    Stopped,
    /// The handler has already returned, the response was not begun, or `begin` was called twice.
    /// Call `begin` once, and call `write` after it and before the handler returns.
    Ended,
}

/// The connection of a request, to which its handler sends the blocks of a response.
pub(crate) trait AnswerSink: Send + Sync {
    /// Implements [`ResponseWriter::begin`]. Sets `start` when the handler's thread has become the
    /// owner of the connection.
    fn begin(&self, start: &mut Option<u64>, response: Response) -> Result<(), WriteError>;
    /// Implements [`ResponseWriter::write`].
    fn write(&self, start: Option<u64>, block: SharedBytes) -> Result<(), WriteError>;
}

/// The connection on which a request arrived. [`ResponseWriter`]s for the request's handler are
/// created from it.
pub(crate) trait AnswerOrigin: Sync {
    /// Returns the object to which the handler sends its response.
    fn sink(&self) -> Arc<dyn AnswerSink>;
}

impl ResponseWriter {
    pub(crate) fn new(sink: Arc<dyn AnswerSink>, start: Option<u64>) -> ResponseWriter {
        ResponseWriter { sink, start }
    }

    /// Begins the response with the status and the header fields of `response`. They are sent
    /// together with the first block of the body.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn begin(&mut self, response: Response) -> Result<(), WriteError> {
        self.sink.begin(&mut self.start, response)
    }

    /// Sends a block of the body without copying it. Bytes after the announced length are omitted.
    /// If more than 256 KiB are queued, the call waits until the client has read some of them.
    ///
    /// # Errors
    /// [`WriteError`]. The response is then incomplete.
    pub fn write(&self, block: SharedBytes) -> Result<(), WriteError> {
        self.sink.write(self.start, block)
    }
}

impl fmt::Debug for ResponseWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseWriter")
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WriteError::Gone => "the client has closed the connection",
            WriteError::Stalled => "the client received nothing for too long",
            WriteError::Stopped => "the server was stopped before the answer was sent",
            WriteError::Ended => "the response has ended\nwrite before the application returns",
        })
    }
}

impl std::error::Error for WriteError {}
