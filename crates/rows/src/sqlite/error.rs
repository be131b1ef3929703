//! Result codes to [`ErrorKind`].

use std::ffi::{CStr, c_int};

use libsqlite3_sys as ffi;

use crate::error::{Error, ErrorKind};

/// When a result code came up: the same code means other things at other times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum During {
    /// Opening the database.
    Open,
    /// Preparing a statement: a generic error is the statement's.
    Prepare,
    /// Binding, stepping, committing.
    Step,
}

/// The kind of an extended result code (<https://sqlite.org/rescode.html>).
pub(super) fn kind(extended: c_int, during: During) -> ErrorKind {
    match (extended & 0xff, during) {
        (ffi::SQLITE_INTERRUPT, _) => ErrorKind::Cancelled,
        (ffi::SQLITE_MISUSE, _) => ErrorKind::Interface,
        (_, During::Open) => ErrorKind::Connect,
        (ffi::SQLITE_READONLY, _) => ErrorKind::ReadOnly,
        (ffi::SQLITE_ERROR | ffi::SQLITE_AUTH | ffi::SQLITE_RANGE, During::Prepare) => {
            ErrorKind::Programming
        }
        (ffi::SQLITE_RANGE, _) => ErrorKind::Programming,
        (ffi::SQLITE_CONSTRAINT | ffi::SQLITE_MISMATCH, _) => ErrorKind::Integrity,
        (ffi::SQLITE_TOOBIG, _) => ErrorKind::Data,
        (ffi::SQLITE_INTERNAL | ffi::SQLITE_NOTFOUND, _) => ErrorKind::Internal,
        (ffi::SQLITE_NOLFS, _) => ErrorKind::NotSupported,
        (ffi::SQLITE_ABORT, _) if extended == ffi::SQLITE_ABORT_ROLLBACK => ErrorKind::Interface,
        _ => ErrorKind::Operational,
    }
}

/// The kind of a code that a foreign driver of SQLite passes on, which does not say when it came up.
pub(crate) fn kind_of_code(extended: c_int) -> ErrorKind {
    kind(extended, During::Prepare)
}

/// What a user can do about it, where we know.
fn remedy(extended: c_int) -> Option<&'static str> {
    Some(match extended & 0xff {
        ffi::SQLITE_BUSY => {
            "another connection holds the database's lock: try again, or wait longer with `?busy_timeout_ms=`"
        }
        ffi::SQLITE_LOCKED => {
            "another statement of this connection or of a shared cache holds the table: finish it first"
        }
        ffi::SQLITE_READONLY => {
            "the connection is read-only: connect without `read_only` and `mode=ro`, and see to the file's permissions"
        }
        ffi::SQLITE_NOTADB => "the file is no SQLite database, or it is encrypted",
        ffi::SQLITE_FULL => "free space on the file system, and run it again",
        ffi::SQLITE_CORRUPT => "the file is damaged: run `PRAGMA integrity_check`, restore a copy",
        _ => return None,
    })
}

/// The error for `code`, with SQLite's own words.
///
/// # Safety
/// `db` is null or an open connection on which no other call is under way.
pub(super) unsafe fn from_code(db: *mut ffi::sqlite3, code: c_int, during: During) -> Error {
    let mut extended = code;
    let mut message = String::new();
    if !db.is_null() {
        // SAFETY: db is open and ours alone, as the caller vouches; errmsg returns a NUL-terminated string that
        // lives until the next call on db, and is copied here.
        unsafe {
            let last = ffi::sqlite3_extended_errcode(db);
            if last & 0xff == code & 0xff {
                extended = last;
                message = CStr::from_ptr(ffi::sqlite3_errmsg(db))
                    .to_string_lossy()
                    .into_owned();
            }
        }
    }
    if message.is_empty() {
        // SAFETY: errstr returns a static NUL-terminated string for every code.
        message = unsafe { CStr::from_ptr(ffi::sqlite3_errstr(extended)) }
            .to_string_lossy()
            .into_owned();
    }
    of(extended, message, during)
}

/// The error for an extended code with this message.
pub(super) fn of(extended: c_int, mut message: String, during: During) -> Error {
    if let Some(remedy) = remedy(extended) {
        message.push('\n');
        message.push_str(remedy);
    }
    let mut error = Error::new(kind(extended, during), message);
    error.native = extended;
    error
}

/// It was cancelled, by a handle or by the host.
pub(super) fn cancelled() -> Error {
    let mut error = Error::new(ErrorKind::Cancelled, "the statement was cancelled");
    error.native = ffi::SQLITE_INTERRUPT;
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_code_has_the_kind_of_its_moment() {
        for (code, during, want) in [
            (ffi::SQLITE_ERROR, During::Prepare, ErrorKind::Programming),
            (ffi::SQLITE_ERROR, During::Step, ErrorKind::Operational),
            (ffi::SQLITE_CANTOPEN, During::Open, ErrorKind::Connect),
            (ffi::SQLITE_CANTOPEN, During::Step, ErrorKind::Operational),
            (
                ffi::SQLITE_CONSTRAINT_UNIQUE,
                During::Step,
                ErrorKind::Integrity,
            ),
            (
                ffi::SQLITE_ABORT_ROLLBACK,
                During::Step,
                ErrorKind::Interface,
            ),
            (
                ffi::SQLITE_BUSY_SNAPSHOT,
                During::Step,
                ErrorKind::Operational,
            ),
            (
                ffi::SQLITE_READONLY_DBMOVED,
                During::Step,
                ErrorKind::ReadOnly,
            ),
            (ffi::SQLITE_READONLY, During::Open, ErrorKind::Connect),
            (ffi::SQLITE_TOOBIG, During::Step, ErrorKind::Data),
            (ffi::SQLITE_INTERRUPT, During::Prepare, ErrorKind::Cancelled),
        ] {
            assert_eq!(kind(code, during), want, "{code} {during:?}");
        }
    }
}
