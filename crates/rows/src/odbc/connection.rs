//! A connection: its handle, its lock, its transactions.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use super::call::Call;
use super::connection_string::ConnectionString;
use super::ffi::{self, Handle};
use super::handle::{RawHandle, StatementHandle, lock};
use super::kept::{self, Keeping, Kept};
use super::life::Life;
use super::manager::Manager;
use super::opening::Opening;
use super::quirks::{Dialect, FIRST_FETCH, Quirks, Width};
use super::secrets::Secrets;
use super::survey::Portrait;
use super::unblock::Caller;
use super::{diag, many, run, statement};
use crate::block::buffer::Buffer;
use crate::connect::{ConnectOptions, Names, Prepared, ZeroDates};
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::named;
use crate::value::Value;

pub use super::statement::Statement;

/// A connection through an ODBC driver.
pub struct Connection {
    pub(crate) shared: Arc<Shared>,
}

/// A block is about half of this; a larger one was made for very wide rows.
const LARGEST_SPARE: usize = 1 << 20;

/// What a connection and its statements share.
pub(crate) struct Shared {
    pub(crate) manager: &'static Manager,
    pub(crate) quirks: &'static Quirks,
    pub(crate) width: Width,
    pub(crate) secrets: Secrets,
    pub(crate) facts: Facts,
    read_only: bool,
    /// Statements may send files of this machine.
    local_infile: bool,
    /// What a stream of its rows does with malformed text.
    pub(crate) text_policy: Policy,
    pub(crate) zero_dates: ZeroDates,
    /// Of the process that opened it: no other may use it.
    fork_generation: u32,
    /// Whether it still works.
    pub(super) life: Life,
    state: Mutex<State>,
    /// Rows that the driver asks the server for at once, where it is ours to say.
    pub(super) fetch_size: Option<AtomicUsize>,
    /// Connection attribute that is switched off while an array of parameters runs.
    pub(super) off_for_arrays: Option<i32>,
    pub(super) keeping: Keeping,
    /// Connection attribute that is switched off for all but plain queries: cursors of the driver.
    pub(super) cursor_switch: Option<i32>,
    /// Memory of the last statement's block, for the next one.
    spare: Mutex<Option<Buffer>>,
    /// How often a transaction of this connection has ended in a way that ends cursors.
    pub(crate) ended: AtomicU64,
    /// The thread inside a driver call now.
    pub(super) caller: Arc<Caller>,
    /// The statement inside a driver call now.
    active: Arc<Mutex<Option<Arc<StatementHandle>>>>,
}

/// What the driver says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) driver: String,
    pub(crate) driver_version: String,
    /// Both, for messages; the driver by the name of this crate's table where it gives none.
    pub(crate) driver_label: Arc<str>,
    pub(crate) dbms: String,
    pub(crate) dbms_version: String,
    /// `SQL_GETDATA_EXTENSIONS`.
    pub(crate) get_data: u32,
    /// A commit leaves cursors open.
    pub(crate) commit_keeps: bool,
    /// A rollback leaves cursors open.
    pub(crate) rollback_keeps: bool,
    /// The database knows transactions.
    pub(crate) transactions: bool,
    /// The connection string, redacted.
    pub(crate) target: String,
    pub(crate) notices: Vec<String>,
}

pub(super) struct State {
    pub(super) raw: RawHandle,
    pub(super) autocommit: bool,
    pub(super) statements: Vec<Weak<StatementHandle>>,
    /// Prepared statements that nobody uses now.
    pub(super) kept: Kept,
}

impl Shared {
    /// Waits until no other call of this connection is under way.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] in another process and after `close`; [`ErrorKind::Operational`] where it was lost.
    pub(crate) fn enter(&self) -> Result<Call<'_>, Error> {
        self.check_process()?;
        self.life.check()?;
        let state = lock(&self.state);
        if state.raw.0.is_null() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        Ok(Call::new(self, state))
    }

    pub(super) fn check_process(&self) -> Result<(), Error> {
        if self.is_foreign() {
            return Err(Error::new(
                ErrorKind::Interface,
                "this connection was opened by another process (before a fork)\nOpen a new one in this process.",
            ));
        }
        Ok(())
    }

    /// Whether this is another process than the one that opened the connection.
    pub(crate) fn is_foreign(&self) -> bool {
        self.fork_generation != fork::generation()
    }

    /// Frees a statement's handle; in another process it is only forgotten.
    pub(crate) fn free_statement(&self, handle: &Arc<StatementHandle>) {
        if self.is_foreign() {
            handle.forget();
            return;
        }
        let mut state = lock(&self.state);
        handle.free();
        state.statements.retain(|w| w.strong_count() > 0);
    }

    /// Marks the end of a driver call. A connection that was shut down under it is lost.
    pub(super) fn leave(&self) {
        self.caller.leave();
        if self.caller.is_broken() {
            self.life.lose();
        }
    }

    /// What the lock holds.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Memory for a block, if a statement before has left any.
    pub(crate) fn take_spare(&self) -> Option<Buffer> {
        lock(&self.spare).take()
    }

    /// Keeps the memory of a block whose statement handle is freed, unless it is large.
    pub(crate) fn keep_spare(&self, buffer: Buffer) {
        if buffer.len() <= LARGEST_SPARE && !self.is_foreign() {
            lock(&self.spare).replace(buffer);
        }
    }

    /// Marks `handle` as the one inside a driver call, for as long as the guard lives.
    pub(crate) fn busy<'a>(&'a self, handle: &'a Arc<StatementHandle>) -> Busy<'a> {
        *lock(&self.active) = Some(Arc::clone(handle));
        handle.set_busy(true);
        Busy {
            shared: self,
            handle,
        }
    }

    pub(super) fn error(&self, raw: Handle, call: &str) -> Error {
        diag::error(
            self.manager,
            ffi::HANDLE_DBC,
            raw,
            self.width,
            self.quirks.dialect,
            &self.secrets,
            call,
        )
    }

    fn close(&self) -> Result<(), Error> {
        // The handles are the parent's: they are left alone, and leak here.
        self.check_process()?;
        let mut state = lock(&self.state);
        self.life.close();
        let raw = std::mem::replace(&mut state.raw.0, std::ptr::null_mut());
        if raw.is_null() {
            return Ok(());
        }
        self.caller.enter();
        for statement in state.kept.take_all() {
            statement.free();
        }
        for statement in state.statements.drain(..) {
            if let Some(statement) = statement.upgrade() {
                statement.free();
            }
        }
        // SAFETY: a live connection handle that this call has taken for itself; its statements are freed. An open
        // transaction is rolled back first: SQLDisconnect refuses with 25000 otherwise.
        let rc = unsafe {
            (self.manager.call.end_tran)(ffi::HANDLE_DBC, raw, ffi::ROLLBACK);
            (self.manager.call.disconnect)(raw)
        };
        let result = if rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO {
            Ok(())
        } else {
            Err(self.error(raw, "SQLDisconnect"))
        };
        // SAFETY: a handle that this call has taken for itself and uses no more; one that could not be disconnected is
        // refused by the manager, and leaks.
        unsafe { (self.manager.call.free_handle)(ffi::HANDLE_DBC, raw) };
        self.caller.leave();
        result
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.close();
    }
}

/// See [`Shared::busy`].
pub(crate) struct Busy<'a> {
    shared: &'a Shared,
    handle: &'a Arc<StatementHandle>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.handle.set_busy(false);
        *lock(&self.shared.active) = None;
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("target", &self.shared.facts.target)
            .field("driver", &self.shared.facts.driver)
            .finish_non_exhaustive()
    }
}

#[allow(missing_docs)] // Documented where they are public: `connect::Connection`.
#[allow(clippy::missing_errors_doc)]
impl Connection {
    pub fn open(target: &str, options: &ConnectOptions) -> Result<Connection, Error> {
        Opening::default().open(target, options, None)
    }

    pub fn open_in(
        target: &str,
        options: &ConnectOptions,
        width: Width,
    ) -> Result<Connection, Error> {
        Opening::default().open(target, options, Some(width))
    }

    /// Of an open handle, in autocommit mode as ODBC begins.
    pub(crate) fn new(
        raw: Handle,
        manager: &'static Manager,
        quirks: &'static Quirks,
        width: Width,
        string: &ConnectionString,
        facts: Facts,
        options: &ConnectOptions,
    ) -> Connection {
        Connection {
            shared: Arc::new(Shared {
                manager,
                quirks,
                width,
                secrets: string.secrets(),
                facts,
                fetch_size: quirks
                    .fetch_size
                    .filter(|f| {
                        string
                            .get(f.keyword)
                            .is_none_or(|n| n == f.first.to_string())
                    })
                    .map(|f| AtomicUsize::new(f.first)),
                off_for_arrays: quirks
                    .off_for_arrays
                    .filter(|switch| string.get(switch.keyword).is_none())
                    .map(|switch| switch.attribute),
                keeping: Keeping::of(quirks, string, options),
                cursor_switch: kept::cursor_switch(quirks, string),
                read_only: options.read_only,
                local_infile: options.local_infile,
                text_policy: options.text_policy,
                // No other server has them.
                zero_dates: match quirks.dialect {
                    Dialect::MySql => options.zero_dates,
                    _ => ZeroDates::Null,
                },
                fork_generation: fork::generation(),
                life: Life::default(),
                state: Mutex::new(State {
                    raw: RawHandle(raw),
                    autocommit: true,
                    statements: Vec::new(),
                    kept: Kept::default(),
                }),
                spare: Mutex::new(None),
                ended: AtomicU64::new(0),
                caller: Arc::default(),
                active: Arc::default(),
            }),
        }
    }

    pub fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        self.check_single(sql)?;
        statement::execute(&self.shared, sql, parameters, FIRST_FETCH)
    }

    pub fn execute_row_by_row(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        self.check_single(sql)?;
        statement::execute(&self.shared, sql, parameters, 1)
    }

    pub fn execute_many(
        &self,
        sql: &str,
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Option<u64>, Error> {
        self.check_single(sql)?;
        many::execute_many(&self.shared, sql, rows)
    }

    pub fn prepare_check(&self, sql: &str) -> Result<Prepared, Error> {
        self.check_single(sql)?;
        run::prepare_check(&self.shared, sql)
    }

    /// A read-only connection takes one statement at a time: a second could end the read-only transaction.
    fn check_single(&self, sql: &str) -> Result<(), Error> {
        let dialect = self.shared.quirks.dialect;
        if dialect == Dialect::Postgres && super::sql_text::copies_through_client(sql) {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "ODBC has no `COPY … TO STDOUT` and no `COPY … FROM STDIN`: the driver would wait without an end\n\
                 Stream a SELECT with `csv()`, and write rows with `executemany` or `insert_arrow`.",
            ));
        }
        if dialect == Dialect::MySql
            && !self.shared.local_infile
            && super::sql_text::loads_local_file(sql)
        {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "`LOAD DATA LOCAL` sends a file of this machine to the server, and is off\n\
                 Connect with `local_infile=True` to allow it.",
            ));
        }
        if self.shared.read_only && super::sql_text::has_second(sql, self.shared.quirks.dialect) {
            return Err(Error::new(
                ErrorKind::Programming,
                "more than one statement in one `execute` on a read-only connection\nRun them one by one.",
            ));
        }
        Ok(())
    }

    pub fn cancel_handle(&self) -> CancelHandle {
        let (active, caller) = (
            Arc::clone(&self.shared.active),
            Arc::clone(&self.shared.caller),
        );
        CancelHandle::new(move || {
            let handle = lock(&active).clone();
            match handle {
                Some(handle) => handle.cancel(),
                // A commit or a rollback: ODBC has no call that cancels it.
                None => caller.insist(),
            }
        })
    }

    pub fn commit(&self) -> Result<(), Error> {
        let how = if self.shared.read_only {
            // There is nothing to commit, and what a driver let slip through must not stay.
            ffi::ROLLBACK
        } else {
            ffi::COMMIT
        };
        self.shared.enter()?.end(how)
    }

    pub fn rollback(&self) -> Result<(), Error> {
        self.shared.enter()?.end(ffi::ROLLBACK)
    }

    pub fn set_autocommit(&self, on: bool) -> Result<(), Error> {
        if on && self.shared.read_only {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "a read-only connection has no autocommit: its transaction is always rolled back",
            ));
        }
        self.shared.enter()?.set_autocommit(on)
    }

    pub fn autocommit(&self) -> bool {
        lock(&self.shared.state).autocommit
    }

    pub fn close(&self) -> Result<(), Error> {
        self.shared.close()
    }

    pub fn is_closed(&self) -> bool {
        self.shared.life.is_closed()
    }

    pub fn is_usable(&self) -> bool {
        self.shared.life.is_usable() && !self.shared.is_foreign()
    }

    pub fn portrait(&self) -> Portrait {
        Portrait::of(&self.shared)
    }

    pub fn notices(&self) -> Vec<String> {
        self.shared.facts.notices.clone()
    }

    pub fn dialect(&self) -> crate::named::Dialect {
        named_dialect(self.shared.quirks.dialect)
    }

    pub fn names(&self) -> Names {
        let facts = &self.shared.facts;
        Names {
            dbms: facts.dbms.clone(),
            dbms_version: facts.dbms_version.clone(),
            driver: facts.driver.clone(),
            driver_version: facts.driver_version.clone(),
        }
    }

    pub fn describe(&self) -> String {
        let f = &self.shared.facts;
        let width = match self.shared.width {
            Width::Narrow => "UTF-8",
            Width::Wide => "UTF-16",
        };
        format!(
            "{} {} through {} {} ({}, text as {width}, driver manager `{}`)",
            f.dbms,
            f.dbms_version,
            f.driver,
            f.driver_version,
            self.shared.quirks.name,
            self.shared.manager.file
        )
    }
}

/// The dialect as the lexer of parameters knows it.
pub(super) fn named_dialect(dialect: Dialect) -> named::Dialect {
    match dialect {
        Dialect::Postgres => named::Dialect::Postgres,
        Dialect::MySql => named::Dialect::MySql,
        Dialect::SqlServer => named::Dialect::SqlServer,
        Dialect::Sqlite => named::Dialect::Sqlite,
        Dialect::Other => named::Dialect::Generic,
    }
}
