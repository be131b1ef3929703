//! Bodies that a handler's thread makes item by item, and what waits to be sent while a handler has the connection.

use std::mem;
use std::sync::{Arc, TryLockError};

use super::answer::{Answer, ItemStream};
use super::drive::{Drive, Step};
use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::HUNG_UP;
use super::head::Framing;
use super::loan::{Loan, MOST_WAITING_BYTES, ReturnedLoan};
use super::{Connection, Phase};
use crate::access::Outcome;
use crate::body::Held;
use crate::guard;
use crate::headers::Headers;
use crate::items::{ItemQueue, ItemSink, Items, Pulled, Queued};
use crate::lock;
use crate::shared::Shared;

/// What waits is sent when it is as much as this: one system call for many items.
const FLUSH_BYTES: usize = 64 * 1024;

/// Sends what waits on connections that handlers have; called once a tick. A connection whose
/// loan is locked is left for the next tick: the handler that has it may be waiting for the
/// interpreter, and the caller must not wait for that.
pub(crate) fn flush_lent(shared: &Shared) {
    let lent = lock(&shared.lent).clone();
    for connection in lent {
        let mut loan = match connection.loan.try_lock() {
            Ok(loan) => loan,
            Err(TryLockError::Poisoned(loan)) => loan.into_inner(),
            Err(TryLockError::WouldBlock) => continue,
        };
        if let Some(loan) = &mut *loan {
            loan.flush(&connection.flags, &shared.buffers, &shared.config.metrics);
        }
    }
}

/// The queue that a connection has lent, for the items of a handler.
struct LentQueue<'a> {
    connection: &'a Connection,
    shared: &'a Shared,
    chunked: bool,
}

impl ItemQueue for LentQueue<'_> {
    fn push(&self, item: Held) -> Queued {
        let mut loan = lock(&self.connection.loan);
        let Some(loan) = &mut *loan else {
            return Queued::Closed;
        };
        let flags = &self.connection.flags;
        if loan.dead || flags.has(HUNG_UP) {
            return Queued::ClientGone;
        }
        loan.push(item, self.chunked);
        self.shared.scheduler.count_part();
        if loan.out.n_pending() >= FLUSH_BYTES {
            loan.flush(flags, &self.shared.buffers, &self.shared.config.metrics);
        }
        if loan.dead {
            Queued::ClientGone
        } else if loan.out.n_pending() > MOST_WAITING_BYTES {
            Queued::Full
        } else {
            Queued::Open
        }
    }
}

impl Drive<'_> {
    /// Lends the queue and the socket, before a handler runs: what waits is sent meanwhile, and
    /// with `terms` the handler may begin its answer.
    pub(super) fn lend(&mut self, terms: Option<AnswerTerms>, exchange: Option<Box<Exchange>>) {
        let Some(socket) = self.state.socket.take() else {
            return;
        };
        let out = mem::take(&mut self.state.out);
        let is_listed = terms.is_none() || !out.is_empty();
        *lock(&self.connection.loan) = Some(Loan {
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
            lock(&self.shared.lent).push(Arc::clone(self.connection));
        }
    }

    /// Takes back the queue and the socket.
    pub(super) fn take_back(&mut self) -> ReturnedLoan {
        let Some(loan) = lock(&self.connection.loan).take() else {
            return ReturnedLoan::default();
        };
        if loan.is_listed {
            let mut lent = lock(&self.shared.lent);
            if let Some(at) = lent.iter().position(|c| Arc::ptr_eq(c, self.connection)) {
                lent.swap_remove(at);
            }
        }
        self.state.out = loan.out;
        self.state.socket = Some(loan.socket);
        // A dead connection says so again at the next try.
        self.state.blocked = loan.blocked && !loan.dead;
        if self.state.blocked {
            self.note_stall(loan.progress);
        }
        ReturnedLoan {
            begun: loan.terms.zip(loan.begun),
            exchange: loan.exchange,
        }
    }

    /// Begins an answer that is made item by item.
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

    /// Has items made, where the client has taken those before.
    pub(super) fn pump_items(&mut self) -> Step {
        if !self.kit.is_of_loop() {
            return Step::Elsewhere;
        }
        let Phase::Items(mut stream) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return Step::Again;
        };
        if let Some(outcome) = stream.failed {
            self.break_off_items(*stream, outcome);
            return Step::Again;
        }
        if !self.shared.scheduler.enter_handler(self.connection) {
            self.state.phase = Phase::Items(stream);
            return Step::Deferred;
        }
        self.lend(None, None);
        let queue = LentQueue {
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
            // The items stopped because of that: nothing may say that these are all.
            self.state.phase = Phase::Items(stream);
            self.end(CutReason::Client);
            return Step::Again;
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
        Step::Again
    }

    /// All items are there.
    fn complete_items(&mut self, stream: ItemStream) {
        let mut answer = stream.answer;
        if stream.chunked {
            self.state
                .out
                .frame(|out| out.extend_from_slice(b"0\r\n\r\n"));
        }
        if stream.left.is_some_and(|left| left > 0) {
            // Fewer than announced: the connection's end says so.
            answer.exchange.outcome = Outcome::Failed;
            self.state.close_after = true;
            self.state.fell_short = true;
        }
        // It may run foreign code, which must find the answer's end on its way.
        drop(stream.items);
        answer.end = self.state.out.n_pushed();
        self.state.answers.push_back(answer);
        self.finish_answers(); // All of it may be with the kernel already.
        self.await_request();
    }

    /// What came before the failure is with the kernel: the connection ends so that nobody can take it for the whole.
    fn break_off_items(&mut self, stream: ItemStream, outcome: Outcome) {
        let n_sent = self.state.out.n_sent();
        let mut answer = stream.answer;
        answer.end = n_sent;
        answer.exchange.outcome = outcome;
        drop(stream.items);
        self.finish(answer, n_sent, None);
        let is_close_delimited = !stream.chunked && stream.left.is_none();
        self.close(is_close_delimited);
    }

    /// The connection ends while items are made.
    pub(super) fn abandon_items(&mut self, stream: ItemStream, why: CutReason, n_sent: u64) {
        let mut answer = stream.answer;
        answer.end = n_sent;
        answer.cut(why);
        drop(stream.items);
        self.finish(answer, n_sent, None);
    }
}
