//! A session's socket with what was received and what is to be sent: messages out, events in.
//! Reached under the connection's lock only.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::buffer::Buffer;
use super::cancel::Activity;
use super::fields::Fields;
use super::message::{FieldDescription, Frame, Framed, Message, frame, violation};
use super::server::ServerState;
use super::socket::Socket;
use super::statement_cache::{StatementCache, makes_stale};
use crate::error::{Error, ErrorKind};

/// The end of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// Rows that were inserted, changed or deleted.
    pub(super) n_changed: Option<u64>,
}

impl Completion {
    fn of_tag(tag: &str) -> Completion {
        let changes = ["INSERT ", "UPDATE ", "DELETE ", "MERGE ", "COPY "];
        let number = tag.rsplit(' ').next().and_then(|n| n.parse().ok());
        Completion {
            n_changed: number.filter(|_| changes.iter().any(|c| tag.starts_with(c))),
        }
    }
}

/// How a result has ended.
pub(super) type ResultEnd = Result<Completion, Error>;

/// Rows and the end of a result, on their way from the connection to the statement.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    state: Mutex<Delivered>,
    /// The statement's text, for the place of an error.
    pub(super) sql: String,
}

#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// Rows that were received for another statement to run.
    pub(super) chunks: VecDeque<Buffer>,
    pub(super) end: Option<ResultEnd>,
}

impl Delivery {
    pub(super) fn new(sql: &str) -> Delivery {
        Delivery {
            sql: sql.to_owned(),
            ..Delivery::default()
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Delivered> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message of the server, except those that may come at any time.
#[derive(Debug)]
pub(super) enum Event {
    Parsed,
    Bound,
    Closed,
    Parameters(Vec<u32>),
    Described(Option<Vec<FieldDescription>>),
    /// A row is next in the inbox.
    Row,
    Completed(Completion),
    Failed(Box<Fields>),
    Ready,
    /// The server waits for the data of a COPY.
    CopyIn,
    /// The server sends the data of a COPY.
    CopyOut,
    CopyData,
}

/// A session.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) socket: Socket,
    pub(super) inbox: Buffer,
    pub(super) out: BytesMut,
    pub(super) server: ServerState,
    pub(super) cache: StatementCache,
    /// The statement whose rows come next, and what is known of its end.
    pub(super) reader: Option<Arc<Delivery>>,
    completion: Completion,
    failure: Option<Error>,
    pub(super) activity: Arc<Activity>,
    /// The session has ended, or its messages cannot be followed any more.
    pub(super) is_lost: bool,
}

/// The error of a socket.
fn lost(error: &std::io::Error) -> Error {
    let what = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the server closed it".to_owned(),
        _ => error.to_string(),
    };
    let message = format!("the connection to the server was lost: {what}");
    let mut error = Error::new(ErrorKind::Operational, message).transient();
    "08006".clone_into(&mut error.sqlstate);
    error
}

impl Wire {
    pub(super) fn new(
        socket: Socket,
        inbox: Buffer,
        server: ServerState,
        activity: Arc<Activity>,
    ) -> Wire {
        Wire {
            socket,
            inbox,
            out: BytesMut::with_capacity(4096),
            server,
            cache: StatementCache::default(),
            reader: None,
            completion: Completion::default(),
            failure: None,
            activity,
            is_lost: false,
        }
    }

    /// Sends what was written to `out`.
    pub(super) fn send(&mut self) -> Result<(), Error> {
        let sent = self.socket.write_all(&self.out, &mut self.inbox);
        self.out.clear();
        // A long statement or parameter does not hold its memory.
        if self.out.capacity() > 1 << 20 {
            self.out = BytesMut::with_capacity(4096);
        }
        sent.map_err(|e| {
            self.is_lost = true;
            lost(&e)
        })
    }

    /// Reads once from the socket.
    fn receive(&mut self) -> Result<(), Error> {
        let read = self.socket.read(self.inbox.free()?);
        let n = read.and_then(|n| match n {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => Ok(n),
        });
        let n = n.map_err(|e| {
            self.is_lost = true;
            lost(&e)
        })?;
        self.inbox.received(n);
        Ok(())
    }

    fn next_frame(&mut self) -> Result<Frame, Error> {
        loop {
            match self.inbox.frame() {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => self.receive()?,
                Err(error) => {
                    self.is_lost = true;
                    return Err(error);
                }
            }
        }
    }

    /// The next event.
    ///
    /// # Errors
    /// A lost connection, a violation of the protocol, or the error that ends the session.
    pub(super) fn event(&mut self) -> Result<Event, Error> {
        loop {
            let frame = self.next_frame()?;
            if frame.tag == b'D' {
                return Ok(Event::Row);
            }
            let event = self.read(frame).inspect_err(|_| self.is_lost = true)?;
            self.inbox.consume(frame.len);
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    fn read(&mut self, frame: Frame) -> Result<Option<Event>, Error> {
        let message = Message::read(frame, self.inbox.bytes())?;
        Ok(Some(match message {
            Message::ParseComplete => Event::Parsed,
            Message::BindComplete => Event::Bound,
            Message::CloseComplete => Event::Closed,
            Message::ParameterDescription(oids) => Event::Parameters(oids),
            Message::RowDescription(fields) => Event::Described(Some(fields)),
            Message::NoData => Event::Described(None),
            Message::CommandComplete(tag) => {
                let tag = String::from_utf8_lossy(tag);
                if makes_stale(&tag) || tag == "ROLLBACK" {
                    self.cache.invalidate();
                }
                Event::Completed(Completion::of_tag(&tag))
            }
            Message::EmptyQueryResponse => Event::Completed(Completion::default()),
            Message::ErrorResponse(fields) if fields.is_fatal() => return Err(fields.to_error("")),
            Message::ErrorResponse(fields) => Event::Failed(fields),
            Message::ReadyForQuery(_) => {
                self.server.note(&message);
                Event::Ready
            }
            Message::CopyInResponse | Message::CopyBothResponse => Event::CopyIn,
            Message::CopyOutResponse => Event::CopyOut,
            Message::CopyData(_) | Message::CopyDone => Event::CopyData,
            _ if self.server.note_asynchronous(&message) => return Ok(None),
            _ => return Err(violation("a message came at the wrong time")),
        }))
    }

    /// Reads to the end of the answer; rows are dropped.
    ///
    /// # Errors
    /// The first error of the answer.
    pub(super) fn read_to_ready(&mut self, sql: &str) -> Result<Completion, Error> {
        let (mut completion, mut failure) = (Completion::default(), None);
        loop {
            match self.event()? {
                Event::Ready => return failure.map_or(Ok(completion), Err),
                Event::Completed(completed) => completion = completed,
                Event::Failed(fields) => {
                    failure.get_or_insert_with(|| fields.to_error(sql));
                }
                Event::Row => self.skip()?,
                Event::CopyIn => {
                    failure.get_or_insert_with(no_copy);
                    self.refuse_copy()?;
                }
                Event::CopyOut => {
                    failure.get_or_insert_with(no_copy);
                }
                _ => {}
            }
        }
    }

    /// Drops the message at the start of the inbox.
    pub(super) fn skip(&mut self) -> Result<(), Error> {
        let frame = self.next_frame()?;
        self.inbox.consume(frame.len);
        Ok(())
    }

    /// Ends a COPY that the server waits for. A Sync that was sent before is part of its data.
    pub(super) fn refuse_copy(&mut self) -> Result<(), Error> {
        frontend::copy_fail("COPY FROM STDIN is not supported here", &mut self.out)
            .map_err(|e| violation(e.to_string()))?;
        frontend::sync(&mut self.out);
        self.send()
    }

    /// Runs a command without parameters and rows.
    ///
    /// # Errors
    /// As the server reports.
    pub(super) fn command(&mut self, sql: &str) -> Result<Completion, Error> {
        frontend::query(sql, &mut self.out).map_err(|e| violation(e.to_string()))?;
        self.send()?;
        self.read_to_ready(sql)
    }

    /// The first value of a query's result, by the simple protocol, in text.
    pub(super) fn value(&mut self, sql: &str) -> Result<Option<String>, Error> {
        frontend::query(sql, &mut self.out).map_err(|e| violation(e.to_string()))?;
        self.send()?;
        let mut value = None;
        loop {
            match self.event()? {
                Event::Row => {
                    let frame = self.next_frame()?;
                    // Two bytes of the count, four of the length.
                    let body = frame.body(self.inbox.bytes()).get(6..);
                    value = body.map(|text| String::from_utf8_lossy(text).into_owned());
                    self.inbox.consume(frame.len);
                }
                Event::Failed(fields) => {
                    let error = fields.to_error(sql);
                    return self.read_to_ready(sql).and(Err(error));
                }
                Event::Ready => return Ok(value),
                _ => {}
            }
        }
    }

    /// Makes `delivery` the reader of what comes.
    pub(super) fn begin_result(&mut self, delivery: &Arc<Delivery>) {
        self.completion = Completion::default();
        self.failure = None;
        self.reader = Some(Arc::clone(delivery));
    }

    /// Bytes of complete rows at the start of the inbox.
    fn rows_received(&self) -> Result<usize, Error> {
        let bytes = self.inbox.bytes();
        let mut n = 0;
        while bytes.get(n) == Some(&b'D') {
            match frame(&bytes[n..])? {
                Framed::Complete(frame) => n += frame.len,
                Framed::Partial(_) => break,
            }
        }
        Ok(n)
    }

    /// The next rows of the reader, as the buffer that they were received in, or the end of its result, which is also
    /// returned with the last rows where it has been received with them. `spare` receives what follows.
    ///
    /// # Errors
    /// As [`Wire::event`]; the error of the statement itself is its end.
    pub(super) fn pull(
        &mut self,
        mut spare: Option<Buffer>,
    ) -> Result<(Option<Buffer>, Option<ResultEnd>), Error> {
        loop {
            let n = self.rows_received().inspect_err(|_| self.is_lost = true)?;
            if n > 0 {
                let mut next = spare.take().map_or_else(Buffer::new, Ok)?;
                self.inbox.split_into(n, &mut next)?;
                let rows = std::mem::replace(&mut self.inbox, next);
                return Ok((Some(rows), self.end_if_received()?));
            }
            if let Event::Row = self.peek()? {
                self.receive()?;
                continue;
            }
            if let Some(end) = self.step()? {
                return Ok((None, Some(end)));
            }
        }
    }

    /// Returns whether a row or another message is next, of which at least the first byte is there.
    fn peek(&mut self) -> Result<Event, Error> {
        while self.inbox.bytes().is_empty() {
            self.receive()?;
        }
        Ok(match self.inbox.bytes()[0] {
            b'D' => Event::Row,
            _ => Event::Ready,
        })
    }

    /// Takes the messages that are complete already, up to the end of the answer.
    fn end_if_received(&mut self) -> Result<Option<ResultEnd>, Error> {
        while let Some(frame) = self.inbox.frame()? {
            if frame.tag == b'D' {
                break;
            }
            if let Some(end) = self.step()? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Takes a message that is not a row; the result's end with its last.
    fn step(&mut self) -> Result<Option<ResultEnd>, Error> {
        match self.event()? {
            Event::Completed(completion) => self.completion = completion,
            Event::Failed(fields) => {
                let sql = self
                    .reader
                    .as_ref()
                    .map_or("", |reader| reader.sql.as_str());
                self.failure = Some(fields.to_error(sql));
            }
            Event::Ready => {
                self.reader = None;
                self.activity.finish();
                let completion = std::mem::take(&mut self.completion);
                return Ok(Some(self.failure.take().map_or(Ok(completion), Err)));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Receives the rest of a result that is under way, for its statement if that still exists, so
    /// that another statement can run.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        while let Some(reader) = self.reader.clone() {
            // Besides this one and the session's, the statement has one if it still exists.
            let is_wanted = Arc::strong_count(&reader) > 2;
            let pulled = self.pull(None);
            let mut delivered = reader.state();
            match pulled {
                Ok((rows, end)) => {
                    delivered.chunks.extend(rows.filter(|_| is_wanted));
                    delivered.end = end.or(delivered.end.take());
                }
                Err(error) => {
                    self.reader = None;
                    delivered.end = Some(Err(error.clone()));
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// The error of a COPY that would need the client's data, or send it.
pub(super) fn no_copy() -> Error {
    Error::new(
        ErrorKind::NotSupported,
        "`COPY … TO STDOUT` and `COPY … FROM STDIN` are not supported\n\
         Stream a SELECT with `csv()`, and write rows with `executemany` or `insert_arrow`.",
    )
}
