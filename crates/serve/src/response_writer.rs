//! Answers that a handler begins while it runs.

use std::fmt;
use std::sync::Arc;

use crate::body::Held;
use crate::response::Response;

/// Begins the answer to a request while its handler runs, and sends the first blocks of its body,
/// each at once.
///
/// The handler then returns a response of which only the body counts: what follows those blocks.
#[derive(Clone)]
pub struct ResponseWriter {
    sink: Arc<dyn AnswerSink>,
    /// Where the answer starts, counted over the connection's life: no other answer starts there.
    /// `None` before the connection was taken over.
    start: Option<u64>,
}

/// Why a block is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The client has closed the connection.
    Gone,
    /// The client received nothing for [`crate::Limits::write_stall`].
    Stalled,
    /// The server was stopped, and the time for requests under way was over.
    Stopped,
    /// The handler has returned, or the answer was begun before: call `begin` once, and `write`
    /// before the handler returns.
    Ended,
}

/// The connection of a request, which sends what its handler writes.
pub(crate) trait AnswerSink: Send + Sync {
    /// See [`ResponseWriter::begin`]; sets `start` once the connection was taken over.
    fn begin(&self, start: &mut Option<u64>, response: Response) -> Result<(), WriteError>;
    /// See [`ResponseWriter::write`].
    fn write(&self, start: Option<u64>, block: Held) -> Result<(), WriteError>;
}

/// The connection of a request that is with its handler.
pub(crate) trait AnswerOrigin: Sync {
    /// Returns what sends the answer.
    fn sink(&self) -> Arc<dyn AnswerSink>;
}

impl ResponseWriter {
    pub(crate) fn new(sink: Arc<dyn AnswerSink>, start: Option<u64>) -> ResponseWriter {
        ResponseWriter { sink, start }
    }

    /// Begins the answer with the status and the header fields of `response`. They are sent with
    /// the first block.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn begin(&mut self, response: Response) -> Result<(), WriteError> {
        self.sink.begin(&mut self.start, response)
    }

    /// Sends a block of the body: it is with the kernel, or among at most 256 KiB that wait to be
    /// sent while the handler runs on. Until then it waits for the client. Copies: none. Bytes
    /// after the announced length are left out.
    ///
    /// # Errors
    /// [`WriteError`]. The blocks sent before are not a whole answer then.
    pub fn write(&self, block: Held) -> Result<(), WriteError> {
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
            WriteError::Ended => "the answer has ended\nwrite before the application returns",
        })
    }
}

impl std::error::Error for WriteError {}
