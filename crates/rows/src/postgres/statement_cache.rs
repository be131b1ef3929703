//! A per-connection cache of statements, keyed by their text: the translated text, and what the server has prepared.
//!
//! A text is prepared under a name when it is executed for the second time. What changes the schema
//! or the session makes the server's descriptions stale: all names are given up then.

use std::collections::HashMap;
use std::sync::Arc;

use super::message::FieldDescription;
use super::parameters::{Translated, translate};

/// Texts that are kept.
const MOST_TEXTS: usize = 100;
/// Statements of one text that differ in the types of their parameters.
const MOST_SIGNATURES: usize = 4;
/// Texts beyond this many bytes are not kept.
const LONGEST_TEXT: usize = 64 << 10;

/// A statement that the server has prepared and described.
#[derive(Debug)]
pub(super) struct PreparedStatement {
    /// Empty for the unnamed statement, which the next one replaces.
    pub(super) name: String,
    /// The types that were declared.
    pub(super) declared: Vec<u32>,
    /// The types that the server found.
    pub(super) parameters: Vec<u32>,
    /// The columns; none for a statement without a result.
    pub(super) fields: Option<Vec<FieldDescription>>,
}

#[derive(Debug)]
struct Entry {
    translated: Arc<Translated>,
    n_uses: u32,
    last_use: u64,
    prepared: Vec<Arc<PreparedStatement>>,
}

/// The statements of a connection.
#[derive(Debug, Default)]
pub(super) struct StatementCache {
    entries: HashMap<String, Entry>,
    clock: u64,
    n_names: u64,
    /// A name was lost by no act of ours: the server's sessions change (a pooler), and names are not used any more.
    is_off: bool,
    /// Names of statements that are still to be closed.
    closing: Vec<String>,
}

impl StatementCache {
    /// The translated text, and how often it was used with this time.
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

    /// The prepared statement of a text for parameters of these types.
    pub(super) fn prepared(&self, sql: &str, types: &[u32]) -> Option<Arc<PreparedStatement>> {
        let entry = self.entries.get(sql)?;
        entry.prepared.iter().find(|p| p.declared == types).cloned()
    }

    /// A new name for a statement that is used for the `n_uses`th time; empty for one that is not to be kept.
    pub(super) fn new_name(&mut self, n_uses: u32) -> String {
        if n_uses < 2 || self.is_off {
            return String::new();
        }
        self.n_names += 1;
        format!("onecopy_{}", self.n_names)
    }

    /// Keeps a prepared statement that has a name.
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

    /// Gives up all names.
    pub(super) fn invalidate(&mut self) {
        for entry in self.entries.values_mut() {
            let names = entry.prepared.drain(..).map(|p| p.name.clone());
            self.closing.extend(names);
        }
    }

    /// Gives up all names, and uses none any more.
    pub(super) fn turn_off(&mut self) {
        self.invalidate();
        self.closing.clear();
        self.is_off = true;
    }

    /// Names to be freed with the next message.
    pub(super) fn take_closing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.closing)
    }
}

/// Returns whether a command, by the tag of its completion, may change what prepared statements
/// return or whether they exist.
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
        let mut cache = StatementCache::default();
        let (_, n) = cache.translated("select ?");
        assert_eq!(cache.new_name(n), "");
        let (translated, n) = cache.translated("select ?");
        assert_eq!((translated.sql.as_str(), n), ("select $1", 2));
        let name = cache.new_name(n);
        cache.keep("select ?", &prepared(&name, vec![23]));
        assert!(cache.prepared("select ?", &[23]).is_some());
        assert!(cache.prepared("select ?", &[20]).is_none());
        cache.invalidate();
        assert!(cache.prepared("select ?", &[23]).is_none());
        assert_eq!(cache.take_closing(), [name]);
        cache.turn_off();
        assert_eq!(cache.new_name(9), "");
    }

    #[test]
    fn the_text_that_was_used_longest_ago_makes_space() {
        let mut cache = StatementCache::default();
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
