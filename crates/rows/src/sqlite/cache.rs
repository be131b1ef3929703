//! Prepared statements kept for reuse: preparing costs more than running a point query.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use libsqlite3_sys as ffi;

use super::sql::Kind;
use crate::schema::Schema;

/// Statements kept per connection; the one longest unused goes first.
const CAPACITY: usize = 64;

/// A prepared statement and what was learned about it.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Owned by the connection; finalised through it.
    pub(super) stmt: *mut ffi::sqlite3_stmt,
    pub(super) sql: Arc<str>,
    pub(super) kind: Kind,
    pub(super) n_parameters: usize,
    /// The columns, and how often SQLite had re-prepared the statement when they were read.
    pub(super) schema: Option<(c_int, Schema)>,
}

// SAFETY: the handle is used under its connection's call lock alone, and no handle is bound to a thread.
unsafe impl Send for Prepared {}

/// Statements at rest: reset, with no bindings. A statement in use is not in the cache, so the same text in use twice
/// is two statements.
#[derive(Debug, Default)]
pub(super) struct Cache {
    resting: HashMap<Arc<str>, (u64, Prepared)>,
    clock: u64,
}

impl Cache {
    /// Takes the statement of this text out.
    pub(super) fn take(&mut self, sql: &str) -> Option<Prepared> {
        self.resting.remove(sql).map(|(_, prepared)| prepared)
    }

    /// Puts a statement at rest; gives back one to be finalised where there is one too many.
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

    /// Forgets all; their handles were finalised.
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
            kind: Kind::Other,
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
