//! Answers that a handler begins, and writes block by block, while it runs.
//!
//! The thread of the handler owns the connection meanwhile, or takes it over
//! ([`ResponseWriter::begin`] of a handler that was called before its request's body). The queue
//! and the socket are in the connection's loan, where the watch sends what waits.

use std::fmt;
use std::mem;
use std::sync::{Arc, MutexGuard, PoisonError};

use onecopy_wire::http::ChunkHead;

use super::answer::{Answer, Exchange, Framing, Gone, HeadStart, write_head};
use super::drive::Drive;
use super::items::{ItemStream, Loan, MOST_WAITING_BYTES};
use super::{ANSWERED, CUT, Connection, HUNG_UP, Phase, TIMER, WRITABLE, WRITER_WAITS};
use crate::access::Outcome;
use crate::body::Held;
use crate::date::Date;
use crate::event_loop::{Shared, ThreadKit};
use crate::lock;
use crate::response::Response;
use crate::timers::millis;

/// Begins the answer to a request while its handler runs, and sends the first blocks of its body,
/// each at once.
///
/// The handler then returns a response of which only the body counts: what follows those blocks.
#[derive(Clone)]
pub struct ResponseWriter {
    connection: Arc<Connection>,
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

impl From<Gone> for WriteError {
    fn from(gone: Gone) -> WriteError {
        match gone {
            Gone::Client => WriteError::Gone,
            Gone::Stalled => WriteError::Stalled,
            Gone::Stopped => WriteError::Stopped,
        }
    }
}

/// The request that is answered, as far as the head of its answer depends on it.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    start: u64,
    is_head: bool,
    http_1_0: bool,
    keep_alive: bool,
}

impl Terms {
    pub(super) fn of(exchange: &Exchange, start: u64) -> Terms {
        Terms {
            start,
            is_head: exchange.is_head,
            http_1_0: exchange.http_1_0,
            keep_alive: exchange.keep_alive,
        }
    }
}

/// An answer that was begun.
pub(super) struct Begun {
    status: u16,
    reason: Option<Box<[u8]>>,
    body_start: u64,
    keep_alive: bool,
    chunked: bool,
    /// Bytes to come, of those announced.
    left: Option<u64>,
    /// The method or the status excludes a body.
    no_body: bool,
    /// Why nothing more can be sent.
    gone: Option<Gone>,
}

impl ResponseWriter {
    pub(crate) fn new(connection: &Arc<Connection>, start: Option<u64>) -> ResponseWriter {
        ResponseWriter {
            connection: Arc::clone(connection),
            start,
        }
    }

    /// Begins the answer with the status and the header fields of `response`. They are sent with
    /// the first block.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn begin(&mut self, response: Response) -> Result<(), WriteError> {
        let shared = self.connection.shared().ok_or(WriteError::Ended)?;
        if self.start.is_none() {
            self.start = Some(self.take_over(&shared)?);
        }
        let mut slot = lock(&self.connection.loan);
        let loan = self.own(&mut slot)?;
        if loan.begun.is_some() {
            return Err(WriteError::Ended);
        }
        loan.begin(response);
        if !mem::replace(&mut loan.is_listed, true) {
            lock(&shared.lent).push(Arc::clone(&self.connection));
        }
        Ok(())
    }

    /// Sends a block of the body: it is with the kernel, or among at most 256 KiB that wait to be
    /// sent while the handler runs on. Until then it waits for the client. Copies: none. Bytes
    /// after the announced length are left out.
    ///
    /// # Errors
    /// [`WriteError`]. The blocks sent before are not a whole answer then.
    pub fn write(&self, mut block: Held) -> Result<(), WriteError> {
        let shared = self.connection.shared().ok_or(WriteError::Ended)?;
        let mut slot = lock(&self.connection.loan);
        let loan = self.own(&mut slot)?;
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
        self.send(&shared, slot)
    }

    /// The loan, as long as it is that of this writer's request.
    fn own<'a>(&self, slot: &'a mut Option<Loan>) -> Result<&'a mut Loan, WriteError> {
        let is_ours = |loan: &&mut Loan| loan.terms.is_some_and(|t| Some(t.start) == self.start);
        slot.as_mut().filter(is_ours).ok_or(WriteError::Ended)
    }

    /// Sends what waits, and waits for the client while that is too much.
    fn send(
        &self,
        shared: &Arc<Shared>,
        mut slot: MutexGuard<'_, Option<Loan>>,
    ) -> Result<(), WriteError> {
        let mut stall = None;
        loop {
            let loan = self.own(&mut slot)?;
            let n_waiting = loan.out.n_pending();
            loan.flush(shared, &self.connection);
            let gone = if loan.dead || self.connection.is_raised(HUNG_UP) {
                Some(Gone::Client)
            } else if self.connection.is_raised(CUT) {
                Some(Gone::Stopped)
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
    ) -> Option<Gone> {
        let now_ms = shared.now_ms();
        // One of a deadline before this.
        self.connection.take_raised(TIMER);
        if let Some(at_ms) = *stall
            && !has_moved
        {
            return (at_ms <= now_ms).then_some(Gone::Stalled);
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
        shared.signal_and_drive(connection, ANSWERED, &mut kit);
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

impl fmt::Debug for ResponseWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseWriter")
    }
}

impl Connection {
    /// Waits until a flag is raised that concerns what is sent.
    fn wait_for_flags<'a>(
        &self,
        slot: MutexGuard<'a, Option<Loan>>,
    ) -> MutexGuard<'a, Option<Loan>> {
        let mut slot = slot;
        let before = self.add_flags(WRITER_WAITS);
        if before & (WRITABLE | HUNG_UP | CUT | TIMER) == 0 {
            // A thread that raises one from now on sees `WRITER_WAITS`, and notifies with the loan
            // locked.
            let woken = self.loan_changed.wait(slot);
            slot = woken.unwrap_or_else(PoisonError::into_inner);
        }
        self.take_raised(WRITER_WAITS);
        slot
    }
}

impl Loan {
    /// Queues the head of an answer.
    fn begin(&mut self, response: Response) {
        let Some(terms) = self.terms else {
            return;
        };
        let announced = response.announced;
        let bodiless = matches!(response.status, 204 | 304);
        let chunked = announced.is_none() && !terms.http_1_0 && !bodiless;
        let framing = match announced {
            _ if bodiless => Framing::Nothing,
            Some(n) => Framing::Length(n),
            None if chunked => Framing::Chunked { trailer: false },
            None => Framing::Nothing,
        };
        // A body whose end is the end of the connection.
        let keep_alive = terms.keep_alive && (bodiless || announced.is_some() || chunked);
        let head = HeadStart {
            status: response.status,
            reason: response.reason.as_deref(),
            keep_alive,
            http_1_0: terms.http_1_0,
        };
        let mut date = Date::new();
        let body_start = write_head(
            &mut self.out,
            &mut date,
            &head,
            response.headers,
            framing,
            b"",
        );
        self.begun = Some(Box::new(Begun {
            status: response.status,
            reason: response.reason,
            body_start,
            keep_alive,
            chunked,
            left: announced,
            no_body: terms.is_head || bodiless,
            gone: None,
        }));
    }

    /// Queues an item of a body.
    pub(super) fn push(&mut self, item: Held, chunked: bool) {
        if item.is_empty() {
            return;
        }
        if !chunked {
            return self.out.held(item);
        }
        let size = ChunkHead::new(item.len());
        let size = size.as_bytes();
        self.out.frame(|out| out.extend_from_slice(size));
        self.out.held(item);
        self.out.frame(|out| out.extend_from_slice(b"\r\n"));
    }
}

impl Drive<'_> {
    /// A handler has returned that began its answer: `response` has the rest of the body; `None`:
    /// it panicked.
    pub(super) fn continue_begun(
        &mut self,
        mut exchange: Exchange,
        terms: Terms,
        begun: Begun,
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
