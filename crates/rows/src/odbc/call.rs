//! `Call`: access to a connection for driver calls. It holds the connection's lock, and guarantees
//! that the connection's handle is alive.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};

use onecopy_wire::lock::lock;

use super::driver::Driver;
use super::ffi::{self, Handle};
use super::handle::StatementHandle;
use super::health;
use super::shared::{SessionState, SharedConnection};
use super::statement_cache::{CachedStatement, Columns, Key, RowsRead, SizeObservation};
use crate::error::{Error, ErrorKind};

/// A connection whose lock is held, so that driver calls can be made.
pub(crate) struct Call<'a> {
    shared: &'a SharedConnection,
    state: MutexGuard<'a, SessionState>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl<'a> Call<'a> {
    /// Begins a driver call on the connection whose locked state is `state`. The connection's
    /// handle must be alive.
    pub(super) fn new(
        shared: &'a SharedConnection,
        state: MutexGuard<'a, SessionState>,
    ) -> Call<'a> {
        shared.caller.enter();
        Call { shared, state }
    }

    /// Sets the number of rows that the driver requests from the server at a time. Does nothing if
    /// the driver has no attribute for that number, if the user's connection string sets it, or if
    /// the number is already `n_rows`.
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

    /// Some drivers have a setting that sends each row of parameters in a separate message. This
    /// method switches the setting off before an array of parameters is executed (`is_array` is
    /// `true`), and on again afterwards. Does nothing if the driver has no such setting.
    pub(crate) fn set_for_arrays(&self, is_array: bool) {
        if let Some(attribute) = self.shared.off_for_arrays {
            self.set_integer(attribute, usize::from(!is_array));
        }
    }

    /// Sets a connection attribute of the driver to an integer. If the driver refuses, it keeps its
    /// setting, and no error is returned.
    pub(super) fn set_integer(&self, attribute: i32, value: usize) {
        // SAFETY: the connection handle is alive while its lock is held; the attribute's value is
        // an integer, passed as the pointer.
        unsafe {
            (self.shared.manager.call.set_connect_attr)(
                self.state.raw.0,
                attribute,
                value as *mut c_void,
                ffi::IS_UINTEGER,
            )
        };
    }

    /// Allocates a statement handle, which is freed at the latest when the connection is closed.
    pub(crate) fn statement(&mut self) -> Result<Arc<StatementHandle>, Error> {
        let mut raw: Handle = std::ptr::null_mut();
        // SAFETY: the connection handle is alive while its lock is held; the out pointer is a live
        // local.
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

    /// Removes the prepared statement with this key from the cache, and returns it. Returns `None`
    /// if the cache does not contain it.
    pub(super) fn prepared(&mut self, key: &Key) -> Option<CachedStatement> {
        let waiting = self.state.cache.take(key)?;
        self.state.statements.push(Arc::downgrade(&waiting.handle));
        Some(waiting)
    }

    /// Frees the handles of all statements, including statements with results, before a table is
    /// dropped or altered; see [`Quirks::miscounts`](super::quirks::Quirks).
    pub(super) fn free_statements(&mut self) {
        self.state.free_statements();
    }

    /// Returns `true` if the result of `sql` is likely to be short, because the last results of the
    /// same SQL string were short.
    pub(super) fn is_short(&self, sql: &str) -> bool {
        self.state.cache.is_short(sql)
    }

    /// Records that `sql` must be executed only with a server-side cursor from now on.
    pub(super) fn note_never(&mut self, sql: &str) {
        self.state.cache.note_never(sql.to_owned());
    }

    pub(super) fn shared(&self) -> &'a SharedConnection {
        self.shared
    }

    /// Returns the number of the connection's statements whose handle was not freed, including
    /// cached statements.
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
        // In autocommit mode, cursors of psqlodbc are declared WITH HOLD, so they survive an empty
        // commit.
        let holds = self.state.autocommit && how == ffi::COMMIT && self.shared.quirks.ends_cursors;
        if !keeps && !holds {
            self.shared.ended.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Returns `result`. If it is an error that reports a lost connection, the connection is marked
    /// as lost. The error then becomes transient, whatever its code, because a new connection may
    /// succeed.
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

    /// Returns `true` if the driver reports the connection as lost.
    fn is_dead(&self) -> bool {
        // SAFETY: the connection handle is alive while its lock is held.
        unsafe { health::is_dead(self.shared.manager, self.state.raw.0) }
    }

    /// Returns `true` if each statement is its own transaction.
    pub(crate) fn autocommit(&self) -> bool {
        self.state.autocommit
    }

    pub(crate) fn set_autocommit(&mut self, on: bool) -> Result<(), Error> {
        if self.state.autocommit == on {
            return Ok(());
        }
        // SAFETY: the connection handle is alive; this attribute's value is an integer, passed as
        // the pointer.
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

impl SharedConnection {
    /// Waits until no other call of this connection is active, then acquires the connection's lock.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] in a forked child and after `close`; [`ErrorKind::Operational`] if
    /// the connection was lost.
    pub(crate) fn enter(&self) -> Result<Call<'_>, Error> {
        self.check_process()?;
        self.health.check()?;
        let state = lock(&self.state);
        if state.raw.0.is_null() {
            return Err(Error::new(ErrorKind::Interface, "the connection is closed"));
        }
        Ok(Call::new(self, state))
    }

    /// Ends a statement whose result was read or discarded. Puts the handle of the statement into
    /// the statement cache, or frees the handle. Afterwards, cancel handles of the statement have
    /// no effect.
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
    /// Switches the driver's server-side cursors off, before a statement that is executed without a
    /// cursor, or on again after it. Does nothing if this connection does not switch cursors.
    pub(super) fn set_cursor(&self, is_on: bool) {
        if let Some(attribute) = self.shared().cursor_switch {
            self.set_integer(attribute, usize::from(is_on));
        }
    }
}
