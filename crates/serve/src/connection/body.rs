//! Methods of [`Drive`] that receive a request body, either with a known length or in the chunked
//! coding. The body is received before the handler is called, or when the handler requests it.

use std::mem;

use onecopy_text::Chunk;

use super::Phase;
use super::body_reader::{BodyCoding, BodyReader, BodyReceiver, BodyStorage};
use super::drive::{Drive, NextStep};
use super::exchange::{CutReason, Exchange};
use super::input::UsedInput;
use super::pending::PendingHandler;
use crate::access::Outcome;
use crate::awaited::BodyError;
use crate::guard;
use crate::request::Request;
use crate::timers::millis;
use crate::transport::Transport;

/// The initial buffer capacity, in bytes, for a body in the chunked coding, whose length is
/// unknown.
const FIRST_ROOM_BYTES: usize = 4096;

impl Drive<'_> {
    /// Starts to receive a request body. `then` determines what happens when the body is complete.
    pub(super) fn begin_body(
        &mut self,
        then: BodyReceiver,
        coding: BodyCoding,
        exchange: Exchange,
    ) {
        let n_reserve = match coding {
            BodyCoding::Length(n) if n <= self.shared.config.limits.body_memory_bytes => n,
            BodyCoding::Length(_) => 0, // The body is written to a file from the start.
            BodyCoding::Chunked(_) => FIRST_ROOM_BYTES,
        };
        let body = match n_reserve {
            0 => Some(Chunk::default()),
            n_reserve => guard(|| self.shared.handler.body_chunk(n_reserve)),
        };
        let body = BodyStorage::Memory(body.unwrap_or_default());
        self.state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.body_stall);
        self.state.phase = Phase::Body(Box::new(BodyReader {
            then,
            exchange,
            coding,
            body,
            complete: false,
        }));
    }

    /// Appends bytes of `data` to the body. When the body is complete, calls the handler, or wakes
    /// a running handler that waits for the body. Returns how many bytes of `data` belong to the
    /// body. Sets `deferred` to `true` if no thread is free to run the handler.
    pub(super) fn use_body(&mut self, data: &[u8], deferred: &mut bool) -> usize {
        let Phase::Body(mut reader) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return 0;
        };
        let config = &self.shared.config;
        let most_in_memory = config.limits.body_memory_bytes;
        let used = match reader.add(data, most_in_memory, &config.body_folder) {
            Ok(used) => used,
            Err(error) => {
                self.refuse_body(reader.then, reader.exchange, error);
                return data.len();
            }
        };
        if !reader.complete {
            self.state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.body_stall);
            self.state.phase = Phase::Body(reader);
            return used;
        }
        let is_to_call = matches!(reader.then, BodyReceiver::Call(..));
        if is_to_call && !self.shared.scheduler.enter_handler(self.connection) {
            self.state.phase = Phase::Body(reader);
            *deferred = true;
            return used;
        }
        let BodyReader {
            then,
            exchange,
            body,
            ..
        } = *reader;
        match (body.finish(), then) {
            (Ok(body), BodyReceiver::Call(head, index)) => {
                let head = index.view(&head);
                let (peer, local) = (self.connection.peer, self.connection.local);
                let request = Request::parsed(head, &[], peer, local);
                self.run_entered(exchange, request, body);
            }
            (Ok(body), BodyReceiver::Tell(awaiting)) => {
                awaiting.settle(Ok(body));
                let called = PendingHandler::settled(exchange, awaiting);
                self.state.phase = Phase::Called(Box::new(called));
            }
            (Err(_), then) => {
                if is_to_call {
                    self.shared.scheduler.leave_handler();
                }
                self.refuse_body(then, exchange, BodyError::Store);
                return data.len();
            }
        }
        used
    }

    /// Rejects a request body because of `error`. If the handler was not called yet, the client
    /// gets an error response. If a running handler waits for the body, the handler gets `error`.
    fn refuse_body(&mut self, then: BodyReceiver, exchange: Exchange, error: BodyError) {
        match then {
            BodyReceiver::Tell(awaiting) => self.fail_call(exchange, awaiting, error),
            BodyReceiver::Call(..) => {
                let exchange = Exchange {
                    outcome: Outcome::Refused,
                    ..exchange
                };
                self.refuse(error.status(), &error.to_string(), exchange);
            }
        }
    }

    /// Rejects a request body because the client has sent no further byte of it within the time
    /// limit.
    pub(super) fn refuse_late_body(&mut self) {
        if let Phase::Body(reader) = mem::replace(&mut self.state.phase, Phase::Head) {
            self.refuse_body(reader.then, reader.exchange, BodyError::Late);
        }
    }

    /// Returns `true` if all missing bytes of the body can be read from the socket directly into
    /// the memory of the body.
    pub(super) fn reads_into_body(&self) -> bool {
        match &self.state.phase {
            Phase::Body(reader) => {
                matches!(reader.coding, BodyCoding::Length(n) if n <= reader.spare_capacity())
                    && self.state.input.is_empty()
            }
            _ => false,
        }
    }

    /// Reads bytes of the request body from the socket directly into the memory of the body.
    pub(super) fn read_body(&mut self) -> NextStep {
        let Phase::Body(mut reader) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return NextStep::Again;
        };
        let BodyCoding::Length(left) = reader.coding else {
            return NextStep::Again;
        };
        let BodyStorage::Memory(chunk) = &mut reader.body else {
            return NextStep::Again;
        };
        let come = |socket: &mut Transport| socket.receive(chunk, left);
        // A read of fewer than `left` bytes has emptied the socket. A read of `left` bytes
        // completes the body.
        let come = self.note_read(come, left);
        if matches!(self.state.phase, Phase::Closed) {
            self.abandon_call(Phase::Body(reader), CutReason::Client);
            return NextStep::Again;
        }
        reader.coding = BodyCoding::Length(left - come.unwrap_or(0));
        self.state.phase = Phase::Body(reader);
        let mut deferred = false;
        if come.is_some() {
            self.use_body(&[], &mut deferred);
        }
        self.keep(Vec::new(), &UsedInput { n: 0, deferred })
    }
}
