//! The output of a connection while a handler has it.

use onecopy_wire::http::ChunkHead;

use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::{ConnectionFlags, WRITABLE};
use super::head::{Framing, HeadStart, write_head};
use crate::body::Held;
use crate::buffers::Buffers;
use crate::date::Date;
use crate::metrics::Metrics;
use crate::out::{Flushed, OutQueue};
use crate::response::Response;
use crate::transport::Transport;

/// While more than this waits, no more is made.
pub(super) const MOST_WAITING_BYTES: usize = 256 * 1024;

/// What a connection lends while a handler has it: the watch sends what waits there for longer than a tick.
pub(super) struct Loan {
    pub(super) out: OutQueue,
    pub(super) socket: Transport,
    /// The kernel took no more at the last try.
    pub(super) blocked: bool,
    /// It takes nothing ever again.
    pub(super) dead: bool,
    pub(super) progress: bool,
    /// It is among those that the watch looks at.
    pub(super) is_listed: bool,
    /// The request whose handler may begin its answer here.
    pub(super) terms: Option<AnswerTerms>,
    pub(super) begun: Option<Box<BegunAnswer>>,
    /// That of a handler to which the connection was handed over.
    pub(super) exchange: Option<Box<Exchange>>,
}

/// An answer that was begun.
pub(super) struct BegunAnswer {
    pub(super) status: u16,
    pub(super) reason: Option<Box<[u8]>>,
    pub(super) body_start: u64,
    pub(super) keep_alive: bool,
    pub(super) chunked: bool,
    /// Bytes to come, of those announced.
    pub(super) left: Option<u64>,
    /// The method or the status excludes a body.
    pub(super) no_body: bool,
    /// Why nothing more can be sent.
    pub(super) gone: Option<CutReason>,
}

/// Parts of a loan that do not belong to the connection.
#[derive(Default)]
pub(super) struct ReturnedLoan {
    /// The answer that the handler has begun.
    pub(super) begun: Option<(AnswerTerms, Box<BegunAnswer>)>,
    /// The exchange that was lent.
    pub(super) exchange: Option<Box<Exchange>>,
}

impl Loan {
    pub(super) fn flush(&mut self, flags: &ConnectionFlags, buffers: &Buffers, metrics: &Metrics) {
        if self.blocked && flags.take(WRITABLE) {
            self.blocked = false;
        }
        if self.blocked || self.dead || self.out.is_empty() {
            return;
        }
        let before = self.out.n_sent();
        let flushed = self.out.flush(&mut self.socket, buffers);
        metrics.sent(self.out.n_sent() - before);
        match flushed {
            Ok(Flushed::All | Flushed::Paused) => self.progress = true,
            Ok(Flushed::Blocked { progress }) => {
                self.blocked = true;
                self.progress |= progress;
            }
            Err(_) => self.dead = true,
        }
    }

    /// Queues the head of an answer.
    pub(super) fn begin(&mut self, response: Response) {
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
        self.begun = Some(Box::new(BegunAnswer {
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
