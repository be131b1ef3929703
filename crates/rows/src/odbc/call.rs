//! A connection inside a driver call: its lock is held, its handle is alive.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};

use super::driver::Driver;
use super::ffi::{self, Handle};
use super::handle::{StatementHandle, lock};
use super::health;
use super::shared::{Shared, State};
use super::statement_cache::{CachedStatement, Columns, Key, RowsRead, SizeObservation};
use crate::error::{Error, ErrorKind};

/// The connection's lock, held during a driver call.
pub(crate) struct Call<'a> {
    shared: &'a Shared,
    state: MutexGuard<'a, State>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl<'a> Call<'a> {
    /// Of a connection whose lock is held and whose handle is alive.
    pub(super) fn new(shared: &'a Shared, state: MutexGuard<'a, State>) -> Call<'a> {
        shared.caller.enter();
        Call { shared, state }
    }

    /// Tells the driver how many rows to ask the server for at once, where it is ours to say and not said already.
    pub(crate) fn set_fetch_size(&self, n_rows: usize) {
        let (Some(last), Some(how)) = (&self.shared.fetch_size, self.shared.quirks.fetch_size)
        else {
            return;
        };
        if last.swap(n_rows, Ordering::Relaxed) == n_rows {
            return;
        }
        self.set_integer(how.attribute, n_rows);
    }

    /// Before an array of parameters runs, and behind it: switches what makes the driver send row by row.
    pub(crate) fn set_for_arrays(&self, is_array: bool) {
        if let Some(attribute) = self.shared.off_for_arrays {
            self.set_integer(attribute, usize::from(!is_array));
        }
    }

    /// Sets an attribute of the driver's own; one that refuses goes on with what it has.
    pub(super) fn set_integer(&self, attribute: i32, value: usize) {
        // SAFETY: the connection handle is alive while its lock is held; the attribute's value is an integer in the
        // pointer's place.
        unsafe {
            (self.shared.manager.call.set_connect_attr)(
                self.state.raw.0,
                attribute,
                value as *mut c_void,
                ffi::IS_UINTEGER,
            )
        };
    }

    /// A new statement handle.
    pub(crate) fn statement(&mut self) -> Result<Arc<StatementHandle>, Error> {
        let mut raw: Handle = std::ptr::null_mut();
        // SAFETY: the connection handle is alive while its lock is held; the out pointer is a live local.
        let rc = unsafe {
            (self.shared.manager.call.alloc_handle)(
                ffi::HANDLE_STMT,
                self.state.raw.0,
                &raw mut raw,
            )
        };
        if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
            return self.watch(Err(self.shared.error(self.state.raw.0, "SQLAllocHandle")));
        }
        let cancel_after = self.shared.quirks.cancel_after;
        let caller = &self.shared.caller;
        let handle = StatementHandle::new(self.shared.manager, raw, cancel_after, caller);
        self.state.statements.push(Arc::downgrade(&handle));
        Ok(handle)
    }

    /// The statement that was prepared before and is kept by this, if one is.
    pub(super) fn prepared(&mut self, key: &Key) -> Option<CachedStatement> {
        let waiting = self.state.cache.take(key)?;
        self.state.statements.push(Arc::downgrade(&waiting.handle));
        Some(waiting)
    }

    /// Frees the handles of all statements, those with results too: see [`Quirks::miscounts`](super::quirks::Quirks).
    pub(super) fn free_statements(&mut self) {
        self.state.free_statements();
    }

    /// Whether the result of this text will be short, by those before.
    pub(super) fn is_short(&self, sql: &str) -> bool {
        self.state.cache.is_short(sql)
    }

    /// From here on the text is executed with cursors alone.
    pub(super) fn note_never(&mut self, sql: &str) {
        self.state.cache.note_never(sql.to_owned());
    }

    pub(super) fn shared(&self) -> &'a Shared {
        self.shared
    }

    /// How many statements have a handle.
    pub(crate) fn n_statements(&self) -> usize {
        let handles = self.state.statements.iter().filter_map(Weak::upgrade);
        handles.filter(|handle| !handle.get().is_null()).count()
    }

    pub(crate) fn end(&mut self, how: i16) -> Result<(), Error> {
        if !self.shared.facts.transactions {
            return Ok(());
        }
        let rc =
            // SAFETY: the connection handle is alive while its lock is held.
            unsafe { (self.shared.manager.call.end_tran)(ffi::HANDLE_DBC, self.state.raw.0, how) };
        if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
            return self.watch(Err(self.shared.error(self.state.raw.0, "SQLEndTran")));
        }
        if self.shared.quirks.hides_loss && self.is_dead() {
            self.shared.health.lose();
            return Err(crate::health::lost());
        }
        let keeps = match how {
            ffi::COMMIT => self.shared.facts.commit_keeps,
            _ => self.shared.facts.rollback_keeps,
        };
        // In autocommit mode a cursor of psqlodbc's outlives its transaction (WITH HOLD), and so a commit of nothing.
        let holds = self.state.autocommit && how == ffi::COMMIT && self.shared.quirks.ends_cursors;
        if !keeps && !holds {
            self.shared.ended.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Passes a result on. After an error that reports a loss the connection is lost, and the error
    /// is transient, whatever its code: another connection may serve.
    pub(crate) fn watch<T>(&self, mut result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &mut result
            && (crate::health::says_lost(error, self.shared.quirks.dialect)
                || (self.shared.quirks.knows_loss && !error.sqlstate.is_empty() && self.is_dead()))
        {
            self.shared.health.lose();
            error.is_transient = true;
        }
        result
    }

    /// Whether the driver knows that the connection is gone.
    fn is_dead(&self) -> bool {
        // SAFETY: the connection handle is alive while its lock is held.
        unsafe { health::is_dead(self.shared.manager, self.state.raw.0) }
    }

    /// Whether each statement is its own transaction.
    pub(crate) fn autocommit(&self) -> bool {
        self.state.autocommit
    }

    pub(crate) fn set_autocommit(&mut self, on: bool) -> Result<(), Error> {
        if self.state.autocommit == on {
            return Ok(());
        }
        // SAFETY: the connection handle is alive; this attribute's value is an integer in the pointer's place.
        let rc = unsafe {
            (self.shared.manager.call.set_connect_attr)(
                self.state.raw.0,
                ffi::ATTR_AUTOCOMMIT,
                usize::from(on) as *mut c_void,
                ffi::IS_UINTEGER,
            )
        };
        if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
            return self.watch(Err(self
                .shared
                .error(self.state.raw.0, "SQLSetConnectAttr")));
        }
        self.state.autocommit = on;
        Ok(())
    }
}

impl Shared {
    /// Waits until no other call of this connection is under way.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] in another process and after `close`; [`ErrorKind::Operational`] where it was lost.
    pub(crate) fn enter(&self) -> Result<Call<'_>, Error> {
        self.check_process()?;
        self.health.check()?;
        let state = lock(&self.state);
        if state.raw.0.is_null() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        Ok(Call::new(self, state))
    }

    /// Keeps a statement whose result ends, or frees it. Who could cancel it so far cancels nothing any more.
    pub(super) fn end_statement(
        &self,
        handle: &Arc<StatementHandle>,
        columns: Option<Columns>,
        key: Option<Key>,
        lesson: Option<SizeObservation>,
        extent: RowsRead,
    ) {
        if self.is_foreign() {
            handle.forget();
            return;
        }
        let mut state = self.state();
        let key = state.cache.learn(key, lesson, extent);
        let is_good = self.health.is_usable() && !state.raw.0.is_null() && !handle.get().is_null();
        match key {
            Some(key) if is_good => {
                Driver::new(self, handle).reset();
                let waiting = CachedStatement {
                    handle: handle.renewed(),
                    columns: columns.filter(|_| self.quirks.fixes_types()),
                };
                if let Some(oldest) = state.cache.keep(key, waiting) {
                    oldest.handle.free();
                }
            }
            _ => handle.free(),
        }
        state.statements.retain(|w| w.strong_count() > 0);
    }
}

impl Call<'_> {
    /// Switches cursors off before a statement is executed without one, and on after it.
    pub(super) fn set_cursor(&self, is_on: bool) {
        if let Some(attribute) = self.shared().cursor_switch {
            self.set_integer(attribute, usize::from(is_on));
        }
    }
}
