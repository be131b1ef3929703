//! Walks a parsed TOML document and collects every problem with its line, so that all are told at once.
//!
//! Not by serde's derive: it stops at the first problem, and its messages repeat the value at fault, which may be a
//! password.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing wrong in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where, from 1; 0 where it has no place.
    pub line: usize,
    /// Where in the line, in characters from 1.
    pub column: usize,
    /// What, with the remedy on lines of its own. Never a value of `url`.
    pub message: String,
}

/// The problems found so far, and the text to find lines in.
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

    /// Adds a problem at a byte range of the text.
    pub(super) fn add(&mut self, span: Range<usize>, message: impl Into<String>) {
        let before = &self.text[..span.start.min(self.text.len())];
        self.list.push(Problem {
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|&c| c != '\n').count() + 1,
            message: message.into(),
        });
    }
}

/// A table of which keys are taken one by one; what is left over is unknown.
pub(super) struct Table<'t, 'i> {
    table: &'t DeTable<'i>,
    /// As a user would write it: `[queries.names]`.
    path: String,
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'t, 'i> Table<'t, 'i> {
    pub(super) fn new(table: &'t DeTable<'i>, path: String, span: Range<usize>) -> Self {
        Table {
            table,
            path,
            span,
            known: Vec::new(),
        }
    }

    /// Where the table stands.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The value of `key`, with its place.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.known.push(key);
        self.table.get(key)
    }

    /// A string.
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

    /// `true` or `false`.
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

    /// A whole number in `range`.
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

    /// The tables under `key`, in the order they are written: (name, place of the name, value).
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

    /// Reports every key that was never asked for.
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

/// A single value (no array, no table) as text, digits exactly as written.
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
