//! Executing a statement: at once, prepared first, or prepared long before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::call::Call;
use super::casts;
use super::driver::Driver;
use super::handle::StatementHandle;
use super::shared::Shared;
use super::statement_cache::{CachePolicy, CachedStatement, Columns, Key, SizeObservation};
use crate::database::Prepared;
use crate::error::{Error, Message};
use crate::schema::Schema;
use crate::sql::dialect::Dialect;
use crate::sql::statements;
use crate::value::Value;

/// What an execution told: its columns and the rows it changed, and what the database said.
pub(super) struct ExecuteResult {
    pub(super) columns: Columns,
    pub(super) row_count: Option<u64>,
    /// It has columns and no rows: `UPDATE … RETURNING` that matched none.
    pub(super) is_empty: bool,
    pub(super) messages: Vec<Message>,
}

/// A statement that was executed.
pub(super) struct Execution {
    pub(super) handle: Arc<StatementHandle>,
    pub(super) result: Result<ExecuteResult, Error>,
    /// What its handle may be kept by for the next execution.
    pub(super) key: Option<Key>,
    /// What its result will tell.
    pub(super) lesson: Option<SizeObservation>,
}

/// Executes `sql`: by the handle that was prepared for this text before, if one is kept.
pub(super) fn run(
    shared: &Shared,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<Execution, Error> {
    let sql = &*casts::with_casts(sql, parameters, shared.quirks.dialect);
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
    shared: &Shared,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<Execution, Error> {
    // A marker may stand without a value for it: SQLite's driver and MariaDB's then take NULL, or what they please.
    // psqlodbc describes the columns of RETURNING without rows only where it was prepared.
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
        let gives_rows = matches!(&result, Ok(told) if !told.columns.planned.is_empty());
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
    // "In failed SQL transaction": where the driver sets no savepoints, the first error ended it.
    if let (Some(first), Err(error)) = (stale, &mut ran.result)
        && error.sqlstate == "25P02"
    {
        *error = first;
    }
    Ok(ran)
}

/// Executes a statement through a cursor: how long its result is will be learned.
fn run_by_cursor(
    shared: &Shared,
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

/// A statement's handle, what its execution told, and whether it may be executed again.
type Done = (Arc<StatementHandle>, Result<ExecuteResult, Error>, bool);

/// Executes a statement that is kept, or may be; `None`, and nothing has run, where that is `in_place_of_cursor` and its parameters
/// would mean something else. The error of what was kept and is `stale` is left there.
fn run_kept(
    shared: &Shared,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
    key: &Key,
    in_place_of_cursor: bool,
    stale: &mut Option<Error>,
) -> Result<Option<Done>, Error> {
    if let Some(CachedStatement { handle, columns }) = call.prepared(key) {
        match execute(shared, &handle, sql, parameters, How::Again(columns)) {
            Err(error) if is_stale(shared, &error) => *stale = Some(error),
            result => return Ok(Some((handle, result, true))),
        }
        // What it reads from has changed since.
        handle.free();
    }
    let handle = call.statement()?;
    let fits = {
        let _busy = shared.busy(&handle);
        let driver = Driver::new(shared, &handle);
        let prepared = driver.prepare(sql);
        prepared.map(|()| key.fits(|index| driver.parameter_type(index), in_place_of_cursor))
    };
    Ok(match fits {
        Ok(false) if in_place_of_cursor => {
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

/// How a statement is executed.
enum How {
    Direct,
    Prepared,
    /// It was prepared before, and had these columns.
    Again(Option<Columns>),
}

fn execute(
    shared: &Shared,
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
    // Where no row changes, the driver manager describes no columns after the execution.
    let of_returning = match how {
        How::Direct => None,
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

/// Whether the handle of a statement may be executed again, by its text: a call of a procedure has results of its own.
fn may_be_kept(shared: &Shared, sql: &str) -> bool {
    let dialect = shared.quirks.dialect;
    let word = statements::first_word(sql, dialect);
    matches!(
        word.as_str(),
        "SELECT" | "WITH" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE"
    ) && !statements::has_second(sql, dialect)
}

/// Returns whether a statement of this kind changes a number of rows, which may be 0.
fn counts_rows(shared: &Shared, sql: &str) -> bool {
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

/// Whether a statement reads, by its first word. One that changes and gives rows (`INSERT … RETURNING`) is not kept: where its
/// columns are others than before, that is told when it has run.
fn reads(shared: &Shared, sql: &str) -> bool {
    let dialect = shared.quirks.dialect;
    let word = statements::first_word(sql, dialect);
    matches!(word.as_str(), "SELECT" | "WITH") && statements::is_plain_query(sql, dialect)
}

impl Shared {
    /// Returns whether the driver gives no columns for `… RETURNING` that changed no row, unless it
    /// was prepared.
    fn hides_empty_returning(&self, sql: &str) -> bool {
        let returns = || {
            sql.as_bytes()
                .windows(9)
                .any(|w| w.eq_ignore_ascii_case(b"returning"))
        };
        self.quirks.dialect == Dialect::Postgres && returns()
    }
}

/// Whether an execution may have failed because of what the statement was prepared against. It changed nothing, so it may run once
/// more.
///
/// PostgreSQL tells before the plan runs: `feature_not_supported` ("cached plan must not change result type"),
/// `invalid_sql_statement_name` (somebody has run DEALLOCATE), class 42 (a name or type is another one now), and of class 22 what
/// it says of a parameter that does not fit the type which it had. MariaDB: `ER_UNKNOWN_STMT_HANDLER` and `ER_NEED_REPREPARE`, its
/// client's `CR_NO_PREPARE_STMT` and `CR_NEW_STMT_METADATA`.
fn is_stale(shared: &Shared, error: &Error) -> bool {
    match shared.quirks.dialect {
        Dialect::Postgres => match error.sqlstate.as_str() {
            "0A000" | "26000" | "22003" | "22007" | "22008" | "22P02" | "22P03" => true,
            state => state.starts_with("42"),
        },
        _ => matches!(error.native, 1243 | 1615 | 2030 | 2057),
    }
}

/// Prepares `sql` and runs nothing.
pub(crate) fn prepare_check(shared: &Arc<Shared>, sql: &str) -> Result<Prepared, Error> {
    let mut call = shared.enter()?;
    let handle = call.statement()?;
    let result = {
        let _busy = shared.busy(&handle);
        let driver = Driver::new(shared, &handle);
        driver.prepare(sql).and_then(|()| {
            let columns = match driver.n_columns().and_then(|n| driver.columns(n)) {
                Ok(columns) => Some(columns),
                // Function sequence error: this driver asks the server when the statement runs.
                Err(error) if error.sqlstate == "HY010" => None,
                Err(error) => return Err(error),
            };
            let told = columns.filter(|c| !c.is_empty() || shared.quirks.describes_prepared);
            Ok(Prepared {
                schema: told.map(|c| Schema::new(c.into_iter().map(|p| p.column).collect())),
                n_parameters: driver.n_parameters(),
                read_only: None,
            })
        })
    };
    handle.free();
    call.watch(result)
}
