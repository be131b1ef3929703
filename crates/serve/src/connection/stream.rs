//! [`ActiveStream`]: the state of a row stream that is being sent, with its source and its filled
//! chunks.

use onecopy_text::{Chunk, Ledger};
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource};

use super::answer::Answer;
use crate::body::SharedBytes;
use crate::buffers::Buffers;
use crate::headers::Headers;
use crate::metrics::{Metrics, OpenStream};
use crate::response::{Breaker, OnEnd, OnError};
use crate::workers::{Fill, FillResult};

/// A response whose body is a row stream, while it is being sent.
pub(super) struct ActiveStream {
    pub(super) answer: Answer,
    /// The header fields of the response, which are queued together with the first chunk. `None`
    /// after they were queued.
    pub(super) head: Option<Headers>,
    /// `true` if the body is sent in the chunked coding. `false` if the end of the connection is
    /// the end of the body.
    pub(super) chunked: bool,
    /// The source that fills the chunks. `None` while a worker uses the source, and after the
    /// source has ended.
    pub(super) source: Option<Box<dyn ChunkSource>>,
    /// The bytes that the application read from the source before the response began. They are sent
    /// before the first chunk. `None` if the application read no bytes, and after the bytes were
    /// queued.
    pub(super) begun: Option<SharedBytes>,
    /// A filled chunk that waits until the previous chunk was sent; `None` if there is no such
    /// chunk.
    pub(super) ready: Option<Chunk>,
    pub(super) progress: StreamProgress,
    pub(super) cancel: CancelHandle,
    pub(super) breaker: Option<Breaker>,
    pub(super) on_end: Option<OnEnd>,
    pub(super) on_error: Option<OnError>,
    pub(super) ledger: Ledger,
    pub(super) _open: OpenStream,
}

/// The state of a row stream's source after the last attempt to fill a chunk.
pub(super) enum StreamProgress {
    Running,
    Done,
    Failed(ChunkError),
    Panicked,
}

impl ActiveStream {
    /// Ends the stream with an error if its [`Breaker`] has requested this, and a worker still uses
    /// the source. The connection then accepts no further request. Otherwise a chunk that the
    /// worker still delivers (`late_fill`) could become part of another response.
    pub(super) fn look_at_breaker(&mut self) {
        let with_worker = self.source.is_none() && matches!(self.progress, StreamProgress::Running);
        if let Some(error) = self
            .breaker
            .as_ref()
            .filter(|_| with_worker)
            .and_then(Breaker::take)
        {
            self.progress = StreamProgress::Failed(error);
            self.answer.exchange.keep_alive = false;
        }
    }

    pub(super) fn take(&mut self, fill: Fill, buffers: &Buffers, metrics: &Metrics) {
        metrics.rows(fill.n_rows.saturating_sub(self.answer.n_rows.unwrap_or(0)));
        self.source = fill.source;
        self.answer.n_rows = Some(fill.n_rows);
        self.progress = match fill.result {
            FillResult::More => StreamProgress::Running,
            FillResult::Done => StreamProgress::Done,
            FillResult::Failed(error) => StreamProgress::Failed(error),
            FillResult::Panicked => StreamProgress::Panicked,
        };
        let broken = matches!(
            self.progress,
            StreamProgress::Failed(_) | StreamProgress::Panicked
        );
        // An empty chunk must not be sent: in the chunked coding it would mark the end of the body.
        if broken || fill.chunk.is_empty() {
            buffers.give(fill.chunk);
        } else {
            self.ready = Some(fill.chunk);
        }
    }
}
