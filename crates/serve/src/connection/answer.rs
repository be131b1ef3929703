//! Response heads, bodies of known length, and what is told when an answer has ended.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use onecopy_wire::ChunkSource;
use onecopy_wire::http::ResponseHead;

use super::drive::Drive;
use super::{Names, Phase};
use crate::access::{Access, Outcome};
use crate::date::Date;
use crate::event_loop::Shared;
use crate::guard;
use crate::headers::Headers;
use crate::out::OutQueue;
use crate::response::{Body, OnEnd, Piece, Response, StreamEnd};
use crate::workers::Job;

/// Up to so many bytes are copied behind the head: a part of their own costs the kernel more than that.
const FEW_BYTES: usize = 1024;
/// Memory for the words of so many requests is kept by a thread.
const MOST_NAMES: usize = 64;

/// What an answer must know of its request.
pub(super) struct Exchange {
    pub(super) is_head: bool,
    pub(super) http_1_0: bool,
    pub(super) keep_alive: bool,
    pub(super) started_us: u64,
    /// Kept only where there is an access log.
    pub(super) names: Option<Names>,
    pub(super) outcome: Outcome,
}

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

/// Why a connection ended in the middle of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Client,
    Stalled,
    Stopped,
}

/// How the length of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// No field: the status has no body, or its end is the end of the connection.
    Nothing,
    Length(u64),
    /// Of unknown length; with a `trailer` announced.
    Chunked {
        trailer: bool,
    },
}

impl Framing {
    /// Of a stream. Its end shows whether it is whole, whatever length was announced.
    pub(super) fn of_stream(exchange: &Exchange) -> Framing {
        match exchange.http_1_0 {
            true => Framing::Nothing,
            false => Framing::Chunked { trailer: true },
        }
    }

    /// Of a body that is made item by item.
    pub(super) fn of_items(exchange: &Exchange, announced: Option<u64>) -> Framing {
        match (announced, exchange.http_1_0) {
            (Some(n), _) => Framing::Length(n),
            (None, true) => Framing::Nothing,
            (None, false) => Framing::Chunked { trailer: false },
        }
    }
}

impl Gone {
    fn outcome(self) -> Outcome {
        match self {
            Gone::Client => Outcome::ClientGone,
            Gone::Stalled => Outcome::Stalled,
            Gone::Stopped => Outcome::Stopped,
        }
    }

    fn stream_end(self) -> StreamEnd {
        match self {
            Gone::Client => StreamEnd::ClientGone,
            Gone::Stalled => StreamEnd::Stalled,
            Gone::Stopped => StreamEnd::Stopped,
        }
    }
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
    pub(super) fn cut(&mut self, gone: Gone) {
        self.exchange.outcome = gone.outcome();
        if let Some(stream) = &mut self.stream {
            stream.1 = gone.stream_end();
        }
    }

    /// Tells the stream's owner, the metrics and the access log, at `now_us`; gives back what it was named by.
    fn tell(
        self,
        shared: &Shared,
        peer: Option<SocketAddr>,
        n_sent: u64,
        now_us: u64,
    ) -> Option<Names> {
        if let Some((Some(on_end), end)) = self.stream.map(|stream| *stream) {
            guard(|| on_end(end));
        }
        let n_sent = n_sent.min(self.end);
        let n_bytes = n_sent.saturating_sub(self.start);
        let status = if n_bytes == 0 { 0 } else { self.status };
        let duration = Duration::from_micros(now_us.saturating_sub(self.exchange.started_us));
        let outcome = self.exchange.outcome;
        shared.config.metrics.request(status, outcome, duration);
        let on_access = shared.config.on_access.as_ref()?;
        let nothing = Names::default();
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

/// The first line of a head, and what becomes of the connection.
pub(super) struct HeadStart<'a> {
    pub(super) status: u16,
    pub(super) reason: Option<&'a [u8]>,
    pub(super) keep_alive: bool,
    pub(super) http_1_0: bool,
}

/// Queues a head, and `after` following its empty line. Returns the position where the body starts,
/// counted over the connection's life.
pub(super) fn write_head(
    out: &mut OutQueue,
    date: &mut Date,
    start: &HeadStart<'_>,
    headers: Headers,
    framing: Framing,
    after: &[u8],
) -> u64 {
    let date = (!headers.has_date()).then(|| date.line());
    let connection = match (start.keep_alive, start.http_1_0) {
        (false, _) => Some("close"),
        (true, true) => Some("keep-alive"),
        (true, false) => None,
    };
    out.frame(|out| {
        let begun = match start.reason {
            None => ResponseHead::begin(start.status, out),
            Some(reason) => ResponseHead::begin_with_reason(start.status, reason, out),
        };
        let written = begun.and_then(|mut head| {
            head = match framing {
                Framing::Nothing => head,
                Framing::Length(n) => head.content_length(n)?,
                Framing::Chunked { trailer: true } => {
                    head.chunked()?.field("Trailer", b"onecopy-status")?
                }
                Framing::Chunked { trailer: false } => head.chunked()?,
            };
            match connection {
                Some(option) => head.field("Connection", option.as_bytes()),
                None => Ok(head),
            }
        });
        written
            .expect("status and phrase were checked when the answer was made; the fields are ours");
        out.extend_from_slice(date.unwrap_or_default().as_bytes());
    });
    let mut fields = headers.into_wire();
    let body_start = out.n_pushed() + fields.len() as u64 + 2;
    if fields.len() <= FEW_BYTES {
        out.frame(|out| {
            out.extend_from_slice(&fields);
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(after);
        });
    } else {
        fields.extend_from_slice(b"\r\n");
        fields.extend_from_slice(after);
        out.owned(fields);
    }
    body_start
}

impl Drive<'_> {
    /// Answers with `response`: queues it, or starts its stream.
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
        // RFC 9110, section 15.3.6: no content, which a length of 0 says.
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
                // Fewer than announced: the connection's end says so.
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
                Body::Held(bytes) => self.state.out.held(bytes),
                Body::Parts(parts) => parts.into_iter().for_each(|p| self.state.out.held(p)),
                Body::File(file) => self.state.out.file(file),
                Body::Pieces(pieces) => pieces.into_iter().for_each(|piece| match piece {
                    Piece::Bytes(few) => self.state.out.frame(|out| out.extend_from_slice(&few)),
                    Piece::File(file) => self.state.out.file(file),
                }),
                Body::Empty | Body::Chunks(_) | Body::Items(_) => {}
            }
        }
        answer.end = self.state.out.n_pushed();
        self.state.answers.push_back(answer);
    }

    /// Answers a request that never came to the handler, or not back from it, and closes after that.
    pub(super) fn refuse(&mut self, status: u16, detail: &str, exchange: Option<Exchange>) {
        let exchange = exchange.unwrap_or_else(|| self.unread_exchange());
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

    /// The handler's words for a refusal; never a stream.
    pub(super) fn refusal(&self, status: u16, detail: &str) -> Response {
        guard(|| self.shared.handler.refuse(status, detail))
            .filter(|r| r.body_ref().len_bytes().is_some())
            .unwrap_or_else(|| Response::new(status))
    }

    /// Queues a head, and `after` behind its empty line. Fields of more than a few bytes go out from the buffer they were checked in.
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

    /// Tells of a handshake that came to nothing.
    pub(super) fn tell_no_handshake(&mut self) {
        let answer = Answer::none(self.unread_exchange(), 0);
        self.finish(answer, 0, None);
    }

    /// What there is to know of a request that nobody could read.
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

    /// Tells of the answers whose last byte is with the kernel.
    pub(super) fn finish_answers(&mut self) {
        let n_sent = self.state.out.n_sent();
        let is_sent = |answer: &Answer| answer.end <= n_sent;
        if !self.state.answers.front().is_some_and(is_sent) {
            return;
        }
        let now_us = self.shared.config.clock.now_us();
        while self.state.answers.front().is_some_and(is_sent) {
            if let Some(answer) = self.state.answers.pop_front() {
                self.tell(answer, n_sent, now_us);
            }
        }
    }

    /// Tells of an answer, of which `gone` cut the rest.
    pub(super) fn finish(&mut self, mut answer: Answer, n_sent: u64, gone: Option<Gone>) {
        if let Some(gone) = gone {
            answer.cut(gone);
        }
        self.tell(answer, n_sent, self.shared.config.clock.now_us());
    }

    fn tell(&mut self, answer: Answer, n_sent: u64, now_us: u64) {
        let names = answer.tell(self.shared, self.connection.peer, n_sent, now_us);
        if let Some(names) = names
            && self.kit.names.len() < MOST_NAMES
            && names.is_worth_keeping()
        {
            self.kit.names.push(names);
        }
    }

    /// Drops a source where it may block, and tells of its answer after that.
    pub(super) fn drop_source(&self, source: Box<dyn ChunkSource>, answer: Answer) {
        let peer = self.connection.peer;
        let shared = Arc::clone(self.shared);
        let n_sent = answer.end;
        let then = Box::new(move || {
            let now_us = shared.config.clock.now_us();
            answer.tell(&shared, peer, n_sent, now_us);
        });
        self.shared
            .workers
            .submit(self.shared, Job::Drop { source, then });
    }
}
