//! Executes a statement: directly, after preparing it, or with a handle from the statement cache.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::call::Call;
use super::driver::Driver;
use super::handle::StatementHandle;
use super::parameter_casts;
use super::quirks::CacheSupport;
use super::shared::SharedConnection;
use super::statement_cache::{CachePolicy, CachedStatement, Columns, Key, SizeObservation};
use crate::database::Prepared;
use crate::error::{Error, Message};
use crate::schema::Schema;
use crate::sql::dialect::Dialect;
use crate::sql::statements;
use crate::value::Value;

/// The result of an execution: its columns, the number of changed rows, and the database's
/// messages.
pub(super) struct ExecuteResult {
    pub(super) columns: Columns,
    pub(super) row_count: Option<u64>,
    /// `true` for a result with columns but without rows, such as that of an `UPDATE … RETURNING`
    /// that changed no row.
    pub(super) is_empty: bool,
    pub(super) messages: Vec<Message>,
}

/// The outcome of executing a statement: its handle, its result or error, and the data for caching
/// the statement.
pub(super) struct Execution {
    pub(super) handle: Arc<StatementHandle>,
    pub(super) result: Result<ExecuteResult, Error>,
    /// The key under which the statement cache will store the statement's handle when the result
    /// has ended; `None` if the statement must not be cached.
    pub(super) key: Option<Key>,
    /// How the statement was executed: with or without a server-side cursor. After the result has
    /// ended, its size is recorded in a way that depends on this. `None` if the size must not be
    /// recorded.
    pub(super) lesson: Option<SizeObservation>,
}

/// Executes `sql`, with the cached statement for this SQL if the cache contains one.
pub(super) fn run(
    shared: &SharedConnection,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<Execution, Error> {
    let sql = &*parameter_casts::with_casts(sql, parameters, shared.quirks.dialect);
    if statements::is_plain_query(sql, shared.quirks.dialect) {
        return run_text(shared, call, sql, parameters);
    }
    if shared.has_miscounted.load(Ordering::Relaxed)
        && statements::drops_or_alters_table(sql, shared.quirks.dialect)
    {
        call.free_statements();
    }
    call.set_cursor(false);
    let ran = run_text(shared, call, sql, parameters);
    call.set_cursor(true);
    ran
}

fn run_text(
    shared: &SharedConnection,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<Execution, Error> {
    // A text with `?` is prepared, so that a missing value is an error: SQLite's and MariaDB's
    // drivers would use NULL or an arbitrary value. psqlodbc describes the columns of a RETURNING
    // without rows only for a prepared statement.
    let is_direct =
        parameters.is_empty() && !sql.contains('?') && !shared.hides_empty_returning(sql);
    let keeping = shared.cache_policy;
    if is_direct || keeping == CachePolicy::Nothing || !may_be_kept(shared, sql) {
        let handle = call.statement()?;
        let how = match is_direct {
            true => How::Direct,
            false => How::Prepared,
        };
        let result = execute(shared, &handle, sql, parameters, how);
        return Ok(Execution {
            handle,
            result,
            key: None,
            lesson: None,
        });
    }
    let reads = reads(shared, sql);
    let by_length = reads && keeping == CachePolicy::Short;
    if by_length && !call.is_short(sql) {
        return run_by_cursor(shared, call, sql, parameters);
    }
    let key = Key::new(shared.quirks, shared.width, sql, parameters);
    let mut stale = None;
    if by_length {
        call.set_cursor(false);
    }
    let ran = run_kept(shared, call, sql, parameters, &key, by_length, &mut stale);
    if by_length {
        call.set_cursor(true);
    }
    let mut ran = if let Some((handle, result, fits)) = ran? {
        let gives_rows = matches!(&result, Ok(executed) if !executed.columns.planned.is_empty());
        Execution {
            handle,
            result,
            key: (fits && (reads || !gives_rows)).then_some(key),
            lesson: by_length.then_some(SizeObservation::Whole),
        }
    } else {
        let ran = run_by_cursor(shared, call, sql, parameters)?;
        if ran.result.is_ok() {
            call.note_never(sql);
        }
        ran
    };
    // 25P02, "in failed SQL transaction": without savepoints, the error of the stale statement has
    // aborted the transaction. That error, which is the cause, is returned.
    if let (Some(first), Err(error)) = (stale, &mut ran.result)
        && error.sqlstate == "25P02"
    {
        *error = first;
    }
    Ok(ran)
}

/// Executes a statement with a server-side cursor, and arranges that the number of rows of its
/// result is recorded.
fn run_by_cursor(
    shared: &SharedConnection,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<Execution, Error> {
    let handle = call.statement()?;
    let result = execute(shared, &handle, sql, parameters, How::Prepared);
    Ok(Execution {
        handle,
        result,
        key: None,
        lesson: Some(SizeObservation::Cursor(sql.to_owned())),
    })
}

/// A statement's handle, the result of its execution, and a flag that is `true` if the handle may
/// be executed again.
type Done = (Arc<StatementHandle>, Result<ExecuteResult, Error>, bool);

/// Executes a cached statement, or prepares and executes a statement that may be cached afterwards.
/// If `without_cursor` is `true`, the statement must be executed without a server-side cursor. If
/// this would change the meaning of its parameters, executes nothing and returns `None`. If a
/// cached statement is stale, stores its error in `stale`.
fn run_kept(
    shared: &SharedConnection,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
    key: &Key,
    without_cursor: bool,
    stale: &mut Option<Error>,
) -> Result<Option<Done>, Error> {
    if let Some(CachedStatement { handle, columns }) = call.prepared(key) {
        match execute(shared, &handle, sql, parameters, How::Again(columns)) {
            Err(error) if is_stale(shared, &error) => *stale = Some(error),
            result => return Ok(Some((handle, result, true))),
        }
        // A table of the statement was changed after the statement was prepared, so it is prepared
        // again.
        handle.free();
    }
    let handle = call.statement()?;
    let fits = {
        let _busy = shared.busy(&handle);
        let driver = Driver::new(shared, &handle);
        let prepared = driver.prepare(sql);
        prepared.map(|()| key.fits(|index| driver.parameter_type(index), without_cursor))
    };
    Ok(match fits {
        Ok(false) if without_cursor => {
            handle.free();
            None
        }
        Ok(fits) => {
            let result = execute(shared, &handle, sql, parameters, How::Again(None));
            Some((handle, result, fits))
        }
        Err(error) => Some((handle, Err(error), false)),
    })
}

/// The way in which a statement is executed.
enum How {
    Direct,
    Prepared,
    /// The handle was taken from the statement cache. The value contains the columns that were
    /// described at an earlier execution; `None` if they must be described.
    Again(Option<Columns>),
}

fn execute(
    shared: &SharedConnection,
    handle: &Arc<StatementHandle>,
    sql: &str,
    parameters: &[Value],
    how: How,
) -> Result<ExecuteResult, Error> {
    let _busy = shared.busy(handle);
    let driver = Driver::new(shared, handle);
    if matches!(how, How::Prepared) {
        driver.prepare(sql)?;
    }
    // If no row is changed, the driver manager describes no columns after the execution. The
    // columns are therefore read before it.
    let of_returning = match &how {
        How::Direct => None,
        // A cached handle without columns returns no rows, so there are no columns to read.
        How::Again(Some(columns)) if columns.planned.is_empty() => None,
        _ if shared.hides_empty_returning(sql) => Some(driver.columns(driver.n_columns()?)?),
        _ => None,
    };
    let no_data = match how {
        How::Direct => driver.exec_direct(sql)?,
        How::Prepared | How::Again(_) => driver.execute(sql, parameters)?,
    };
    let of_returning = of_returning.filter(|columns| no_data && !columns.is_empty());
    let is_empty = of_returning.is_some();
    let (row_count, n_columns) = match is_empty {
        true => (Some(0), 0),
        false => driver.pass_counts()?,
    };
    let columns = match how {
        _ if is_empty => Columns::new(of_returning.unwrap_or_default(), &shared.facts.driver_label),
        How::Again(Some(columns)) if columns.planned.len() == n_columns => columns,
        _ => Columns::new(driver.columns(n_columns)?, &shared.facts.driver_label),
    };
    Ok(ExecuteResult {
        columns,
        row_count: row_count.filter(|n| *n > 0 || counts_rows(shared, sql)),
        is_empty,
        messages: driver.messages.into_inner(),
    })
}

/// Returns `true` if the handle that was prepared for this SQL may be executed again. Returns
/// `false` for a procedure call, because each call may return other columns.
fn may_be_kept(shared: &SharedConnection, sql: &str) -> bool {
    let dialect = shared.quirks.dialect;
    let needs_names = matches!(shared.quirks.keeps_prepared, CacheSupport::NamedColumns);
    if needs_names && statements::selects_star(sql, dialect) {
        return false;
    }
    let word = statements::first_word(sql, dialect);
    matches!(
        word.as_str(),
        "SELECT" | "WITH" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE"
    ) && !statements::has_second(sql, dialect)
}

/// Returns `true` if the driver reports how many rows `sql` changed, even if the number is 0. There
/// is no such number for a statement like CREATE or SET.
fn counts_rows(shared: &SharedConnection, sql: &str) -> bool {
    let word = statements::first_word(sql, shared.quirks.dialect);
    !matches!(
        word.as_str(),
        "CREATE"
            | "ALTER"
            | "DROP"
            | "TRUNCATE"
            | "RENAME"
            | "COMMENT"
            | "GRANT"
            | "REVOKE"
            | "SET"
            | "RESET"
            | "BEGIN"
            | "START"
            | "COMMIT"
            | "ROLLBACK"
            | "SAVEPOINT"
            | "RELEASE"
            | "USE"
            | "LOCK"
            | "ANALYZE"
            | "VACUUM"
    )
}

/// Returns `true` if `sql` is a query (SELECT or WITH) that changes nothing. A statement that
/// writes and returns rows (`INSERT … RETURNING`) is not cached, because a change of its columns
/// would be reported only after the write.
fn reads(shared: &SharedConnection, sql: &str) -> bool {
    let dialect = shared.quirks.dialect;
    let word = statements::first_word(sql, dialect);
    matches!(word.as_str(), "SELECT" | "WITH") && statements::is_plain_query(sql, dialect)
}

impl SharedConnection {
    /// Returns `true` if `sql` is a statement with RETURNING that must be prepared, because the
    /// driver returns no columns if the statement is executed directly and changes no row.
    fn hides_empty_returning(&self, sql: &str) -> bool {
        let dialect = self.quirks.dialect;
        dialect == Dialect::Postgres && statements::returns_rows(sql, dialect)
    }
}

/// Returns `true` if an execution may have failed because the schema changed after the statement
/// was prepared. Such an execution had no effect, so it may be repeated.
///
/// PostgreSQL reports these errors before the plan is executed: `feature_not_supported` ("cached
/// plan must not change result type"), `invalid_sql_statement_name` (after a DEALLOCATE), class 42
/// (a name or type has a new meaning), and errors of class 22 (a parameter does not fit its former
/// type). MariaDB's server reports `ER_UNKNOWN_STMT_HANDLER` and `ER_NEED_REPREPARE`, its client
/// library `CR_NO_PREPARE_STMT` and `CR_NEW_STMT_METADATA`.
fn is_stale(shared: &SharedConnection, error: &Error) -> bool {
    match shared.quirks.dialect {
        Dialect::Postgres => match error.sqlstate.as_str() {
            "0A000" | "26000" | "22003" | "22007" | "22008" | "22P02" | "22P03" => true,
            state => state.starts_with("42"),
        },
        _ => matches!(error.native, 1243 | 1615 | 2030 | 2057),
    }
}

/// Prepares `sql` without executing it; returns its columns and parameters.
pub(crate) fn prepare_check(shared: &Arc<SharedConnection>, sql: &str) -> Result<Prepared, Error> {
    let mut call = shared.enter()?;
    let handle = call.statement()?;
    let result = {
        let _busy = shared.busy(&handle);
        let driver = Driver::new(shared, &handle);
        driver.prepare(sql).and_then(|()| {
            let columns = match driver.n_columns().and_then(|n| driver.columns(n)) {
                Ok(columns) => Some(columns),
                // Function sequence error: this driver receives the columns from the server only
                // when the statement is executed.
                Err(error) if error.sqlstate == "HY010" => None,
                Err(error) => return Err(error),
            };
            let described = columns.filter(|c| !c.is_empty() || shared.quirks.describes_prepared);
            Ok(Prepared {
                schema: described.map(|c| Schema::new(c.into_iter().map(|p| p.column).collect())),
                n_parameters: driver.n_parameters(),
                read_only: None,
            })
        })
    };
    handle.free();
    call.watch(result)
}
