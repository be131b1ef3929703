//! Request bodies: measured by length or chunked, read whole before the handler is called, or when it asks.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::mem;
use std::path::Path;
use std::sync::Arc;

use onecopy_text::{ByteSink, Chunk};
use onecopy_wire::http::{ChunkedReader, HeadIndex, Piece};

use super::Phase;
use super::answer::{Exchange, Gone};
use super::called::Called;
use super::drive::{Drive, Step};
use super::input::Used;
use crate::access::Outcome;
use crate::awaited::{Awaiting, BodyError};
use crate::guard;
use crate::request::{Request, RequestBody};
use crate::timers::millis;
use crate::transport::Transport;

/// A request whose head is whole and whose body is being read.
pub(super) struct BodyReader {
    then: Then,
    exchange: Exchange,
    coding: Coding,
    body: Intake,
    pub(super) complete: bool,
}

/// Whom a body is for.
pub(super) enum Then {
    /// A handler that is called with it, and the head: its bytes, and where everything in them stands. Copies: one, of the head only.
    Call(Vec<u8>, HeadIndex),
    /// A handler that runs, and waits for it.
    Tell(Arc<Awaiting>),
}

/// Where a body comes into: memory, or a file where it is long.
enum Intake {
    Memory(Chunk),
    File(File, u64),
}

impl Intake {
    /// Takes the next bytes; past `most_in_memory` all go to a file in `folder`.
    fn put(&mut self, bytes: &[u8], most_in_memory: usize, folder: &Path) -> io::Result<()> {
        if let Intake::Memory(chunk) = self
            && chunk.len() + bytes.len() > most_in_memory
        {
            let mut file = tempfile::tempfile_in(folder)?;
            file.write_all(chunk)?;
            *self = Intake::File(file, chunk.len() as u64);
        }
        match self {
            Intake::Memory(chunk) => {
                let full = |_| io::Error::from(io::ErrorKind::OutOfMemory);
                chunk.put(bytes).map_err(full)
            }
            Intake::File(file, n_bytes) => {
                *n_bytes += bytes.len() as u64;
                file.write_all(bytes)
            }
        }
    }

    fn finish(self) -> io::Result<RequestBody> {
        Ok(match self {
            Intake::Memory(chunk) => RequestBody::Memory(chunk),
            Intake::File(mut file, n_bytes) => {
                file.rewind()?;
                RequestBody::File(file, n_bytes)
            }
        })
    }
}

/// Room for a body of unknown length, at first.
const FIRST_ROOM_BYTES: usize = 4096;

pub(super) enum Coding {
    /// Bytes still to come.
    Length(usize),
    Chunked(ChunkedReader),
}

impl Coding {
    /// Bytes of a body that was not begun.
    pub(super) fn announced(&self) -> Option<u64> {
        match self {
            Coding::Length(n) => Some(*n as u64),
            Coding::Chunked(_) => None,
        }
    }
}

impl Drive<'_> {
    /// Begins to read a body.
    pub(super) fn begin_body(&mut self, then: Then, coding: Coding, exchange: Exchange) {
        let room = match coding {
            Coding::Length(n) if n <= self.shared.config.limits.body_memory_bytes => n,
            Coding::Length(_) => 0, // It goes to a file at once.
            Coding::Chunked(_) => FIRST_ROOM_BYTES,
        };
        let body = match room {
            0 => Some(Chunk::default()),
            room => guard(|| self.shared.handler.body_room(room)),
        };
        let body = Intake::Memory(body.unwrap_or_default());
        self.state.phase_ms = self.kit.now_ms + millis(self.shared.config.limits.body_stall);
        self.state.phase = Phase::Body(Box::new(BodyReader {
            then,
            exchange,
            coding,
            body,
            complete: false,
        }));
    }

    /// Adds `data` to the body, and calls the handler at its end, or tells the one that waits. Returns how many bytes were used.
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
        let is_to_call = matches!(reader.then, Then::Call(..));
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
            (Ok(body), Then::Call(head, index)) => {
                let head = index.view(&head);
                let (peer, local) = (self.connection.peer, self.connection.local);
                let request = Request::parsed(head, &[], peer, local);
                self.run_entered(exchange, request, body);
            }
            (Ok(body), Then::Tell(awaiting)) => {
                awaiting.settle(Ok(body));
                let called = Called::settled(exchange, awaiting);
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

    /// A body cannot be taken: the client is told, by the server or by the handler that waits.
    fn refuse_body(&mut self, then: Then, exchange: Exchange, error: BodyError) {
        match then {
            Then::Tell(awaiting) => self.fail_call(exchange, awaiting, error),
            Then::Call(..) => {
                let exchange = Exchange {
                    outcome: Outcome::Refused,
                    ..exchange
                };
                self.refuse(error.status(), &error.to_string(), Some(exchange));
            }
        }
    }

    /// No byte of the body came in time.
    pub(super) fn refuse_late_body(&mut self) {
        if let Phase::Body(reader) = mem::replace(&mut self.state.phase, Phase::Head) {
            self.refuse_body(reader.then, reader.exchange, BodyError::Late);
        }
    }

    /// Whether what comes next on the socket belongs into a body as it is.
    pub(super) fn reads_into_body(&self) -> bool {
        match &self.state.phase {
            Phase::Body(reader) => {
                matches!(reader.coding, Coding::Length(n) if n <= reader.room())
                    && self.state.input.is_empty()
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
        let Intake::Memory(chunk) = &mut reader.body else {
            return Step::Again;
        };
        let come = |socket: &mut Transport| socket.receive(chunk, left);
        // The socket is empty after a short read; `left` bytes are all that is wanted of it here.
        let come = self.note_read(come, left);
        if matches!(self.state.phase, Phase::Closed) {
            self.abandon_call(Phase::Body(reader), Gone::Client);
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
    /// The request of the handler that waits for the body, if one does.
    pub(super) fn into_told(self) -> Option<(Exchange, Arc<Awaiting>)> {
        match self.then {
            Then::Tell(awaiting) => Some((self.exchange, awaiting)),
            Then::Call(..) => None,
        }
    }

    /// Bytes that it has room for in memory.
    fn room(&self) -> usize {
        match &self.body {
            Intake::Memory(chunk) => chunk.capacity() - chunk.len(),
            Intake::File(..) => 0,
        }
    }

    /// Adds the next bytes of the request; returns how many of them were the body's.
    fn add(
        &mut self,
        data: &[u8],
        most_in_memory: usize,
        folder: &Path,
    ) -> Result<usize, BodyError> {
        let body = &mut self.body;
        let mut put = |bytes: &[u8]| {
            body.put(bytes, most_in_memory, folder)
                .map_err(|_| BodyError::Store)
        };
        match &mut self.coding {
            Coding::Length(left) => {
                let n = data.len().min(*left);
                put(&data[..n])?;
                *left -= n;
                self.complete = *left == 0;
                Ok(n)
            }
            Coding::Chunked(_) if self.complete => Ok(0),
            Coding::Chunked(reader) => {
                let mut used = 0;
                loop {
                    let (n, piece) = reader.next(&data[used..]).map_err(BodyError::Coding)?;
                    used += n;
                    match piece {
                        Piece::Data(bytes) => put(bytes)?,
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
