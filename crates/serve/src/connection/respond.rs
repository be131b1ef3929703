//! Methods of [`Drive`] that queue response heads, bodies of known length, and the server's own
//! error responses, and that report ended responses to the access log and the metrics.

use std::sync::Arc;

use onecopy_wire::ChunkSource;

use super::Phase;
use super::answer::Answer;
use super::drive::Drive;
use super::exchange::{CutReason, Exchange};
use super::head::{FEW_BYTES, Framing, HeadStart, write_head};
use crate::access::Outcome;
use crate::guard;
use crate::headers::Headers;
use crate::response::{Body, BodyPart, Response, StreamEnd};
use crate::workers::Job;

/// The number of unused [`LoggedRequest`]s that a thread keeps, so that later requests reuse their
/// memory.
const MOST_NAMES: usize = 64;

impl Drive<'_> {
    /// Queues `response`, including its body if all bytes of the body are known. If the body is a
    /// row stream or consists of items that are still to be produced, starts the production
    /// instead.
    pub(super) fn respond(&mut self, mut exchange: Exchange, response: Response) {
        let Response {
            status,
            reason,
            headers,
            mut announced,
            body,
            closes,
            ..
        } = response;
        let bodiless = matches!(status, 204 | 304);
        // RFC 9110, section 15.3.6: a response with status 205 has no content, which
        // `Content-Length: 0` expresses.
        let is_reset = status == 205;
        if is_reset {
            announced = Some(0);
        }
        let no_body = exchange.is_head || bodiless || is_reset;
        exchange.keep_alive &= !closes;
        self.state.close_after |= !exchange.keep_alive;
        let mut answer = Answer {
            exchange,
            status,
            reason,
            start: self.state.out.n_pushed(),
            body_start: u64::MAX,
            end: 0,
            n_rows: None,
            stream: None,
        };
        let mut known = match body {
            Body::Chunks(chunks) if !no_body => return self.begin_stream(answer, headers, *chunks),
            Body::Items(items) if !no_body => {
                return self.begin_items(answer, headers, announced, items);
            }
            Body::Chunks(chunks) => {
                let framing = match (bodiless, is_reset) {
                    (true, _) => Framing::Nothing,
                    (_, true) => Framing::Length(0),
                    _ => Framing::of_stream(&answer.exchange),
                };
                self.push_head(&mut answer, headers, framing, b"");
                answer.end = self.state.out.n_pushed();
                answer.stream = Some(Box::new((chunks.on_end, StreamEnd::NoBody)));
                return self.drop_source(chunks.source, answer);
            }
            Body::Items(_) => {
                let framing = match bodiless {
                    true => Framing::Nothing,
                    false => Framing::of_items(&answer.exchange, announced),
                };
                self.push_head(&mut answer, headers, framing, b"");
                answer.end = self.state.out.n_pushed();
                self.state.answers.push_back(answer);
                return;
            }
            known => known,
        };
        let n_body = known.len_bytes().unwrap_or(0);
        let announced = announced.unwrap_or(n_body as u64);
        let framing = match bodiless {
            true => Framing::Nothing,
            false => Framing::Length(announced),
        };
        self.push_head(&mut answer, headers, framing, b"");
        if !no_body {
            if announced > n_body as u64 {
                // The body has fewer bytes than announced. The connection is closed, so that the
                // client detects the missing bytes.
                self.state.close_after = true;
                self.state.fell_short = true;
                answer.exchange.outcome = Outcome::Failed;
            }
            known.cut(usize::try_from(announced).unwrap_or(usize::MAX));
            let few = known.bytes();
            if let Some(few) = few.filter(|few| few.len() <= FEW_BYTES) {
                self.state.out.frame(|out| out.extend_from_slice(few));
                known = Body::Empty;
            }
            match known {
                Body::Bytes(bytes) => self.state.out.owned(bytes),
                Body::Shared(bytes) => self.state.out.shared(bytes),
                Body::Static(bytes) => self.state.out.fixed(bytes),
                Body::SharedBytes(bytes) => self.state.out.held(bytes),
                Body::Parts(parts) => parts.into_iter().for_each(|p| self.state.out.held(p)),
                Body::File(file) => self.state.out.file(file),
                Body::Pieces(pieces) => pieces.into_iter().for_each(|piece| match piece {
                    BodyPart::Bytes(few) => self.state.out.frame(|out| out.extend_from_slice(&few)),
                    BodyPart::File(file) => self.state.out.file(file),
                }),
                Body::Empty | Body::Chunks(_) | Body::Items(_) => {}
            }
        }
        answer.end = self.state.out.n_pushed();
        self.state.answers.push_back(answer);
    }

    /// Sends an error response, after which the connection is closed. The request did not reach the
    /// handler, or its handler panicked.
    pub(super) fn refuse(&mut self, status: u16, detail: &str, exchange: Exchange) {
        self.state.phase = Phase::Head;
        let mut response = self.refusal(status, detail);
        if status == 503 && response.headers().get("Retry-After").is_none() {
            let retry = response.header("Retry-After", "1");
            response = retry.expect("a literal field");
        }
        let exchange = Exchange {
            keep_alive: false,
            ..exchange
        };
        self.respond(exchange, response);
    }

    /// Sends an error response for a request whose head is incomplete or malformed. The connection
    /// is then closed. `head` contains the received bytes of the head.
    pub(super) fn refuse_head(&mut self, status: u16, detail: &str, head: &[u8]) {
        let request_line = head.strip_prefix(b"\r\n").unwrap_or(head);
        let exchange = Exchange {
            // RFC 9110, section 9.3.2: a response to HEAD has no content.
            is_head: request_line.starts_with(b"HEAD "),
            ..self.unread_exchange()
        };
        self.refuse(status, detail, exchange);
    }

    /// Returns the error response of the handler ([`crate::Handler::refuse`]). If the handler
    /// provides none, or one whose body has no known length, returns a response without a body.
    pub(super) fn refusal(&self, status: u16, detail: &str) -> Response {
        guard(|| self.shared.handler.refuse(status, detail))
            .filter(|r| r.body_ref().len_bytes().is_some())
            .unwrap_or_else(|| Response::new(status))
    }

    /// Queues the head of a response, including the empty line at its end, and then `after`, the
    /// first bytes of the body. Long header fields are not copied into the queue. The kernel reads
    /// them from the buffers in which they were validated.
    pub(super) fn push_head(
        &mut self,
        answer: &mut Answer,
        headers: Headers,
        framing: Framing,
        after: &[u8],
    ) {
        let head = HeadStart {
            status: answer.status,
            reason: answer.reason.as_deref(),
            keep_alive: answer.exchange.keep_alive,
            http_1_0: answer.exchange.http_1_0,
        };
        let (out, date) = (&mut self.state.out, &mut self.kit.date);
        answer.body_start = write_head(out, date, &head, headers, framing, after);
    }

    /// Reports a failed TLS handshake to the access log and the metrics.
    pub(super) fn tell_no_handshake(&mut self) {
        let answer = Answer::none(self.unread_exchange(), 0);
        self.finish(answer, 0, None);
    }

    /// Returns default properties of a request. They are used for the error response to a request
    /// that could not be parsed.
    fn unread_exchange(&self) -> Exchange {
        Exchange {
            is_head: false,
            http_1_0: false,
            keep_alive: false,
            started_us: self.shared.config.clock.now_us(),
            names: None,
            outcome: Outcome::Refused,
        }
    }

    /// Passes finished responses (those whose last byte the kernel has accepted) to the access log
    /// and the metrics.
    pub(super) fn finish_answers(&mut self) {
        let n_sent = self.state.out.n_sent();
        let is_sent = |answer: &Answer| answer.end <= n_sent;
        if !self.state.answers.front().is_some_and(is_sent) {
            return;
        }
        let now_us = self.shared.config.clock.now_us();
        while self.state.answers.front().is_some_and(is_sent) {
            if let Some(answer) = self.state.answers.pop_front() {
                self.report(answer, n_sent, now_us);
            }
        }
    }

    /// Reports the end of a response to the access log and the metrics. `gone` is the reason why
    /// the connection ended before the response was complete. It is `None` if the response was sent
    /// completely, or if `answer` already contains its outcome.
    pub(super) fn finish(&mut self, mut answer: Answer, n_sent: u64, gone: Option<CutReason>) {
        if let Some(gone) = gone {
            answer.cut(gone);
        }
        self.report(answer, n_sent, self.shared.config.clock.now_us());
    }

    fn report(&mut self, answer: Answer, n_sent: u64, now_us: u64) {
        let names = answer.report(&self.shared.config, self.connection.peer, n_sent, now_us);
        if let Some(names) = names
            && self.kit.names.len() < MOST_NAMES
            && names.is_worth_keeping()
        {
            self.kit.names.push(names);
        }
    }

    /// Drops the source of a row stream on a worker thread, because the drop may wait for a
    /// database. After the drop, the response is reported to the access log.
    pub(super) fn drop_source(&self, source: Box<dyn ChunkSource>, answer: Answer) {
        let peer = self.connection.peer;
        let shared = Arc::clone(self.shared);
        let n_sent = answer.end;
        let then = Box::new(move || {
            let now_us = shared.config.clock.now_us();
            answer.report(&shared.config, peer, n_sent, now_us);
        });
        self.shared
            .workers
            .submit(self.shared, Job::Drop { source, then });
    }
}
