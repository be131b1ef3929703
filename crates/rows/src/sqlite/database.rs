//! The one handle, what is under its lock, and the way in.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_int};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, Once, PoisonError};

use libsqlite3_sys as ffi;

use super::bind::{Keep, bind};
use super::cache::{Cache, Prepared};
use super::call_lock::{CallLock, Refused};
use super::error::{During, from_code};
use super::fork;
use super::sql::{Kind, skip_blank};
use super::target::{Mode, Target};
use super::watch::{AttachedHost, N_OPS, Watch, on_busy, on_progress};
use crate::error::{Error, ErrorKind};
use crate::value::Value;

/// A connection's handle and all that shares it: the connection and its statements hold it together.
pub(super) struct Database {
    lock: CallLock,
    guarded: UnsafeCell<Guarded>,
    pub(super) watch: Box<Watch>,
    /// Statements dropped while another thread was in a call: put away by the next one out.
    dropped: Mutex<Vec<Prepared>>,
    has_dropped: AtomicBool,
    pub(super) autocommit: AtomicBool,
    next_id: AtomicU64,
    fork_generation: u32,
    pub(super) path: String,
    pub(super) read_only: bool,
}

/// What is touched under the call lock alone.
pub(super) struct Guarded {
    /// Null once closed.
    pub(super) db: *mut ffi::sqlite3,
    pub(super) cache: Cache,
    /// How many rollbacks have ended the cursors open at their time.
    pub(super) n_rollbacks: u64,
}

// SAFETY: `guarded` is reached only through `CallGuard`, which holds the call lock; everything else is Sync. SQLite is built
// thread-safe, and opened without its own mutexes because the call lock does their work.
unsafe impl Sync for Database {}
// SAFETY: as above: no handle is bound to the thread that opened it.
unsafe impl Send for Database {}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// The way in: holds the call lock, in the process that opened the database.
pub(super) struct CallGuard<'a>(&'a Database);

impl Database {
    /// Opens it and sets it up as Python's `sqlite3` would.
    pub(super) fn open(target: &Target, read_only: bool) -> Result<Database, Error> {
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
                n_rollbacks: 0,
            }),
            watch: Box::new(Watch::new(target.busy_timeout)),
            dropped: Mutex::default(),
            has_dropped: AtomicBool::new(false),
            autocommit: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
            fork_generation: fork::generation(),
            path: target.path.clone(),
            read_only: read_only || target.mode == Mode::ReadOnly,
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
        if self.read_only {
            guard.run("PRAGMA query_only = 1")?;
        }
        // The file is read at the first statement only: read it now, so that what is no database is told at connect.
        // A lock held by another connection is left for the statements to wait for.
        let probe = guard.run("SELECT 1 FROM sqlite_schema LIMIT 0");
        // SAFETY: as above.
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

    /// A number for the next statement, from 1.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Whether this process opened the connection.
    fn is_ours(&self) -> bool {
        self.fork_generation == fork::generation()
    }

    fn check_process(&self) -> Result<(), Error> {
        if self.is_ours() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Interface,
            "the connection belongs to another process: it was opened before a fork\nconnect again in the child",
        ))
    }

    /// The way in, waiting for a call of another thread to end.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] in a forked child, and where this thread is in a call already (a callback).
    pub(super) fn enter(&self) -> Result<CallGuard<'_>, Error> {
        self.check_process()?;
        if self.lock.lock() {
            Ok(CallGuard(self))
        } else {
            Err(reentered())
        }
    }

    /// As [`Database::enter`], for a caller that holds an interpreter lock: waits with it released.
    pub(super) fn enter_attached(&self, host: &dyn AttachedHost) -> Result<CallGuard<'_>, Error> {
        self.check_process()?;
        match self.lock.try_lock() {
            Ok(()) => {}
            Err(Refused::Reentered) => return Err(reentered()),
            Err(Refused::Contended) => {
                let mut locked = false;
                host.released(&mut || locked = locked || self.lock.lock());
                if !locked {
                    return Err(Error::new(
                        ErrorKind::Internal,
                        "the host did not wait for the connection's lock",
                    ));
                }
            }
        }
        Ok(CallGuard(self))
    }

    /// Takes back a statement whose owner is gone, without ever waiting for the lock; a forked child leaves it alone.
    pub(super) fn put_away(&self, prepared: Prepared) {
        if !self.is_ours() {
            return;
        }
        if self.lock.try_lock().is_ok() {
            CallGuard(self).rest(prepared);
            return;
        }
        self.dropped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(prepared);
        self.has_dropped.store(true, SeqCst);
        // Whoever held the lock may have left meanwhile, without a look at what was dropped after it.
        if self.lock.try_lock().is_ok() {
            drop(CallGuard(self));
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A forked child must not touch the handle: it leaks, and the parent's stays whole.
        if self.is_ours() {
            if let Ok(mut guard) = self.enter() {
                guard.close();
            }
        }
    }
}

fn reentered() -> Error {
    Error::new(
        ErrorKind::Interface,
        "the connection is in the middle of a call of this thread\nuse another connection in a callback or a signal handler",
    )
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
            None => {
                "there is no such file\ncheck the path, or connect with `mode=rwc` to create it"
                    .to_owned()
            }
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

impl CallGuard<'_> {
    #[expect(
        clippy::mut_from_ref,
        reason = "private; each use ends before the next begins"
    )]
    fn guarded(&self) -> &mut Guarded {
        // SAFETY: the call lock is held by this thread, and no reference from here outlives the statement it is used in:
        // the methods below are not entered by the callbacks, which see the watch alone.
        unsafe { &mut *self.0.guarded.get() }
    }

    /// The handle, null once closed.
    pub(super) fn db(&self) -> *mut ffi::sqlite3 {
        self.guarded().db
    }

    /// How many rollbacks have ended cursors so far.
    pub(super) fn n_rollbacks(&self) -> u64 {
        self.guarded().n_rollbacks
    }

    /// # Errors
    /// [`ErrorKind::Interface`] where the connection is closed.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        if self.db().is_null() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        Ok(())
    }

    /// Whether no transaction is open.
    pub(super) fn in_autocommit(&self) -> bool {
        // SAFETY: callers checked that the handle is open; the lock is held.
        unsafe { ffi::sqlite3_get_autocommit(self.db()) != 0 }
    }

    /// The error for `code`.
    pub(super) fn error(&self, code: c_int, during: During) -> Error {
        // SAFETY: the handle is open or null, and the lock is held.
        unsafe { from_code(self.db(), code, during) }
    }

    /// Prepares `sql`, or takes it from the cache.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] where it is no statement, or more than one; as SQLite says.
    pub(super) fn prepare(&self, sql: &str) -> Result<Prepared, Error> {
        self.check_open()?;
        if let Some(prepared) = self.guarded().cache.take(sql) {
            return Ok(prepared);
        }
        let programming = |message: String| Error::new(ErrorKind::Programming, message);
        if sql.contains('\0') {
            return Err(programming(
                "the statement holds a NUL character".to_owned(),
            ));
        }
        let len = c_int::try_from(sql.len())
            .map_err(|_| programming("the statement is longer than 2 GiB".to_owned()))?;
        let (mut stmt, mut tail) = (ptr::null_mut(), ptr::null());
        // SAFETY: the handle is open and the lock held; sql has len bytes; stmt and tail receive pointers, tail into sql.
        let (code, used) = unsafe {
            let code = ffi::sqlite3_prepare_v3(
                self.db(),
                sql.as_ptr().cast(),
                len,
                ffi::SQLITE_PREPARE_PERSISTENT as _,
                &mut stmt,
                &mut tail,
            );
            let used = if tail.is_null() {
                sql.len()
            } else {
                tail.addr() - sql.as_ptr().addr()
            };
            (code, used)
        };
        if code != ffi::SQLITE_OK {
            return Err(self.error(code, During::Prepare));
        }
        if stmt.is_null() {
            return Err(programming("there is no statement in the text".to_owned()));
        }
        let rest = skip_blank(sql.get(used..).unwrap_or(""));
        if !rest.is_empty() {
            // SAFETY: stmt was just prepared and is used by nobody.
            unsafe { ffi::sqlite3_finalize(stmt) };
            let second: String = rest.chars().take(40).collect();
            return Err(programming(format!(
                "one statement at a time: a second one begins at `{second}`\nexecute each by its own call"
            )));
        }
        // SAFETY: stmt is a live statement of ours.
        let (read_only, n_parameters) = unsafe {
            (
                ffi::sqlite3_stmt_readonly(stmt) != 0,
                ffi::sqlite3_bind_parameter_count(stmt),
            )
        };
        Ok(Prepared {
            stmt,
            sql: sql.into(),
            kind: Kind::of(sql, read_only),
            n_parameters: usize::try_from(n_parameters).unwrap_or(0),
            schema: None,
        })
    }

    /// Binds `values`, all of them.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] with both numbers where they are not as many as the statement takes; as SQLite says.
    ///
    /// # Safety
    /// With [`Keep::Borrowed`] the values live until the bindings are cleared.
    pub(super) unsafe fn bind_all(
        &self,
        prepared: &Prepared,
        values: &[Value],
        keep: Keep,
    ) -> Result<(), Error> {
        let n = prepared.n_parameters;
        if values.len() != n {
            return Err(Error::new(
                ErrorKind::Programming,
                format!(
                    "the statement takes {n} parameters and {} were given",
                    values.len()
                ),
            ));
        }
        for (index, value) in (1..).zip(values) {
            // SAFETY: the statement is at rest and the lock held; the caller vouches for the values' lives.
            let code = unsafe { bind(prepared.stmt, index, value, keep) };
            if code != ffi::SQLITE_OK {
                return Err(self.error(code, During::Step));
            }
        }
        Ok(())
    }

    /// Puts a statement back: reset, its bindings cleared, into the cache.
    pub(super) fn rest(&self, prepared: Prepared) {
        if self.db().is_null() {
            return; // Closing has finalised it.
        }
        // SAFETY: the statement belongs to the open handle, its owner has given it up, and the lock is held. The result
        // of a reset repeats the error of the last step, which was told already.
        unsafe {
            ffi::sqlite3_reset(prepared.stmt);
            ffi::sqlite3_clear_bindings(prepared.stmt);
        }
        if let Some(surplus) = self.guarded().cache.put(prepared) {
            // SAFETY: it is out of the cache and nobody else knows it.
            unsafe { ffi::sqlite3_finalize(surplus.stmt) };
        }
    }

    /// Runs `sql`, which takes no parameters; rows are passed over.
    pub(super) fn run(&self, sql: &str) -> Result<(), Error> {
        let prepared = self.prepare(sql)?;
        // SAFETY: the statement is ours alone until it is put back, and the lock is held.
        let code = unsafe {
            loop {
                match ffi::sqlite3_step(prepared.stmt) {
                    ffi::SQLITE_ROW => {}
                    code => break code,
                }
            }
        };
        let result = match code {
            ffi::SQLITE_DONE => Ok(()),
            code => Err(self.error(code, During::Step)),
        };
        self.rest(prepared);
        result
    }

    /// Ends every cursor under way, so that none gives rows of a transaction that was rolled back.
    pub(super) fn end_cursors(&self) {
        self.guarded().n_rollbacks += 1;
        let mut stmt = ptr::null_mut();
        loop {
            // SAFETY: the handle is open and the lock held; the list is not changed by a reset.
            unsafe {
                stmt = ffi::sqlite3_next_stmt(self.db(), stmt);
                if stmt.is_null() {
                    return;
                }
                if ffi::sqlite3_stmt_busy(stmt) != 0 {
                    ffi::sqlite3_reset(stmt);
                }
            }
        }
    }

    /// Rolls an open transaction back, finalises every statement and closes the handle.
    pub(super) fn close(&mut self) {
        if self.db().is_null() {
            return;
        }
        self.guarded().cache.forget();
        // SAFETY: the lock is held, so no statement is being stepped. Their owners look whether the handle is null before
        // they touch them again. Closing rolls an open transaction back.
        unsafe {
            loop {
                let stmt = ffi::sqlite3_next_stmt(self.db(), ptr::null_mut());
                if stmt.is_null() {
                    break;
                }
                ffi::sqlite3_finalize(stmt);
            }
            let code = ffi::sqlite3_close(self.db());
            debug_assert_eq!(code, ffi::SQLITE_OK);
        }
        self.guarded().db = ptr::null_mut();
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        loop {
            if self.0.has_dropped.swap(false, SeqCst) {
                let mut dropped = self
                    .0
                    .dropped
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                for prepared in std::mem::take(&mut *dropped) {
                    self.rest(prepared);
                }
            }
            self.0.lock.unlock();
            // One may have been dropped between the look above and the unlock.
            if !self.0.has_dropped.load(SeqCst) || self.0.lock.try_lock().is_err() {
                return;
            }
        }
    }
}
