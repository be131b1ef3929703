//! Prepared statements that a connection keeps by their texts, and what it remembers of the results of others.
//!
//! Executed again, a prepared statement saves the round trips of preparing, describing and closing it, and its plan. A driver that
//! reads through a server-side cursor has nothing to keep: each execution is a DECLARE, planned anew, a FETCH and a CLOSE. That
//! is right for a long result, and three times the work for one row. So where it is ours to say, a text whose results have
//! been short is executed without a cursor from then on, and kept; a long one sends it back to cursors for good.

use std::sync::Arc;

use super::binding::{ParameterBinding, is_text};
use super::connection_string::ConnectionString;
use super::ffi::sql;
use super::handle::StatementHandle;
use super::quirks::{CacheSupport, Quirks, Streams, Width};
use crate::database::ConnectOptions;
use crate::odbc::column::Planned;
use crate::schema::Schema;
use crate::value::Value;

/// Prepared statements that a connection keeps at most.
const MOST_STATEMENTS: usize = 16;

/// Texts of which it is remembered how long their results were, and how long such a text is at most.
const MOST_TEXTS: usize = 64;
const MOST_TEXT_BYTES: usize = 16 << 10;

/// Short results in a row, behind which the next one is taken for short.
const ENOUGH: u8 = 3;
/// A short result has at most as many rows.
pub(super) const MOST_SHORT_ROWS: u64 = 31;
/// A result without a cursor that has more rows is the last one.
const MOST_WHOLE_ROWS: u64 = 1000;
/// In place of a count: never again without a cursor.
const NEVER: u8 = u8::MAX;

/// Which statements a connection keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CachePolicy {
    /// None.
    Nothing,
    /// All that can be executed again.
    All,
    /// Those without rows, and those of short results, without a cursor.
    Short,
}

impl CachePolicy {
    /// Whether the driver holds the whole result of a statement that was executed like this.
    pub(super) fn holds_whole(self, lesson: Option<&SizeObservation>) -> bool {
        self == CachePolicy::All || matches!(lesson, Some(SizeObservation::Whole))
    }

    /// What is kept on a connection that was opened like this.
    pub(super) fn of(
        quirks: &Quirks,
        string: &ConnectionString,
        options: &ConnectOptions,
    ) -> CachePolicy {
        match quirks.keeps_prepared {
            CacheSupport::Nothing => return CachePolicy::Nothing,
            CacheSupport::All => return CachePolicy::All,
            CacheSupport::WithoutCursor { .. } => {}
        }
        let Streams::By { keyword, off } = quirks.streams else {
            return CachePolicy::Nothing;
        };
        let is_ours = quirks
            .connect
            .iter()
            .any(|&(k, v)| k == keyword && string.get(k) == Some(v));
        match string.get(keyword) {
            Some(value) if value == off => CachePolicy::All,
            _ if is_ours && options.stream.is_none() && options.guesses_short => CachePolicy::Short,
            _ => CachePolicy::Nothing,
        }
    }
}

/// The connection attribute that switches cursors off, where the driver declares one for each query.
pub(super) fn cursor_switch(quirks: &Quirks, string: &ConnectionString) -> Option<i32> {
    match (quirks.keeps_prepared, quirks.streams) {
        (CacheSupport::WithoutCursor { attribute }, Streams::By { keyword, off }) => {
            (string.get(keyword) != Some(off)).then_some(attribute)
        }
        _ => None,
    }
}

/// In place of the SQL type of a NULL.
const NULL: i16 = 0;

/// Whether a statement that takes a parameter, bound as one SQL type, for another may be executed again and again, and
/// `in_place_of_cursor`.
///
/// To a prepared statement psqlodbc tells no types: the server finds them, and they stay as they are when a column has become
/// another. So each must be what the value is by itself: then it is right for the new column too, or the server refuses it, and the
/// statement is prepared anew. A float is not (`float8` to a column that is `numeric` by now loses digits), where it is written.
///
/// Into a cursor's statement psqlodbc writes its parameters: integers of 32 bits as they are, floats, dates, times and timestamps with
/// their types, all others as strings, whose types the server finds. Prepared, `smallint_column < ?` would refuse 100,000, and
/// `select ?` be text.
fn is_by_itself(bound: i16, taken: i16, in_place_of_cursor: bool) -> bool {
    match bound {
        NULL => true,
        sql::INTEGER | sql::BIGINT if taken == sql::SMALLINT => {
            !in_place_of_cursor || bound == sql::BIGINT
        }
        sql::INTEGER | sql::BIGINT => matches!(
            taken,
            sql::INTEGER | sql::BIGINT | sql::NUMERIC | sql::DECIMAL
        ),
        sql::DECIMAL => matches!(taken, sql::NUMERIC | sql::DECIMAL),
        sql::DOUBLE => in_place_of_cursor && matches!(taken, sql::DOUBLE | sql::FLOAT),
        sql::BIT | sql::GUID | sql::TYPE_DATE | sql::TYPE_TIME | sql::TYPE_TIMESTAMP => {
            bound == taken
        }
        sql::BINARY | sql::VARBINARY | sql::LONGVARBINARY => {
            matches!(taken, sql::BINARY | sql::VARBINARY | sql::LONGVARBINARY)
        }
        _ => is_text(bound) && (taken == sql::CHAR || is_text(taken)),
    }
}

/// What a prepared statement is kept by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    sql: String,
    /// SQL types of its parameters, where they are fixed when it is prepared.
    types: Vec<i16>,
}

impl Key {
    pub(super) fn new(quirks: &Quirks, width: Width, sql: &str, parameters: &[Value]) -> Key {
        let of = |value: &Value| match ParameterBinding::of(value, width, quirks) {
            form if form.is_null && !form.is_told => NULL,
            form => form.sql_type,
        };
        Key {
            sql: sql.to_owned(),
            types: match quirks.fixes_types() {
                true => parameters.iter().map(of).collect(),
                false => Vec::new(),
            },
        }
    }
}

impl Key {
    /// Whether what was prepared for this may be executed again with it, and `in_place_of_cursor`.
    pub(super) fn fits(
        &self,
        parameter_type: impl Fn(usize) -> Option<i16>,
        in_place_of_cursor: bool,
    ) -> bool {
        let fits = |(index, &bound): (usize, &i16)| {
            let taken = parameter_type(index);
            taken.is_some_and(|taken| is_by_itself(bound, taken, in_place_of_cursor))
        };
        self.types.iter().enumerate().all(fits)
    }
}

/// What a result's columns are, and how they are read.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) planned: Vec<Planned>,
    pub(super) schema: Schema,
}

impl Columns {
    pub(super) fn new(planned: Vec<Planned>, driver: &Arc<str>) -> Columns {
        let columns = planned.iter().map(|p| p.column.clone());
        Columns {
            schema: Schema::of_driver(columns.collect(), driver),
            planned,
        }
    }
}

/// A statement that was prepared, and is not used now.
pub(super) struct CachedStatement {
    pub(super) handle: Arc<StatementHandle>,
    /// What its result's columns are again, unless it is stale.
    pub(super) columns: Option<Columns>,
}

/// What a connection keeps; the last used is the last.
#[derive(Default)]
pub(super) struct StatementCache {
    statements: Vec<(Key, CachedStatement)>,
    /// Texts, and how many short results in a row each had.
    texts: Vec<(String, u8)>,
}

impl StatementCache {
    /// Takes the statement out that is kept by this, if one is.
    pub(super) fn take(&mut self, key: &Key) -> Option<CachedStatement> {
        let at = self.statements.iter().rposition(|(of, _)| of == key)?;
        Some(self.statements.remove(at).1)
    }

    /// Takes all statements out.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Arc<StatementHandle>> {
        self.statements.drain(..).map(|(_, waiting)| waiting.handle)
    }

    /// Whether the result of this text will be short, by those before.
    pub(super) fn is_short(&self, sql: &str) -> bool {
        let known = self.texts.iter().rev().find(|(text, _)| text == sql);
        known.is_some_and(|&(_, n)| n >= ENOUGH && n != NEVER)
    }

    /// From here on the text is executed with cursors alone.
    pub(super) fn note_never(&mut self, sql: String) {
        self.note(sql, |_| NEVER);
    }

    /// Keeps a statement; returns the one that was used longest ago, where they are too many.
    pub(super) fn keep(&mut self, key: Key, waiting: CachedStatement) -> Option<CachedStatement> {
        self.statements.push((key, waiting));
        (self.statements.len() > MOST_STATEMENTS).then(|| self.statements.remove(0).1)
    }

    /// Learns from a result that ended; returns the key of its statement, where that may be executed again.
    pub(super) fn learn(
        &mut self,
        key: Option<Key>,
        lesson: Option<SizeObservation>,
        extent: RowsRead,
    ) -> Option<Key> {
        match (lesson, key) {
            (Some(SizeObservation::Whole), Some(key)) if extent.n_rows > MOST_WHOLE_ROWS => {
                self.note_never(key.sql);
                None
            }
            // Nobody has seen how long it was.
            (Some(SizeObservation::Whole), Some(key))
                if extent.n_rows > MOST_SHORT_ROWS && !extent.is_all =>
            {
                self.note(key.sql, |_| 0);
                None
            }
            (Some(SizeObservation::Cursor(sql)), key) => {
                if extent.n_rows > MOST_SHORT_ROWS {
                    self.note(sql, |n| if n == NEVER { NEVER } else { 0 });
                } else if extent.is_all {
                    self.note(sql, |n| match n {
                        NEVER => NEVER,
                        n => (n + 1).min(ENOUGH),
                    });
                }
                key
            }
            (_, key) => key,
        }
    }

    fn note(&mut self, sql: String, of: impl FnOnce(u8) -> u8) {
        if sql.len() > MOST_TEXT_BYTES {
            return;
        }
        let at = self.texts.iter().rposition(|(text, _)| *text == sql);
        let before = at.map_or(0, |at| self.texts.remove(at).1);
        self.texts.push((sql, of(before)));
        if self.texts.len() > MOST_TEXTS {
            self.texts.remove(0);
        }
    }
}

/// What is to be learned from a result.
#[derive(Debug)]
pub(super) enum SizeObservation {
    /// Of a text that was executed with a cursor: how long it is.
    Cursor(String),
    /// Of one that was executed without: whether that was right.
    Whole,
}

/// How much of a result was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowsRead {
    pub(super) n_rows: u64,
    /// Whether that is known to be all.
    pub(super) is_all: bool,
}
