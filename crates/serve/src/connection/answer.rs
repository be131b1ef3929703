//! An answer from its head to its end, and what is reported of it then.

use std::net::SocketAddr;
use std::time::Duration;

use super::exchange::{CutReason, Exchange};
use super::names::LoggedRequest;
use crate::access::{Access, Outcome};
use crate::config::Config;
use crate::guard;
use crate::items::Items;
use crate::response::{OnEnd, StreamEnd};

/// An answer that has been queued to its end, or has come to one before. It is told of once.
pub(super) struct Answer {
    pub(super) exchange: Exchange,
    pub(super) status: u16,
    pub(super) reason: Option<Box<[u8]>>,
    /// Where its bytes start and end, counted over the connection's life.
    pub(super) start: u64,
    pub(super) body_start: u64,
    pub(super) end: u64,
    pub(super) n_rows: Option<u64>,
    /// For streams: whom to tell, and what.
    pub(super) stream: Option<Box<(Option<OnEnd>, StreamEnd)>>,
}

impl Answer {
    /// Of a request to which nothing was said, and `n_sent` bytes before it.
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

    /// Overrules the outcome: the connection ended first.
    pub(super) fn cut(&mut self, gone: CutReason) {
        self.exchange.outcome = gone.outcome();
        if let Some(stream) = &mut self.stream {
            stream.1 = gone.stream_end();
        }
    }

    /// Tells the stream's owner, the metrics and the access log, at `now_us`; gives back what it was named by.
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

/// An answer whose body is made item by item.
pub(super) struct ItemStream {
    pub(super) answer: Answer,
    pub(super) items: Box<dyn Items>,
    pub(super) chunked: bool,
    /// Bytes to come, of those announced.
    pub(super) left: Option<u64>,
    /// The answer is aborted after the items made so far are sent.
    pub(super) failed: Option<Outcome>,
}
