//! A stream that is sent: its source, what is filled, and how far it is.

use onecopy_text::{Chunk, Ledger};
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource};

use super::answer::Answer;
use crate::body::Held;
use crate::buffers::Buffers;
use crate::headers::Headers;
use crate::metrics::{Metrics, OpenStream};
use crate::response::{Breaker, OnEnd, OnError};
use crate::workers::{Fill, FillResult};

/// A stream being sent.
pub(super) struct Stream {
    pub(super) answer: Answer,
    /// The head, held until there is a first chunk; `None` once it is sent.
    pub(super) head: Option<Headers>,
    /// Chunked coding; otherwise the end of the connection is the end of the body.
    pub(super) chunked: bool,
    /// `None` while a worker has it, and after its end.
    pub(super) source: Option<Box<dyn ChunkSource>>,
    /// What was filled before the answer began.
    pub(super) begun: Option<Held>,
    /// A filled chunk that waits for the one before it.
    pub(super) ready: Option<Chunk>,
    pub(super) progress: StreamProgress,
    pub(super) cancel: CancelHandle,
    pub(super) breaker: Option<Breaker>,
    pub(super) on_end: Option<OnEnd>,
    pub(super) on_error: Option<OnError>,
    pub(super) ledger: Ledger,
    pub(super) _open: OpenStream,
}

/// How far the source of a stream is.
pub(super) enum StreamProgress {
    Running,
    Done,
    Failed(ChunkError),
    Panicked,
}

impl Stream {
    /// Fails if it is to and a worker has the source. What that worker brings in the end must find no other stream here
    /// (`late_fill`): nothing else is asked on this connection.
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
        // An empty chunk must not be sent: in the chunked coding it would be the last one.
        if broken || fill.chunk.is_empty() {
            buffers.give(fill.chunk);
        } else {
            self.ready = Some(fill.chunk);
        }
    }
}
