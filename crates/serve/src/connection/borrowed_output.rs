//! [`BorrowedOutput`]: the output queue and the socket of a connection, which the thread of a
//! handler may use while the handler runs.

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

/// If more than this number of bytes is queued on a connection, the handler must wait before it
/// queues more.
pub(super) const MOST_WAITING_BYTES: usize = 256 * 1024;

/// The output queue and the socket of a connection, lent to the running handler of its request. If
/// the handler does not send the queued bytes itself, the thread of
/// [`crate::scheduler::Scheduler::watch`] sends them after at most one tick.
pub(super) struct BorrowedOutput {
    pub(super) out: OutQueue,
    pub(super) socket: Transport,
    /// `true` if the kernel did not accept all bytes at the last attempt to send.
    pub(super) blocked: bool,
    /// `true` if no more bytes can be sent, because the connection has failed.
    pub(super) dead: bool,
    pub(super) progress: bool,
    /// `true` if this value is in the server's list of borrowed outputs. The thread of
    /// [`crate::scheduler::Scheduler::watch`] sends the queued bytes of the outputs in this list.
    pub(super) is_listed: bool,
    /// The request's properties on which the head of its response depends. `None` if the handler
    /// must not begin its response before it returns.
    pub(super) terms: Option<AnswerTerms>,
    pub(super) begun: Option<Box<BegunAnswer>>,
    /// The properties of the request, if the thread of the handler owns the connection. `None` if
    /// the thread that called the handler has kept the properties.
    pub(super) exchange: Option<Box<Exchange>>,
}

/// A response whose head the handler has queued before it returns
/// ([`crate::ResponseWriter::begin`]).
pub(super) struct BegunAnswer {
    pub(super) status: u16,
    pub(super) reason: Option<Box<[u8]>>,
    pub(super) body_start: u64,
    pub(super) keep_alive: bool,
    pub(super) chunked: bool,
    /// The number of body bytes that were announced, but not queued yet; `None` if no length was
    /// announced.
    pub(super) left: Option<u64>,
    /// `true` if the response has no body, because of the request method or the status.
    pub(super) no_body: bool,
    /// The reason why the connection accepts no more bytes; `None` as long as it accepts bytes.
    pub(super) gone: Option<CutReason>,
}

/// The rest of a [`BorrowedOutput`] after its handler has returned, and after the queue and the
/// socket were moved back to the connection.
#[derive(Default)]
pub(super) struct ReturnedOutput {
    /// The properties of the request, and the response that the handler has begun. `None` if the
    /// handler has not begun a response.
    pub(super) begun: Option<(AnswerTerms, Box<BegunAnswer>)>,
    /// The properties of the request, if they were lent to the handler together with the output;
    /// otherwise `None`.
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

    /// Queues the head of a response that the handler begins before it returns.
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
        // Without `Content-Length` and without the chunked coding, only the end of the connection
        // marks the end of the body. The connection is then not kept alive.
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

    /// Queues an item of a response body. If `chunked` is `true`, the item becomes one chunk of the
    /// chunked coding.
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
