//! [`Answer`]: the state of a response whose bytes are being sent. When the response has ended, it
//! is reported to the access log and the metrics.

use std::net::SocketAddr;
use std::time::Duration;

use super::exchange::{CutReason, Exchange};
use super::logged_request::LoggedRequest;
use crate::access::{Access, Outcome};
use crate::config::Config;
use crate::guard;
use crate::items::Items;
use crate::response::{OnEnd, StreamEnd};

/// A response that the handler has completed, or that has ended early. Its remaining bytes are in
/// the output queue. The response is reported to the access log and the metrics once: when its last
/// byte was sent, or when the connection has ended.
pub(super) struct Answer {
    pub(super) exchange: Exchange,
    pub(super) status: u16,
    pub(super) reason: Option<Box<[u8]>>,
    /// The position of the first byte of the response. `body_start` is the position of the first
    /// byte of its body, and `end` is the position after its last byte. Positions count the bytes
    /// of all responses on the connection.
    pub(super) start: u64,
    pub(super) body_start: u64,
    pub(super) end: u64,
    pub(super) n_rows: Option<u64>,
    /// The callback for the end of a row stream, and the [`StreamEnd`] that is passed to it. `None`
    /// if the response body is not a row stream.
    pub(super) stream: Option<Box<(Option<OnEnd>, StreamEnd)>>,
}

impl Answer {
    /// Creates the [`Answer`] for a request to which the server sends no response. It is used to
    /// report the end of the connection. `n_sent` is the number of bytes that the server has sent
    /// on this connection before.
    pub(super) fn none(exchange: Exchange, n_sent: u64) -> Answer {
        Answer {
            exchange,
            status: 0,
            reason: None,
            start: n_sent,
            body_start: u64::MAX,
            end: n_sent,
            n_rows: None,
            stream: None,
        }
    }

    /// Sets the outcome of a response that is incomplete because its connection has ended. `gone`
    /// is the reason for the end of the connection.
    pub(super) fn cut(&mut self, gone: CutReason) {
        self.exchange.outcome = gone.outcome();
        if let Some(stream) = &mut self.stream {
            stream.1 = gone.stream_end();
        }
    }

    /// Reports the response to the callback of its row stream, to the metrics and to the access
    /// log. `now_us` is the time at which the response ended, in microseconds of the server's
    /// clock. Returns the memory of the logged request fields, so that a later request can reuse
    /// it.
    pub(super) fn report(
        self,
        config: &Config,
        peer: Option<SocketAddr>,
        n_sent: u64,
        now_us: u64,
    ) -> Option<LoggedRequest> {
        if let Some((Some(on_end), end)) = self.stream.map(|stream| *stream) {
            guard(|| on_end(end));
        }
        let n_sent = n_sent.min(self.end);
        let n_bytes = n_sent.saturating_sub(self.start);
        let status = if n_bytes == 0 { 0 } else { self.status };
        let duration = Duration::from_micros(now_us.saturating_sub(self.exchange.started_us));
        let outcome = self.exchange.outcome;
        config.metrics.request(status, outcome, duration);
        let on_access = config.on_access.as_ref()?;
        let nothing = LoggedRequest::default();
        let names = self.exchange.names.as_ref().unwrap_or(&nothing);
        let access = Access {
            method: names.method(),
            path: names.path(),
            query: names.query(),
            is_http_1_0: self.exchange.http_1_0,
            referer: names.referer(),
            user_agent: names.user_agent(),
            status,
            n_bytes,
            n_body_bytes: n_sent.saturating_sub(self.body_start),
            n_rows: self.n_rows,
            duration,
            outcome,
            peer,
        };
        guard(|| on_access(&access));
        self.exchange.names
    }
}

/// A response whose body the handler produces item by item while earlier items are being sent.
pub(super) struct ItemStream {
    pub(super) answer: Answer,
    pub(super) items: Box<dyn Items>,
    pub(super) chunked: bool,
    /// The announced length of the body in bytes, minus the bytes that the handler has produced.
    /// `None` if the handler announced no length.
    pub(super) left: Option<u64>,
    /// The outcome to report if the handler has failed; otherwise `None`. After a failure, the
    /// items that are already queued are sent, and then the connection is aborted.
    pub(super) failed: Option<Outcome>,
}
