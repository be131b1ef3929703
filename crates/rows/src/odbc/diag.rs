//! Diagnostics: the whole message of the driver as an [`Error`], whose kind comes from `codes`.

use std::cell::Cell;

use super::ffi::{self, Handle};
use super::manager::Manager;
use super::quirks::Width;
use super::secrets::Secrets;
use super::unit::{Unit, until_nul};
use crate::codes;
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;

/// Records read at most: a driver that never says "no more" (seen with some on a lost connection) must not hang us.
const MAX_RECORDS: i16 = 64;
/// Room for a message, in characters: the most that a call can name. It is there for each record and from the first look
/// on, the one at a state alone too: psqlodbc cuts a message into records of the size of the first buffer it is shown.
const MESSAGE_CHARS: i16 = i16::MAX;

/// One diagnostic record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Five characters.
    pub(crate) sqlstate: String,
    /// The database's own code.
    pub(crate) native: i32,
    /// The message, as the driver wrote it.
    pub(crate) message: String,
}

/// All records of a handle. An empty list where it has none.
pub(crate) fn records(
    manager: &Manager,
    handle_type: i16,
    handle: Handle,
    width: Width,
) -> Vec<Record> {
    (1..=MAX_RECORDS)
        .map_while(|number| record(manager, handle_type, handle, width, number, Message::Whole))
        .collect()
}

/// SQLSTATE of the first record, if there is one. Asked for with each piece of a long value: its message, which some drivers
/// write at length, is neither kept nor read.
pub(crate) fn first_state(
    manager: &Manager,
    handle_type: i16,
    handle: Handle,
    width: Width,
) -> Option<String> {
    record(manager, handle_type, handle, width, 1, Message::Unread).map(|r| r.sqlstate)
}

/// What is wanted of a record's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Whole,
    /// None of it: it is not looked at.
    Unread,
}

/// Record `number` (from 1); `None` where there are fewer.
fn record(
    manager: &Manager,
    handle_type: i16,
    handle: Handle,
    width: Width,
    number: i16,
    message: Message,
) -> Option<Record> {
    let call = &manager.call;
    match width {
        Width::Narrow => read::<u8>(message, |state, native, text, capacity, len| {
            // SAFETY: `read` gives pointers to live locals; `state` has room for six bytes, `text` for `capacity`.
            unsafe {
                (call.get_diag_rec)(
                    handle_type,
                    handle,
                    number,
                    state,
                    native,
                    text,
                    capacity,
                    len,
                )
            }
        }),
        Width::Wide => read::<u16>(message, |state, native, text, capacity, len| {
            // SAFETY: `read` gives pointers to live locals; `state` has room for six units, `text` for `capacity`.
            unsafe {
                (call.get_diag_rec_w)(
                    handle_type,
                    handle,
                    number,
                    state,
                    native,
                    text,
                    capacity,
                    len,
                )
            }
        }),
    }
}

/// Reads a record by `get`.
fn read<U: Unit>(
    message: Message,
    get: impl Fn(*mut U, *mut i32, *mut U, i16, *mut i16) -> ffi::Return,
) -> Option<Record> {
    let mut state = [U::default(); 16];
    let (mut native, mut len) = (0i32, 0i16);
    // Memory of the message before: one that is not looked at is asked for with each piece of a long value, and not cleared.
    let mut text = U::room().try_with(Cell::take).unwrap_or_default();
    if message == Message::Whole {
        text.clear();
    }
    text.resize(MESSAGE_CHARS as usize, U::default());
    let rc = get(
        state.as_mut_ptr(),
        &raw mut native,
        text.as_mut_ptr(),
        MESSAGE_CHARS,
        &raw mut len,
    );
    let is_there = rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO;
    let record = is_there.then(|| Record {
        sqlstate: until_nul(&state),
        native,
        message: match message {
            Message::Whole => message_in(&text, len),
            Message::Unread => String::new(),
        },
    });
    // A thread that is ending keeps nothing.
    let _ = U::room().try_with(|room| room.set(text));
    record
}

/// The message that a driver wrote into a cleared buffer; `len` is what it gives as its length.
///
/// Some drivers give the length in bytes and others in characters, so it is never the length of the text: that ends at its
/// terminator. It tells, though, whether NULs with text behind them are part of the message.
fn message_in<U: Unit>(text: &[U], len: i16) -> String {
    let end = text.iter().rposition(|u| *u != U::default());
    let end = end.map_or(0, |last| last + 1);
    match usize::try_from(len).is_ok_and(|len| len >= end) {
        true => U::text_lossy(&text[..end]),
        false => until_nul(text),
    }
}

/// The error of a call that failed: all records of `handle`, joined; SQLSTATE and native code of the first.
///
/// `call` names the ODBC function for a driver that failed without a word.
pub(crate) fn error(
    manager: &Manager,
    handle_type: i16,
    handle: Handle,
    width: Width,
    dialect: Dialect,
    secrets: &Secrets,
    call: &str,
) -> Error {
    let records = records(manager, handle_type, handle, width);
    from_records(&records, dialect, secrets, call)
}

/// [`error`] without the handle: the part that can be tested.
pub(crate) fn from_records(
    records: &[Record],
    dialect: Dialect,
    secrets: &Secrets,
    call: &str,
) -> Error {
    let Some(first) = records
        .iter()
        .find(|r| !r.sqlstate.starts_with("01"))
        .or(records.first())
    else {
        return Error::new(
            ErrorKind::Operational,
            format!("the driver failed in `{call}` and gave no reason"),
        );
    };
    // Warnings (class 01) only explain when there is nothing else: unixODBC says at every connect of an older driver
    // that it does not support ODBC 3.80.
    let words: Vec<&str> = records
        .iter()
        .filter(|r| !r.sqlstate.starts_with("01") || first.sqlstate.starts_with("01"))
        .map(|r| r.message.trim_end())
        .collect();
    let mut error = Error::new(ErrorKind::Operational, secrets.scrub(&words.join("\n")));
    if let Some(meaning) = codes::meaning(dialect, &first.sqlstate, first.native) {
        error.set_meaning(meaning);
    }
    error.sqlstate.clone_from(&first.sqlstate);
    error.native = first.native;
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sqlstate: &str, native: i32, message: &str) -> Record {
        Record {
            sqlstate: sqlstate.to_owned(),
            native,
            message: message.to_owned(),
        }
    }

    #[test]
    fn all_records_are_joined_and_the_first_names_the_state() {
        let records = [
            record("42P01", 1, "relation does not exist"),
            record("HY000", 2, "while executing"),
        ];
        let error = from_records(
            &records,
            Dialect::Generic,
            &Secrets::default(),
            "SQLExecDirect",
        );
        assert_eq!(error.kind, ErrorKind::Programming);
        assert_eq!((error.sqlstate.as_str(), error.native), ("42P01", 1));
        assert_eq!(error.message, "relation does not exist\nwhile executing");
    }

    #[test]
    fn a_warning_beside_an_error_is_left_out() {
        let records = [
            record("01000", 0, "Driver does not support the requested version"),
            record("28P01", 101, "password authentication failed"),
        ];
        let error = from_records(
            &records,
            Dialect::Generic,
            &Secrets::default(),
            "SQLDriverConnect",
        );
        assert_eq!(error.sqlstate, "28P01");
        assert_eq!(error.message, "password authentication failed");
    }

    #[test]
    fn a_message_is_whole_with_nuls_inside_and_ends_at_its_terminator_otherwise() {
        let whole: Vec<u16> = "日\0본\0\0".encode_utf16().collect();
        assert_eq!(message_in(&whole, 3), "日\0본");
        assert_eq!(message_in(&whole, 6), "日\0본", "a length in bytes");
        assert_eq!(message_in(b"short\0left from before", 5), "short");
        assert_eq!(message_in::<u8>(&[], 0), "");
    }

    #[test]
    fn a_silent_driver_is_named_by_its_call() {
        let error = from_records(&[], Dialect::Generic, &Secrets::default(), "SQLFetch");
        assert_eq!(error.kind, ErrorKind::Operational);
        assert!(error.message.contains("`SQLFetch`"));
    }
}
