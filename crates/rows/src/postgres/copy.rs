//! COPY between a table and the client, in chunks. While a COPY is in progress, the connection
//! executes no other statement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onecopy_wire::CancelHandle;
use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::copy_values::put_message;
use super::delivery::Completion;
use super::execute::begin;
use super::message::Frame;
use super::server::Notification;
use super::shared::Shared;
use super::socket::lost;
use super::wire::{Event, Wire};
use crate::error::{Error, ErrorKind};
use crate::sql::copy_statement::{self, CopyDirection, CopyText};
use crate::task::TimeSlice;

/// The smallest size in bytes of a chunk of COPY TO STDOUT, except for the last chunk.
const CHUNK_BYTES: usize = 64 << 10;

/// The largest number of data bytes that are sent in one message of a COPY FROM STDIN.
const MESSAGE_BYTES: usize = 1 << 20;

/// A `COPY … TO STDOUT` in progress, from which data can be read.
#[derive(Debug)]
pub struct CopyOut {
    shared: Arc<Shared>,
    id: u64,
    row_count: Option<u64>,
    is_at_end: bool,
}

/// Creates the error for SQL that is not exactly one COPY statement in the direction `direction`.
/// The message begins with `found`, a description of the SQL.
fn not_a_copy(found: &str, direction: CopyDirection) -> Error {
    let (name, method) = match direction {
        CopyDirection::ToClient => ("TO STDOUT", "copy_out"),
        CopyDirection::FromClient => ("FROM STDIN", "copy_in"),
    };
    let message = format!("{found}\n`{method}` executes one `COPY … {name}`.");
    Error::new(ErrorKind::Programming, message)
}

/// Returns an error unless `sql` is exactly one COPY statement that copies in the direction
/// `direction`. The SQL is checked before it is sent, so that the server does not execute any other
/// statement.
fn check_text(sql: &str, direction: CopyDirection) -> Result<(), Error> {
    let found = match copy_statement::classify(sql) {
        CopyText::One(found) if found == direction => return Ok(()),
        CopyText::One(CopyDirection::ToClient) => "the statement copies to the client",
        CopyText::One(CopyDirection::FromClient) => "the statement copies from the client",
        CopyText::Several => "the text has more than one statement",
        CopyText::Other => "the statement is not a COPY between a table and the client",
    };
    Err(not_a_copy(found, direction))
}

/// The response to a COPY statement, which is executed in the simple query protocol.
struct Response {
    direction: CopyDirection,
    completion: Option<Completion>,
    failure: Option<Error>,
}

impl Response {
    fn new(direction: CopyDirection) -> Response {
        Response {
            direction,
            completion: None,
            failure: None,
        }
    }

    /// Handles an event after the start of the COPY; returns `true` at the end of the response. If
    /// the event cannot occur in the response to a single COPY, it is consumed, and the COPY is
    /// later reported as failed. Such an event can arrive if the server's rules for strings differ
    /// from those of [`check_text`], for example with `standard_conforming_strings = off`.
    fn handle(&mut self, event: Event, wire: &mut Wire) -> Result<bool, Error> {
        match event {
            Event::Ready => return Ok(true),
            Event::CopyData => return Ok(false),
            Event::Completed(completion) if self.completion.is_none() => {
                self.completion = Some(completion);
                return Ok(false);
            }
            Event::Failed(fields) => {
                self.failure.get_or_insert_with(|| fields.to_error(""));
                return Ok(false);
            }
            Event::Row => wire.skip()?,
            Event::CopyIn => wire.fail_copy("the text has more than one statement")?,
            _ => {}
        }
        let direction = self.direction;
        let failure = || not_a_copy("the text has more than one statement", direction);
        self.failure.get_or_insert_with(failure);
        Ok(false)
    }

    fn finish(self) -> Result<Completion, Error> {
        match self.failure {
            Some(error) => Err(error),
            None => Ok(self.completion.unwrap_or_default()),
        }
    }

    /// Reads the response to its end, and discards the copied data.
    ///
    /// # Errors
    /// The first error in the response.
    fn read_to_end(mut self, wire: &mut Wire) -> Result<Completion, Error> {
        loop {
            let event = wire.event()?;
            if self.handle(event, wire)? {
                return self.finish();
            }
        }
    }
}

/// Sends the COPY statement `sql`, and waits until the server begins the COPY. Before the statement,
/// sends BEGIN if a transaction must be started. `id` is the number of the COPY.
fn start(
    shared: &Shared,
    wire: &mut Wire,
    sql: &str,
    direction: CopyDirection,
    id: u64,
) -> Result<(), Error> {
    let preamble = begin(shared, wire, sql)?;
    frontend::query(sql, &mut wire.out).map_err(|_| {
        Error::new(
            ErrorKind::Programming,
            "the statement contains a NUL character",
        )
    })?;
    wire.send()?;
    let mut response = Response::new(direction);
    if let Err(error) = wire.read_preamble(preamble) {
        let _ = response.read_to_end(wire);
        return Err(error);
    }
    match (wire.event()?, direction) {
        (Event::CopyOut, CopyDirection::ToClient) | (Event::CopyIn, CopyDirection::FromClient) => {
            wire.copying = Some((direction, id));
            Ok(())
        }
        (Event::Failed(fields), _) => {
            let error = fields.to_error(sql);
            response.read_to_end(wire).and(Err(error))
        }
        (event, _) => {
            let is_at_end = response.handle(event, wire)?;
            if !is_at_end {
                let _ = response.read_to_end(wire);
            }
            Err(not_a_copy("the statement is not a COPY", direction))
        }
    }
}

/// Discards the data of the COPY TO STDOUT that is in progress, after it was cancelled on the
/// server.
///
/// # Errors
/// The connection was lost.
pub(super) fn end_copy_out(shared: &Shared, wire: &mut Wire) -> Result<(), Error> {
    wire.copying = None;
    let ended = Response::new(CopyDirection::ToClient).read_to_end(wire);
    shared.activity.finish();
    match ended {
        Err(error) if wire.is_lost => Err(error),
        _ => Ok(()),
    }
}

/// Returns the message at the start of the received bytes; `None` if it is incomplete.
fn received_frame(wire: &mut Wire) -> Result<Option<Frame>, Error> {
    wire.inbox.frame().inspect_err(|_| wire.is_lost = true)
}

/// Returns the message at the start of the received bytes; `None` if the message is incomplete or
/// is not CopyData.
fn data_frame(wire: &mut Wire) -> Result<Option<Frame>, Error> {
    Ok(received_frame(wire)?.filter(|frame| frame.tag == b'd'))
}

/// Returns `true` if the server has reported an error during a COPY FROM STDIN.
fn has_failed(wire: &mut Wire) -> Result<bool, Error> {
    while let Some(frame) = received_frame(wire)? {
        if frame.tag == b'E' {
            return Ok(true);
        }
        wire.note(frame)?;
    }
    Ok(false)
}

impl CopyOut {
    /// Returns the next chunk of the copied data; `None` after the last chunk.
    ///
    /// # Errors
    /// The error of the server.
    pub fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.is_at_end {
            return Ok(None);
        }
        let shared = Arc::clone(&self.shared);
        let read = shared.with(|wire| self.read(wire));
        if read.is_err() {
            self.is_at_end = true;
        }
        read.map_err(|error| shared.error_of(self.id, error))
    }

    fn read(&mut self, wire: &mut Wire) -> Result<Option<Vec<u8>>, Error> {
        if !self.is_under_way(wire) {
            let message = "the COPY was ended by a rollback of its connection\n\
                           Read it to its end before.";
            return Err(Error::new(ErrorKind::Interface, message));
        }
        let mut chunk = Vec::new();
        let mut response = Response::new(CopyDirection::ToClient);
        loop {
            while let Some(body) = data_frame(wire)? {
                // Data after a failure belongs to another statement.
                if response.failure.is_none() {
                    chunk.extend_from_slice(body.body(wire.inbox.bytes()));
                }
                wire.inbox.consume(body.len);
                if chunk.len() >= CHUNK_BYTES && response.failure.is_none() {
                    return Ok(Some(chunk));
                }
            }
            let event = wire.event()?;
            if response.handle(event, wire)? {
                self.is_at_end = true;
                wire.copying = None;
                self.shared.activity.finish();
                self.row_count = response.finish()?.n_changed;
                return Ok((!chunk.is_empty()).then_some(chunk));
            }
        }
    }

    /// Returns `true` while the server sends the data of this COPY on the connection.
    fn is_under_way(&self, wire: &Wire) -> bool {
        wire.copying == Some((CopyDirection::ToClient, self.id))
    }

    /// Returns the number of copied rows; `None` until all data was read.
    #[must_use]
    pub fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    /// Returns a handle that cancels the COPY from any thread.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        let (activity, id) = (Arc::clone(&self.shared.activity), self.id);
        CancelHandle::new(move || activity.cancel(Some(id)))
    }

    /// Ends the COPY if it is not at its end: cancels it on the server, and discards the data that
    /// still arrives.
    pub fn close(&mut self) {
        let shared = &self.shared;
        if !std::mem::replace(&mut self.is_at_end, true)
            && shared.is_ours()
            && shared.activity.is_running(self.id)
        {
            // A thread that waits for the next chunk holds the lock of the session.
            let _ = shared.activity.request();
            let _ = shared.with(|wire| match self.is_under_way(wire) {
                true => end_copy_out(shared, wire),
                false => Ok(()),
            });
        }
    }
}

impl Drop for CopyOut {
    fn drop(&mut self) {
        self.close();
    }
}

impl Connection {
    /// Starts a `COPY … TO STDOUT`.
    ///
    /// # Errors
    /// The error of the server; [`ErrorKind::Programming`] if `sql` is not exactly one such
    /// statement.
    pub fn copy_out(&self, sql: &str) -> Result<CopyOut, Error> {
        check_text(sql, CopyDirection::ToClient)?;
        let shared = self.shared();
        shared.call(|wire| {
            let id = shared.activity.begin();
            let started = start(shared, wire, sql, CopyDirection::ToClient, id);
            if let Err(error) = started {
                shared.activity.finish();
                return Err(shared.error_of(id, error));
            }
            Ok(CopyOut {
                shared: Arc::clone(shared),
                id,
                row_count: None,
                is_at_end: false,
            })
        })
    }

    /// Executes a `COPY … FROM STDIN` with the data in `chunks`; returns the number of copied rows.
    /// If `chunks` returns an error, the COPY is aborted and no row is stored.
    ///
    /// # Errors
    /// The error of the server; the first error of `chunks`; [`ErrorKind::Programming`] if `sql` is
    /// not exactly one such statement.
    pub fn copy_in(
        &self,
        sql: &str,
        chunks: &mut dyn Iterator<Item = Result<Vec<u8>, Error>>,
    ) -> Result<Option<u64>, Error> {
        let copy = CopyIn::begin(self.shared(), sql)?;
        // The iterator may run the caller's code, so it is called while the session is not locked.
        let (mut failure, mut slice) = (None, TimeSlice::begin());
        for chunk in chunks {
            let sent = chunk.and_then(|chunk| copy.send(&chunk));
            match sent.and_then(|sent| slice.check().map(|()| sent).map_err(|e| lost(&e))) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        copy.finish(failure)
    }

    /// Returns the notifications that were received since the last call. If there are none, waits
    /// up to `wait` for the first one.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn notifications(&self, wait: Duration) -> Result<Vec<Notification>, Error> {
        let shared = self.shared();
        shared.call(|wire| {
            wire.receive_pending(Instant::now() + wait)?;
            Ok(wire.server.take_notifications())
        })
    }
}

/// A `COPY … FROM STDIN` in progress. The caller must call `finish` after the last data or after a
/// failure; until then, the connection executes no other statement.
#[derive(Debug)]
pub(super) struct CopyIn {
    shared: Arc<Shared>,
    id: u64,
}

impl CopyIn {
    /// Sends the COPY statement, and waits until the server requests data.
    ///
    /// # Errors
    /// The error of the server; [`ErrorKind::Programming`] if `sql` is not exactly one `COPY … FROM
    /// STDIN`.
    pub(super) fn begin(shared: &Arc<Shared>, sql: &str) -> Result<CopyIn, Error> {
        check_text(sql, CopyDirection::FromClient)?;
        let id = shared.call(|wire| {
            let id = shared.activity.begin();
            let started = start(shared, wire, sql, CopyDirection::FromClient, id);
            if let Err(error) = started {
                shared.activity.finish();
                return Err(shared.error_of(id, error));
            }
            Ok(id)
        })?;
        Ok(CopyIn {
            shared: Arc::clone(shared),
            id,
        })
    }

    /// Sends data. Returns `false` if the server has reported an error, after which the server
    /// discards all further data. Each call also reads the server's messages, because a server that
    /// has cancelled the COPY still accepts data.
    ///
    /// # Errors
    /// The connection was lost.
    pub(super) fn send(&self, data: &[u8]) -> Result<bool, Error> {
        self.shared.with(|wire| {
            let mut is_sent = false;
            for part in data.chunks(MESSAGE_BYTES) {
                put_message(part, &mut wire.out)?;
                // Small messages are collected in `out` and sent together.
                if wire.out.len() >= CHUNK_BYTES {
                    wire.send()?;
                    is_sent = true;
                }
            }
            if is_sent {
                wire.receive_before(Instant::now())?;
            }
            Ok(!has_failed(wire)?)
        })
    }

    /// Ends the COPY after its last data. If `failure` is set, the COPY is aborted and no row is
    /// stored. Returns the number of copied rows; `None` if the server does not report it.
    ///
    /// # Errors
    /// `failure`, or the error of the server.
    pub(super) fn finish(self, failure: Option<Error>) -> Result<Option<u64>, Error> {
        let shared = &self.shared;
        let ended = shared.with(|wire| {
            wire.copying = None;
            match &failure {
                // The server discards further data, and may have closed the connection.
                _ if has_failed(wire)? => {}
                None => {
                    frontend::copy_done(&mut wire.out);
                    wire.send()?;
                }
                Some(_) => wire.fail_copy("the client ended the COPY")?,
            }
            let ended = Response::new(CopyDirection::FromClient).read_to_end(wire);
            shared.activity.finish();
            ended
        });
        match (failure, ended) {
            // If data could not be sent because the connection was lost, the error that the server
            // sent before the loss is returned.
            (Some(error), Err(of_server)) if error.sqlstate == "08006" => Err(of_server),
            (Some(error), _) | (None, Err(error)) => Err(shared.error_of(self.id, error)),
            (None, Ok(completion)) => Ok(completion.n_changed),
        }
    }
}
