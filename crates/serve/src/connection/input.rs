//! From bytes to requests, from requests to the handler.

use std::io;
use std::mem;

use onecopy_wire::http::{
    BodyFraming, ChunkedLimits, ChunkedReader, Connection as Persistence, Method, RequestHead,
    Version,
};

use super::Phase;
use super::body_reader::{BodyCoding, BodyReceiver};
use super::drive::{Drive, Step};
use super::exchange::{AnswerTerms, Exchange};
use super::writer::HandlerConnection;
use crate::access::Outcome;
use crate::awaited::ExpectPermit;
use crate::guard;
use crate::request::{BodyPolicy, Request, RequestBody};
use crate::response::Response;
use crate::timers::millis;
use crate::transport::Transport;

/// Bytes of answers that may wait while further pipelined requests are answered: one write for many small ones.
const MAX_PENDING: usize = 64 * 1024;
/// An input buffer that is larger is not kept once it is empty.
const KEPT_INPUT_BYTES: usize = 4 * 1024;

/// What became of a whole head.
enum Begun {
    Answered,
    Deferred,
    /// The body is to be read first.
    Body(BodyCoding, Exchange),
    /// The handler is to be called first.
    Call(BodyCoding, Exchange, ExpectPermit),
}

/// How much of some input was used, and whether the request after that waits for a thread.
pub(super) struct UsedInput {
    pub(super) n: usize,
    pub(super) deferred: bool,
}

impl Drive<'_> {
    /// Back to the state between requests.
    pub(super) fn await_request(&mut self) {
        self.state.phase = Phase::Head;
        self.state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.idle);
        self.state.look_at_input = !self.state.input.is_empty();
    }

    /// Uses the input there is, then reads more.
    pub(super) fn read_requests(&mut self) -> Step {
        let readable = self.state.readable || self.state.peer_closed;
        if !self.kit.is_of_loop() {
            let any = readable || self.state.look_at_input || self.shared.is_stopping();
            return if any { Step::Elsewhere } else { Step::Wait };
        }
        if mem::take(&mut self.state.look_at_input) {
            let data = mem::take(&mut self.state.input);
            let used = self.use_bytes(&data);
            return self.keep(data, &used);
        }
        if !readable {
            if let Some(until_ms) = self.shared.idle_until_ms()
                && self.is_idle()
            {
                if until_ms <= self.kit.now_ms {
                    self.close_in_order();
                    return Step::Again;
                }
                self.state.phase_ms = self.state.phase_ms.min(until_ms);
            }
            return Step::Wait;
        }
        if self.reads_into_body() {
            return self.read_body();
        }
        let mut scratch = mem::take(&mut self.kit.scratch);
        let step = self.read_scratch(&mut scratch);
        self.kit.scratch = scratch;
        step
    }

    fn is_idle(&self) -> bool {
        matches!(self.state.phase, Phase::Head) && self.state.input.is_empty()
    }

    fn read_scratch(&mut self, scratch: &mut [u8]) -> Step {
        let room = scratch.len();
        let Some(n) = self.note_read(|socket| socket.read(scratch), room) else {
            return Step::Again;
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

    /// Reads once. `None` if nothing came: no input now, or the end of the connection, which is then closed.
    pub(super) fn note_read(
        &mut self,
        read: impl FnOnce(&mut Transport) -> io::Result<usize>,
        room: usize,
    ) -> Option<usize> {
        let socket = self.state.socket.as_mut()?;
        match read(socket) {
            Ok(n) if n > 0 => {
                self.shared.config.metrics.received(n);
                self.state.read_us = self.shared.config.clock.now_us();
                // A short read has emptied the socket (epoll(7)); more input makes a new edge. After the peer's end
                // there is none, so it is read on to the very end.
                self.state.readable = n == room || socket.may_hold_more();
                Some(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.state.readable = false;
                // A hang-up without end or error would be asked for again and again.
                self.state.peer_closed = false;
                None
            }
            // The end, or an error. A request that is cut off here is never shown to the handler.
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

    /// Keeps what was not used.
    pub(super) fn keep(&mut self, mut data: Vec<u8>, used: &UsedInput) -> Step {
        data.drain(..used.n);
        if data.is_empty() && data.capacity() > KEPT_INPUT_BYTES {
            data = Vec::new();
        }
        if !matches!(self.state.phase, Phase::Closed) {
            self.state.input = data;
        }
        if used.deferred {
            self.state.look_at_input = true;
            // It is the server that is late now.
            self.state.phase_ms = crate::timers::NEVER;
            return Step::Deferred;
        }
        Step::Again
    }

    /// Answers the requests in `data`, in order, as far as they are whole.
    fn use_bytes(&mut self, data: &[u8]) -> UsedInput {
        let mut n = 0;
        let mut deferred = false;
        while !deferred {
            match &self.state.phase {
                Phase::Head if self.state.close_after => {
                    n = data.len(); // Nobody will answer what follows.
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

    /// Looks for a head at the start of `data`. `false` if there is none to go on with.
    fn use_head(&mut self, data: &[u8], n: &mut usize, deferred: &mut bool) -> bool {
        if self.state.out.n_pending() > MAX_PENDING {
            // The answers first. If the client does not take them, it has to wait for more.
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
                self.refuse(error.status(), &error.to_string(), None);
                false
            }
            Ok(None) => {
                if !was_begun && !self.state.fresh {
                    let limit = self.shared.config.limits.head;
                    self.state.phase_ms = self.kit.now_ms + millis(limit);
                }
                false
            }
            Ok(Some(len)) => {
                let head = parser.head(data).expect("the parser told its length");
                match self.begin_request(head, data.len() == len) {
                    Begun::Deferred => *deferred = true,
                    Begun::Answered => *n += len,
                    Begun::Body(coding, exchange) => {
                        *n += len;
                        let index = parser.take().expect("the parser told its length");
                        let then = BodyReceiver::Call(data[..len].to_vec(), index);
                        self.begin_body(then, coding, exchange);
                    }
                    Begun::Call(coding, exchange, permit) => {
                        *n += len;
                        let index = parser.take().expect("the parser told its length");
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

    /// Decides what to do with a request; with `nothing_behind` it no byte has come yet.
    fn begin_request(&mut self, head: RequestHead<'_>, nothing_behind: bool) -> Begun {
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
        let refused = |exchange: Exchange| {
            Some(Exchange {
                outcome: Outcome::Refused,
                ..exchange
            })
        };
        if self.state.busy {
            self.refuse(503, "too many connections", refused(exchange));
            return Begun::Answered;
        }
        let limits = &self.shared.config.limits;
        let coding = match head.framing() {
            BodyFraming::None | BodyFraming::Length(0) => {
                return match self.run_handler(exchange, request) {
                    Ok(()) => Begun::Answered,
                    Err(_) => Begun::Deferred,
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
                    return Begun::Body(coding, exchange);
                }
                // A client that sends at once does not wait to be asked.
                let waits = policy == BodyPolicy::OnDemand && nothing_behind;
                if let Some(permit) = waits.then(|| self.shared.expect_permits.take()).flatten() {
                    return Begun::Call(coding, exchange, permit);
                }
                self.say_go_on();
                Begun::Body(coding, exchange)
            }
            (Some(BodyPolicy::Read | BodyPolicy::OnDemand), None) => {
                self.refuse(413, "the request body is too large", refused(exchange));
                Begun::Answered
            }
            (Some(BodyPolicy::Refuse), _) => {
                self.refuse(413, "requests have no body here", refused(exchange));
                Begun::Answered
            }
            (None, _) => {
                let exchange = Exchange {
                    outcome: Outcome::Panicked,
                    ..exchange
                };
                self.refuse(500, "the handler failed", Some(exchange));
                Begun::Answered
            }
        }
    }

    /// Runs the handler for a request without a body, and queues its answer. Gives the exchange back if no thread can be spared
    /// for it.
    fn run_handler(&mut self, exchange: Exchange, request: Request<'_>) -> Result<(), Exchange> {
        if !self.shared.scheduler.enter_handler(self.connection) {
            return Err(exchange);
        }
        self.run_entered(exchange, request, RequestBody::None);
        Ok(())
    }

    /// Runs the handler, whose turn was had, and queues its answer.
    pub(super) fn run_entered(
        &mut self,
        exchange: Exchange,
        request: Request<'_>,
        body: RequestBody,
    ) {
        // Answers to requests before this one do not wait for a handler that takes long.
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

    /// Queues what a handler said; `None`: it panicked.
    pub(super) fn answer_call(&mut self, exchange: Exchange, response: Option<Response>) {
        match response {
            Some(response) => self.respond(exchange, response),
            None => {
                let exchange = Exchange {
                    outcome: Outcome::Panicked,
                    ..exchange
                };
                self.refuse(500, "the handler failed", Some(exchange));
            }
        }
    }
}
