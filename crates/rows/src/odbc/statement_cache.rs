//! `StatementCache`: prepared statements that a connection reuses, keyed by SQL text, and
//! observations about the sizes of results.
//!
//! The reuse of a prepared statement saves the round trips that prepare, describe and close it, and
//! the planning on the server. A driver that reads with a server-side cursor has nothing to reuse,
//! because each execution consists of a DECLARE with a new plan, a FETCH and a CLOSE. A cursor
//! suits a long result, but a result of one row takes three times as long with a cursor as with a
//! cached statement. If the driver supports both, SQL whose last results were short is executed
//! without a cursor, and its prepared statement is cached. After a long result, the same SQL is
//! executed only with cursors.

use std::sync::Arc;

use super::connection_string::ConnectionString;
use super::ffi::sql;
use super::handle::StatementHandle;
use super::parameter_binding::{ParameterBinding, is_text};
use super::quirks::{CacheSupport, Quirks, Streams, Width};
use crate::database::ConnectOptions;
use crate::odbc::column::Planned;
use crate::schema::Schema;
use crate::value::Value;

/// The largest number of prepared statements in the cache of a connection.
const MOST_STATEMENTS: usize = 16;

/// The largest number of SQL strings whose result sizes are recorded.
const MOST_TEXTS: usize = 64;
/// The largest length in bytes of a SQL string whose result sizes are recorded.
const MOST_TEXT_BYTES: usize = 16 << 10;

/// If a SQL string has had this number of consecutive short results, its next result is expected to
/// be short.
const ENOUGH: u8 = 3;
/// The largest number of rows of a result that counts as short.
pub(super) const MOST_SHORT_ROWS: u64 = 31;
/// The largest number of rows of a result that is read without a server-side cursor. If a result
/// has more rows, its SQL string is always executed with a cursor afterwards.
const MOST_WHOLE_ROWS: u64 = 1000;
/// A special value of the counter of consecutive short results. It marks a SQL string that is
/// always executed with a cursor.
const NEVER: u8 = u8::MAX;

/// Selects the statements that a connection caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CachePolicy {
    /// The connection caches no statement.
    Nothing,
    /// The connection caches all statements that can be executed again.
    All,
    /// The connection caches statements that return no rows, and queries with short results, which
    /// it executes without a cursor.
    Short,
}

impl CachePolicy {
    /// Returns `true` if the driver holds the whole result of a statement in memory. It does so
    /// with the policy `All`, and if the statement was executed without a server-side cursor
    /// ([`SizeObservation::Whole`]).
    pub(super) fn holds_whole(self, lesson: Option<&SizeObservation>) -> bool {
        self == CachePolicy::All || matches!(lesson, Some(SizeObservation::Whole))
    }

    /// Returns the caching policy for a connection that was opened with these options.
    pub(super) fn of(
        quirks: &Quirks,
        string: &ConnectionString,
        options: &ConnectOptions,
    ) -> CachePolicy {
        match quirks.keeps_prepared {
            CacheSupport::Nothing => return CachePolicy::Nothing,
            CacheSupport::NamedColumns => return CachePolicy::All,
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

/// Returns the number of the ODBC connection attribute that switches server-side cursors on and
/// off. Returns `None` if the driver has no such attribute, or does not use a cursor for queries.
pub(super) fn cursor_switch(quirks: &Quirks, string: &ConnectionString) -> Option<i32> {
    match (quirks.keeps_prepared, quirks.streams) {
        (CacheSupport::WithoutCursor { attribute }, Streams::By { keyword, off }) => {
            (string.get(keyword) != Some(off)).then_some(attribute)
        }
        _ => None,
    }
}

/// The value in [`Key::types`] for a NULL without a declared type.
const NULL: i16 = 0;

/// Returns `true` if a prepared statement may be executed again with a parameter that is bound as
/// the SQL type `bound`, and for which the server has inferred the type `taken`. `without_cursor`
/// is `true` if the statement is executed without a server-side cursor.
///
/// psqlodbc passes no types to a prepared statement. The server infers the types, and they stay the
/// same when the type of a column changes later. Each inferred type must therefore be the type of
/// the value itself. After a change of the column, the server then either converts the value
/// correctly, or refuses the statement, which is prepared again. A float that is written to a
/// column is an exception: if the column has become `numeric`, the float would lose digits as a
/// `float8`.
///
/// If a statement is executed with a cursor, psqlodbc inserts the parameters into its text.
/// Integers of 32 bits are inserted without quotes. Floats, dates, times and timestamps are
/// inserted with their types. All other values are inserted as strings, whose types the server
/// infers. In a prepared statement, `smallint_column < ?` would refuse 100,000, and `select ?`
/// would return text.
fn is_by_itself(bound: i16, taken: i16, without_cursor: bool) -> bool {
    match bound {
        NULL => true,
        sql::INTEGER | sql::BIGINT if taken == sql::SMALLINT => {
            !without_cursor || bound == sql::BIGINT
        }
        sql::INTEGER | sql::BIGINT => matches!(
            taken,
            sql::INTEGER | sql::BIGINT | sql::NUMERIC | sql::DECIMAL
        ),
        sql::DECIMAL => matches!(taken, sql::NUMERIC | sql::DECIMAL),
        sql::DOUBLE => without_cursor && matches!(taken, sql::DOUBLE | sql::FLOAT),
        sql::BIT | sql::GUID | sql::TYPE_DATE | sql::TYPE_TIME | sql::TYPE_TIMESTAMP => {
            bound == taken
        }
        sql::BINARY | sql::VARBINARY | sql::LONGVARBINARY => {
            matches!(taken, sql::BINARY | sql::VARBINARY | sql::LONGVARBINARY)
        }
        _ => is_text(bound) && (taken == sql::CHAR || is_text(taken)),
    }
}

/// The key of a cached prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    sql: String,
    /// The SQL types of the parameters, if a prepared statement can only be executed with the types
    /// for which it was prepared; otherwise empty.
    types: Vec<i16>,
}

impl Key {
    pub(super) fn new(quirks: &Quirks, width: Width, sql: &str, parameters: &[Value]) -> Key {
        let of = |value: &Value| match ParameterBinding::of(value, width, quirks) {
            form if form.is_null && !form.is_declared => NULL,
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
    /// Returns `true` if a statement that was prepared for this key may be executed again: if
    /// [`is_by_itself`] accepts the type that the server has inferred for each parameter.
    /// `parameter_type` returns the inferred type of the parameter with an index. `without_cursor`
    /// is `true` if the statement is executed without a cursor.
    pub(super) fn fits(
        &self,
        parameter_type: impl Fn(usize) -> Option<i16>,
        without_cursor: bool,
    ) -> bool {
        let fits = |(index, &bound): (usize, &i16)| {
            let taken = parameter_type(index);
            taken.is_some_and(|taken| is_by_itself(bound, taken, without_cursor))
        };
        self.types.iter().enumerate().all(fits)
    }
}

/// The columns of a result: their names and types, and for each column the plan of the buffer into
/// which the driver writes its values.
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

/// A cached prepared statement, which no execution uses currently.
pub(super) struct CachedStatement {
    pub(super) handle: Arc<StatementHandle>,
    /// The columns of the statement's result; `None` if the driver must describe them again.
    pub(super) columns: Option<Columns>,
}

/// The cached statements of a connection, ordered by their last use; the last one was used most
/// recently.
#[derive(Default)]
pub(super) struct StatementCache {
    statements: Vec<(Key, CachedStatement)>,
    /// The recently executed SQL strings, each with the number of consecutive short results that it
    /// has had.
    texts: Vec<(String, u8)>,
}

impl StatementCache {
    /// Removes the statement with this key from the cache and returns it; `None` if there is no
    /// such statement.
    pub(super) fn take(&mut self, key: &Key) -> Option<CachedStatement> {
        let at = self.statements.iter().rposition(|(of, _)| of == key)?;
        Some(self.statements.remove(at).1)
    }

    /// Removes all statements from the cache and returns their handles.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Arc<StatementHandle>> {
        self.statements.drain(..).map(|(_, waiting)| waiting.handle)
    }

    /// Returns `true` if the next result of `sql` is expected to be short.
    pub(super) fn is_short(&self, sql: &str) -> bool {
        let known = self.texts.iter().rev().find(|(text, _)| text == sql);
        known.is_some_and(|&(_, n)| n >= ENOUGH && n != NEVER)
    }

    /// Records that `sql` is executed only with a server-side cursor from now on.
    pub(super) fn note_never(&mut self, sql: String) {
        self.note(sql, |_| NEVER);
    }

    /// Adds a statement to the cache. If the cache is full, removes the least recently used
    /// statement and returns it.
    pub(super) fn keep(&mut self, key: Key, waiting: CachedStatement) -> Option<CachedStatement> {
        self.statements.push((key, waiting));
        (self.statements.len() > MOST_STATEMENTS).then(|| self.statements.remove(0).1)
    }

    /// Records the number of rows of a result after it has ended. Returns `key` if the prepared
    /// statement of the result may be cached under this key, otherwise `None`.
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
            // Only a part of the result was read, so its length is unknown.
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

/// The way in which a statement was executed. It determines how the size of its result is recorded
/// after the result has ended.
#[derive(Debug)]
pub(super) enum SizeObservation {
    /// The statement was executed with a server-side cursor. The value is its SQL string. When the
    /// result has ended, the number of consecutive short results of this SQL string is updated.
    Cursor(String),
    /// The statement was executed without a cursor, so the driver read the whole result. If the
    /// result was long, the SQL string is executed only with cursors from then on.
    Whole,
}

/// The number of rows that were read from a result, and whether the result has no other rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowsRead {
    pub(super) n_rows: u64,
    /// `true` if all rows of the result were read.
    pub(super) is_all: bool,
}
