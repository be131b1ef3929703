//! The SQL statement that a command executes, with its parameters and its database. A signal or the
//! time limit ends the command.

use std::io::{self, Read};
use std::time::Duration;

use onecopy_export::Manifest;
use onecopy_export::plan::Plan;
use onecopy_rows::arrow::DataType;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{ConnectOptions, Dialect, Format, Value};
use onecopy_text::{Chunk, Ledger, Policy};
use onecopy_wire::{ChunkSource, Filled};

use crate::console::{error, notice};
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Stop};
use crate::{exit, parameter};

/// Runs `command`. A signal, or the end of `time_limit`, cancels it. If `command` fails, writes the
/// error message to stderr. Returns the exit code of the process.
pub(crate) fn run(
    time_limit: Option<Duration>,
    quiet: bool,
    command: impl FnOnce(&Interrupt) -> Result<(), Failure>,
) -> i32 {
    let interrupt = match Interrupt::start(time_limit) {
        Ok(interrupt) => interrupt,
        Err(source) => return Failure::System(source).report(),
    };
    let Err(failure) = command(&interrupt) else {
        return exit::OK;
    };
    match interrupt.stopped() {
        Some(Stop::Signal) => {
            if !quiet {
                notice("stopped");
            }
            exit::STOPPED
        }
        Some(Stop::Timeout) if failure.is_cancel() => {
            error(&time_limit_message(time_limit));
            exit::FAILED
        }
        _ => failure.report(),
    }
}

/// Returns the error message for a query that was cancelled because `time_limit` ended.
pub(crate) fn time_limit_message(time_limit: Option<Duration>) -> String {
    let limit = time_limit.unwrap_or_default().as_secs_f64();
    format!("the query took longer than {limit} s and was cancelled")
}

/// A statement with its parameters, and the database in which it is executed.
pub(crate) struct Source {
    target: String,
    /// The SQL string that the user specified, in which named placeholders are not replaced by `?`.
    /// A manifest contains this string.
    pub(crate) given_sql: String,
    sql: String,
    values: Vec<Value>,
}

impl Source {
    /// Reads the statement from the arguments of the command line: DATABASE, SQL and `--param`.
    pub(crate) fn read(
        database_argument: &str,
        sql: &str,
        params: &[String],
    ) -> Result<Source, Failure> {
        let given_sql = text_of(sql, "the SQL").map_err(Failure::Usage)?;
        Source::of_sql(database_argument, given_sql, params)
    }

    /// Returns a statement with the SQL string in `manifest`. A manifest does not contain the
    /// values of the parameters. The user specifies them again, and they are passed in `params`.
    pub(crate) fn of_manifest(
        database_argument: &str,
        manifest: &Manifest,
        params: &[String],
    ) -> Result<Source, Failure> {
        Source::of_sql(database_argument, manifest.query.clone(), params)
    }

    fn of_sql(
        database_argument: &str,
        given_sql: String,
        params: &[String],
    ) -> Result<Source, Failure> {
        let target = database(database_argument).map_err(Failure::Usage)?;
        let dialect = Connection::dialect_of(&target);
        let (sql, values) = parameter::bind(&given_sql, params, dialect).map_err(Failure::Usage)?;
        Ok(Source {
            target,
            given_sql,
            sql,
            values,
        })
    }

    /// Returns the statement that `plan` divides, with the values of its parameters.
    pub(crate) fn of_plan(database_argument: &str, plan: &Plan) -> Result<Source, Failure> {
        Ok(Source {
            target: database(database_argument).map_err(Failure::Usage)?,
            given_sql: plan.sql.clone(),
            sql: plan.sql.clone(),
            values: plan.values.clone(),
        })
    }

    /// Returns the SQL with `?` for each parameter.
    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns `true` if `database_argument` denotes the same connection string as the database of
    /// this statement.
    pub(crate) fn is_at(&self, database_argument: &str) -> Result<bool, Failure> {
        let target = database(database_argument).map_err(Failure::Usage)?;
        Ok(self.target == target)
    }

    /// Opens a connection to the database of the statement.
    pub(crate) fn connect(
        &self,
        read_only: bool,
        errors: Policy,
        time_limit: Option<Duration>,
    ) -> Result<Connection, Failure> {
        let options = ConnectOptions {
            read_only,
            // A file that does not exist is created only by a statement such as `create table`:
            // otherwise a typing error in the path would create an empty database.
            create: Connection::creates_database(&self.target, &self.sql),
            login_timeout_s: login_timeout_s(time_limit),
            text_policy: errors,
            ..ConnectOptions::default()
        };
        Ok(Connection::open(&self.target, &options)?)
    }

    /// Returns the number of rows that PostgreSQL's planner estimates for the statement. Returns
    /// `None` for another database, and if `explain` fails.
    pub(crate) fn estimated_rows(&self, connection: &Connection) -> Option<u64> {
        if connection.dialect() != Dialect::Postgres {
            return None;
        }
        let plan = self.plan(connection);
        // A failed `explain` has aborted the transaction, which must be rolled back before the next
        // statement.
        if plan.is_err() && !connection.autocommit() {
            connection.rollback().ok()?;
        }
        rows_of_plan(&plan.ok()?)
    }

    fn plan(&self, connection: &Connection) -> Result<String, Failure> {
        let sql = format!("explain (format json) {}", self.sql);
        let statement = connection.execute(&sql, &self.values)?;
        let mut source = statement.into_chunks(Format::Ndjson, &Ledger::off())?;
        let mut chunk = Chunk::with_capacity(4 << 10);
        while source.fill(&mut chunk)? == Filled::More {}
        Ok(String::from_utf8_lossy(&chunk).into_owned())
    }

    /// Executes the statement. Returns an error if a signal or the time limit has stopped the
    /// command.
    pub(crate) fn execute(
        &self,
        connection: &Connection,
        interrupt: &Interrupt,
    ) -> Result<Statement, Failure> {
        interrupt.cancels(connection.cancel_handle());
        go_on(interrupt)?;
        let statement = connection.execute(&self.sql, &self.values)?;
        go_on(interrupt)?;
        // A stop from here on is recorded in the statement, so that each later fetch fails
        // immediately.
        interrupt.cancels(statement.cancel_handle());
        Ok(statement)
    }
}

/// Opens a connection for writing to the database of a DATABASE argument. A database that does not
/// exist is not created.
pub(crate) fn open_to_write(
    database_argument: &str,
    time_limit: Option<Duration>,
) -> Result<Connection, Failure> {
    let target = database(database_argument).map_err(Failure::Usage)?;
    let options = ConnectOptions {
        create: false,
        login_timeout_s: login_timeout_s(time_limit),
        ..ConnectOptions::default()
    };
    Ok(Connection::open(&target, &options)?)
}

/// Returns PostgreSQL's estimate of the number of rows of a statement. `plan` is the JSON output of
/// `explain`. The first `Plan Rows` in this JSON is the estimate for the whole statement.
fn rows_of_plan(plan: &str) -> Option<u64> {
    let (_, rest) = plan.split_once("\"Plan Rows\":")?;
    let digits = rest.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    digits[..end].parse().ok()
}

/// Returns the time limit in seconds for connecting: the default, or `time_limit` if that is
/// shorter. It is rounded up, because drivers accept only whole seconds.
fn login_timeout_s(time_limit: Option<Duration>) -> u32 {
    let usual = ConnectOptions::default().login_timeout_s;
    time_limit.map_or(usual, |t| usual.min(t.as_secs_f64().ceil() as u32).max(1))
}

/// Returns an error if the command was stopped. This check is necessary because a driver may
/// respond to a cancel request with a result instead of an error (MariaDB's `sleep` returns a row).
pub(crate) fn go_on(interrupt: &Interrupt) -> Result<(), Failure> {
    match interrupt.stopped() {
        None => Ok(()),
        Some(_) => Err(Failure::Stopped("")),
    }
}

/// Parses the values of `--types`, each as `COLUMN=TYPE`. A column name or a type may itself
/// contain `=`. The type therefore starts after the first `=` whose remaining text is a valid type.
pub(crate) fn arrow_types(given: &[String]) -> Result<Vec<(String, DataType)>, Failure> {
    let parsed = given.iter().map(|text| {
        let mut parts = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let found = parts.find_map(|(column, name)| {
            Some((column.to_owned(), DataType::of_name(name)?))
        });
        found.ok_or_else(|| {
            Failure::Usage(format!(
                "`--types {text}` is not a column and an Arrow type\n\
                 write a type such as int64, double, string, decimal128(12, 2) or timestamp[us, tz=UTC]: \
                 `--types price=double`"
            ))
        })
    });
    parsed.collect()
}

/// Returns the connection string that the command-line argument DATABASE contains. If the argument
/// is `@FILE`, the connection string is read from the file FILE. White space around the connection
/// string is removed.
pub(crate) fn database(text: &str) -> Result<String, String> {
    let target = match text {
        // A database can be read from `@FILE`, but not from stdin, which may contain the SQL.
        "-" => return Err("the database cannot be read from stdin\nwrite `@FILE`".to_owned()),
        text => text_of(text, "the database")?,
    };
    let target = target.trim();
    if target.is_empty() {
        return Err(
            "the database is empty\nwrite `sqlite:PATH`, `DSN=NAME` or a connection string"
                .to_owned(),
        );
    }
    if !target.contains(['=', ':']) {
        return Err(format!(
            "`{target}` is no connection string\n\
             for the SQLite file of that name write `sqlite:{target}`, for a data source `DSN={target}`"
        ));
    }
    Ok(target.to_owned())
}

/// Returns the text that a command-line argument specifies: the contents of a file for `@FILE`, the
/// contents of stdin for `-`, otherwise the argument itself. `what` is a name of the text for error
/// messages, such as `the SQL`.
fn text_of(argument: &str, what: &str) -> Result<String, String> {
    let read = match argument.strip_prefix('@') {
        _ if argument == "-" => {
            let mut text = String::new();
            io::stdin().lock().read_to_string(&mut text).map(|_| text)
        }
        Some(path) => std::fs::read_to_string(path),
        None => return Ok(argument.to_owned()),
    };
    read.map_err(|error| {
        let from = argument.strip_prefix('@').unwrap_or("stdin");
        format!("{what} cannot be read from `{from}`: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_that_of_the_first_node() {
        let plan = r#"{"QUERY PLAN":[{"Plan":{"Node Type":"Sort","Plan Rows": 120,"Plans":[{"Plan Rows": 7}]}}]}"#;
        assert_eq!(rows_of_plan(plan), Some(120));
        assert_eq!(rows_of_plan("{}"), None);
    }

    #[test]
    fn types_and_columns_may_contain_an_equals_sign() {
        let given = ["a=timestamp[us, tz=UTC]", "b=c=decimal128(12, 2)"].map(str::to_owned);
        let parsed = arrow_types(&given).ok().unwrap();
        let names: Vec<_> = parsed
            .iter()
            .map(|(name, made)| format!("{name}: {made}"))
            .collect();
        assert_eq!(
            names,
            ["a: timestamp[us, tz=UTC]", "b=c: decimal128(12, 2)"]
        );
        for wrong in ["a", "a=", "a=int", "=x"] {
            assert!(arrow_types(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
