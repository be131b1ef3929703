//! [`TomlTable`] reads a parsed TOML document and collects every problem with its line, so that all
//! problems are reported together.
//!
//! The derive macro of serde is not used: it stops at the first problem, and its messages contain
//! the invalid value, which may be a password.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A problem in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The number of the line of the problem in the file, counted from 1. 0 if the problem has no
    /// position.
    pub line: usize,
    /// The column of the problem in its line, in characters, counted from 1.
    pub column: usize,
    /// The message. Its second and later lines are advice. The message never contains the value of
    /// a key `url`, because this value may contain a password.
    pub message: String,
}

/// The problems found so far, and the text of the configuration, from which their lines are
/// computed.
pub(super) struct Problems<'a> {
    text: &'a str,
    pub(super) list: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Problems {
            text,
            list: Vec::new(),
        }
    }

    /// Adds a problem to the list. `span` is the byte range of the configuration text that causes
    /// the problem; the line and column are computed from its start.
    pub(super) fn add(&mut self, span: Range<usize>, message: impl Into<String>) {
        let before = &self.text[..span.start.min(self.text.len())];
        self.list.push(Problem {
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|&c| c != '\n').count() + 1,
            message: message.into(),
        });
    }
}

/// A TOML table whose keys are read one by one. [`TomlTable::finish`] reports an error for each key
/// that was not read, because such a key is unknown.
pub(super) struct TomlTable<'t, 'i> {
    table: &'t DeTable<'i>,
    /// The path of the table as a user writes it: `[queries.names]`.
    path: String,
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'t, 'i> TomlTable<'t, 'i> {
    pub(super) fn new(table: &'t DeTable<'i>, path: String, span: Range<usize>) -> Self {
        TomlTable {
            table,
            path,
            span,
            known: Vec::new(),
        }
    }

    /// Returns the position of the table in the configuration text, as a range of bytes.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns the value of `key` with its position, and marks the key as read.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Reads the string `key`. Returns `None` if the table does not have the key. Returns `None`
    /// and reports a problem if the value is not a string.
    pub(super) fn text(
        &mut self,
        key: &'static str,
        problems: &mut Problems<'_>,
    ) -> Option<(&'t str, Range<usize>)> {
        let value = self.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, "a string", value, problems);
        }
        Some((text?, value.span()))
    }

    /// Returns the boolean value of `key` and its position in the file. Returns `None` if the table
    /// does not have the key. Also returns `None`, and reports a problem, if the value is not a
    /// boolean.
    pub(super) fn boolean(
        &mut self,
        key: &'static str,
        problems: &mut Problems<'_>,
    ) -> Option<(bool, Range<usize>)> {
        let value = self.get(key)?;
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            self.wrong_type(key, "`true` or `false`", value, problems);
        }
        Some((truth?, value.span()))
    }

    /// Reads the integer `key`, which must be in `range`. Returns `None` if the table does not have
    /// the key. Returns `None` and reports a problem if the value is not an integer in `range`.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
        problems: &mut Problems<'_>,
    ) -> Option<u64> {
        let value = self.get(key)?;
        let number = value
            .get_ref()
            .as_integer()
            .and_then(|i| u64::from_str_radix(i.as_str(), i.radix()).ok())
            .filter(|n| range.contains(n));
        if number.is_none() {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong_type(key, &wanted, value, problems);
        }
        number
    }

    /// Returns the tables under `key`, in the order of the file. Each item has the name of the
    /// table, the position of the name in the file, and the value.
    pub(super) fn tables(
        &mut self,
        key: &'static str,
        problems: &mut Problems<'_>,
    ) -> Vec<(String, Range<usize>, &'t Spanned<DeValue<'i>>)> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a table", value, problems);
            return Vec::new();
        };
        let mut entries: Vec<_> = table
            .iter()
            .map(|(name, value)| (name.get_ref().to_string(), name.span(), value))
            .collect();
        entries.sort_by_key(|(_, span, _)| span.start);
        entries
    }

    fn wrong_type(
        &self,
        key: &str,
        wanted: &str,
        value: &Spanned<DeValue<'i>>,
        problems: &mut Problems<'_>,
    ) {
        let message = format!("`{key}` in {} must be {wanted}", self.path);
        problems.add(value.span(), message);
    }

    /// Reports a problem for each key of the table that was never read.
    pub(super) fn finish(self, problems: &mut Problems<'_>) {
        for (key, _) in self.table {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let known: Vec<String> = self.known.iter().map(|k| format!("`{k}`")).collect();
                problems.add(
                    key.span(),
                    format!(
                        "unknown key `{name}` in {}\nknown keys: {}",
                        self.path,
                        known.join(", ")
                    ),
                );
            }
        }
    }
}

/// Returns a scalar value as text; `None` for an array or a table. A number keeps its digits as
/// written.
pub(super) fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(s) => Some(s.to_string()),
        DeValue::Integer(i) if i.radix() == 10 => Some(i.as_str().to_owned()),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
            .ok()
            .map(|n| n.to_string()),
        DeValue::Float(f) => Some(f.as_str().to_owned()),
        DeValue::Boolean(b) => Some(b.to_string()),
        DeValue::Datetime(d) => Some(d.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
