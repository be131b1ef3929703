//! Methods of [`Drive`] for row streams. While the kernel sends a chunk, a worker fills the next
//! chunk.

use std::mem;
use std::sync::Arc;

use onecopy_text::{Stage, Tally, planted};
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::http::{ChunkHead, write_last_chunk};

use super::Phase;
use super::answer::Answer;
use super::drive::{Drive, NextStep};
use super::exchange::CutReason;
use super::flags::BROKEN;
use super::head::Framing;
use super::stream::{ActiveStream, StreamProgress};
use crate::access::Outcome;
use crate::guard;
use crate::headers::Headers;
use crate::output_queue::OutQueue;
use crate::response::{Chunks, Response, StreamEnd};
use crate::shared::Shared;
use crate::workers::Job;

impl Drive<'_> {
    /// Starts to send a row stream. Nothing is sent before the first chunk is filled, so that an
    /// early error can still become an error response.
    pub(super) fn begin_stream(&mut self, mut answer: Answer, headers: Headers, chunks: Chunks) {
        let chunked = !answer.exchange.http_1_0;
        if !chunked {
            answer.exchange.keep_alive = false;
            self.state.close_after = true;
        }
        if let Some(breaker) = &chunks.breaker {
            let (shared, connection) =
                (Arc::downgrade(self.shared), Arc::downgrade(self.connection));
            breaker.on_fail(move || {
                if let (Some(shared), Some(connection)) = (shared.upgrade(), connection.upgrade()) {
                    shared.signal(&connection, BROKEN);
                }
            });
        }
        self.state.phase = Phase::Stream(Box::new(ActiveStream {
            answer,
            head: Some(headers),
            chunked,
            cancel: chunks.source.cancel_handle(),
            source: Some(chunks.source),
            begun: chunks.begun,
            ready: None,
            progress: StreamProgress::Running,
            breaker: chunks.breaker,
            on_end: chunks.on_end,
            on_error: chunks.on_error,
            ledger: chunks.ledger,
            _open: self.shared.config.metrics.stream(),
        }));
    }

    /// Continues a row stream: queues the chunk that a worker thread has filled, and lets the
    /// worker fill the next one.
    pub(super) fn pump(&mut self) -> NextStep {
        let Phase::Stream(mut stream) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return NextStep::Again;
        };
        if let Some(fill) = self.connection.take_fill() {
            let Shared {
                buffers, config, ..
            } = &**self.shared;
            stream.take(fill, buffers, &config.metrics);
        }
        stream.look_at_breaker();
        let mut queued = false;
        if let Some(begun) = stream.begun.take() {
            let n_bytes = begun.len();
            self.push_piece(&mut stream, n_bytes, |out| out.held(begun));
            queued = true;
        } else if self.state.out.is_empty()
            && let Some(chunk) = stream.ready.take()
        {
            planted::extra_work_on_chunk(&chunk);
            let n_bytes = chunk.len();
            self.push_piece(&mut stream, n_bytes, |out| out.chunk(chunk));
            queued = true;
        }
        if stream.ready.is_none()
            && let Some(source) = stream.source.take()
        {
            let job = Job::Fill {
                target: Arc::clone(self.connection),
                source,
                chunk: self.shared.buffers.take(),
            };
            self.shared.workers.submit(self.shared, job);
        }
        let running = matches!(stream.progress, StreamProgress::Running);
        if !running && !queued && stream.ready.is_none() && self.state.out.is_empty() {
            self.end_stream(*stream);
            return NextStep::Again;
        }
        self.state.phase = Phase::Stream(stream);
        // The queued bytes are sent while the worker fills the next chunk.
        if queued {
            NextStep::Again
        } else {
            NextStep::Wait
        }
    }

    /// Queues one chunk of the response body. `push` is called to queue its `n_bytes` bytes,
    /// without a copy. Before the first chunk, the head of the response is queued.
    fn push_piece(
        &mut self,
        stream: &mut ActiveStream,
        n_bytes: usize,
        push: impl FnOnce(&mut OutQueue),
    ) {
        let size = ChunkHead::new(n_bytes);
        let size = if stream.chunked { size.as_bytes() } else { b"" };
        if stream.head.is_some() {
            self.push_stream_head(stream, size);
        } else {
            self.state.out.frame(|out| out.extend_from_slice(size));
        }
        push(&mut self.state.out);
        if stream.chunked {
            self.state.out.frame(|out| out.extend_from_slice(b"\r\n"));
        }
    }

    fn push_stream_head(&mut self, stream: &mut ActiveStream, after: &[u8]) {
        if let Some(headers) = stream.head.take() {
            let framing = Framing::of_stream(&stream.answer.exchange);
            let before = self.state.out.n_pushed();
            self.push_head(&mut stream.answer, headers, framing, after);
            // Each field was copied once, into the buffer of the queue, from which the kernel reads
            // it.
            let n_bytes = self.state.out.n_pushed() - before;
            let mut head = Tally::default();
            head.copied(usize::try_from(n_bytes).unwrap_or(0) - after.len());
            head.enter(&stream.ledger, Stage::Head);
        }
    }

    /// Ends a stream whose source has ended. This method is called after the kernel has accepted
    /// all chunks of the stream.
    fn end_stream(&mut self, mut stream: ActiveStream) {
        match mem::replace(&mut stream.progress, StreamProgress::Running) {
            StreamProgress::Running => {}
            StreamProgress::Done => self.complete(stream),
            StreamProgress::Failed(error) if stream.head.is_some() => {
                let on_error = stream.on_error.take();
                let response = on_error
                    .and_then(|on_error| guard(|| on_error(&error)))
                    .filter(|r| r.body_ref().len_bytes().is_some())
                    .unwrap_or_else(|| {
                        let cancelled = error.kind == ChunkErrorKind::Cancelled;
                        let status = if cancelled { 503 } else { 500 };
                        self.refusal(status, "the source of the answer failed")
                    });
                self.answer_instead(stream, Outcome::Failed, StreamEnd::Failed(error), response);
            }
            StreamProgress::Panicked if stream.head.is_some() => {
                let response = self.refusal(500, "the source of the answer failed");
                self.answer_instead(stream, Outcome::Panicked, StreamEnd::Panicked, response);
            }
            StreamProgress::Failed(error) => {
                self.break_off(stream, Outcome::Failed, StreamEnd::Failed(error));
            }
            StreamProgress::Panicked => {
                self.break_off(stream, Outcome::Panicked, StreamEnd::Panicked)
            }
        }
    }

    /// Completes a stream whose rows were all queued: queues the last chunk of the chunked coding,
    /// with a trailer that reports success.
    fn complete(&mut self, mut stream: ActiveStream) {
        self.push_stream_head(&mut stream, b"");
        let mut answer = stream.answer;
        let n_rows = answer.n_rows.unwrap_or(0);
        if stream.chunked {
            let status = format!("ok; rows={n_rows}");
            self.state.out.frame(|out| {
                write_last_chunk([("onecopy-status", status.as_bytes())], out)
                    .expect("the trailer is ours");
            });
        }
        answer.end = self.state.out.n_pushed();
        answer.stream = Some(Box::new((stream.on_end, StreamEnd::Done { n_rows })));
        self.state.answers.push_back(answer);
        self.finish_answers(); // A close-delimited body may already be sent completely.
        self.await_request();
    }

    /// Sends the complete error response `response`. It replaces the response of a stream that
    /// failed before any byte of that response was sent.
    fn answer_instead(
        &mut self,
        stream: ActiveStream,
        outcome: Outcome,
        end: StreamEnd,
        response: Response,
    ) {
        let mut exchange = stream.answer.exchange;
        exchange.outcome = outcome;
        self.await_request();
        self.respond(exchange, response);
        if let Some(answer) = self.state.answers.back_mut() {
            answer.stream = Some(Box::new((stream.on_end, end)));
            answer.n_rows = stream.answer.n_rows;
        }
    }

    /// Closes the connection of a stream that failed after some of its bytes were sent, so that the
    /// client detects that the body is incomplete. A body in the chunked coding then lacks its last
    /// chunk. If the end of the connection is the end of the body, the connection is reset instead,
    /// because an orderly close would mark the body as complete.
    fn break_off(&mut self, stream: ActiveStream, outcome: Outcome, end: StreamEnd) {
        let n_sent = self.state.out.n_sent();
        let mut answer = stream.answer;
        answer.end = n_sent;
        answer.exchange.outcome = outcome;
        answer.stream = Some(Box::new((stream.on_end, end)));
        self.finish(answer, n_sent, None);
        self.close(!stream.chunked);
    }

    /// Cancels a row stream because the client has closed its sending side. The client may still
    /// read, but the server cannot distinguish this from a disconnect until a write fails, and a
    /// query without a reader is expensive. The queued bytes are sent. Then the connection is
    /// closed, and the client detects that the body is incomplete, because the last chunk is
    /// missing.
    pub(super) fn leave_stream(&mut self) {
        let Phase::Stream(stream) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return;
        };
        if !stream.chunked && stream.head.is_none() {
            // The end of the connection is the end of this body, so an orderly close would mark the
            // body as complete.
            self.state.phase = Phase::Stream(stream);
            return self.end(CutReason::Client);
        }
        self.abandon(*stream, CutReason::Client, self.state.out.n_sent());
        self.state.close_after = true;
        self.state.fell_short = true;
    }

    /// Cancels the source of a stream whose connection ends before the stream is complete. First
    /// the source is dropped, then the response is reported to the access log.
    pub(super) fn abandon(&mut self, stream: ActiveStream, why: CutReason, n_sent: u64) {
        guard(|| stream.cancel.cancel());
        if let Some(chunk) = stream.ready {
            self.shared.buffers.give(chunk);
        }
        let mut answer = stream.answer;
        answer.end = n_sent;
        answer.stream = Some(Box::new((stream.on_end, StreamEnd::ClientGone)));
        answer.cut(why);
        match (stream.source, stream.progress) {
            (Some(source), _) => self.drop_source(source, answer),
            // A worker still uses the source, so the response is reported when the worker has
            // finished.
            (None, StreamProgress::Running) => self.state.orphan = Some(answer),
            (None, _) => self.finish(answer, n_sent, None),
        }
    }

    /// Processes a chunk that a worker thread has filled for a stream whose response ended before
    /// the chunk was ready.
    pub(super) fn late_fill(&mut self) {
        let Some(fill) = self.connection.take_fill() else {
            return;
        };
        self.shared.buffers.give(fill.chunk);
        let Some(mut answer) = self.state.orphan.take() else {
            // A breaker has ended the stream, and the response was reported then.
            if let Some(source) = fill.source {
                let then = Box::new(|| ());
                let job = Job::Drop { source, then };
                self.shared.workers.submit(self.shared, job);
            }
            return;
        };
        answer.n_rows = Some(fill.n_rows);
        match fill.source {
            Some(source) => self.drop_source(source, answer),
            None => {
                let n_sent = answer.end;
                self.finish(answer, n_sent, None);
            }
        }
    }
}
