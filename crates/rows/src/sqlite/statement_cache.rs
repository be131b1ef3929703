//! `Cache`: prepared statements that a connection reuses, keyed by SQL text. Preparing takes longer
//! than executing a query for one row.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use libsqlite3_sys as ffi;

use super::statement_kind::StatementKind;
use crate::schema::Schema;

/// The largest number of cached statements per connection. If the cache is full, the least recently
/// used statement is finalised.
const CAPACITY: usize = 64;

/// A prepared statement of SQLite, and the columns of its result.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The handle of the statement, which the connection owns and finalises.
    pub(super) stmt: *mut ffi::sqlite3_stmt,
    pub(super) sql: Arc<str>,
    pub(super) kind: StatementKind,
    pub(super) n_parameters: usize,
    /// The columns of the result; `None` before the first execution. The number is the value that
    /// the counter `SQLITE_STMTSTATUS_REPREPARE` had when the columns were read. A larger counter
    /// shows that SQLite has prepared the statement again, so that the columns may have changed.
    pub(super) schema: Option<(c_int, Schema)>,
}

// SAFETY: the handle is used only under its connection's call lock, and no handle of SQLite is
// bound to a thread.
unsafe impl Send for Prepared {}

/// The cached statements, which were reset and have no bindings. A statement in use is not in the
/// cache. Therefore a SQL string that two cursors execute at the same time has two statements.
#[derive(Debug, Default)]
pub(super) struct Cache {
    resting: HashMap<Arc<str>, (u64, Prepared)>,
    clock: u64,
}

impl Cache {
    /// Removes the statement with this SQL from the cache and returns it; `None` if the cache has
    /// no such statement.
    pub(super) fn take(&mut self, sql: &str) -> Option<Prepared> {
        self.resting.remove(sql).map(|(_, prepared)| prepared)
    }

    /// Adds a statement that was reset. If the cache already has a statement with the same SQL, or
    /// becomes too large, removes a statement and returns it. The caller must finalise the returned
    /// statement.
    #[must_use]
    pub(super) fn put(&mut self, prepared: Prepared) -> Option<Prepared> {
        self.clock += 1;
        let replaced = self
            .resting
            .insert(prepared.sql.clone(), (self.clock, prepared));
        if let Some((_, old)) = replaced {
            return Some(old);
        }
        if self.resting.len() <= CAPACITY {
            return None;
        }
        let oldest = self.resting.values().min_by_key(|(used, _)| *used);
        let sql = oldest.map(|(_, p)| p.sql.clone())?;
        self.take(&sql)
    }

    /// Removes all statements from the cache. The caller must have finalised their handles before.
    pub(super) fn forget(&mut self) {
        self.resting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(sql: &str) -> Prepared {
        Prepared {
            stmt: std::ptr::null_mut(),
            sql: sql.into(),
            kind: StatementKind::Other,
            n_parameters: 0,
            schema: None,
        }
    }

    #[test]
    fn the_statement_longest_unused_goes_first() {
        let mut cache = Cache::default();
        for i in 0..CAPACITY {
            assert!(cache.put(prepared(&format!("select {i}"))).is_none());
        }
        let first = cache.take("select 0").unwrap();
        assert!(cache.put(first).is_none());
        assert_eq!(&*cache.put(prepared("one more")).unwrap().sql, "select 1");
        assert!(cache.take("select 1").is_none());
        assert!(cache.take("select 0").is_some());
    }

    #[test]
    fn the_same_text_twice_is_kept_once() {
        let mut cache = Cache::default();
        assert!(cache.put(prepared("select 1")).is_none());
        assert!(cache.put(prepared("select 1")).is_some());
    }
}
