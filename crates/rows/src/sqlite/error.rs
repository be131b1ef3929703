//! Determines for each result code of SQLite the kind of the error, and whether it is transient, so
//! that a retry can succeed.

use std::ffi::{CStr, c_int};

use libsqlite3_sys as ffi;

use crate::error::{Error, ErrorKind, Meaning};

use ErrorKind::{
    Cancelled, Connect, Data, Integrity, Interface, Internal, NotSupported, Operational,
    Programming, ReadOnly,
};

/// The operation that returned a result code. The kind of error depends on the code and the
/// operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum During {
    /// The database was opened.
    Open,
    /// A statement was prepared. The generic error code 1 then means that its SQL is invalid.
    Prepare,
    /// Parameters were bound, a statement was executed (`sqlite3_step`), or a transaction was
    /// committed.
    Step,
}

/// Returns the kind of error for a result code, and whether it is transient. An extended code that
/// is not in the table is treated as its primary code. An unknown code is a permanent `Operational`
/// error.
fn meaning(code: c_int, during: During) -> Meaning {
    let row = |code: c_int| CODES.iter().find(|r| r.0 == code).map(|r| r.1);
    let mut meaning = row(code)
        .or_else(|| row(code & 0xff))
        .unwrap_or(permanent(Operational));
    match (code & 0xff, during) {
        (ffi::SQLITE_INTERRUPT | ffi::SQLITE_MISUSE, _) => {}
        (_, During::Open) => meaning.kind = Connect,
        (ffi::SQLITE_ERROR | ffi::SQLITE_AUTH, During::Prepare) if !meaning.is_transient => {
            meaning.kind = Programming;
        }
        _ => {}
    }
    meaning
}

/// Returns the meaning of a result code that an ODBC driver for SQLite reports: the kind of the
/// error, and whether it is transient. The driver does not report which operation failed, so the
/// generic code 1 is treated as an error in the SQL.
pub(crate) fn meaning_of_code(code: c_int) -> Meaning {
    meaning(code, During::Prepare)
}

const fn permanent(kind: ErrorKind) -> Meaning {
    Meaning::permanent(kind)
}

const fn transient(kind: ErrorKind) -> Meaning {
    Meaning::transient(kind)
}

/// The meaning of each result code of SQLite that is an error and that the execution of a statement
/// returned: the kind of the error, and whether it is transient.
///
/// Source: <https://sqlite.org/rescode.html>. Transient errors are locks, exhausted memory and
/// disks, a changing schema, a file that cannot be accessed now, and I/O errors. The generic error
/// code (1) denotes an error in the statement, such as an overflow or malformed JSON.
const CODES: &[(c_int, Meaning)] = &[
    (ffi::SQLITE_ERROR, permanent(Operational)),
    (ffi::SQLITE_ERROR_MISSING_COLLSEQ, permanent(Operational)),
    (ffi::SQLITE_ERROR_RETRY, transient(Operational)),
    (ffi::SQLITE_ERROR_SNAPSHOT, transient(Operational)),
    (ffi::SQLITE_INTERNAL, permanent(Internal)),
    (ffi::SQLITE_PERM, permanent(Operational)),
    (ffi::SQLITE_ABORT, permanent(Operational)),
    (ffi::SQLITE_ABORT_ROLLBACK, permanent(Interface)),
    (ffi::SQLITE_BUSY, transient(Operational)),
    (ffi::SQLITE_BUSY_RECOVERY, transient(Operational)),
    (ffi::SQLITE_BUSY_SNAPSHOT, transient(Operational)),
    (ffi::SQLITE_BUSY_TIMEOUT, transient(Operational)),
    (ffi::SQLITE_LOCKED, transient(Operational)),
    (ffi::SQLITE_LOCKED_SHAREDCACHE, transient(Operational)),
    (ffi::SQLITE_LOCKED_VTAB, transient(Operational)),
    (ffi::SQLITE_NOMEM, transient(Operational)),
    (ffi::SQLITE_READONLY, permanent(ReadOnly)),
    // A connection that can write must first open the database, to recover it or to create its
    // shared memory. The read-only connection can then read it, so the error is transient.
    (ffi::SQLITE_READONLY_RECOVERY, transient(Operational)),
    (ffi::SQLITE_READONLY_CANTLOCK, transient(Operational)),
    (ffi::SQLITE_READONLY_ROLLBACK, transient(Operational)),
    (ffi::SQLITE_READONLY_DBMOVED, permanent(ReadOnly)),
    (ffi::SQLITE_READONLY_CANTINIT, transient(Operational)),
    (ffi::SQLITE_READONLY_DIRECTORY, permanent(ReadOnly)),
    (ffi::SQLITE_INTERRUPT, permanent(Cancelled)),
    (ffi::SQLITE_IOERR, transient(Operational)),
    (ffi::SQLITE_IOERR_READ, transient(Operational)),
    (ffi::SQLITE_IOERR_SHORT_READ, transient(Operational)),
    (ffi::SQLITE_IOERR_WRITE, transient(Operational)),
    (ffi::SQLITE_IOERR_FSYNC, transient(Operational)),
    (ffi::SQLITE_IOERR_DIR_FSYNC, transient(Operational)),
    (ffi::SQLITE_IOERR_TRUNCATE, transient(Operational)),
    (ffi::SQLITE_IOERR_FSTAT, transient(Operational)),
    (ffi::SQLITE_IOERR_UNLOCK, transient(Operational)),
    (ffi::SQLITE_IOERR_RDLOCK, transient(Operational)),
    (ffi::SQLITE_IOERR_DELETE, transient(Operational)),
    (ffi::SQLITE_IOERR_BLOCKED, transient(Operational)),
    (ffi::SQLITE_IOERR_NOMEM, transient(Operational)),
    (ffi::SQLITE_IOERR_ACCESS, transient(Operational)),
    (ffi::SQLITE_IOERR_CHECKRESERVEDLOCK, transient(Operational)),
    (ffi::SQLITE_IOERR_LOCK, transient(Operational)),
    (ffi::SQLITE_IOERR_CLOSE, transient(Operational)),
    (ffi::SQLITE_IOERR_DIR_CLOSE, transient(Operational)),
    (ffi::SQLITE_IOERR_SHMOPEN, transient(Operational)),
    (ffi::SQLITE_IOERR_SHMSIZE, transient(Operational)),
    (ffi::SQLITE_IOERR_SHMLOCK, transient(Operational)),
    (ffi::SQLITE_IOERR_SHMMAP, transient(Operational)),
    (ffi::SQLITE_IOERR_SEEK, transient(Operational)),
    (ffi::SQLITE_IOERR_DELETE_NOENT, transient(Operational)),
    (ffi::SQLITE_IOERR_MMAP, transient(Operational)),
    (ffi::SQLITE_IOERR_GETTEMPPATH, permanent(Operational)),
    (ffi::SQLITE_IOERR_CONVPATH, permanent(Operational)),
    (ffi::SQLITE_IOERR_VNODE, transient(Operational)),
    (ffi::SQLITE_IOERR_AUTH, permanent(Operational)),
    (ffi::SQLITE_IOERR_BEGIN_ATOMIC, transient(Operational)),
    (ffi::SQLITE_IOERR_COMMIT_ATOMIC, transient(Operational)),
    (ffi::SQLITE_IOERR_ROLLBACK_ATOMIC, transient(Operational)),
    (ffi::SQLITE_IOERR_DATA, permanent(Operational)),
    (ffi::SQLITE_IOERR_CORRUPTFS, permanent(Operational)),
    (ffi::SQLITE_IOERR_IN_PAGE, transient(Operational)),
    (ffi::SQLITE_CORRUPT, permanent(Operational)),
    (ffi::SQLITE_CORRUPT_VTAB, permanent(Operational)),
    (ffi::SQLITE_CORRUPT_SEQUENCE, permanent(Operational)),
    (ffi::SQLITE_CORRUPT_INDEX, permanent(Operational)),
    (ffi::SQLITE_NOTFOUND, permanent(Internal)),
    (ffi::SQLITE_FULL, transient(Operational)),
    (ffi::SQLITE_CANTOPEN, transient(Operational)),
    (ffi::SQLITE_CANTOPEN_NOTEMPDIR, permanent(Operational)),
    (ffi::SQLITE_CANTOPEN_ISDIR, permanent(Operational)),
    (ffi::SQLITE_CANTOPEN_FULLPATH, transient(Operational)),
    (ffi::SQLITE_CANTOPEN_CONVPATH, permanent(Operational)),
    (ffi::SQLITE_CANTOPEN_DIRTYWAL, permanent(Operational)),
    (ffi::SQLITE_CANTOPEN_SYMLINK, permanent(Operational)),
    (ffi::SQLITE_PROTOCOL, transient(Operational)),
    (ffi::SQLITE_EMPTY, permanent(Operational)),
    (ffi::SQLITE_SCHEMA, transient(Operational)),
    (ffi::SQLITE_TOOBIG, permanent(Data)),
    (ffi::SQLITE_CONSTRAINT, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_CHECK, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_COMMITHOOK, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_FUNCTION, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_NOTNULL, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_TRIGGER, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_UNIQUE, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_VTAB, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_ROWID, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_PINNED, permanent(Integrity)),
    (ffi::SQLITE_CONSTRAINT_DATATYPE, permanent(Integrity)),
    (ffi::SQLITE_MISMATCH, permanent(Integrity)),
    (ffi::SQLITE_MISUSE, permanent(Interface)),
    (ffi::SQLITE_NOLFS, permanent(NotSupported)),
    (ffi::SQLITE_AUTH, permanent(Operational)),
    (ffi::SQLITE_AUTH_USER, permanent(Operational)),
    (ffi::SQLITE_FORMAT, permanent(Operational)),
    (ffi::SQLITE_RANGE, permanent(Programming)),
    (ffi::SQLITE_NOTADB, permanent(Operational)),
    (ffi::SQLITE_NOTICE, permanent(Operational)),
    (ffi::SQLITE_NOTICE_RECOVER_WAL, permanent(Operational)),
    (ffi::SQLITE_NOTICE_RECOVER_ROLLBACK, permanent(Operational)),
    (ffi::SQLITE_NOTICE_RBU, permanent(Operational)),
    (ffi::SQLITE_WARNING, permanent(Operational)),
    (ffi::SQLITE_WARNING_AUTOINDEX, permanent(Operational)),
];

/// Returns advice on how to avoid the error with this result code of SQLite, if any is known.
fn remedy(extended: c_int) -> Option<&'static str> {
    Some(match extended & 0xff {
        ffi::SQLITE_BUSY => {
            "another connection holds the database's lock: try again, or wait longer with `?busy_timeout_ms=`"
        }
        ffi::SQLITE_LOCKED => {
            "another statement of this connection or of a shared cache holds the table: finish it first"
        }
        ffi::SQLITE_READONLY => {
            "the connection is read-only: connect without `read_only` (command: `--read-only`) and \
             `mode=ro`, and check the file's permissions"
        }
        ffi::SQLITE_NOTADB => "the file is no SQLite database, or it is encrypted",
        ffi::SQLITE_FULL => "free space on the file system, and run it again",
        ffi::SQLITE_CORRUPT => "the file is damaged: run `PRAGMA integrity_check`, restore a copy",
        _ => return None,
    })
}

/// Creates the error for a result code, with SQLite's message.
///
/// # Safety
/// The caller must pass null, or an open connection on which no other call is active.
pub(super) unsafe fn from_code(db: *mut ffi::sqlite3, code: c_int, during: During) -> Error {
    let mut extended = code;
    let mut message = String::new();
    if !db.is_null() {
        // SAFETY: db is open and only this thread uses it, by the contract of this function; errmsg
        // returns a NUL-terminated string that lives until the next call on db, and is copied here.
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

/// Creates the error for an extended result code of SQLite. If advice on avoiding this error is
/// known, the function appends the advice to `message`.
pub(super) fn of(extended: c_int, mut message: String, during: During) -> Error {
    if let Some(remedy) = remedy(extended) {
        message.push('\n');
        message.push_str(remedy);
    }
    let mut error = Error::new(Operational, message);
    error.set_meaning(meaning(extended, during));
    error.native = extended;
    error
}

/// Creates the error of a statement that was cancelled by a cancel handle or by
/// [`crate::AttachedHost`].
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
        for (code, during, expected) in [
            (ffi::SQLITE_ERROR, During::Prepare, permanent(Programming)),
            (ffi::SQLITE_ERROR, During::Step, permanent(Operational)),
            (ffi::SQLITE_CANTOPEN, During::Open, transient(Connect)),
            (ffi::SQLITE_CANTOPEN, During::Step, transient(Operational)),
            (ffi::SQLITE_READONLY, During::Open, permanent(Connect)),
            (ffi::SQLITE_NOTADB, During::Open, permanent(Connect)),
            (ffi::SQLITE_INTERRUPT, During::Open, permanent(Cancelled)),
            (ffi::SQLITE_INTERRUPT, During::Prepare, permanent(Cancelled)),
            (ffi::SQLITE_AUTH, During::Prepare, permanent(Programming)),
            (
                ffi::SQLITE_ERROR_RETRY,
                During::Prepare,
                transient(Operational),
            ),
            (
                ffi::SQLITE_BUSY | 99 << 8,
                During::Step,
                transient(Operational),
            ),
            (
                ffi::SQLITE_WARNING + 1,
                During::Step,
                permanent(Operational),
            ),
        ] {
            assert_eq!(meaning(code, during), expected, "{code} {during:?}");
        }
    }

    #[test]
    fn every_result_code_has_one_row() {
        let codes: Vec<c_int> = CODES.iter().map(|r| r.0).collect();
        for (i, code) in codes.iter().enumerate() {
            assert!(!codes[..i].contains(code), "{code}");
        }
        for primary in ffi::SQLITE_ERROR..=ffi::SQLITE_WARNING {
            assert!(codes.contains(&primary), "{primary}");
            // The extended codes of a primary code are numbered from 1 on without gaps; ABORT has
            // only number 2.
            let mut extended: Vec<c_int> = codes
                .iter()
                .filter(|c| *c & 0xff == primary && **c != primary)
                .map(|c| c >> 8)
                .collect();
            extended.sort_unstable();
            let first = 1 + c_int::from(primary == ffi::SQLITE_ABORT);
            let expected: Vec<c_int> = (first..).take(extended.len()).collect();
            assert_eq!(extended, expected, "{primary}");
        }
        // SQLite 3.50 has 28 primary codes and 75 extended codes that are errors.
        assert_eq!(codes.len(), 28 + 75);
    }

    #[test]
    fn a_retry_clears_locks_and_resources_and_nothing_of_the_statement() {
        for (code, meaning) in CODES {
            assert!(
                meaning.kind == Operational || !meaning.is_transient,
                "{code}"
            );
        }
        let wholly_permanent = CODES
            .iter()
            .filter(|r| !r.1.is_transient && r.0 <= 0xff)
            .map(|r| r.0);
        let expected = [
            ffi::SQLITE_ERROR,
            ffi::SQLITE_INTERNAL,
            ffi::SQLITE_PERM,
            ffi::SQLITE_ABORT,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_INTERRUPT,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_NOTFOUND,
            ffi::SQLITE_EMPTY,
            ffi::SQLITE_TOOBIG,
            ffi::SQLITE_CONSTRAINT,
            ffi::SQLITE_MISMATCH,
            ffi::SQLITE_MISUSE,
            ffi::SQLITE_NOLFS,
            ffi::SQLITE_AUTH,
            ffi::SQLITE_FORMAT,
            ffi::SQLITE_RANGE,
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_NOTICE,
            ffi::SQLITE_WARNING,
        ];
        assert!(wholly_permanent.eq(expected));
    }
}
