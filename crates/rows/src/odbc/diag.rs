//! Converts the diagnostic records of an ODBC handle to an [`Error`] with the complete message of
//! the driver. The module `codes` determines the kind of the error.

use std::cell::Cell;

use super::ffi::{self, Handle};
use super::manager::Manager;
use super::quirks::Width;
use super::secrets::Secrets;
use super::unit::{SqlUnit, until_nul};
use crate::codes;
use crate::error::{Error, ErrorKind};
use crate::sql::dialect::Dialect;

/// The largest number of diagnostic records that are read. The limit is necessary because some
/// drivers return records endlessly on a lost connection.
const MAX_RECORDS: i16 = 64;
/// The capacity of the buffer for a message in characters, the largest that ODBC allows. Every call
/// passes this capacity, even a call that reads only the SQLSTATE. The reason is that psqlodbc
/// splits a message into records of the size of the first buffer that it receives.
const MESSAGE_CHARS: i16 = i16::MAX;

/// A diagnostic record of an ODBC handle: an error, a warning or a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The SQLSTATE, five characters.
    pub(crate) sqlstate: String,
    /// The native error code of the database.
    pub(crate) native: i32,
    /// The message, as the driver wrote it.
    pub(crate) message: String,
}

/// Returns all diagnostic records of a handle; an empty list if there are none.
pub(crate) fn records(
    manager: &Manager,
    handle_type: i16,
    handle: Handle,
    width: Width,
) -> Vec<Record> {
    (1..=MAX_RECORDS)
        .map_while(|number| {
            record(
                manager,
                handle_type,
                handle,
                width,
                number,
                MessageDetail::Whole,
            )
        })
        .collect()
}

/// Returns the SQLSTATE of the first record; `None` if there is no record. This function is called
/// for each part of a long value, so it does not read the message, which some drivers format at
/// length.
pub(crate) fn first_state(
    manager: &Manager,
    handle_type: i16,
    handle: Handle,
    width: Width,
) -> Option<String> {
    record(
        manager,
        handle_type,
        handle,
        width,
        1,
        MessageDetail::Unread,
    )
    .map(|r| r.sqlstate)
}

/// How much of a diagnostic record [`record`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageDetail {
    Whole,
    /// The message is not read, only the SQLSTATE and the native code.
    Unread,
}

/// Reads record `number` (from 1); `None` if the handle has fewer records.
fn record(
    manager: &Manager,
    handle_type: i16,
    handle: Handle,
    width: Width,
    number: i16,
    message: MessageDetail,
) -> Option<Record> {
    let call = &manager.call;
    match width {
        Width::Narrow => read::<u8>(message, |state, native, text, capacity, len| {
            // SAFETY: `read` passes pointers to live locals; `state` has space for six bytes,
            // `text` for `capacity`.
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
            // SAFETY: `read` passes pointers to live locals; `state` has space for six units,
            // `text` for `capacity`.
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

/// Reads a diagnostic record by `get`: a call of the ODBC function for 8-bit text (`SQLGetDiagRec`)
/// or of the one for 16-bit text (`SQLGetDiagRecW`).
fn read<U: SqlUnit>(
    message: MessageDetail,
    get: impl Fn(*mut U, *mut i32, *mut U, i16, *mut i16) -> ffi::Return,
) -> Option<Record> {
    let mut state = [U::default(); 16];
    let (mut native, mut len) = (0i32, 0i16);
    // The buffer of this thread's previous message is used again. It is cleared only if the message
    // is read: for a long value, this function is called for each part without reading the message.
    let mut text = U::message_buffer().try_with(Cell::take).unwrap_or_default();
    if message == MessageDetail::Whole {
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
            MessageDetail::Whole => message_in(&text, len),
            MessageDetail::Unread => String::new(),
        },
    });
    // `try_with` fails only while the thread ends, and the buffer is then freed.
    let _ = U::message_buffer().try_with(|buffer| buffer.set(text));
    record
}

/// Returns the message that a driver wrote into `text`, a buffer that contained only zeros. `len`
/// is the length that the driver reports.
///
/// Some drivers report the length in bytes, others in characters. The message therefore ends at the
/// first NUL. The exception is a NUL that is followed by text: it is part of the message if `len`
/// is at least the length up to the last unit that is not NUL.
fn message_in<U: SqlUnit>(text: &[U], len: i16) -> String {
    let end = text.iter().rposition(|u| *u != U::default());
    let end = end.map_or(0, |last| last + 1);
    match usize::try_from(len).is_ok_and(|len| len >= end) {
        true => U::text_lossy(&text[..end]),
        false => until_nul(text),
    }
}

/// Creates the error of a failed call: the messages of all records of `handle`, with the SQLSTATE
/// and the native code of the first record.
///
/// `call` is the name of the ODBC function, for a driver that reports a failure without a message.
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

/// Creates the error that [`error`] returns, from records that were already read. Tests call this
/// function directly, because it needs no ODBC handle.
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
    // Warnings (class 01) are left out unless the first record is a warning: unixODBC reports at
    // each connect of an older driver that the driver does not support ODBC 3.80.
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
