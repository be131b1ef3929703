//! Executing a statement: at once, prepared first, or prepared long before.

use std::sync::Arc;

use super::call::Call;
use super::connection::Shared;
use super::driver::Driver;
use super::handle::StatementHandle;
use super::sql_text;
use crate::column::Planned;
use crate::connect::Prepared;
use crate::error::{Error, Message};
use crate::schema::Schema;
use crate::value::Value;

/// What an execution told: its columns and the rows it changed, and what the database said.
type Told = ((Vec<Planned>, Option<u64>), Vec<Message>);

/// A statement that was executed.
pub(super) struct Ran {
    pub(super) handle: Arc<StatementHandle>,
    pub(super) result: Result<Told, Error>,
    /// Whether its handle may be kept for the next execution.
    pub(super) may_keep: bool,
}

/// Executes `sql`: by the handle that was prepared for this text before, if one is kept.
pub(super) fn run(
    shared: &Shared,
    call: &mut Call<'_>,
    sql: &str,
    parameters: &[Value],
) -> Result<Ran, Error> {
    // A marker may stand without a value for it: SQLite's driver and MariaDB's then take NULL, or what they please.
    let is_direct = parameters.is_empty() && !sql.contains('?');
    let may_keep = !is_direct && shared.quirks.keeps_prepared && may_be_kept(shared, sql);
    let execute = |handle: &Arc<StatementHandle>, how: How| {
        let _busy = shared.busy(handle);
        let driver = Driver::new(shared, handle);
        let result = execute(&driver, sql, parameters, how);
        result.map(|told| (told, driver.messages.into_inner()))
    };
    let done = |handle, result: Result<Told, Error>| {
        let gives_rows = matches!(&result, Ok(((columns, _), _)) if !columns.is_empty());
        Ok(Ran {
            handle,
            may_keep: may_keep && (!gives_rows || reads(shared, sql)),
            result,
        })
    };
    if let Some(handle) = may_keep.then(|| call.prepared(sql)).flatten() {
        let result = execute(&handle, How::Again);
        if !matches!(&result, Err(error) if is_stale(error)) {
            return done(handle, result);
        }
        // What it reads from has changed since.
        handle.free();
    }
    let handle = call.statement()?;
    let result = execute(
        &handle,
        if is_direct {
            How::Direct
        } else {
            How::Prepared
        },
    );
    done(handle, result)
}

/// How a statement is executed.
#[derive(Clone, Copy)]
enum How {
    Direct,
    Prepared,
    /// It was prepared before.
    Again,
}

fn execute(
    driver: &Driver<'_>,
    sql: &str,
    parameters: &[Value],
    how: How,
) -> Result<(Vec<Planned>, Option<u64>), Error> {
    if matches!(how, How::Prepared) {
        driver.prepare(sql)?;
    }
    match how {
        How::Direct => driver.exec_direct(sql)?,
        How::Prepared | How::Again => driver.execute(sql, parameters)?,
    }
    let (row_count, n_columns) = driver.pass_counts()?;
    Ok((driver.columns(n_columns)?, row_count))
}

/// Whether the handle of a statement may be executed again, by its text: a call of a procedure has results of its own.
fn may_be_kept(shared: &Shared, sql: &str) -> bool {
    let dialect = shared.quirks.dialect;
    let word = sql_text::first_word(sql, dialect);
    matches!(
        word.as_str(),
        "SELECT" | "WITH" | "INSERT" | "UPDATE" | "DELETE" | "REPLACE"
    ) && !sql_text::has_second(sql, dialect)
}

/// Whether a statement reads, by its first word. One that changes and gives rows (`INSERT … RETURNING`) is not kept: where its
/// columns are others than before, that is told when it has run.
fn reads(shared: &Shared, sql: &str) -> bool {
    let word = sql_text::first_word(sql, shared.quirks.dialect);
    matches!(word.as_str(), "SELECT" | "WITH")
}

/// Whether an execution failed because of what the statement was prepared against, and changed nothing: MariaDB's
/// `ER_UNKNOWN_STMT_HANDLER` and `ER_NEED_REPREPARE`, its client's `CR_NO_PREPARE_STMT` and `CR_NEW_STMT_METADATA`.
fn is_stale(error: &Error) -> bool {
    matches!(error.native, 1243 | 1615 | 2030 | 2057)
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
