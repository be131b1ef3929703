//! [`ChunkSource`]: the interface of a row stream, which fills one chunk after another for its
//! consumer (an HTTP server, a file writer or an iterator).

use std::fmt;
use std::sync::Arc;

use onecopy_text::Chunk;

/// The result of a successful call to [`ChunkSource::fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The chunk contains bytes, and more may follow.
    More,
    /// The chunk contains the last bytes of the output, or no bytes. The output is complete.
    Done,
}

/// The failure of a [`ChunkSource`]. The source cannot be filled again, and the consumer must not
/// present the output as complete.
///
/// The kind of the failure determines the status of an HTTP response, the exit code of the command,
/// and the exception class in Python. The error message is that of `source`, the original error.
#[derive(Debug)]
pub struct ChunkError {
    /// The kind of the failure.
    pub kind: ChunkErrorKind,
    /// The original error, from the crate in which the failure occurred.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The kind of the failure of a [`ChunkSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkErrorKind {
    /// The database, its driver, or the connection failed.
    Source,
    /// The output format cannot represent a value, for example malformed text, or NaN in JSON.
    Value,
    /// The source was cancelled through its [`CancelHandle`].
    Cancelled,
    /// The source has reached a limit on its time, its number of rows or its number of bytes.
    Limit,
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl std::error::Error for ChunkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}

/// A handle that stops a [`ChunkSource`]. [`CancelHandle::cancel`] may be called from any thread,
/// at any time, and repeatedly. A running call to `fill` then returns soon with
/// [`ChunkErrorKind::Cancelled`], and each later call returns immediately.
#[derive(Clone)]
pub struct CancelHandle(Arc<dyn Fn() + Send + Sync>);

impl CancelHandle {
    /// Creates a handle that calls `cancel`, which must neither block nor panic.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> CancelHandle {
        CancelHandle(Arc::new(cancel))
    }

    /// Requests that the source stop soon. The call does not wait until the source has stopped.
    pub fn cancel(&self) {
        (self.0)();
    }
}

impl fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelHandle")
    }
}

/// A producer of bytes in chunks, such as the rows of a statement as JSON. `fill` may block. The
/// source keeps at most one block of rows in memory.
///
/// The caller owns the chunk and reuses it, so a stream does not allocate memory for each chunk.
pub trait ChunkSource: Send {
    /// Appends the next bytes to `chunk`, until its capacity is approximately used. The source may
    /// exceed the capacity by one row. If the capacity is 0, the source allocates memory for the
    /// chunk. The source appends at least one byte unless it returns [`Filled::Done`].
    ///
    /// # Errors
    /// Returns a [`ChunkError`]. The caller must then discard the contents of the chunk, or send
    /// them and abort the output, so that it does not look complete.
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError>;

    /// Returns a handle with which another thread can stop the source.
    fn cancel_handle(&self) -> CancelHandle;

    /// Returns the number of rows written so far, or 0 if the source does not count rows. The
    /// trailer of an HTTP response and the progress display report this number.
    fn n_rows(&self) -> u64 {
        0
    }
}

impl<T: ChunkSource + ?Sized> ChunkSource for Box<T> {
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError> {
        (**self).fill(chunk)
    }

    fn cancel_handle(&self) -> CancelHandle {
        (**self).cancel_handle()
    }

    fn n_rows(&self) -> u64 {
        (**self).n_rows()
    }
}
