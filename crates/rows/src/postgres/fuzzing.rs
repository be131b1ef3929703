//! Entry points of fuzz targets. They parse arbitrary bytes as a server's messages and rows, without
//! a socket (`postgres_messages`), and SQL text (`named_parameters`).

use onecopy_wire::CancelHandle;

use super::buffer::Buffer;
use super::message::{BackendMessage, FieldDescription, Frame, Framed, HEADER_BYTES, frame};
use super::row_check::check;
use super::rows::Rows;
use super::server::ServerState;
use super::split_row::{Parts, SplitRow};
use super::target::parse;
use super::types::{Kind, describe};
use crate::error::Error;
use crate::schema::{Column, Schema};
use crate::source::{Budget, Fetched, Source};
use crate::sql::copy_statement::{CopyText, classify, copies_through_client};

/// Parses messages up to the first one that is incomplete or malformed. Returns a description of
/// each message, and the error, if any.
#[must_use]
pub fn messages(mut bytes: &[u8]) -> (Vec<String>, Option<String>) {
    let mut described = Vec::new();
    let mut state = ServerState::default();
    loop {
        let read = frame(bytes).and_then(|framed| match framed {
            Framed::Partial(_) => Ok(None),
            Framed::Complete(frame) => BackendMessage::read(frame, bytes).map(|m| Some((frame, m))),
        });
        let (frame, message) = match read {
            Ok(Some(read)) => read,
            Ok(None) => return (described, None),
            Err(error) => return (described, Some(error.to_string())),
        };
        state.note(&message);
        if let BackendMessage::ErrorResponse(fields) = &message {
            described.push(fields.to_error("select 1").to_string());
        }
        described.push(format!("{message:?} {:?}", state.status()));
        bytes = &bytes[frame.len..];
    }
}

/// Returns `Some(true)` if a SQL text is a single COPY between a table and the client,
/// `Some(false)` if it is another single statement, and `None` if it has several statements.
#[must_use]
pub fn is_copy(sql: &str) -> Option<bool> {
    match classify(sql) {
        CopyText::One(_) => Some(true),
        CopyText::Other => Some(false),
        CopyText::Several => None,
    }
}

/// Returns `true` if a SQL string begins with a COPY statement that sends or receives data through
/// the client.
#[must_use]
pub fn begins_with_copy(sql: &str) -> bool {
    copies_through_client(sql)
}

/// Parses a connection string; returns its keywords and values.
///
/// # Errors
/// The error that a user would get for a malformed string.
pub fn target(text: &str) -> Result<Vec<(String, String)>, Error> {
    Ok(parse(text)?.into_iter().collect())
}

/// Reads the body of a DataRow message twice: first as a whole, then in pieces, as if it were
/// received `step` bytes at a time. The first returned flag is `true` if the whole body was
/// accepted, the second one if the body was accepted in pieces. `types` are the column types, as in
/// [`ReceivedRows::new`]; `part_bytes` is the largest size of a part of a long value.
#[must_use]
pub fn accepts_row(
    types: &[(u32, i32)],
    body: &[u8],
    part_bytes: usize,
    step: usize,
) -> (bool, bool) {
    let kinds: Vec<_> = describe_all(types, true).map(|(kind, _)| kind).collect();
    let mut bytes = body.to_vec();
    let whole = check(&mut bytes, &kinds).is_ok();
    bytes.copy_from_slice(body);
    let parts = Parts {
        kinds: kinds.into(),
        first_column: 0,
        part_bytes: part_bytes.max(1),
    };
    let mut split = SplitRow::new(body.len() + HEADER_BYTES, parts);
    let (mut at, mut n_received) = (0, 0);
    while !split.is_at_end() {
        match split.next_piece(&mut bytes[at..n_received]) {
            Ok(Some((_, n))) => at += n,
            // If all bytes were received already, the next call returns an error.
            Ok(None) => n_received = (n_received + step.max(1)).min(bytes.len()),
            Err(_) => return (whole, false),
        }
    }
    (whole, true)
}

/// Returns the [`Kind`] and the [`Column`] of each type in `types`. A type is given as a pair: its
/// object identifier and its type modifier.
fn describe_all(types: &[(u32, i32)], is_utc: bool) -> impl Iterator<Item = (Kind, Column)> {
    types.iter().map(move |&(type_oid, type_modifier)| {
        let field = FieldDescription {
            name: "c".to_owned(),
            type_oid,
            type_len: 0,
            type_modifier,
        };
        describe(&field, is_utc)
    })
}

/// The rows that the fuzz target has read from the DataRow messages at the start of its input.
#[derive(Debug)]
pub struct ReceivedRows {
    rows: Rows,
    schema: Schema,
}

impl ReceivedRows {
    /// Reads the DataRow messages at the start of `bytes` as rows, whose columns have the given
    /// `types` (object identifier and type modifier).
    ///
    /// # Errors
    /// The allocation failed, or a length is invalid.
    pub fn new(
        types: &[(u32, i32)],
        is_utc: bool,
        far_dates_as_text: bool,
        mut bytes: &[u8],
    ) -> Result<ReceivedRows, Error> {
        let (kinds, columns): (Vec<_>, Vec<_>) = describe_all(types, is_utc).unzip();
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
        let mut rows = Rows::new(kinds.into(), far_dates_as_text);
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
