//! `StatementCache`: the SQL strings that a connection has executed. For each string, the cache
//! contains its translation (`$1` instead of `?`) and its prepared statements on the server.
//!
//! By default, a SQL string is prepared under a name at its second execution; the option `prepare`
//! can change this. A command that changes the schema or the session's settings may make prepared
//! statements stale, so the cache then drops all prepared statements.

use std::collections::HashMap;
use std::sync::Arc;

use super::message::FieldDescription;
use super::parameters::{Translated, translate};
use crate::database::PrepareMode;
use crate::sql::dialect::Dialect;
use crate::sql::statements::first_word;

/// The largest number of SQL strings in the cache.
const MOST_TEXTS: usize = 100;
/// The largest number of prepared statements of one SQL string, which differ in their parameter
/// types.
const MOST_SIGNATURES: usize = 4;
/// The prefix of the names that onecopy gives to prepared statements on the server.
pub(super) const NAME_PREFIX: &str = "onecopy_";
/// The largest size in bytes of a SQL string in the cache.
const LONGEST_TEXT: usize = 64 << 10;

/// A statement that the server has prepared and described.
#[derive(Debug)]
pub(super) struct PreparedStatement {
    /// The name on the server; empty for the unnamed statement, which the next Parse replaces.
    pub(super) name: String,
    /// The parameter types that Parse declared; 0 for a type that the server infers.
    pub(super) declared: Vec<u32>,
    /// The types of the parameters, as the server reported them.
    pub(super) parameters: Vec<u32>,
    /// The columns of the result; `None` for a statement without a result.
    pub(super) fields: Option<Vec<FieldDescription>>,
}

#[derive(Debug)]
struct Entry {
    translated: Arc<Translated>,
    n_uses: u32,
    last_use: u64,
    prepared: Vec<Arc<PreparedStatement>>,
}

/// Determines whether statements may be prepared under a name. The decision can be pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UseOfNames {
    /// Not yet decided. Statements are prepared without names until the connection has checked
    /// whether a connection pooler is between the client and the server.
    #[default]
    Unchecked,
    On,
    /// Statements are prepared without names, for one of three reasons: the option `prepare`
    /// forbids names, a connection pooler uses the session for several clients, or the server
    /// reported that a name is unknown that was prepared earlier.
    Off,
}

/// The statements that a connection has executed, with their prepared statements, keyed by SQL
/// text.
#[derive(Debug)]
pub(super) struct StatementCache {
    entries: HashMap<String, Entry>,
    clock: u64,
    n_names: u64,
    use_of_names: UseOfNames,
    /// The number of the execution from which on a SQL string is prepared under a name. It is
    /// determined by the [`PrepareMode`].
    first_named: u32,
    /// The names of prepared statements that are no longer in the cache, but still on the server.
    /// They are closed there together with the next Parse message.
    closing: Vec<String>,
}

impl StatementCache {
    pub(super) fn new(mode: PrepareMode) -> StatementCache {
        let (use_of_names, first_named) = match mode {
            PrepareMode::Auto => (UseOfNames::Unchecked, 2),
            PrepareMode::Always => (UseOfNames::On, 1),
            PrepareMode::Never => (UseOfNames::Off, u32::MAX),
        };
        StatementCache {
            entries: HashMap::new(),
            clock: 0,
            n_names: 0,
            use_of_names,
            first_named,
            closing: Vec::new(),
        }
    }

    /// Counts an execution of a SQL string. Returns the translation of the string, and the number
    /// of executions that have been counted so far.
    pub(super) fn translated(&mut self, sql: &str) -> (Arc<Translated>, u32) {
        self.clock += 1;
        if let Some(entry) = self.entries.get_mut(sql) {
            entry.n_uses = entry.n_uses.saturating_add(1);
            entry.last_use = self.clock;
            return (Arc::clone(&entry.translated), entry.n_uses);
        }
        let translated = Arc::new(translate(sql));
        if sql.len() <= LONGEST_TEXT {
            self.make_space();
            let entry = Entry {
                translated: Arc::clone(&translated),
                n_uses: 1,
                last_use: self.clock,
                prepared: Vec::new(),
            };
            self.entries.insert(sql.to_owned(), entry);
        }
        (translated, 1)
    }

    fn make_space(&mut self) {
        if self.entries.len() < MOST_TEXTS {
            return;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
        if let Some(sql) = oldest.map(|(sql, _)| sql.clone())
            && let Some(entry) = self.entries.remove(&sql)
        {
            self.closing
                .extend(entry.prepared.iter().map(|p| p.name.clone()));
        }
    }

    /// Returns the prepared statement for a SQL string and parameters of these types (PostgreSQL's
    /// object identifiers). Returns `None` if the cache does not contain this statement.
    pub(super) fn prepared(&self, sql: &str, types: &[u32]) -> Option<Arc<PreparedStatement>> {
        let entry = self.entries.get(sql)?;
        entry.prepared.iter().find(|p| p.declared == types).cloned()
    }

    /// Returns a new name under which to prepare `sql`, which is executed for the `n_uses`-th time.
    /// Returns an empty name if `sql` is to be prepared without a name.
    pub(super) fn new_name(&mut self, sql: &str, n_uses: u32) -> String {
        let is_named = n_uses >= self.first_named && self.use_of_names == UseOfNames::On;
        if !is_named || has_changing_columns(sql) {
            return String::new();
        }
        self.n_names += 1;
        format!("{NAME_PREFIX}{}", self.n_names)
    }

    /// Adds a named prepared statement to the cache.
    pub(super) fn keep(&mut self, sql: &str, prepared: &Arc<PreparedStatement>) {
        if prepared.name.is_empty() {
            return;
        }
        let Some(entry) = self.entries.get_mut(sql) else {
            self.closing.push(prepared.name.clone());
            return;
        };
        if entry.prepared.len() >= MOST_SIGNATURES {
            self.closing.push(entry.prepared.remove(0).name.clone());
        }
        entry.prepared.push(Arc::clone(prepared));
    }

    /// Removes all prepared statements from the cache. They are closed on the server together with
    /// the next Parse.
    pub(super) fn invalidate(&mut self) {
        for entry in self.entries.values_mut() {
            let names = entry.prepared.drain(..).map(|p| p.name.clone());
            self.closing.extend(names);
        }
    }

    /// Removes all prepared statements from the cache without closing them on the server. From now
    /// on, statements are prepared without a name.
    pub(super) fn turn_off(&mut self) {
        self.invalidate();
        self.closing.clear();
        self.use_of_names = UseOfNames::Off;
    }

    /// Permits named prepared statements. The caller has found that no other client uses the
    /// session of this connection.
    pub(super) fn turn_on(&mut self) {
        self.use_of_names = UseOfNames::On;
    }

    /// Returns `true` if this module has not yet checked whether a connection pooler (such as
    /// PgBouncer) is between the client and the server.
    pub(super) fn is_unchecked(&self) -> bool {
        self.use_of_names == UseOfNames::Unchecked
    }

    /// Returns the names of the prepared statements to close on the server, and removes them from
    /// the list.
    pub(super) fn take_closing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.closing)
    }
}

/// Returns `true` for the statements FETCH and EXECUTE. Their columns are those of the cursor or
/// prepared statement that they name. If the name later denotes another cursor or statement, its
/// columns may be others, and the server does not report the change.
fn has_changing_columns(sql: &str) -> bool {
    matches!(
        first_word(sql, Dialect::Postgres).as_str(),
        "FETCH" | "EXECUTE"
    )
}

/// Returns `true` if the command with the completion tag `tag` may make prepared statements stale,
/// because it changes the schema or the session's settings.
pub(super) fn makes_stale(tag: &str) -> bool {
    let word = tag.split(' ').next().unwrap_or_default();
    matches!(
        word,
        "CREATE"
            | "ALTER"
            | "DROP"
            | "DISCARD"
            | "DEALLOCATE"
            | "SET"
            | "RESET"
            | "IMPORT"
            | "DO"
            | "CALL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(name: &str, declared: Vec<u32>) -> Arc<PreparedStatement> {
        Arc::new(PreparedStatement {
            name: name.to_owned(),
            declared,
            parameters: Vec::new(),
            fields: None,
        })
    }

    #[test]
    fn a_text_has_a_name_from_its_second_use_on() {
        let mut cache = StatementCache::new(PrepareMode::Auto);
        let (_, n) = cache.translated("select ?");
        assert_eq!(cache.new_name("select ?", n), "");
        let (translated, n) = cache.translated("select ?");
        assert_eq!((translated.sql.as_str(), n), ("select $1", 2));
        assert!(cache.is_unchecked() && cache.new_name("select ?", n).is_empty());
        cache.turn_on();
        let name = cache.new_name("select ?", n);
        cache.keep("select ?", &prepared(&name, vec![23]));
        assert!(cache.prepared("select ?", &[23]).is_some());
        assert!(cache.prepared("select ?", &[20]).is_none());
        cache.invalidate();
        assert!(cache.prepared("select ?", &[23]).is_none());
        assert_eq!(cache.take_closing(), [name]);
        cache.turn_off();
        assert_eq!(cache.new_name("select ?", 9), "");
    }

    #[test]
    fn a_mode_decides_from_which_use_on_a_text_has_a_name() {
        for (mode, is_unchecked, named) in [
            (PrepareMode::Auto, true, [false, false]),
            (PrepareMode::Always, false, [true, true]),
            (PrepareMode::Never, false, [false, false]),
        ] {
            let mut cache = StatementCache::new(mode);
            assert_eq!(cache.is_unchecked(), is_unchecked);
            assert_eq!(
                [1, 2].map(|n| !cache.new_name("select ?", n).is_empty()),
                named,
                "{mode:?}"
            );
        }
    }

    #[test]
    fn a_statement_with_the_columns_of_a_cursor_has_no_name() {
        let mut cache = StatementCache::new(PrepareMode::Always);
        for sql in ["fetch all from c", "/* */ EXECUTE p(1)"] {
            assert_eq!(cache.new_name(sql, 2), "", "{sql}");
        }
        assert_ne!(cache.new_name("select fetch", 2), "");
    }

    #[test]
    fn the_text_that_was_used_longest_ago_makes_space() {
        let mut cache = StatementCache::new(PrepareMode::Auto);
        cache.translated("first");
        cache.keep("first", &prepared("a", vec![]));
        for i in 0..MOST_TEXTS {
            cache.translated(&format!("select {i}"));
        }
        assert_eq!(cache.entries.len(), MOST_TEXTS);
        assert_eq!(cache.take_closing(), ["a"]);
        for signature in 0..5 {
            cache.keep(
                "select 99",
                &prepared(&signature.to_string(), vec![signature]),
            );
        }
        assert_eq!(cache.take_closing(), ["0"]);
    }
}
