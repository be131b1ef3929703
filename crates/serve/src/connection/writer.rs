//! Answers that a handler begins, and writes block by block, while it runs.
//!
//! The thread of the handler owns the connection meanwhile, or takes it over
//! ([`ResponseWriter::begin`] of a handler that was called before its request's body). The queue
//! and the socket are in the connection's loan, where the watch sends what waits.

use std::mem;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use super::answer::{Answer, ItemStream};
use super::drive::{Drive, signal_and_drive};
use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::{ANSWERED, CUT, HUNG_UP, TIMER, WRITABLE, WRITER_WAITS};
use super::loan::{BegunAnswer, Loan, MOST_WAITING_BYTES};
use super::{Connection, Phase};
use crate::access::Outcome;
use crate::body::Held;
use crate::lock;
use crate::response::Response;
use crate::response_writer::{AnswerOrigin, AnswerSink, WriteError};
use crate::shared::Shared;
use crate::thread_kit::ThreadKit;
use crate::timers::millis;

/// A connection and its server, as the writer of an answer sees them.
struct WriterLink {
    connection: Arc<Connection>,
    /// Not kept alive: a handler may keep its writer for longer than the server runs.
    shared: Weak<Shared>,
}

/// A connection whose request is with its handler.
pub(super) struct HandlerConnection<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) connection: &'a Arc<Connection>,
}

impl AnswerOrigin for HandlerConnection<'_> {
    fn sink(&self) -> Arc<dyn AnswerSink> {
        Arc::new(WriterLink {
            connection: Arc::clone(self.connection),
            shared: Arc::downgrade(self.shared),
        })
    }
}

impl AnswerSink for WriterLink {
    fn begin(&self, start: &mut Option<u64>, response: Response) -> Result<(), WriteError> {
        let shared = self.shared.upgrade().ok_or(WriteError::Ended)?;
        let start = match *start {
            Some(start) => start,
            None => *start.insert(self.take_over(&shared)?),
        };
        let mut slot = lock(&self.connection.loan);
        let loan = own(&mut slot, start)?;
        if loan.begun.is_some() {
            return Err(WriteError::Ended);
        }
        loan.begin(response);
        if !mem::replace(&mut loan.is_listed, true) {
            lock(&shared.lent).push(Arc::clone(&self.connection));
        }
        Ok(())
    }

    fn write(&self, start: Option<u64>, mut block: Held) -> Result<(), WriteError> {
        let shared = self.shared.upgrade().ok_or(WriteError::Ended)?;
        let mut slot = lock(&self.connection.loan);
        let start = start.ok_or(WriteError::Ended)?;
        let loan = own(&mut slot, start)?;
        let Some(begun) = &mut loan.begun else {
            return Err(WriteError::Ended);
        };
        if let Some(gone) = begun.gone {
            return Err(gone.into());
        }
        if let Some(left) = &mut begun.left {
            block.cut(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= block.len() as u64;
        }
        if !begun.no_body {
            let chunked = begun.chunked;
            loan.push(block, chunked);
        }
        shared.scheduler.count_part();
        self.send(&shared, start, slot)
    }
}

/// The loan, as long as it is that of the request whose answer starts at `start`.
fn own(slot: &mut Option<Loan>, start: u64) -> Result<&mut Loan, WriteError> {
    let is_ours = |loan: &&mut Loan| loan.terms.is_some_and(|t| t.start == start);
    slot.as_mut().filter(is_ours).ok_or(WriteError::Ended)
}

impl WriterLink {
    /// Sends what waits, and waits for the client while that is too much.
    fn send(
        &self,
        shared: &Arc<Shared>,
        start: u64,
        mut slot: MutexGuard<'_, Option<Loan>>,
    ) -> Result<(), WriteError> {
        let mut stall = None;
        loop {
            let loan = own(&mut slot, start)?;
            let n_waiting = loan.out.n_pending();
            loan.flush(
                &self.connection.flags,
                &shared.buffers,
                &shared.config.metrics,
            );
            let gone = if loan.dead || self.connection.flags.has(HUNG_UP) {
                Some(CutReason::Client)
            } else if self.connection.flags.has(CUT) {
                Some(CutReason::Stopped)
            } else if loan.out.n_pending() <= MOST_WAITING_BYTES {
                return Ok(());
            } else if !loan.blocked {
                continue; // The kernel takes more.
            } else {
                let has_moved = loan.out.n_pending() < n_waiting;
                self.is_stalled(shared, &mut stall, has_moved)
            };
            if let Some(gone) = gone {
                if let Some(begun) = &mut loan.begun {
                    begun.gone = Some(gone);
                }
                return Err(gone.into());
            }
            slot = shared
                .scheduler
                .wait_for_client(|| self.connection.wait_for_flags(slot));
        }
    }

    /// Returns the reason to give up if the client has received nothing for the limit, which begins
    /// anew if it `has_moved`.
    fn is_stalled(
        &self,
        shared: &Arc<Shared>,
        stall: &mut Option<u64>,
        has_moved: bool,
    ) -> Option<CutReason> {
        let now_ms = shared.now_ms();
        // One of a deadline before this.
        self.connection.flags.take(TIMER);
        if let Some(at_ms) = *stall
            && !has_moved
        {
            return (at_ms <= now_ms).then_some(CutReason::Stalled);
        }
        let at_ms = now_ms + millis(shared.config.limits.write_stall);
        *stall = Some(at_ms);
        shared.set_deadline(&self.connection, at_ms);
        None
    }

    /// Makes the thread of a handler that was called before its request's body the owner of the
    /// connection. Where the answer starts.
    fn take_over(&self, shared: &Arc<Shared>) -> Result<u64, WriteError> {
        let connection = &self.connection;
        connection.request_loan();
        let mut kit = ThreadKit::of_worker();
        signal_and_drive(shared, connection, ANSWERED, &mut kit);
        let mut slot = lock(&connection.loan);
        loop {
            if let Some(terms) = slot.as_ref().and_then(|loan| loan.terms) {
                return Ok(terms.start);
            }
            if connection.is_refused() {
                return Err(WriteError::Gone);
            }
            if shared.scheduler.is_finished() {
                return Err(WriteError::Stopped);
            }
            let woken = connection.loan_changed.wait(slot);
            slot = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Connection {
    /// Waits until a flag is raised that concerns what is sent.
    fn wait_for_flags<'a>(
        &self,
        slot: MutexGuard<'a, Option<Loan>>,
    ) -> MutexGuard<'a, Option<Loan>> {
        let mut slot = slot;
        let before = self.flags.add(WRITER_WAITS);
        if before & (WRITABLE | HUNG_UP | CUT | TIMER) == 0 {
            // A thread that raises one from now on sees `WRITER_WAITS`, and notifies with the loan
            // locked.
            let woken = self.loan_changed.wait(slot);
            slot = woken.unwrap_or_else(PoisonError::into_inner);
        }
        self.flags.take(WRITER_WAITS);
        slot
    }
}

impl Drive<'_> {
    /// A handler has returned that began its answer: `response` has the rest of the body; `None`:
    /// it panicked.
    pub(super) fn continue_begun(
        &mut self,
        mut exchange: Exchange,
        terms: AnswerTerms,
        begun: BegunAnswer,
        response: Option<Response>,
    ) {
        exchange.keep_alive = begun.keep_alive;
        self.state.close_after |= !begun.keep_alive;
        let mut answer = Answer {
            exchange,
            status: begun.status,
            reason: begun.reason,
            start: terms.start,
            body_start: begun.body_start,
            end: self.state.out.n_pushed(),
            n_rows: None,
            stream: None,
        };
        let failed = response.is_none().then_some(Outcome::Panicked);
        if begun.no_body && begun.gone.is_none() {
            answer.exchange.outcome = failed.unwrap_or(answer.exchange.outcome);
            self.state.answers.push_back(answer);
            return self.finish_answers();
        }
        let body = response.map(|response| response.body).unwrap_or_default();
        self.state.phase = Phase::Items(Box::new(ItemStream {
            answer,
            items: body.into_items(),
            chunked: begun.chunked,
            left: begun.left,
            failed,
        }));
        if let Some(gone) = begun.gone {
            self.end(gone);
        }
    }
}
