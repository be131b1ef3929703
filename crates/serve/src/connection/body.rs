//! Request bodies: measured by length or chunked, read whole before the handler is called.

use std::io::Read;
use std::mem;
use std::net::TcpStream;

use onecopy_wire::http::{ChunkedError, ChunkedReader, HeadIndex, Piece};

use super::Phase;
use super::answer::Exchange;
use super::drive::{Drive, Step};
use super::input::Used;
use crate::access::Outcome;
use crate::event_loop::millis;
use crate::request::Request;

/// A request whose head is whole and whose body is being read.
pub(super) struct BodyReader {
    /// The bytes of the head, and where everything in them stands. Copies: one, of the head only.
    head: Vec<u8>,
    index: HeadIndex,
    exchange: Option<Exchange>,
    coding: Coding,
    body: Vec<u8>,
    pub(super) complete: bool,
}

pub(super) enum Coding {
    /// Bytes still to come.
    Length(usize),
    Chunked(ChunkedReader),
}

impl Drive<'_> {
    /// Begins to read the body of the request with this head.
    pub(super) fn begin_body(
        &mut self,
        head: Vec<u8>,
        index: HeadIndex,
        coding: Coding,
        exchange: Exchange,
    ) {
        let body = match coding {
            Coding::Length(n) => Vec::with_capacity(n), // Within the limit.
            Coding::Chunked(_) => Vec::new(),
        };
        self.state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.body_stall);
        self.state.phase = Phase::Body(Box::new(BodyReader {
            head,
            index,
            exchange: Some(exchange),
            coding,
            body,
            complete: false,
        }));
    }

    /// Adds `data` to the body, and calls the handler at its end. Returns how many bytes were used.
    pub(super) fn use_body(&mut self, data: &[u8], deferred: &mut bool) -> usize {
        let Phase::Body(mut reader) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return 0;
        };
        let used = match reader.add(data) {
            Ok(used) => used,
            Err(error) => {
                let exchange = reader.exchange.take().map(|exchange| Exchange {
                    outcome: Outcome::Refused,
                    ..exchange
                });
                self.refuse(error.status(), &error.to_string(), exchange);
                return data.len();
            }
        };
        if !reader.complete {
            self.state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.body_stall);
            self.state.phase = Phase::Body(reader);
            return used;
        }
        let Some(exchange) = reader.exchange.take() else {
            return used;
        };
        let head = reader.index.view(&reader.head);
        let (peer, local) = (self.connection.peer, self.connection.local);
        let request = Request::parsed(head, &reader.body, peer, local);
        if let Err(exchange) = self.run_handler(exchange, request) {
            reader.exchange = Some(exchange);
            self.state.phase = Phase::Body(reader);
            *deferred = true;
        }
        used
    }

    /// Whether what comes next on the socket belongs into a body as it is.
    pub(super) fn reads_into_body(&self) -> bool {
        match &self.state.phase {
            Phase::Body(reader) => {
                matches!(reader.coding, Coding::Length(_)) && self.state.input.is_empty()
            }
            _ => false,
        }
    }

    /// Reads from the socket straight into the body.
    pub(super) fn read_body(&mut self) -> Step {
        let Phase::Body(mut reader) = mem::replace(&mut self.state.phase, Phase::Head) else {
            return Step::Again;
        };
        let Coding::Length(left) = reader.coding else {
            return Step::Again;
        };
        let before = reader.body.len();
        let body = &mut reader.body;
        let come = |socket: &TcpStream| match socket.take(left as u64).read_to_end(body) {
            // What came before the error stays in the body.
            Err(_) if body.len() > before => Ok(body.len() - before),
            other => other,
        };
        // The socket is empty after a short read; `left` bytes are all that is wanted of it here.
        let come = self.note_read(come, left);
        if matches!(self.state.phase, Phase::Closed) {
            return Step::Again;
        }
        reader.coding = Coding::Length(left - come.unwrap_or(0));
        self.state.phase = Phase::Body(reader);
        let mut deferred = false;
        if come.is_some() {
            self.use_body(&[], &mut deferred);
        }
        self.keep(Vec::new(), &Used { n: 0, deferred })
    }
}

impl BodyReader {
    /// Adds the next bytes of the request; returns how many of them were the body's.
    fn add(&mut self, data: &[u8]) -> Result<usize, ChunkedError> {
        match &mut self.coding {
            Coding::Length(left) => {
                let n = data.len().min(*left);
                self.body.extend_from_slice(&data[..n]);
                *left -= n;
                self.complete = *left == 0;
                Ok(n)
            }
            Coding::Chunked(_) if self.complete => Ok(0),
            Coding::Chunked(reader) => {
                let mut used = 0;
                loop {
                    let (n, piece) = reader.next(&data[used..])?;
                    used += n;
                    match piece {
                        Piece::Data(bytes) => self.body.extend_from_slice(bytes),
                        Piece::NeedMore => return Ok(used),
                        Piece::End => {
                            self.complete = true;
                            return Ok(used);
                        }
                    }
                }
            }
        }
    }
}
