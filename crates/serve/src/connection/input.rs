//! Methods of [`Drive`] that parse received bytes as requests and call the handler.

use std::io;
use std::mem;

use onecopy_wire::http::{
    BodyFraming, ChunkedLimits, ChunkedReader, Connection as Persistence, Method, RequestHead,
    Version,
};

use super::Phase;
use super::body_reader::{BodyCoding, BodyReceiver};
use super::drive::{Drive, NextStep};
use super::exchange::{AnswerTerms, Exchange};
use super::writer::HandlerConnection;
use crate::access::Outcome;
use crate::awaited::ExpectPermit;
use crate::guard;
use crate::request::{BodyPolicy, Request, RequestBody};
use crate::response::Response;
use crate::timers::millis;
use crate::transport::Transport;

/// If more than this number of bytes is in the output queue, the queue is sent before the next
/// pipelined request is processed. Smaller amounts are collected, so that one write sends many
/// responses.
const MAX_PENDING: usize = 64 * 1024;
/// An empty input buffer is kept for the next request if its capacity is at most this number of
/// bytes. Larger buffers are freed.
const KEPT_INPUT_BYTES: usize = 4 * 1024;

/// The result of processing a complete request head, which determines the next action.
enum HeadResult {
    Answered,
    Deferred,
    /// The request body is received first, and then the handler is called.
    Body(BodyCoding, Exchange),
    /// The handler is called first. It may request the body while it runs.
    Call(BodyCoding, Exchange, ExpectPermit),
}

/// The result of processing received bytes. `n` is the number of bytes that were processed.
/// `deferred` is `true` if a request was left unprocessed because no thread is free to run its
/// handler.
pub(super) struct UsedInput {
    pub(super) n: usize,
    pub(super) deferred: bool,
}

impl Drive<'_> {
    /// Sets the phase in which the connection waits for the next request, and the deadline for this
    /// request.
    pub(super) fn await_request(&mut self) {
        self.state.phase = Phase::Head;
        self.state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.idle);
        self.state.look_at_input = !self.state.input.is_empty();
    }

    /// Processes the requests in the input buffer. If the buffer contains none, reads from the
    /// socket and processes the received bytes.
    pub(super) fn read_requests(&mut self) -> NextStep {
        let readable = self.state.readable || self.state.peer_closed;
        if !self.kit.is_of_loop() {
            let any = readable || self.state.look_at_input || self.shared.is_stopping();
            return if any {
                NextStep::Elsewhere
            } else {
                NextStep::Wait
            };
        }
        if mem::take(&mut self.state.look_at_input) {
            let data = mem::take(&mut self.state.input);
            let used = self.use_bytes(&data);
            return self.keep(data, &used);
        }
        if !readable {
            if let Some(until_ms) = self.shared.idle_until_ms()
                && self.state.is_idle()
            {
                if until_ms <= self.kit.now_ms {
                    self.close_in_order();
                    return NextStep::Again;
                }
                self.state.phase_ms = self.state.phase_ms.min(until_ms);
            }
            return NextStep::Wait;
        }
        if self.reads_into_body() {
            return self.read_body();
        }
        let mut scratch = mem::take(&mut self.kit.scratch);
        let step = self.read_scratch(&mut scratch);
        self.kit.scratch = scratch;
        step
    }

    fn read_scratch(&mut self, scratch: &mut [u8]) -> NextStep {
        let capacity = scratch.len();
        let Some(n) = self.note_read(|socket| socket.read(scratch), capacity) else {
            return NextStep::Again;
        };
        if self.state.input.is_empty() {
            let used = self.use_bytes(&scratch[..n]);
            let rest = scratch[used.n..n].to_vec();
            return self.keep(rest, &UsedInput { n: 0, ..used });
        }
        let mut data = mem::take(&mut self.state.input);
        data.extend_from_slice(&scratch[..n]);
        let used = self.use_bytes(&data);
        self.keep(data, &used)
    }

    /// Calls `read` once, which reads from the socket into a buffer of `capacity` bytes. Returns
    /// the number of bytes read; `None` if no bytes are available now, or if the connection has
    /// ended.
    pub(super) fn note_read(
        &mut self,
        read: impl FnOnce(&mut Transport) -> io::Result<usize>,
        capacity: usize,
    ) -> Option<usize> {
        let socket = self.state.socket.as_mut()?;
        match read(socket) {
            Ok(n) if n > 0 => {
                self.shared.config.metrics.received(n);
                self.state.read_us = self.shared.config.clock.now_us();
                // A read that does not fill the buffer has emptied the socket (epoll(7)), and epoll
                // reports new input as a new edge. After the peer has closed its side, epoll
                // reports no new edge, so the socket must then be read to its end.
                self.state.readable = n == capacity || socket.may_hold_more();
                Some(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.state.readable = false;
                // If this flag were not cleared, the loop would read the empty socket again and
                // again.
                self.state.peer_closed = false;
                None
            }
            // The peer has closed the connection, or an error occurred. An incomplete request is
            // never passed to the handler.
            _ if socket.is_in_handshake() && socket.has_heard() => {
                self.refuse_handshake();
                None
            }
            _ => {
                self.close(false);
                None
            }
        }
    }

    /// Moves the unprocessed bytes of `data` to the input buffer of the connection.
    pub(super) fn keep(&mut self, mut data: Vec<u8>, used: &UsedInput) -> NextStep {
        data.drain(..used.n);
        if data.is_empty() && data.capacity() > KEPT_INPUT_BYTES {
            data = Vec::new();
        }
        if !matches!(self.state.phase, Phase::Closed) {
            self.state.input = data;
        }
        if used.deferred {
            self.state.look_at_input = true;
            // The server causes the delay now, so the deadline for the client is cleared.
            self.state.phase_ms = crate::timers::NEVER;
            return NextStep::Deferred;
        }
        NextStep::Again
    }

    /// Processes the requests in `data`, one after the other, until more input or an event is
    /// needed.
    fn use_bytes(&mut self, data: &[u8]) -> UsedInput {
        let mut n = 0;
        let mut deferred = false;
        while !deferred {
            match &self.state.phase {
                Phase::Head if self.state.close_after => {
                    n = data.len(); // Bytes after the last request are not answered.
                    break;
                }
                Phase::Head => {
                    if n == data.len() || !self.use_head(&data[n..], &mut n, &mut deferred) {
                        break;
                    }
                }
                Phase::Body(reader) if n == data.len() && !reader.complete => break,
                Phase::Body(_) => n += self.use_body(&data[n..], &mut deferred),
                Phase::Called(_) | Phase::Stream(_) | Phase::Items(_) | Phase::Linger => break,
                Phase::Closed => {
                    n = data.len();
                    break;
                }
            }
        }
        UsedInput { n, deferred }
    }

    /// Parses a request head at the start of `data`, and starts to process the request. Returns
    /// `false` if the request cannot be processed now: the head is incomplete or malformed, or too
    /// many bytes of earlier responses are still queued.
    fn use_head(&mut self, data: &[u8], n: &mut usize, deferred: &mut bool) -> bool {
        if self.state.out.n_pending() > MAX_PENDING {
            // The queued responses are sent first. If the client does not read them, its next
            // requests wait.
            if !self.flush() || self.state.out.n_pending() > MAX_PENDING {
                self.state.look_at_input = true;
                return false;
            }
        }
        let Some(mut parser) = self.state.parser.take() else {
            return false;
        };
        let was_begun = parser.has_begun();
        let parsed = parser.advance(data);
        let begun = match parsed {
            Err(error) => {
                *n += data.len();
                self.refuse_head(error.status(), &error.to_string(), data);
                false
            }
            Ok(None) => {
                if !was_begun && parser.has_begun() && !self.state.fresh {
                    let limit = self.shared.config.limits.head;
                    self.state.phase_ms = self.kit.now_ms + millis(limit);
                }
                false
            }
            Ok(Some(len)) => {
                let head = parser.head(data).expect("the parser has a complete head");
                match self.begin_request(head, data.len() == len) {
                    HeadResult::Deferred => *deferred = true,
                    HeadResult::Answered => *n += len,
                    HeadResult::Body(coding, exchange) => {
                        *n += len;
                        let index = parser.take().expect("the parser has a complete head");
                        let then = BodyReceiver::Call(data[..len].to_vec(), index);
                        self.begin_body(then, coding, exchange);
                    }
                    HeadResult::Call(coding, exchange, permit) => {
                        *n += len;
                        let index = parser.take().expect("the parser has a complete head");
                        self.begin_call(data[..len].to_vec(), index, coding, exchange, permit);
                    }
                }
                parser.reset();
                true
            }
        };
        self.state.parser = Some(parser);
        begun
    }

    /// Starts to process a request with the head `head`, and returns the next action.
    /// `nothing_follows` is `true` if no byte after the head has been received.
    fn begin_request(&mut self, head: RequestHead<'_>, nothing_follows: bool) -> HeadResult {
        let request = Request::parsed(head, &[], self.connection.peer, self.connection.local);
        let keep_alive = head.connection() == Persistence::KeepAlive && !self.shared.is_stopping();
        let names = self.shared.config.on_access.as_ref().map(|_| {
            let names = self.kit.names.pop().unwrap_or_default();
            names.of(&request, self.shared.config.keep)
        });
        let exchange = Exchange {
            is_head: head.method() == Method::Head,
            http_1_0: head.version() == Version::Http10,
            keep_alive,
            started_us: self.state.read_us,
            names,
            outcome: Outcome::Done,
        };
        self.state.fresh = false;
        let refused = |exchange: Exchange| Exchange {
            outcome: Outcome::Refused,
            ..exchange
        };
        if self.state.busy {
            self.refuse(503, "too many connections", refused(exchange));
            return HeadResult::Answered;
        }
        let limits = &self.shared.config.limits;
        let coding = match head.framing() {
            BodyFraming::None | BodyFraming::Length(0) => {
                return match self.run_handler(exchange, request) {
                    Ok(()) => HeadResult::Answered,
                    Err(_) => HeadResult::Deferred,
                };
            }
            BodyFraming::Length(n) => match usize::try_from(n) {
                Ok(n) if n <= limits.body_bytes => Some(BodyCoding::Length(n)),
                _ => None,
            },
            BodyFraming::Chunked => Some(BodyCoding::Chunked(ChunkedReader::new(ChunkedLimits {
                max_body_bytes: limits.body_bytes as u64,
                ..ChunkedLimits::default()
            }))),
        };
        let policy = guard(|| self.shared.handler.body_policy(request));
        match (policy, coding) {
            (Some(policy @ (BodyPolicy::Read | BodyPolicy::OnDemand)), Some(coding)) => {
                if !head.expects_continue() {
                    return HeadResult::Body(coding, exchange);
                }
                // A client that has already sent body bytes does not wait for `100 Continue`.
                let waits = policy == BodyPolicy::OnDemand && nothing_follows;
                if let Some(permit) = waits.then(|| self.shared.expect_permits.take()).flatten() {
                    return HeadResult::Call(coding, exchange, permit);
                }
                self.say_go_on();
                HeadResult::Body(coding, exchange)
            }
            (Some(BodyPolicy::Read | BodyPolicy::OnDemand), None) => {
                self.refuse(413, "the request body is too large", refused(exchange));
                HeadResult::Answered
            }
            (Some(BodyPolicy::Refuse), _) => {
                self.refuse(413, "requests have no body here", refused(exchange));
                HeadResult::Answered
            }
            (None, _) => {
                let exchange = Exchange {
                    outcome: Outcome::Panicked,
                    ..exchange
                };
                self.refuse(500, "the handler failed", exchange);
                HeadResult::Answered
            }
        }
    }

    /// Runs the handler for a request without a body, and queues the response. If no thread is free
    /// to run the handler, does not run it, and returns `exchange` as the error.
    fn run_handler(&mut self, exchange: Exchange, request: Request<'_>) -> Result<(), Exchange> {
        if !self.shared.scheduler.enter_handler(self.connection) {
            return Err(exchange);
        }
        self.run_entered(exchange, request, RequestBody::None);
        Ok(())
    }

    /// Runs the handler and queues its response. [`crate::scheduler::Scheduler::enter_handler`]
    /// must have reserved a thread for the handler.
    pub(super) fn run_entered(
        &mut self,
        exchange: Exchange,
        request: Request<'_>,
        body: RequestBody,
    ) {
        // If the handler may run for long, responses to earlier requests are sent first.
        let begins = self.shared.begins_early;
        let start = self.state.out.n_pushed();
        let lends = begins || !self.state.out.is_empty();
        if lends {
            self.lend(begins.then(|| AnswerTerms::of(&exchange, start)), None);
        }
        let origin = HandlerConnection {
            shared: self.shared,
            connection: self.connection,
        };
        let request = request.from(begins.then_some((&origin, Some(start))));
        let response = guard(|| self.shared.handler.handle_body(request, body));
        let begun = match lends {
            true => self.take_back().begun,
            false => None,
        };
        self.shared.scheduler.leave_handler();
        self.kit.now_ms = self.shared.now_ms();
        match begun {
            None => self.answer_call(exchange, response),
            Some((terms, begun)) => self.continue_begun(exchange, terms, *begun, response),
        }
    }

    /// Queues `response`, the result of a handler. `None` means that the handler panicked. The
    /// client then gets the status 500.
    pub(super) fn answer_call(&mut self, exchange: Exchange, response: Option<Response>) {
        match response {
            Some(response) => self.respond(exchange, response),
            None => {
                let exchange = Exchange {
                    outcome: Outcome::Panicked,
                    ..exchange
                };
                self.refuse(500, "the handler failed", exchange);
            }
        }
    }
}
