//! [`check`] checks a configuration against its databases without running a query.

use onecopy_rows::Prepared;
use onecopy_rows::connect::Connection;

use crate::config::{Config, Query};
use crate::driver_calls::DriverCall;
use crate::pool;
use crate::supervision::Supervision;

/// The result of checking one database or one query of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The name of the database.
    pub database: String,
    /// The name of the query; empty for a result that concerns the database itself.
    pub query: String,
    /// If the check succeeded, `Ok` contains the columns of the query's result or, for a database,
    /// its description. If the check failed, `Err` contains the problem.
    pub outcome: Result<String, String>,
}

/// Opens each database and prepares each query. Returns the results for all of them, even if some
/// of them have a problem.
#[must_use]
pub fn check(config: &Config) -> Vec<Checked> {
    check_supervised(config, &Supervision::default())
}

/// Does the same as [`check`], in a process that has a supervisor. Disabled databases are omitted.
/// The driver calls in progress are counted, so that the supervisor can determine after a crash
/// which driver may have caused it.
pub(crate) fn check_supervised(config: &Config, supervision: &Supervision) -> Vec<Checked> {
    let mut found = Vec::new();
    for (i, database) in config.databases.iter().enumerate() {
        if supervision.set_aside.iter().any(|(aside, _)| *aside == i) {
            continue;
        }
        let mark = |call| supervision.calls.as_ref().map(|calls| calls.mark(i, call));
        let mut report = |query: &str, outcome| {
            found.push(Checked {
                database: database.name.clone(),
                query: query.to_owned(),
                outcome,
            });
        };
        let options = pool::options(database);
        let connecting = mark(DriverCall::Connect);
        let connection = match Connection::open(database.target.expose(), &options) {
            Ok(connection) => connection,
            Err(error) => {
                report("", Err(error.to_string()));
                continue;
            }
        };
        drop(connecting);
        let _preparing = mark(DriverCall::Statement);
        let mut text = connection.describe();
        for notice in connection.notices() {
            text.push('\n');
            text.push_str(&notice);
        }
        report("", Ok(text));
        for query in config.queries.iter().filter(|q| q.database == i) {
            let outcome = match connection.prepare_check(&query.positional_sql) {
                Ok(prepared) => judge(query, &prepared),
                Err(error) => Err(error.to_string()),
            };
            report(&query.name, outcome);
        }
    }
    found
}

fn judge(query: &Query, prepared: &Prepared) -> Result<String, String> {
    if prepared.read_only == Some(false) {
        return Err("this statement writes\nthe gateway only reads: use a SELECT".to_owned());
    }
    if let Some(n) = prepared.n_parameters.filter(|&n| n != query.bindings.len()) {
        return Err(format!(
            "the database counts {n} parameters, the configuration {}\n\
             look for a `:name` inside a literal this database writes in its own way",
            query.bindings.len()
        ));
    }
    let Some(schema) = &prepared.schema else {
        return Ok(
            "cannot be checked before its execution: the driver does not describe its columns"
                .to_owned(),
        );
    };
    match schema.n_columns() {
        0 => Err("this statement returns no rows\nuse a SELECT".to_owned()),
        n => Ok(match schema.unfit_name() {
            None => format!("{n} columns"),
            Some((i, "")) => {
                format!(
                    "{n} columns; only CSV, since column {i} has no name (JSON needs one: add `as name`)"
                )
            }
            Some((_, name)) => {
                format!(
                    "{n} columns; only CSV, since `{name}` occurs twice (JSON needs distinct names: add `as name`)"
                )
            }
        }),
    }
}
