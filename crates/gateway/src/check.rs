//! The check of a configuration against its databases: nothing is run.

use onecopy_rows::Prepared;
use onecopy_rows::connect::Connection;

use crate::calls::Call;
use crate::config::{Config, Query};
use crate::pool;
use crate::supervision::Supervision;

/// What the check found of one query, or of a database that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The database's name.
    pub database: String,
    /// The query's name; empty for the database itself.
    pub query: String,
    /// What is right (columns, notes) or what is wrong.
    pub outcome: Result<String, String>,
}

/// Opens each database and prepares each query. All problems are found, not the first alone.
#[must_use]
pub fn check(config: &Config) -> Vec<Checked> {
    check_supervised(config, &Supervision::default())
}

/// As [`check`], with marks for the supervisor, and without the databases that are set aside.
pub(crate) fn check_supervised(config: &Config, supervision: &Supervision) -> Vec<Checked> {
    let mut found = Vec::new();
    for (i, database) in config.databases.iter().enumerate() {
        if supervision.set_aside.iter().any(|(aside, _)| *aside == i) {
            continue;
        }
        let mark = |call| supervision.calls.as_ref().map(|calls| calls.mark(i, call));
        let mut tell = |query: &str, outcome| {
            found.push(Checked {
                database: database.name.clone(),
                query: query.to_owned(),
                outcome,
            });
        };
        let options = pool::options(database);
        let connecting = mark(Call::Connect);
        let connection = match Connection::open(database.target.expose(), &options) {
            Ok(connection) => connection,
            Err(error) => {
                tell("", Err(error.to_string()));
                continue;
            }
        };
        drop(connecting);
        let _preparing = mark(Call::Statement);
        let mut text = connection.describe();
        for notice in connection.notices() {
            text.push('\n');
            text.push_str(&notice);
        }
        tell("", Ok(text));
        for query in config.queries.iter().filter(|q| q.database == i) {
            let outcome = match connection.prepare_check(&query.positional_sql) {
                Ok(prepared) => judge(query, &prepared),
                Err(error) => Err(error.to_string()),
            };
            tell(&query.name, outcome);
        }
    }
    found
}

fn judge(query: &Query, prepared: &Prepared) -> Result<String, String> {
    if prepared.read_only == Some(false) {
        return Err("this statement writes\nthe gateway reads alone: make it a SELECT".to_owned());
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
            "could not be checked before it is run: the driver tells nothing of its columns"
                .to_owned(),
        );
    };
    match schema.n_columns() {
        0 => Err("this statement gives no rows\nmake it a SELECT".to_owned()),
        n => Ok(match schema.unfit_name() {
            None => format!("{n} columns"),
            Some((i, "")) => {
                format!(
                    "{n} columns; CSV alone, for column {i} has no name (JSON needs one: add `as name`)"
                )
            }
            Some((_, name)) => {
                format!(
                    "{n} columns; CSV alone, for `{name}` stands twice (JSON needs distinct names: add `as name`)"
                )
            }
        }),
    }
}
