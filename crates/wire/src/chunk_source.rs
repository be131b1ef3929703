//! "Fill the next chunk": what a row stream is, and what a server, a file writer or an iterator pumps.

use std::fmt;
use std::sync::Arc;

use onecopy_text::Chunk;

/// What a call of [`ChunkSource::fill`] has left to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The chunk holds bytes and more may follow.
    More,
    /// The chunk holds the last bytes (it may be empty): the answer is complete.
    Done,
}

/// Why a chunk source failed. After it nothing more can be filled, and the answer must not look complete.
///
/// The kind lets a server choose a status, the command line an exit code and Python a class; the text is for people.
/// The room that made the error keeps it whole in `source`.
#[derive(Debug)]
pub struct ChunkError {
    /// What kind of failure.
    pub kind: ChunkErrorKind,
    /// The error of the room that failed.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Kinds of failure of a [`ChunkSource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkErrorKind {
    /// The source of the rows failed: the database, its driver, the connection to it.
    Source,
    /// A value cannot be written in this format (malformed text, NaN in JSON).
    Value,
    /// It was cancelled through its [`CancelHandle`].
    Cancelled,
    /// A limit set for it was reached (time, rows, bytes).
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

/// Stops a [`ChunkSource`] from any thread, at any time, more than once: a `fill` under way returns soon with
/// [`ChunkErrorKind::Cancelled`], and each later one at once.
#[derive(Clone)]
pub struct CancelHandle(Arc<dyn Fn() + Send + Sync>);

impl CancelHandle {
    /// A handle that calls `cancel`, which must neither block nor panic.
    pub fn new(cancel: impl Fn() + Send + Sync + 'static) -> CancelHandle {
        CancelHandle(Arc::new(cancel))
    }

    /// Asks the source to stop.
    pub fn cancel(&self) {
        (self.0)();
    }
}

impl fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelHandle")
    }
}

/// A producer of bytes that is pulled: it may block while it fills, and keeps no more than a block in memory.
///
/// The caller owns the chunk and reuses it, so a stream allocates nothing per chunk.
pub trait ChunkSource: Send {
    /// Appends the next bytes to `chunk`, about up to its capacity: a source may pass it by one row, or grow an empty
    /// chunk of no capacity to a size of its choice. Without [`Filled::Done`] at least one byte is appended.
    ///
    /// # Errors
    /// [`ChunkError`]; what the chunk then holds is to be dropped or sent with a broken end.
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError>;

    /// A handle that stops the source from another thread.
    fn cancel_handle(&self) -> CancelHandle;

    /// Rows written so far: for the trailer and progress lines. 0 for sources that know no rows.
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
