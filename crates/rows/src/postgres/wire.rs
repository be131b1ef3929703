//! `Wire`: the socket of a session, the received bytes that were not processed, and the bytes to
//! send. A lock protects them.

use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::buffer::Buffer;
use super::cancel::Activity;
use super::delivery::{Completion, Delivery, ResultEnd};
use super::fields::Fields;
use super::message::{
    BackendMessage, FieldDescription, Frame, Framed, HEADER_BYTES, fatal_error, frame, no_copy,
    violation,
};
use super::server::ServerState;
use super::socket::{Socket, lost};
use super::split_row::{LONG_ROW_BYTES, LongRows, SplitRow};
use super::statement_cache::{StatementCache, makes_stale};
use super::waiting::Waiting;
use crate::database::PrepareMode;
use crate::error::Error;
use crate::sql::copy_statement::CopyDirection;

/// A message of the server that belongs to a response. Messages of kinds that may arrive at any
/// time are not returned as events.
#[derive(Debug)]
pub(super) enum Event {
    Parsed,
    Bound,
    Closed,
    Parameters(Vec<u32>),
    Described(Option<Vec<FieldDescription>>),
    /// The next message in the inbox (the received bytes) is a DataRow.
    Row,
    Completed(Completion),
    Failed(Box<Fields>),
    Ready,
    /// The server requests the data of a COPY.
    CopyIn,
    /// The server begins to send the data of a COPY.
    CopyOut,
    CopyData,
}

/// The session of one connection with a PostgreSQL server.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) socket: Socket,
    pub(super) inbox: Buffer,
    pub(super) out: BytesMut,
    pub(super) server: ServerState,
    pub(super) cache: StatementCache,
    /// Passes the received rows to the statement whose result is being received; `None` between two
    /// results.
    pub(super) reader: Option<Arc<Delivery>>,
    /// The CommandComplete message of the current result; `None` before it was received. The server
    /// sends one for each result, except after an error.
    completion: Option<Completion>,
    failure: Option<Error>,
    pub(super) activity: Arc<Activity>,
    /// The statements of a SQL string that were not executed yet. They must be executed before any
    /// other statement.
    pub(super) further: Option<Waiting>,
    /// The position in a long row of which the reader has received only the beginning so far;
    /// `None` if there is no such row.
    split: Option<SplitRow>,
    /// The number of bytes of incomplete rows that were copied to another receive buffer, and that
    /// no statement has added to the ledger yet.
    pub(super) moved_bytes: usize,
    /// The direction of the COPY that is in progress, and the number that `Activity::begin` has
    /// given to it; `None` if no COPY is in progress. During a COPY, nothing else can be executed.
    pub(super) copying: Option<(CopyDirection, u64)>,
    /// `true` if the session cannot be used any more: it has ended, or the protocol was violated.
    pub(super) is_lost: bool,
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
            cache: StatementCache::new(PrepareMode::Auto),
            reader: None,
            completion: None,
            failure: None,
            activity,
            further: None,
            split: None,
            moved_bytes: 0,
            copying: None,
            is_lost: false,
        }
    }

    /// Sends the bytes in `out` to the server, and removes them from `out`.
    pub(super) fn send(&mut self) -> Result<(), Error> {
        let sent = self.socket.write_all(&self.out, &mut self.inbox);
        self.out.clear();
        // The memory of a very long statement or parameter is freed.
        if self.out.capacity() > 1 << 20 {
            self.out = BytesMut::with_capacity(4096);
        }
        sent.map_err(|e| {
            let lost = self.lost(&e);
            self.last_error().unwrap_or(lost)
        })
    }

    /// Returns the error with which the server has ended the session; `None` if no error has
    /// arrived. The error may still be in the socket's receive buffer when a write fails, so this
    /// method reads the socket first, without waiting.
    fn last_error(&mut self) -> Option<Error> {
        if self.split.is_some() {
            return None;
        }
        self.socket.set_deadline(Some(Instant::now()));
        while let Ok(n @ 1..) = self.socket.read(self.inbox.free().ok()?) {
            self.inbox.received(n);
        }
        fatal_error(self.inbox.bytes())
    }

    /// Reads once from the socket into the inbox; waits for at least one byte.
    fn receive(&mut self) -> Result<(), Error> {
        match self.try_receive()? {
            true => Ok(()),
            false => Err(self.lost(&std::io::ErrorKind::TimedOut.into())),
        }
    }

    /// Reads once from the socket into the inbox; returns `false` if nothing arrives before the
    /// socket's deadline.
    fn try_receive(&mut self) -> Result<bool, Error> {
        let free = self.inbox.free()?;
        match self.socket.read(free) {
            Ok(n) if n > 0 => self.inbox.received(n),
            Ok(_) => return Err(self.lost(&std::io::ErrorKind::UnexpectedEof.into())),
            Err(e) if e.kind() == std::io::ErrorKind::TimedOut => return Ok(false),
            Err(e) => return Err(self.lost(&e)),
        }
        Ok(true)
    }

    pub(super) fn next_frame(&mut self) -> Result<Frame, Error> {
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

    /// Waits for the next event and returns it.
    ///
    /// # Errors
    /// The connection was lost, the server violated the protocol, or the server ended the session.
    pub(super) fn event(&mut self) -> Result<Event, Error> {
        loop {
            if self.inbox.bytes().first() == Some(&b'D') {
                return Ok(Event::Row);
            }
            let frame = self.next_frame()?;
            if frame.tag == b'D' {
                return Ok(Event::Row);
            }
            // `CopyOut` reads the data messages of a COPY directly from the inbox.
            if frame.tag == b'd' && self.copying.is_some() {
                return Ok(Event::CopyData);
            }
            let event = self.read(frame).inspect_err(|_| self.is_lost = true)?;
            self.inbox.consume(frame.len);
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    fn read(&mut self, frame: Frame) -> Result<Option<Event>, Error> {
        let message = BackendMessage::read(frame, self.inbox.bytes())?;
        Ok(Some(match message {
            BackendMessage::ParseComplete => Event::Parsed,
            BackendMessage::BindComplete => Event::Bound,
            BackendMessage::CloseComplete => Event::Closed,
            BackendMessage::ParameterDescription(oids) => Event::Parameters(oids),
            BackendMessage::RowDescription(fields) => Event::Described(Some(fields)),
            BackendMessage::NoData => Event::Described(None),
            BackendMessage::CommandComplete(tag) => {
                let tag = String::from_utf8_lossy(tag);
                if makes_stale(&tag) || tag == "ROLLBACK" {
                    self.cache.invalidate();
                }
                Event::Completed(Completion::of_tag(&tag))
            }
            BackendMessage::EmptyQueryResponse => Event::Completed(Completion::default()),
            BackendMessage::ErrorResponse(fields) if fields.is_fatal() => {
                return Err(fields.to_error(""));
            }
            BackendMessage::ErrorResponse(fields) => Event::Failed(fields),
            BackendMessage::ReadyForQuery(_) => {
                self.server.note(&message);
                Event::Ready
            }
            BackendMessage::CopyInResponse | BackendMessage::CopyBothResponse => Event::CopyIn,
            BackendMessage::CopyOutResponse => Event::CopyOut,
            BackendMessage::CopyData(_) | BackendMessage::CopyDone => Event::CopyData,
            _ if self.server.note_asynchronous(&message) => return Ok(None),
            _ => return Err(violation("a message arrived at the wrong time")),
        }))
    }

    /// Reads messages up to the end of the response; discards its rows.
    ///
    /// # Errors
    /// The first error in the response.
    pub(super) fn read_to_ready(&mut self, sql: &str) -> Result<Completion, Error> {
        Ok(self.read_answer(sql)?.unwrap_or_default())
    }

    /// Reads the response as [`Wire::read_to_ready`] does; returns `None` if the response contains
    /// no CommandComplete.
    pub(super) fn read_answer(&mut self, sql: &str) -> Result<Option<Completion>, Error> {
        let (mut completion, mut failure) = (None, None);
        loop {
            match self.event()? {
                Event::Ready => return failure.map_or(Ok(completion), Err),
                Event::Completed(completed) => completion = Some(completed),
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

    /// Returns the CommandComplete of a response that contains no error. If it is missing, returns
    /// an error, because the rows of the response may be incomplete.
    pub(super) fn completed(
        &mut self,
        completion: Option<Completion>,
    ) -> Result<Completion, Error> {
        completion.ok_or_else(|| {
            self.is_lost = true;
            violation("the answer to a command ended before the command was complete")
        })
    }

    /// Waits until the message at the start of the inbox is complete, and removes it.
    pub(super) fn skip(&mut self) -> Result<(), Error> {
        let frame = self.next_frame()?;
        self.inbox.consume(frame.len);
        Ok(())
    }

    /// Aborts a COPY FROM STDIN for which the server requests data. The server has ignored the Sync
    /// that was sent with the statement, so another Sync is sent.
    pub(super) fn refuse_copy(&mut self) -> Result<(), Error> {
        self.fail_copy("COPY FROM STDIN is not supported here")?;
        frontend::sync(&mut self.out);
        self.send()
    }

    /// Aborts a COPY that the simple query protocol started and for which the server requests data.
    pub(super) fn fail_copy(&mut self, why: &str) -> Result<(), Error> {
        frontend::copy_fail(why, &mut self.out).map_err(|e| violation(e.to_string()))?;
        self.send()
    }

    /// Waits until a notification arrives or `deadline` has passed. Also handles the notices and
    /// reports that arrive during this time.
    pub(super) fn receive_pending(&mut self, deadline: Instant) -> Result<(), Error> {
        loop {
            while let Some(frame) = self.inbox.frame()? {
                self.note(frame)?;
            }
            if self.server.has_notifications() && self.inbox.bytes().is_empty() {
                return Ok(());
            }
            if !self.receive_before(deadline)? {
                return Ok(());
            }
        }
    }

    /// Handles the message at the start of the inbox: a notice, notification or parameter report.
    pub(super) fn note(&mut self, frame: Frame) -> Result<(), Error> {
        if let Some(_event) = self.read(frame).inspect_err(|_| self.is_lost = true)? {
            self.is_lost = true;
            return Err(violation("a message arrived at the wrong time"));
        }
        self.inbox.consume(frame.len);
        Ok(())
    }

    /// Reads once from the socket into the inbox; returns `false` if nothing arrives before
    /// `deadline`.
    pub(super) fn receive_before(&mut self, deadline: Instant) -> Result<bool, Error> {
        self.socket.set_deadline(Some(deadline));
        let received = self.try_receive();
        self.socket.set_deadline(None);
        received
    }

    fn lost(&mut self, error: &std::io::Error) -> Error {
        self.is_lost = true;
        lost(error)
    }

    /// Makes `delivery` the receiver of the rows that arrive from now on.
    pub(super) fn begin_result(&mut self, delivery: &Arc<Delivery>) {
        self.completion = None;
        self.failure = None;
        self.reader = Some(Arc::clone(delivery));
    }

    /// Returns the number of bytes at the start of the inbox that can be passed to the reader. They
    /// are complete rows. If a long row is only partly received, they are the values, or parts of
    /// values, that were received.
    fn rows_received(&mut self, long_rows: LongRows<'_>) -> Result<usize, Error> {
        let bytes = self.inbox.bytes_mut();
        let mut n = 0;
        loop {
            if let Some(split) = &mut self.split {
                n += split.skip_pieces(&mut bytes[n..])?;
                if !split.is_at_end() {
                    return Ok(n);
                }
                self.split = None;
            }
            if bytes.get(n) != Some(&b'D') {
                return Ok(n);
            }
            let (len, is_complete) = match frame(&bytes[n..])? {
                Framed::Complete(frame) => (frame.len, true),
                Framed::Partial(len) => (len, false),
            };
            match long_rows {
                LongRows::Pieces(parts) if len >= LONG_ROW_BYTES => {
                    n += HEADER_BYTES;
                    self.split = Some(SplitRow::new(len, parts.clone()));
                }
                _ if is_complete => n += len,
                _ => return Ok(n),
            }
        }
    }

    /// Returns the next rows of the current result, the end of the result, or both. The returned
    /// buffer is the one into which the rows were received. Later bytes are received into the
    /// buffer `spare`.
    ///
    /// # Errors
    /// The errors of [`Wire::event`]. An error of the statement itself is returned as the end of
    /// its result.
    pub(super) fn pull(
        &mut self,
        mut spare: Option<Buffer>,
        long_rows: LongRows<'_>,
    ) -> Result<(Option<Buffer>, Option<ResultEnd>), Error> {
        loop {
            let received = self.rows_received(long_rows);
            let n = received.inspect_err(|_| self.is_lost = true)?;
            if n > 0 {
                let mut next = spare.take().map_or_else(Buffer::new, Ok)?;
                self.moved_bytes += self.inbox.split_into(n, &mut next)?;
                let rows = std::mem::replace(&mut self.inbox, next);
                return Ok((Some(rows), self.end_if_received()?));
            }
            if self.split.is_some() {
                self.receive()?;
                continue;
            }
            if matches!(long_rows, LongRows::Wait) && self.has_long_row()? {
                return Ok((None, None));
            }
            match self.inbox.bytes().first() {
                // Nothing was received, or only the first bytes of a row.
                None | Some(b'D') => self.receive()?,
                Some(_) => {
                    if let Some(end) = self.step()? {
                        return Ok((None, Some(end)));
                    }
                }
            }
        }
    }

    /// Returns `true` if the message at the start of the inbox is a long row that is incomplete.
    fn has_long_row(&self) -> Result<bool, Error> {
        let bytes = self.inbox.bytes();
        let is_row = bytes.first() == Some(&b'D');
        Ok(is_row && matches!(frame(bytes)?, Framed::Partial(len) if len >= LONG_ROW_BYTES))
    }

    /// Handles the messages in the inbox that were received completely, up to the first row or the
    /// end of the result. Returns the end of the result. Returns `None` if a row precedes the end,
    /// or if the end was not received yet.
    fn end_if_received(&mut self) -> Result<Option<ResultEnd>, Error> {
        if self.split.is_some() {
            return Ok(None);
        }
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

    /// Handles the next message, which is not a row. If the message ends the result, returns how
    /// the result ended; otherwise returns `None`.
    fn step(&mut self) -> Result<Option<ResultEnd>, Error> {
        match self.event()? {
            Event::Completed(completion) => self.completion = Some(completion),
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
                let completion = self.completion.take();
                return match self.failure.take() {
                    Some(error) => Ok(Some(Err(error))),
                    None => self.completed(completion).map(|c| Some(Ok(c))),
                };
            }
            _ => {}
        }
        Ok(None)
    }

    /// Receives the remaining rows of the current result, so that another statement can be
    /// executed. The rows are stored if their statement still exists, otherwise discarded.
    ///
    /// # Errors
    /// The connection was lost.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        while let Some(reader) = self.reader.clone() {
            // The session and this function each have a reference; a third is that of the
            // statement.
            let is_wanted = Arc::strong_count(&reader) > 2;
            let pulled = self.pull(None, LongRows::Whole);
            let mut delivered = reader.state();
            match pulled {
                Ok((rows, end)) => {
                    if let Some(rows) = rows.filter(|_| is_wanted) {
                        delivered.rows.push(rows);
                    }
                    delivered.end = end.or(delivered.end.take());
                }
                Err(error) => {
                    self.reader = None;
                    delivered.end = Some(Err(error.clone()));
                    return Err(error);
                }
            }
        }
        // Every statement calls this function before it sends its first message.
        self.socket.reset_sent();
        Ok(())
    }
}
