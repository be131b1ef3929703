//! Functions for the fuzz target `postgres_messages`: bytes of a server as messages and as rows, without a socket.

use onecopy_wire::CancelHandle;

use super::buffer::Buffer;
use super::message::{FieldDescription, Frame, Framed, Message, frame};
use super::rows::Rows;
use super::server::ServerState;
use super::target::parse;
use super::types::describe;
use crate::error::Error;
use crate::schema::Schema;
use crate::source::{Budget, Fetched, Source};

/// Reads messages until one is incomplete or malformed. Returns a description of each, and the error.
#[must_use]
pub fn messages(mut bytes: &[u8]) -> (Vec<String>, Option<String>) {
    let mut described = Vec::new();
    let mut state = ServerState::default();
    loop {
        let read = frame(bytes).and_then(|framed| match framed {
            Framed::Partial(_) => Ok(None),
            Framed::Complete(frame) => Message::read(frame, bytes).map(|m| Some((frame, m))),
        });
        let (frame, message) = match read {
            Ok(Some(read)) => read,
            Ok(None) => return (described, None),
            Err(error) => return (described, Some(error.to_string())),
        };
        state.note(&message);
        if let Message::ErrorResponse(fields) = &message {
            described.push(fields.to_error("select 1").to_string());
        }
        described.push(format!("{message:?} {:?}", state.status()));
        bytes = &bytes[frame.len..];
    }
}

/// Reads a connection string; the error if it is malformed.
///
/// # Errors
/// As for a user.
pub fn target(text: &str) -> Result<Vec<(String, String)>, Error> {
    Ok(parse(text)?.into_iter().collect())
}

/// The rows of the DataRow messages at the start of some bytes.
#[derive(Debug)]
pub struct ReceivedRows {
    rows: Rows,
    schema: Schema,
}

impl ReceivedRows {
    /// Rows of columns of these types (object identifier and modifier).
    ///
    /// # Errors
    /// If there is no memory, or a length is impossible.
    pub fn new(
        types: &[(u32, i32)],
        is_utc: bool,
        mut bytes: &[u8],
    ) -> Result<ReceivedRows, Error> {
        let columns = types.iter().map(|&(type_oid, type_modifier)| {
            let field = FieldDescription {
                name: "c".to_owned(),
                type_oid,
                type_len: 0,
                type_modifier,
            };
            describe(&field, is_utc)
        });
        let (kinds, columns): (Vec<_>, Vec<_>) = columns.unzip();
        let mut buffer = Buffer::new()?;
        while let Framed::Complete(Frame { tag: b'D', len }) = frame(bytes)? {
            let free = buffer.free()?;
            if free.len() < len {
                break;
            }
            free[..len].copy_from_slice(&bytes[..len]);
            buffer.received(len);
            bytes = &bytes[len..];
        }
        let mut rows = Rows::new(kinds.into());
        rows.replace(buffer);
        Ok(ReceivedRows {
            rows,
            schema: Schema::new(columns),
        })
    }
}

impl Source for ReceivedRows {
    type Block = Rows;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, _: Budget) -> Result<Fetched, Error> {
        Ok(match self.rows.advance(16)? {
            0 => Fetched::End,
            n_rows => Fetched::Rows(n_rows),
        })
    }

    fn block(&self) -> &Rows {
        &self.rows
    }

    fn cancel_handle(&self) -> CancelHandle {
        CancelHandle::new(|| ())
    }
}
