//! Executes statements in the extended query protocol: Parse, Describe, Bind, Execute.

use std::sync::Arc;

use postgres_protocol::message::frontend;

use super::delivery::Delivery;
use super::later_statements::Further;
use super::message::{no_copy, violation};
use super::parameters::{self, Translated};
use super::preamble::Preamble;
use super::server::TransactionStatus;
use super::shared::Shared;
use super::statement::Statement;
use super::statement_cache::{NAME_PREFIX, PreparedStatement};
use super::types::{self, Kind};
use super::wire::{Event, Wire};
use crate::error::Error;
use crate::schema::{Column, Schema};
use crate::source::Source;
use crate::sql::copy_statement::copies_through_client;
use crate::sql::dialect::Dialect;
use crate::sql::statements::first_word;
use crate::value::Value;

/// The names of time zones whose offset from UTC is always zero.
const UTC: [&str; 6] = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/UCT", "Zulu"];

/// Creates the error for text that cannot be encoded in a message, for example because it contains
/// a NUL.
fn unfit(error: impl std::fmt::Display) -> Error {
    Error::new(crate::error::ErrorKind::Programming, error.to_string())
}

/// Returns the format and cell type ([`Kind`]) of each column of a prepared statement, and the
/// schema of its result.
pub(super) fn describe(prepared: &PreparedStatement, wire: &Wire) -> (Arc<[Kind]>, Schema) {
    let is_utc = wire
        .server
        .parameter("TimeZone")
        .is_some_and(|zone| UTC.contains(&zone));
    let Some(fields) = &prepared.fields else {
        return (Arc::default(), Schema::default());
    };
    let (kinds, columns): (Vec<Kind>, Vec<Column>) = fields
        .iter()
        .map(|field| types::describe(field, is_utc))
        .unzip();
    (kinds.into(), Schema::of_rows(columns))
}

/// Writes BEGIN to the output buffer if a transaction must be started before `sql`. BEGIN is sent
/// together with the next message. If a statement has changed `client_encoding`, first sets it to
/// UTF-8 again, because all text in messages is UTF-8.
pub(super) fn begin(shared: &Shared, wire: &mut Wire, sql: &str) -> Result<Preamble, Error> {
    // In a failed transaction the server refuses the command, and the rollback has the same effect.
    if wire.server.is_encoding_changed() && wire.server.status() != TransactionStatus::Failed {
        wire.command("SET client_encoding TO 'UTF8'")?;
    }
    if shared.autocommit() || wire.server.status() != TransactionStatus::Idle {
        return Ok(Preamble::default());
    }
    let word = first_word(sql, Dialect::Postgres);
    let ends = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"].contains(&word.as_str());
    wire.write_preamble(!ends)
}

/// Prepares the statement `sql` under `name`, and reads the descriptions of its parameters and
/// result columns. `declared` are the types of the parameters (object identifiers; 0 to let the
/// server infer the type). `preamble` describes the commands that were written before the
/// statement; the responses to these commands arrive first.
pub(super) fn prepare(
    wire: &mut Wire,
    sql: &str,
    name: String,
    declared: &[u32],
    preamble: Preamble,
) -> Result<PreparedStatement, Error> {
    for closing in wire.cache.take_closing() {
        frontend::close(b'S', &closing, &mut wire.out).map_err(unfit)?;
    }
    frontend::parse(&name, sql, declared.iter().copied(), &mut wire.out)
        .map_err(|_| unfit("the statement contains a NUL character"))?;
    frontend::describe(b'S', &name, &mut wire.out).map_err(unfit)?;
    frontend::flush(&mut wire.out);
    wire.send()?;
    let begun = wire.read_preamble(preamble);
    let mut parameters = Vec::new();
    let described = loop {
        match wire.event()? {
            Event::Parameters(oids) => parameters = oids,
            Event::Described(fields) => break Ok(fields),
            Event::Failed(fields) => break Err(fields.to_error(sql)),
            Event::Parsed | Event::Closed => {}
            _ => return Err(violation("a description was expected")),
        }
    };
    match begun.and(described) {
        Ok(fields) => Ok(PreparedStatement {
            name,
            declared: declared.to_vec(),
            parameters,
            fields,
        }),
        Err(error) => {
            frontend::sync(&mut wire.out);
            wire.send()?;
            // An error of the following messages is ignored, because the error of the statement is
            // the cause.
            let _ = wire.read_to_ready(sql);
            Err(error)
        }
    }
}

/// Writes the messages Bind and Execute for one execution of a prepared statement.
pub(super) fn write_execution<'v>(
    wire: &mut Wire,
    prepared: &PreparedStatement,
    values: impl Iterator<Item = &'v Value> + Clone,
    kinds: &[Kind],
) -> Result<(), Error> {
    // 0 for a parameter whose type the server has inferred: its value is sent as text.
    let oid = |i: usize| {
        let declared = prepared.declared.get(i).copied().filter(|oid| *oid != 0);
        declared.unwrap_or(0)
    };
    let formats = values.clone().enumerate();
    let formats = formats.map(|(i, value)| i16::from(parameters::is_binary(value, oid(i))));
    frontend::bind(
        "",
        &prepared.name,
        formats,
        values.enumerate(),
        |(i, value), out| Ok(parameters::encode(value, oid(i), out)),
        kinds.iter().map(|kind| kind.format()),
        &mut wire.out,
    )
    .map_err(|_| unfit("the parameters are too long for a message of the protocol"))?;
    frontend::execute("", 0, &mut wire.out).map_err(unfit)
}

/// Returns `true` if the error of the statement `sql` means that its prepared statement no longer
/// exists, or that its result type has changed.
fn is_stale(error: &Error, sql: &str) -> bool {
    match error.sqlstate.as_str() {
        "0A000" => error.message.contains("cached plan"),
        "26000" | "42P05" => {
            // Such a statement names a prepared statement of the caller.
            let word = first_word(sql, Dialect::Postgres);
            let is_of_caller = ["EXECUTE", "PREPARE", "DEALLOCATE"].contains(&word.as_str());
            !is_of_caller || error.message.contains(NAME_PREFIX)
        }
        _ => false,
    }
}

/// Returns an error if `execute` does not accept `sql`. This is the case for SQL with a NUL
/// character, which the protocol cannot represent, and for a COPY between a table and the client,
/// for which there are separate functions.
pub(super) fn check_text(sql: &str) -> Result<(), Error> {
    if sql.contains('\0') {
        return Err(unfit("the statement contains a NUL character"));
    }
    match copies_through_client(sql) {
        true => Err(no_copy()),
        false => Ok(()),
    }
}

/// One execution of a statement: its SQL string, its parameter values, and their types.
struct Execution<'a> {
    shared: &'a Arc<Shared>,
    /// The SQL string that the caller passed. It is the key in the statement cache.
    sql: &'a str,
    translated: &'a Translated,
    n_uses: u32,
    values: &'a [Value],
    /// The object identifier (OID) of each parameter's type; 0 for a type that the server infers.
    declared: Vec<u32>,
    id: u64,
}

/// Executes the first statement in a SQL string until its first rows arrive, or until it ends. If
/// that statement returns no rows, the following statements are executed too, up to the first one
/// that returns rows.
pub(super) fn execute(
    shared: &Arc<Shared>,
    sql: &str,
    values: &[Value],
) -> Result<Statement, Error> {
    check_text(sql)?;
    shared.call(|wire| {
        let (translated, n_uses) = wire.cache.translated(sql);
        parameters::check(translated.n_parameters, values)?;
        if translated.pieces.is_empty() {
            return execute_one(shared, wire, sql, (&translated, n_uses), values);
        }
        let further = Further::new(&translated.pieces, values);
        let mut first = match further.run_next(shared, wire) {
            Some(first) => first?,
            None => return Err(violation("a text has no statement")),
        };
        if !first.schema().has_rows() {
            first.go_on(&further, wire)?;
        }
        // The next statements are executed now, as long as no result has rows that would have to be
        // stored.
        while first.is_at_end() && further.run_ahead(shared, wire) {}
        wire.further = Some(further.waiting());
        first.set_further(further);
        Ok(first)
    })
}

/// Executes one statement. Uses the prepared statement for its SQL string and parameter types if
/// the statement cache contains one. `n_uses` is the number of executions of the SQL string,
/// including this one.
pub(super) fn execute_one(
    shared: &Arc<Shared>,
    wire: &mut Wire,
    sql: &str,
    (translated, n_uses): (&Translated, u32),
    values: &[Value],
) -> Result<Statement, Error> {
    let execution = Execution {
        shared,
        sql,
        translated,
        n_uses,
        values,
        declared: values.iter().map(parameters::type_of).collect(),
        id: shared.activity.begin(),
    };
    let executed = execution.run(wire);
    if executed.is_err() {
        shared.activity.finish();
    }
    executed.map_err(|error| shared.error_of(execution.id, error))
}

impl Execution<'_> {
    /// Executes the statement. If its prepared statement was stale (see [`is_stale`]), executes the
    /// statement once more without the prepared statement, unless the error has aborted a
    /// transaction of the caller.
    fn run(&self, wire: &mut Wire) -> Result<Statement, Error> {
        if self.n_uses >= 2 {
            wire.check_for_pooler()?;
        }
        let mut is_repeated = false;
        loop {
            let was_idle = wire.server.status() == TransactionStatus::Idle;
            let kept = wire.cache.prepared(self.sql, &self.declared);
            let ran = self.run_once(wire, kept);
            let Err(mut error) = ran else { return ran };
            if !is_stale(&error, self.sql) || is_repeated || wire.is_lost {
                return Err(error);
            }
            if !was_idle {
                error.message.push_str(
                    "\na table of this statement or the search path was changed, and the server has \
                     aborted the transaction\n\
                     roll back, and run the transaction again",
                );
                return Err(error);
            }
            // The transaction was begun for this statement, so it contains only the failed attempt
            // and can be rolled back.
            is_repeated = true;
            if wire.server.status() != TransactionStatus::Idle {
                wire.command("ROLLBACK")?;
            }
            if error.sqlstate == "0A000" {
                wire.cache.invalidate();
            } else {
                wire.cache.turn_off();
            }
        }
    }

    fn run_once(
        &self,
        wire: &mut Wire,
        kept: Option<Arc<PreparedStatement>>,
    ) -> Result<Statement, Error> {
        let mut preamble = begin(self.shared, wire, self.sql)?;
        let prepared = match kept {
            Some(kept) => kept,
            None => {
                let name = wire.cache.new_name(self.sql, self.n_uses);
                let new = prepare(
                    wire,
                    &self.translated.sql,
                    name,
                    &self.declared,
                    std::mem::take(&mut preamble),
                )?;
                let new = Arc::new(new);
                wire.cache.keep(self.sql, &new);
                new
            }
        };
        if prepared.parameters.len() != self.values.len() {
            // The text has a `$1` of its own. The translation counts only `?` and names.
            frontend::sync(&mut wire.out);
            wire.send()?;
            wire.read_preamble(preamble)?;
            wire.read_to_ready(self.sql)?;
            return Err(Error::wrong_count(
                prepared.parameters.len(),
                self.values.len(),
            ));
        }
        let (kinds, schema) = describe(&prepared, wire);
        write_execution(wire, &prepared, self.values.iter(), &kinds)?;
        frontend::sync(&mut wire.out);
        wire.send()?;
        if let Err(error) = wire.read_preamble(preamble) {
            let _ = wire.read_to_ready(self.sql);
            return Err(error);
        }
        let mut completion = None;
        loop {
            match wire.event()? {
                Event::Bound | Event::Closed => {}
                Event::Row => break,
                Event::Completed(completed) => completion = Some(completed),
                Event::Ready => {
                    self.shared.activity.finish();
                    let mut completion = wire.completed(completion)?;
                    if !schema.has_rows() {
                        completion = completion.without_rows();
                    }
                    let ended = Statement::ended(
                        Arc::clone(self.shared),
                        self.id,
                        schema,
                        kinds,
                        completion,
                    );
                    return Ok(ended.with_messages(wire));
                }
                Event::Failed(fields) => {
                    let error = fields.to_error(&self.translated.sql);
                    wire.read_to_ready(self.sql)?;
                    return Err(error);
                }
                Event::CopyIn => {
                    wire.refuse_copy()?;
                    let _ = wire.read_to_ready(self.sql);
                    return Err(no_copy());
                }
                Event::CopyOut => {
                    let _ = wire.read_to_ready(self.sql);
                    return Err(no_copy());
                }
                _ => return Err(violation("rows were expected")),
            }
        }
        let delivery = Arc::new(Delivery::new(&self.translated.sql));
        wire.begin_result(&delivery);
        let mut statement =
            Statement::reading(Arc::clone(self.shared), self.id, schema, kinds, delivery);
        statement.pull_first(wire)?;
        Ok(statement.with_messages(wire))
    }
}
