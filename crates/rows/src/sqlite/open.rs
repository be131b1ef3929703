//! Opens the file of a database, and adds the reason and a remedy to the error if this fails.

use std::cell::UnsafeCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, Once};

use libsqlite3_sys as ffi;

use super::call_lock::CallLock;
use super::callbacks::{CallbackState, N_OPS, on_busy, on_progress};
use super::database::{Database, LockedDatabase};
use super::error::{During, from_code};
use super::statement_cache::Cache;
use super::target::{Mode, SqliteTarget};
use crate::database::ConnectOptions;
use crate::error::{Error, ErrorKind};
use crate::fork;

impl Database {
    /// Opens the database with the settings that Python's `sqlite3` uses, for example without
    /// foreign keys.
    pub(super) fn open(target: &SqliteTarget, options: &ConnectOptions) -> Result<Database, Error> {
        static CONFIGURE: Once = Once::new();
        // SAFETY: SQLite is not initialised before the first open, and every open waits here for
        // the call. Without memory statistics, an allocation locks no global mutex
        // (<https://sqlite.org/c3ref/c_config_covering_index_scan.html>, MEMSTATUS).
        CONFIGURE.call_once(|| unsafe {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int);
        });
        fork::watch_forks();
        let (name, flags) = open_arguments(target);
        let name = CString::new(name).expect("Target::parse refuses a NUL");
        let mut db = ptr::null_mut();
        // SAFETY: name is NUL-terminated; db receives a handle, or null if memory is exhausted.
        let code = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut db, flags, ptr::null()) };
        let database = Database {
            lock: CallLock::new(),
            guarded: UnsafeCell::new(LockedDatabase {
                db,
                cache: Cache::default(),
                statements: HashSet::new(),
                blobs: HashMap::new(),
                n_rollbacks: 0,
                is_backed_up: false,
                closes: false,
                awaits_finish: false,
            }),
            watch: Box::new(CallbackState::new(target.busy_timeout)),
            dropped: Mutex::default(),
            has_dropped: AtomicBool::new(false),
            autocommit: AtomicBool::new(options.autocommit),
            is_closed: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
            fork_generation: fork::generation(),
            path: target.path.clone(),
            read_only: options.read_only || target.mode == Mode::ReadOnly,
            text_policy: options.text_policy,
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: db is null or the handle that was opened above, without another user.
            return Err(open_error(target, unsafe {
                from_code(db, code, During::Open)
            }));
        }
        database.set_up().map_err(|e| open_error(target, e))?;
        Ok(database)
    }

    fn set_up(&self) -> Result<(), Error> {
        let guard = self.enter()?;
        let context: *const CallbackState = &*self.watch;
        // SAFETY: the handle is open, and this thread holds the lock. The callback state is boxed
        // and lives until after the handle is closed (Database::drop); the callbacks have no other
        // context. The variadic options have the types that SQLite documents: an int and an
        // optional int pointer.
        unsafe {
            let db = guard.db();
            ffi::sqlite3_extended_result_codes(db, 1);
            ffi::sqlite3_progress_handler(db, N_OPS, Some(on_progress), context.cast_mut().cast());
            // The bundled build enables foreign keys. In SQLite and in Python's `sqlite3`, they are
            // off by default.
            let unset = ptr::null_mut::<c_int>();
            ffi::sqlite3_db_config(db, ffi::SQLITE_DBCONFIG_ENABLE_FKEY, 0 as c_int, unset);
            if self.read_only {
                ffi::sqlite3_db_config(db, ffi::SQLITE_DBCONFIG_DEFENSIVE, 1 as c_int, unset);
            }
        }
        guard.create_function("regexp", 2, super::regexp::function())?;
        if self.read_only {
            guard.run("PRAGMA query_only = 1")?;
        }
        // SQLite would read the file only at the first statement. This query reads the file now, so
        // that `open` returns an error for a file that is not a database. A lock of another
        // connection is not an error here, because later statements wait for the lock.
        let probe = guard.run("SELECT 1 FROM sqlite_schema LIMIT 0");
        // SAFETY: this thread holds the lock, and the handle is open; the handler's context lives
        // as long as the handle.
        unsafe {
            ffi::sqlite3_busy_handler(guard.db(), Some(on_busy), context.cast_mut().cast());
        }
        match probe {
            Err(e) if e.native & 0xff != ffi::SQLITE_BUSY => Err(Error {
                kind: ErrorKind::Connect,
                ..e
            }),
            _ => Ok(()),
        }
    }
}

/// Returns the file name and the flags for `sqlite3_open_v2`.
fn open_arguments(target: &SqliteTarget) -> (String, c_int) {
    let flags = match target.mode {
        Mode::ReadOnly => ffi::SQLITE_OPEN_READONLY,
        Mode::ReadWrite => ffi::SQLITE_OPEN_READWRITE,
        Mode::Create => ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE,
        Mode::Memory => {
            ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_MEMORY
        }
    } | ffi::SQLITE_OPEN_NOMUTEX
        | ffi::SQLITE_OPEN_EXRESCODE;
    let path = &target.path;
    if target.immutable && target.mode != Mode::Memory {
        // `?` and `#` would end the path of a URI (RFC 3986), and `%` is the escape character.
        let escaped = path
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let authority = if path.starts_with('/') { "//" } else { "" };
        return (
            format!("file:{authority}{escaped}?immutable=1"),
            flags | ffi::SQLITE_OPEN_URI,
        );
    }
    // The bundled build interprets a name that begins with `file:` as a URI. With `./` before it,
    // the name is a path.
    if path.starts_with("file:") {
        return (format!("./{path}"), flags);
    }
    (path.clone(), flags)
}

/// Adds the path, and a remedy if one is known, to the error of a failed open.
fn open_error(target: &SqliteTarget, error: Error) -> Error {
    let path = std::path::Path::new(&target.path);
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let why = if target.mode == Mode::Memory || error.native & 0xff != ffi::SQLITE_CANTOPEN {
        error.message.clone()
    } else if path.is_dir() {
        "it is a directory".to_owned()
    } else if !path.exists() {
        match parent.filter(|p| !p.exists()) {
            Some(parent) => format!("the directory `{}` does not exist", parent.display()),
            None if target.mode == Mode::Create => {
                format!(
                    "{}\nit does not exist and could not be created",
                    error.message
                )
            }
            None => "there is no such file\ncheck the path; `sqlite:PATH?mode=rwc` creates it"
                .to_owned(),
        }
    } else {
        format!(
            "{}\ncheck the permissions of the file and of its directory; a database in WAL mode is opened read-only \
             where its directory is not writable only by `?immutable=1`",
            error.message
        )
    };
    Error {
        message: format!("cannot open the SQLite database `{}`: {why}", target.path),
        ..error
    }
}
