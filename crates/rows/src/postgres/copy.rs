//! COPY between a table and the client, in chunks. While a COPY is in progress, the connection
//! executes no other statement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BufMut;
use onecopy_wire::CancelHandle;
use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::execute::begin;
use super::message::violation;
use super::server::Notification;
use super::shared::Shared;
use super::socket::lost;
use super::wire::{Event, Wire};
use crate::error::{Error, ErrorKind};
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

fn not_a_copy(direction: &str) -> Error {
    let message = format!("the statement is not a `COPY … {direction}`");
    Error::new(ErrorKind::Programming, message)
}

/// Sends the COPY statement `sql`; before it, sends BEGIN if a transaction must be started.
fn start(shared: &Shared, wire: &mut Wire, sql: &str) -> Result<(), Error> {
    let preamble = begin(shared, wire, sql)?;
    frontend::query(sql, &mut wire.out).map_err(|_| {
        Error::new(
            ErrorKind::Programming,
            "the statement contains a NUL character",
        )
    })?;
    wire.send()?;
    if let Err(error) = wire.read_preamble(preamble) {
        let _ = wire.read_to_ready(sql);
        return Err(error);
    }
    Ok(())
}

/// Returns `true` if the server has reported an error during a COPY FROM STDIN.
fn has_failed(wire: &mut Wire) -> Result<bool, Error> {
    while let Some(frame) = wire.inbox.frame()? {
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
        let mut chunk = Vec::new();
        let mut failure = None;
        loop {
            while let Some(body) = wire.inbox.frame()?.filter(|frame| frame.tag == b'd') {
                chunk.extend_from_slice(body.body(wire.inbox.bytes()));
                wire.inbox.consume(body.len);
                if chunk.len() >= CHUNK_BYTES {
                    return Ok(Some(chunk));
                }
            }
            match wire.event()? {
                Event::Completed(completion) => self.row_count = completion.n_changed,
                Event::Failed(fields) => failure = Some(fields.to_error("")),
                Event::Ready => {
                    self.is_at_end = true;
                    wire.is_copying = false;
                    self.shared.activity.finish();
                    return match failure {
                        Some(error) => Err(error),
                        None => Ok((!chunk.is_empty()).then_some(chunk)),
                    };
                }
                _ => {}
            }
        }
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
        if !std::mem::replace(&mut self.is_at_end, true) && self.shared.is_ours() {
            let _ = self.shared.activity.request();
            let shared = Arc::clone(&self.shared);
            let _ = shared.with(|wire| {
                wire.is_copying = false;
                let ended = wire.read_to_ready("");
                shared.activity.finish();
                ended
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
    /// The error of the server; [`ErrorKind::Programming`] if `sql` is another statement.
    pub fn copy_out(&self, sql: &str) -> Result<CopyOut, Error> {
        let shared = self.shared();
        shared.call(|wire| {
            let id = shared.activity.begin();
            let started = start(shared, wire, sql).and_then(|()| match wire.event()? {
                Event::CopyOut => Ok(()),
                Event::Failed(fields) => {
                    let error = fields.to_error(sql);
                    wire.read_to_ready(sql).and(Err(error))
                }
                Event::CopyIn => {
                    wire.fail_copy("the statement is not a COPY TO STDOUT")?;
                    let _ = wire.read_to_ready(sql);
                    Err(not_a_copy("TO STDOUT"))
                }
                Event::Ready => Err(not_a_copy("TO STDOUT")),
                _ => {
                    wire.read_to_ready(sql)?;
                    Err(not_a_copy("TO STDOUT"))
                }
            });
            if let Err(error) = started {
                shared.activity.finish();
                return Err(shared.error_of(id, error));
            }
            wire.is_copying = true;
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
    /// another statement.
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
    /// The error of the server; [`ErrorKind::Programming`] if `sql` is another statement.
    pub(super) fn begin(shared: &Arc<Shared>, sql: &str) -> Result<CopyIn, Error> {
        let id = shared.call(|wire| {
            let id = shared.activity.begin();
            let started = start(shared, wire, sql).and_then(|()| match wire.event()? {
                Event::CopyIn => Ok(()),
                Event::Failed(fields) => {
                    let error = fields.to_error(sql);
                    wire.read_to_ready(sql).and(Err(error))
                }
                Event::Ready => Err(not_a_copy("FROM STDIN")),
                _ => {
                    let _ = wire.read_to_ready(sql);
                    Err(not_a_copy("FROM STDIN"))
                }
            });
            if let Err(error) = started {
                shared.activity.finish();
                return Err(shared.error_of(id, error));
            }
            wire.is_copying = true;
            Ok(id)
        })?;
        Ok(CopyIn {
            shared: Arc::clone(shared),
            id,
        })
    }

    /// Sends data. Returns `false` if the server has reported an error; it then discards further
    /// data. Each time data was sent, the messages that have arrived are received, because a server
    /// that has cancelled the COPY still accepts its data.
    ///
    /// # Errors
    /// The connection was lost.
    pub(super) fn send(&self, data: &[u8]) -> Result<bool, Error> {
        self.shared.with(|wire| {
            let mut is_sent = false;
            for part in data.chunks(MESSAGE_BYTES) {
                let len =
                    i32::try_from(part.len() + 4).map_err(|_| violation("too long a message"))?;
                wire.out.put_u8(b'd');
                wire.out.put_i32(len);
                wire.out.put_slice(part);
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
            wire.is_copying = false;
            match &failure {
                // The server discards further data, and may have closed the connection.
                _ if has_failed(wire)? => {}
                None => {
                    frontend::copy_done(&mut wire.out);
                    wire.send()?;
                }
                Some(_) => wire.fail_copy("the client ended the COPY")?,
            }
            let ended = wire.read_to_ready("");
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
