//! Methods of [`Drive`] for a response body that a handler produces item by item. While the handler
//! runs, the connection lends its output queue to the handler's thread.

use std::mem;
use std::sync::{Arc, TryLockError};

use onecopy_wire::lock::lock;

use super::answer::{Answer, ItemStream};
use super::borrowed_output::{BorrowedOutput, MOST_WAITING_BYTES, ReturnedOutput};
use super::drive::{Drive, NextStep};
use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::HUNG_UP;
use super::head::Framing;
use super::{Connection, Phase};
use crate::access::Outcome;
use crate::body::SharedBytes;
use crate::guard;
use crate::headers::Headers;
use crate::items::{ItemQueue, ItemSink, Items, Pulled, Queued};
use crate::shared::Shared;

/// The queued items are sent when they have at least this number of bytes in total. Until then they
/// are collected, so that one system call sends many items.
const FLUSH_BYTES: usize = 64 * 1024;

/// Sends the queued bytes of each connection whose output queue is lent to a handler. It is called
/// once per tick. The function never waits for the lock of a queue, because a handler may hold the
/// lock while it waits for the Python interpreter. The bytes of a locked queue are sent at a later
/// tick.
pub(crate) fn flush_borrowed_outputs(shared: &Shared) {
    let borrowed_outputs = lock(&shared.borrowed_outputs).clone();
    for connection in borrowed_outputs {
        let mut borrowed_output = match connection.borrowed_output.try_lock() {
            Ok(borrowed_output) => borrowed_output,
            Err(TryLockError::Poisoned(borrowed_output)) => borrowed_output.into_inner(),
            Err(TryLockError::WouldBlock) => continue,
        };
        if let Some(borrowed_output) = &mut *borrowed_output {
            borrowed_output.flush(&connection.flags, &shared.buffers, &shared.config.metrics);
        }
    }
}

/// Gives a handler access to the output queue of its connection, to which it adds the items of a
/// response body.
struct BorrowedQueue<'a> {
    connection: &'a Connection,
    shared: &'a Shared,
    chunked: bool,
}

impl ItemQueue for BorrowedQueue<'_> {
    fn push(&self, item: SharedBytes) -> Queued {
        let mut borrowed_output = lock(&self.connection.borrowed_output);
        let Some(borrowed_output) = &mut *borrowed_output else {
            return Queued::Closed;
        };
        let flags = &self.connection.flags;
        if borrowed_output.dead || flags.has(HUNG_UP) {
            return Queued::ClientGone;
        }
        borrowed_output.push(item, self.chunked);
        self.shared.scheduler.count_part();
        if borrowed_output.out.n_pending() >= FLUSH_BYTES {
            borrowed_output.flush(flags, &self.shared.buffers, &self.shared.config.metrics);
        }
        if borrowed_output.dead {
            Queued::ClientGone
        } else if borrowed_output.out.n_pending() > MOST_WAITING_BYTES {
            Queued::Full
        } else {
            Queued::Open
        }
    }
}

impl Drive<'_> {
    /// Lends the output queue and the socket to a handler before it runs. While they are lent, the
    /// thread of [`crate::scheduler::Scheduler::watch`] sends queued bytes. If `terms` is not
    /// `None`, the handler may begin its response before it returns.
    pub(super) fn lend(&mut self, terms: Option<AnswerTerms>, exchange: Option<Box<Exchange>>) {
        let Some(socket) = self.state.socket.take() else {
            return;
        };
        let out = mem::take(&mut self.state.out);
        let is_listed = terms.is_none() || !out.is_empty();
        *lock(&self.connection.borrowed_output) = Some(BorrowedOutput {
            out,
            socket,
            blocked: self.state.blocked,
            dead: false,
            progress: false,
            is_listed,
            terms,
            begun: None,
            exchange,
        });
        if is_listed {
            lock(&self.shared.borrowed_outputs).push(Arc::clone(self.connection));
        }
    }

    /// Takes the output queue and the socket back from the handler.
    pub(super) fn take_back(&mut self) -> ReturnedOutput {
        let Some(borrowed_output) = lock(&self.connection.borrowed_output).take() else {
            return ReturnedOutput::default();
        };
        if borrowed_output.is_listed {
            let mut borrowed_outputs = lock(&self.shared.borrowed_outputs);
            if let Some(at) = borrowed_outputs
                .iter()
                .position(|c| Arc::ptr_eq(c, self.connection))
            {
                borrowed_outputs.swap_remove(at);
            }
        }
        self.state.out = borrowed_output.out;
        self.state.socket = Some(borrowed_output.socket);
        // If the connection has failed, it is not marked as blocked. The next attempt to send then
        // returns the error again.
        self.state.blocked = borrowed_output.blocked && !borrowed_output.dead;
        if self.state.blocked {
            self.note_stall(borrowed_output.progress);
        }
        ReturnedOutput {
            begun: borrowed_output.terms.zip(borrowed_output.begun),
            exchange: borrowed_output.exchange,
        }
    }

    /// Begins a response whose body is produced item by item.
    pub(super) fn begin_items(
        &mut self,
        mut answer: Answer,
        headers: Headers,
        announced: Option<u64>,
        items: Box<dyn Items>,
    ) {
        let framing = Framing::of_items(&answer.exchange, announced);
        let chunked = matches!(framing, Framing::Chunked { .. });
        if framing == Framing::Nothing {
            answer.exchange.keep_alive = false;
            self.state.close_after = true;
        }
        self.push_head(&mut answer, headers, framing, b"");
        self.state.phase = Phase::Items(Box::new(ItemStream {
            answer,
            items,
            chunked,
            left: announced,
            failed: None,
        }));
    }

    /// Requests more items from the handler. It is called after all queued bytes were sent.
    pub(super) fn pump_items(&mut self) -> NextStep {
        if !self.kit.is_of_loop() {
            return NextStep::Elsewhere;
        }
        let Phase::Items(mut stream) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return NextStep::Again;
        };
        if let Some(outcome) = stream.failed {
            self.abort_items(*stream, outcome);
            return NextStep::Again;
        }
        if !self.shared.scheduler.enter_handler(self.connection) {
            self.state.phase = Phase::Items(stream);
            return NextStep::Deferred;
        }
        self.lend(None, None);
        let queue = BorrowedQueue {
            connection: self.connection,
            shared: self.shared,
            chunked: stream.chunked,
        };
        let mut sink = ItemSink::new(&queue, stream.left);
        let pulled = guard(|| stream.items.pull(&mut sink));
        let gone = sink.is_client_gone();
        stream.left = sink.left();
        self.take_back();
        self.shared.scheduler.leave_handler();
        self.kit.now_ms = self.shared.now_ms();
        if gone {
            // The items ended early because the client disconnected, so the response must not be
            // marked as complete.
            self.state.phase = Phase::Items(stream);
            self.end(CutReason::Client);
            return NextStep::Again;
        }
        match pulled {
            Some(Pulled::More) => self.state.phase = Phase::Items(stream),
            Some(Pulled::Done) => self.complete_items(*stream),
            Some(Pulled::Failed) | None => {
                let panicked = pulled.is_none();
                stream.failed = Some(if panicked {
                    Outcome::Panicked
                } else {
                    Outcome::Failed
                });
                self.state.phase = Phase::Items(stream);
            }
        }
        NextStep::Again
    }

    /// Completes a response whose last item was queued.
    fn complete_items(&mut self, stream: ItemStream) {
        let mut answer = stream.answer;
        if stream.chunked {
            self.state
                .out
                .frame(|out| out.extend_from_slice(b"0\r\n\r\n"));
        }
        if stream.left.is_some_and(|left| left > 0) {
            // The body has fewer bytes than announced. The connection is closed, so that the client
            // detects the missing bytes.
            answer.exchange.outcome = Outcome::Failed;
            self.state.close_after = true;
            self.state.fell_short = true;
        }
        // Dropping the items may run code of the application, so the end of the response is queued
        // before the drop.
        drop(stream.items);
        answer.end = self.state.out.n_pushed();
        self.state.answers.push_back(answer);
        self.finish_answers(); // The kernel may already have received the whole response.
        self.await_request();
    }

    /// Reports a response whose handler failed, and closes the connection before the end of the
    /// body. If the end of the connection is the end of the body, the connection is reset, because
    /// the client would otherwise treat the received part as the complete body.
    fn abort_items(&mut self, stream: ItemStream, outcome: Outcome) {
        let n_sent = self.state.out.n_sent();
        let mut answer = stream.answer;
        answer.end = n_sent;
        answer.exchange.outcome = outcome;
        drop(stream.items);
        self.finish(answer, n_sent, None);
        let is_close_delimited = !stream.chunked && stream.left.is_none();
        self.close(is_close_delimited);
    }

    /// Reports a response that is incomplete because its connection ended while the handler
    /// produced items.
    pub(super) fn abandon_items(&mut self, stream: ItemStream, why: CutReason, n_sent: u64) {
        let mut answer = stream.answer;
        answer.end = n_sent;
        answer.cut(why);
        drop(stream.items);
        self.finish(answer, n_sent, None);
    }
}
