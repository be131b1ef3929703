//! Opening the file, and what can go wrong with it.

use std::cell::UnsafeCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, Once};

use libsqlite3_sys as ffi;

use super::cache::Cache;
use super::call_lock::CallLock;
use super::database::{Database, Guarded};
use super::error::{During, from_code};
use super::target::{Mode, Target};
use super::watch::{N_OPS, Watch, on_busy, on_progress};
use crate::database::ConnectOptions;
use crate::error::{Error, ErrorKind};
use crate::fork;

impl Database {
    /// Opens it and sets it up as Python's `sqlite3` would.
    pub(super) fn open(target: &Target, options: &ConnectOptions) -> Result<Database, Error> {
        static CONFIGURE: Once = Once::new();
        // SAFETY: SQLite is not initialised before the first open, which waits here; without memory statistics an
        // allocation takes no global mutex (<https://sqlite.org/c3ref/c_config_covering_index_scan.html>, MEMSTATUS).
        CONFIGURE.call_once(|| unsafe {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int);
        });
        fork::watch_forks();
        let (name, flags) = open_arguments(target);
        let name = CString::new(name).expect("Target::parse refuses a NUL");
        let mut db = ptr::null_mut();
        // SAFETY: name is NUL-terminated, db receives a handle (or null where memory ran out).
        let code = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut db, flags, ptr::null()) };
        let database = Database {
            lock: CallLock::default(),
            guarded: UnsafeCell::new(Guarded {
                db,
                cache: Cache::default(),
                statements: HashSet::new(),
                blobs: HashMap::new(),
                n_rollbacks: 0,
                is_backed_up: false,
                closes: false,
            }),
            watch: Box::new(Watch::new(target.busy_timeout)),
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
            // SAFETY: db is null or the handle just made, used by nobody else.
            return Err(open_error(target, unsafe {
                from_code(db, code, During::Open)
            }));
        }
        database.set_up().map_err(|e| open_error(target, e))?;
        Ok(database)
    }

    fn set_up(&self) -> Result<(), Error> {
        let guard = self.enter()?;
        let context: *const Watch = &*self.watch;
        // SAFETY: the handle is open and the lock held. The watch is boxed and lives until after the handle is closed
        // (Database::drop); the callbacks take no other context. The variadic options have the types SQLite documents:
        // an int and an optional int pointer.
        unsafe {
            let db = guard.db();
            ffi::sqlite3_extended_result_codes(db, 1);
            ffi::sqlite3_progress_handler(db, N_OPS, Some(on_progress), context.cast_mut().cast());
            // The bundled build turns foreign keys on; SQLite's own default, and sqlite3's, is off.
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
        // The file is read at the first statement only: read it now, so that what is no database is told at connect.
        // A lock held by another connection is left for the statements to wait for.
        let probe = guard.run("SELECT 1 FROM sqlite_schema LIMIT 0");
        // SAFETY: the lock is held and the handle open; the handler's context lives as long as the handle does.
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

/// The file name and flags for `sqlite3_open_v2`.
fn open_arguments(target: &Target) -> (String, c_int) {
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
        // RFC 3986 delimiters that would end the path, and the escape itself.
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
    // The bundled build reads `file:` names as URIs: such a file is named by a path.
    if path.starts_with("file:") {
        return (format!("./{path}"), flags);
    }
    (path.clone(), flags)
}

/// An error at open, with the file and what is to be done about it.
fn open_error(target: &Target, error: Error) -> Error {
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
            "{}\nsee to the permissions of the file and of its directory; a database in WAL mode is opened read-only \
             where its directory is not writable by `?immutable=1` alone",
            error.message
        )
    };
    Error {
        message: format!("cannot open the SQLite database `{}`: {why}", target.path),
        ..error
    }
}
