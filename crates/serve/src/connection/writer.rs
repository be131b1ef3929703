//! Responses whose body a handler writes in blocks before it returns. From the start of such a
//! response, the handler's thread owns the connection. If the handler was called before the request
//! body was received, it becomes the owner by calling [`crate::ResponseWriter::begin`]. While the
//! handler is the owner, the output queue and the socket are in the connection's
//! [`BorrowedOutput`]. Bytes that stay in the queue longer than a tick are sent by the thread of
//! [`crate::scheduler::Scheduler::watch`].

use std::mem;
use std::sync::{Arc, MutexGuard, Weak};

use onecopy_wire::lock::{lock, unpoisoned};

use super::answer::{Answer, ItemStream};
use super::borrowed_output::{BegunAnswer, BorrowedOutput, MOST_WAITING_BYTES};
use super::drive::{Drive, signal_and_drive};
use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::{ANSWERED, CUT, HUNG_UP, TIMER, WRITABLE, WRITER_WAITS};
use super::{Connection, Phase};
use crate::access::Outcome;
use crate::body::SharedBytes;
use crate::response::Response;
use crate::response_writer::{AnswerOrigin, AnswerSink, WriteError};
use crate::shared::Shared;
use crate::thread_kit::ThreadKit;
use crate::timers::millis;

/// The references of a [`crate::ResponseWriter`] to its connection and its server.
struct WriterLink {
    connection: Arc<Connection>,
    /// The state of the server. The reference is weak, because a handler may keep its writer after
    /// the server has stopped.
    shared: Weak<Shared>,
}

/// References to the connection and the server of a request. They are valid while the handler of
/// the request runs.
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
        let mut slot = lock(&self.connection.borrowed_output);
        let borrowed_output = own(&mut slot, start)?;
        if borrowed_output.begun.is_some() {
            return Err(WriteError::Ended);
        }
        borrowed_output.begin(response);
        if !mem::replace(&mut borrowed_output.is_listed, true) {
            lock(&shared.borrowed_outputs).push(Arc::clone(&self.connection));
        }
        Ok(())
    }

    fn write(&self, start: Option<u64>, mut block: SharedBytes) -> Result<(), WriteError> {
        let shared = self.shared.upgrade().ok_or(WriteError::Ended)?;
        let mut slot = lock(&self.connection.borrowed_output);
        let start = start.ok_or(WriteError::Ended)?;
        let borrowed_output = own(&mut slot, start)?;
        let Some(begun) = &mut borrowed_output.begun else {
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
            borrowed_output.push(block, chunked);
        }
        shared.scheduler.count_part();
        self.send(&shared, start, slot)
    }
}

/// Returns the output in `slot` if the handler whose response starts at position `start` may use
/// it. After this handler has returned, it may no longer use the output, and an error is returned.
fn own(slot: &mut Option<BorrowedOutput>, start: u64) -> Result<&mut BorrowedOutput, WriteError> {
    let is_ours = |borrowed_output: &&mut BorrowedOutput| {
        borrowed_output.terms.is_some_and(|t| t.start == start)
    };
    slot.as_mut().filter(is_ours).ok_or(WriteError::Ended)
}

impl WriterLink {
    /// Sends queued bytes of the response to the client. Returns when at most
    /// [`MOST_WAITING_BYTES`] are still queued. Until then, waits for the client to receive bytes.
    fn send(
        &self,
        shared: &Arc<Shared>,
        start: u64,
        mut slot: MutexGuard<'_, Option<BorrowedOutput>>,
    ) -> Result<(), WriteError> {
        let mut stall = None;
        loop {
            let borrowed_output = own(&mut slot, start)?;
            let n_waiting = borrowed_output.out.n_pending();
            borrowed_output.flush(
                &self.connection.flags,
                &shared.buffers,
                &shared.config.metrics,
            );
            let gone = if borrowed_output.dead || self.connection.flags.has(HUNG_UP) {
                Some(CutReason::Client)
            } else if self.connection.flags.has(CUT) {
                Some(CutReason::Stopped)
            } else if borrowed_output.out.n_pending() <= MOST_WAITING_BYTES {
                return Ok(());
            } else if !borrowed_output.blocked {
                continue; // The kernel accepts more bytes.
            } else {
                let has_moved = borrowed_output.out.n_pending() < n_waiting;
                self.is_stalled(shared, &mut stall, has_moved)
            };
            if let Some(gone) = gone {
                if let Some(begun) = &mut borrowed_output.begun {
                    begun.gone = Some(gone);
                }
                return Err(gone.into());
            }
            slot = shared
                .scheduler
                .wait_for_client(|| self.connection.wait_for_flags(slot));
        }
    }

    /// Returns `Stalled` if the client has received no bytes of the response within the time limit
    /// `write_stall`; otherwise `None`. `stall` is the time in ms at which the limit expires, or
    /// `None` before the first wait. If `has_moved` is `true`, the client has received bytes, and
    /// the time limit starts again.
    fn is_stalled(
        &self,
        shared: &Arc<Shared>,
        stall: &mut Option<u64>,
        has_moved: bool,
    ) -> Option<CutReason> {
        let now_ms = shared.now_ms();
        // The flag may still be set because of an earlier deadline.
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

    /// Makes the calling thread the owner of the connection. This thread runs a handler that was
    /// called before the request body was received. Returns the position at which the response
    /// starts: the number of bytes of all earlier responses on the connection.
    fn take_over(&self, shared: &Arc<Shared>) -> Result<u64, WriteError> {
        let connection = &self.connection;
        connection.request_output();
        let mut kit = ThreadKit::of_worker();
        signal_and_drive(shared, connection, ANSWERED, &mut kit);
        let mut slot = lock(&connection.borrowed_output);
        loop {
            if let Some(terms) = slot
                .as_ref()
                .and_then(|borrowed_output| borrowed_output.terms)
            {
                return Ok(terms.start);
            }
            if connection.is_refused() {
                return Err(WriteError::Gone);
            }
            if shared.scheduler.is_finished() {
                return Err(WriteError::Stopped);
            }
            let woken = connection.output_changed.wait(slot);
            slot = unpoisoned(woken);
        }
    }
}

impl Connection {
    /// Waits until another thread sets a flag of the connection. The flags mean that the socket is
    /// writable, the client has disconnected, a deadline has passed, or the server stops.
    fn wait_for_flags<'a>(
        &self,
        slot: MutexGuard<'a, Option<BorrowedOutput>>,
    ) -> MutexGuard<'a, Option<BorrowedOutput>> {
        let mut slot = slot;
        let before = self.flags.add(WRITER_WAITS);
        if before & (WRITABLE | HUNG_UP | CUT | TIMER) == 0 {
            // From now on, a thread that sets a flag sees `WRITER_WAITS` and notifies the condition
            // variable. The notification cannot be lost, because the notifying thread first takes
            // the lock of the output.
            let woken = self.output_changed.wait(slot);
            slot = unpoisoned(woken);
        }
        self.flags.take(WRITER_WAITS);
        slot
    }
}

impl Drive<'_> {
    /// Completes a response whose beginning the handler itself has written. This is called after
    /// the handler has returned. `response` contains the rest of the body; it is `None` if the
    /// handler panicked.
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
