//! [`BorrowedOutput`]: the output of a connection, which is lent to the handler while it runs.

use onecopy_wire::http::ChunkHead;

use super::exchange::{AnswerTerms, CutReason, Exchange};
use super::flags::{ConnectionFlags, WRITABLE};
use super::head::{Framing, HeadStart, write_head};
use crate::body::SharedBytes;
use crate::buffers::Buffers;
use crate::date::HttpDate;
use crate::metrics::Metrics;
use crate::output_queue::{Flushed, OutQueue};
use crate::response::Response;
use crate::transport::Transport;

/// If at least this number of bytes is queued on a connection, the handler must not queue more.
pub(super) const MOST_WAITING_BYTES: usize = 256 * 1024;

/// The output queue and the socket of a connection, lent to the handler that runs for its request.
/// If the handler does not send a queued byte within a tick, the thread of
/// [`crate::scheduler::Scheduler::watch`] sends it.
pub(super) struct BorrowedOutput {
    pub(super) out: OutQueue,
    pub(super) socket: Transport,
    /// `true` if the kernel accepted no more bytes at the last attempt.
    pub(super) blocked: bool,
    /// `true` if no more bytes can be sent, because the connection has failed.
    pub(super) dead: bool,
    pub(super) progress: bool,
    /// `true` if the server's list of borrowed outputs contains this one. The thread of
    /// [`crate::scheduler::Scheduler::watch`] sends the queued bytes of the outputs in this list.
    pub(super) is_listed: bool,
    /// The properties of the request on which the head of its response depends. `None` if the
    /// handler must not begin its response while it runs.
    pub(super) terms: Option<AnswerTerms>,
    pub(super) begun: Option<Box<BegunAnswer>>,
    /// The properties of the request, if the handler's thread owns the connection. `None` if
    /// another thread has them: the one that called the handler.
    pub(super) exchange: Option<Box<Exchange>>,
}

/// A response whose head the handler has queued while it runs ([`crate::ResponseWriter::begin`]).
pub(super) struct BegunAnswer {
    pub(super) status: u16,
    pub(super) reason: Option<Box<[u8]>>,
    pub(super) body_start: u64,
    pub(super) keep_alive: bool,
    pub(super) chunked: bool,
    /// The number of bytes by which the body is still shorter than its announced length; `None` if
    /// no length was announced.
    pub(super) left: Option<u64>,
    /// `true` if the method or the status excludes a body.
    pub(super) no_body: bool,
    /// The reason for which the connection accepts no more bytes; `None` as long as it accepts
    /// them.
    pub(super) gone: Option<CutReason>,
}

/// The data that remain of a [`BorrowedOutput`] after a handler has returned it. The queue and the
/// socket are in the connection again.
#[derive(Default)]
pub(super) struct ReturnedOutput {
    /// The properties of the request and the response that the handler has begun; `None` if it has
    /// begun none.
    pub(super) begun: Option<(AnswerTerms, Box<BegunAnswer>)>,
    /// The request properties that were lent with the output; `None` if they were not lent.
    pub(super) exchange: Option<Box<Exchange>>,
}

impl BorrowedOutput {
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

    /// Queues the head of a response that the handler begins while it runs.
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
        // The end of the body is the end of the connection.
        let keep_alive = terms.keep_alive && (bodiless || announced.is_some() || chunked);
        let head = HeadStart {
            status: response.status,
            reason: response.reason.as_deref(),
            keep_alive,
            http_1_0: terms.http_1_0,
        };
        let mut date = HttpDate::new();
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

    /// Queues an item of a response body. If `chunked` is `true`, the item is framed as a chunk of
    /// the chunked coding.
    pub(super) fn push(&mut self, item: SharedBytes, chunked: bool) {
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
