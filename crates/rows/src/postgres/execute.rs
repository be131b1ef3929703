//! Executes statements: prepare and describe, bind, execute; one for many rows of parameters.

use std::sync::Arc;

use postgres_protocol::message::frontend;

use super::message::violation;
use super::parameters::{self, Translated};
use super::server::TransactionStatus;
use super::shared::Shared;
use super::statement::Statement;
use super::statement_cache::PreparedStatement;
use super::types::{self, Kind};
use super::wire::{Completion, Delivery, Event, Wire, no_copy};
use crate::error::Error;
use crate::schema::{Column, Schema};
use crate::sql::dialect::Dialect;
use crate::sql::statements::{copies_through_client, first_word};
use crate::value::{Value, batch};

/// Time zones whose offset is always zero.
const UTC: [&str; 6] = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/UCT", "Zulu"];

/// An error that a write to memory cannot have but for what the caller gave.
fn unfit(error: impl std::fmt::Display) -> Error {
    Error::new(crate::error::ErrorKind::Programming, error.to_string())
}

/// The forms of a prepared statement's columns, and its schema.
pub(super) fn describe(prepared: &PreparedStatement, wire: &Wire) -> (Arc<[Kind]>, Schema) {
    let is_utc = wire
        .server
        .parameter("TimeZone")
        .is_some_and(|zone| UTC.contains(&zone));
    let fields = prepared.fields.as_deref().unwrap_or_default();
    let (kinds, columns): (Vec<Kind>, Vec<Column>) = fields
        .iter()
        .map(|field| types::describe(field, is_utc))
        .unzip();
    (kinds.into(), Schema::new(columns))
}

/// Begins a transaction where one is due: the message is written, not sent.
fn begin(shared: &Shared, wire: &mut Wire, sql: &str) -> Result<bool, Error> {
    if shared.autocommit() || wire.server.status() != TransactionStatus::Idle {
        return Ok(false);
    }
    let word = first_word(sql, Dialect::Postgres);
    let ends = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"].contains(&word.as_str());
    if !ends {
        frontend::query("BEGIN", &mut wire.out).map_err(unfit)?;
    }
    Ok(!ends)
}

/// Prepares and describes a statement. `begins`: a BEGIN was written before it.
pub(super) fn prepare(
    wire: &mut Wire,
    sql: &str,
    name: String,
    declared: &[u32],
    begins: bool,
) -> Result<PreparedStatement, Error> {
    for closing in wire.cache.take_closing() {
        frontend::close(b'S', &closing, &mut wire.out).map_err(unfit)?;
    }
    frontend::parse(&name, sql, declared.iter().copied(), &mut wire.out).map_err(unfit)?;
    frontend::describe(b'S', &name, &mut wire.out).map_err(unfit)?;
    frontend::flush(&mut wire.out);
    wire.send()?;
    let begun = if begins {
        wire.read_to_ready("BEGIN").err()
    } else {
        None
    };
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
    let described = match begun {
        Some(error) => Err(error),
        None => described,
    };
    match described {
        Ok(fields) => Ok(PreparedStatement {
            name,
            declared: declared.to_vec(),
            parameters,
            fields,
        }),
        Err(error) => {
            frontend::sync(&mut wire.out);
            wire.send()?;
            // The error of the statement goes before what follows it.
            let _ = wire.read_to_ready(sql);
            Err(error)
        }
    }
}

/// Writes Bind and Execute.
fn write_execution(
    wire: &mut Wire,
    prepared: &PreparedStatement,
    values: &[Value],
    kinds: &[Kind],
) -> Result<(), Error> {
    // A parameter declared as unknown has the type that the server found.
    let oid = |i: usize| {
        let declared = prepared.declared.get(i).copied().filter(|oid| *oid != 0);
        declared.unwrap_or(0)
    };
    let formats = values.iter().enumerate();
    let formats = formats.map(|(i, value)| i16::from(parameters::is_binary(value, oid(i))));
    frontend::bind(
        "",
        &prepared.name,
        formats,
        values.iter().enumerate(),
        |(i, value), out| Ok(parameters::encode(value, oid(i), out)),
        kinds.iter().map(|kind| kind.format()),
        &mut wire.out,
    )
    .map_err(|_| unfit("the parameters are too long for a message of the protocol"))?;
    frontend::execute("", 0, &mut wire.out).map_err(unfit)
}

/// Returns whether an error means that a prepared statement does not exist any more, or has another result now.
fn is_stale(error: &Error) -> bool {
    let is_plan = error.sqlstate == "0A000" && error.message.contains("cached plan");
    is_plan || matches!(error.sqlstate.as_str(), "26000" | "42P05")
}

/// Executes a statement to its first rows, or to its end.
pub(super) fn execute(
    shared: &Arc<Shared>,
    sql: &str,
    values: &[Value],
) -> Result<Statement, Error> {
    if copies_through_client(sql) {
        return Err(no_copy());
    }
    shared.call(|wire| {
        let (translated, n_uses) = wire.cache.translated(sql);
        parameters::check(translated.n_parameters, values)?;
        let declared: Vec<u32> = values.iter().map(parameters::type_of).collect();
        let id = shared.activity.begin();
        let executed = execute_in(
            shared,
            wire,
            sql,
            &translated,
            n_uses,
            values,
            &declared,
            id,
        );
        if executed.is_err() {
            shared.activity.finish();
        }
        executed.map_err(|error| shared.error_of(id, error))
    })
}

#[allow(clippy::too_many_arguments)] // One call, split for its length.
fn execute_in(
    shared: &Arc<Shared>,
    wire: &mut Wire,
    sql: &str,
    translated: &Arc<Translated>,
    n_uses: u32,
    values: &[Value],
    declared: &[u32],
    id: u64,
) -> Result<Statement, Error> {
    let mut is_repeated = false;
    loop {
        let was_idle = wire.server.status() == TransactionStatus::Idle;
        let kept = wire.cache.prepared(sql, declared);
        let ran = run(
            shared, wire, sql, translated, n_uses, values, declared, kept, id,
        );
        let Err(error) = ran else { return ran };
        // Nothing has happened in this transaction but the attempt.
        if !is_stale(&error) || is_repeated || !was_idle || wire.is_lost {
            return Err(error);
        }
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

#[allow(clippy::too_many_arguments)] // As above.
fn run(
    shared: &Arc<Shared>,
    wire: &mut Wire,
    sql: &str,
    translated: &Arc<Translated>,
    n_uses: u32,
    values: &[Value],
    declared: &[u32],
    kept: Option<Arc<PreparedStatement>>,
    id: u64,
) -> Result<Statement, Error> {
    let mut begins = begin(shared, wire, sql)?;
    let prepared = match kept {
        Some(kept) => kept,
        None => {
            let name = wire.cache.new_name(n_uses);
            let new = prepare(
                wire,
                &translated.sql,
                name,
                declared,
                std::mem::take(&mut begins),
            )?;
            let new = Arc::new(new);
            wire.cache.keep(sql, &new);
            new
        }
    };
    let (kinds, schema) = describe(&prepared, wire);
    write_execution(wire, &prepared, values, &kinds)?;
    frontend::sync(&mut wire.out);
    wire.send()?;
    let begun = if begins {
        wire.read_to_ready("BEGIN").err()
    } else {
        None
    };
    if let Some(error) = begun {
        let _ = wire.read_to_ready(sql);
        return Err(error);
    }
    let mut completion = Completion::default();
    loop {
        match wire.event()? {
            Event::Bound | Event::Closed => {}
            Event::Row => break,
            Event::Completed(completed) => completion = completed,
            Event::Ready => {
                shared.activity.finish();
                let ended = Statement::ended(Arc::clone(shared), id, schema, kinds, completion);
                return Ok(ended.with_messages(wire));
            }
            Event::Failed(fields) => {
                let error = fields.to_error(&translated.sql);
                wire.read_to_ready(sql)?;
                return Err(error);
            }
            Event::CopyIn => {
                wire.refuse_copy()?;
                let _ = wire.read_to_ready(sql);
                return Err(no_copy());
            }
            Event::CopyOut => {
                let _ = wire.read_to_ready(sql);
                return Err(no_copy());
            }
            _ => return Err(violation("rows were expected")),
        }
    }
    let delivery = Arc::new(Delivery::new(&translated.sql));
    wire.begin_result(&delivery);
    let mut statement = Statement::reading(Arc::clone(shared), id, schema, kinds, delivery);
    statement.pull(wire)?;
    Ok(statement.with_messages(wire))
}

/// Executes a statement for each row of parameters, many of them in one round trip.
pub(super) fn execute_many(
    shared: &Arc<Shared>,
    sql: &str,
    rows: &mut dyn Iterator<Item = Vec<Value>>,
) -> Result<Option<u64>, Error> {
    if copies_through_client(sql) {
        return Err(no_copy());
    }
    let is_own_transaction = shared.autocommit()
        && shared.call(|wire| Ok(wire.server.status() == TransactionStatus::Idle))?;
    let (mut n_rows, mut changed, mut is_begun) = (0, Some(0), false);
    let done = loop {
        // The iterator may run the caller's code: it is called outside of the lock.
        let values = batch(rows);
        if values.is_empty() {
            break Ok(());
        }
        let many = shared.call(|wire| {
            if is_own_transaction && !is_begun {
                wire.command("BEGIN")?;
                is_begun = true;
            }
            let id = shared.activity.begin();
            let many = run_batch(shared, wire, sql, &values, n_rows);
            shared.activity.finish();
            many.map_err(|error| shared.error_of(id, error))
        });
        match many {
            Ok(n) => changed = changed.zip(n).map(|(sum, n)| sum + n),
            Err(error) => break Err(error),
        }
        n_rows += values.len() as u64;
    };
    if is_begun {
        let ended =
            shared.call(|wire| wire.command(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }));
        // The error of a row goes before that of the rollback.
        return done.and(ended).map(|_| changed);
    }
    done.map(|()| changed)
}

fn run_batch(
    shared: &Shared,
    wire: &mut Wire,
    sql: &str,
    rows: &[Vec<Value>],
    first_row: u64,
) -> Result<Option<u64>, Error> {
    let (translated, n_uses) = wire.cache.translated(sql);
    for (row, values) in (first_row..).zip(rows) {
        parameters::check(translated.n_parameters, values).map_err(|e| e.at_row(row))?;
    }
    let declared = parameters::types_of_rows(rows, translated.n_parameters);
    let begins = begin(shared, wire, sql)?;
    let prepared = match wire.cache.prepared(sql, &declared) {
        Some(kept) => {
            if begins {
                wire.send()?;
                wire.read_to_ready("BEGIN")?;
            }
            kept
        }
        None => {
            let name = wire.cache.new_name(n_uses.max(2));
            let new = prepare(wire, &translated.sql, name, &declared, begins)
                .map_err(|e| e.at_row(first_row))?;
            let new = Arc::new(new);
            wire.cache.keep(sql, &new);
            new
        }
    };
    let (kinds, _) = describe(&prepared, wire);
    for values in rows {
        write_execution(wire, &prepared, values, &kinds)?;
    }
    frontend::sync(&mut wire.out);
    wire.send()?;
    let (mut n_done, mut changed, mut failure) = (0, Some(0), None);
    loop {
        match wire.event()? {
            Event::Completed(completion) => {
                n_done += 1;
                changed = changed.zip(completion.n_changed).map(|(sum, n)| sum + n);
            }
            Event::Failed(fields) => {
                let error = fields.to_error(&translated.sql).at_row(first_row + n_done);
                failure.get_or_insert(error);
            }
            Event::Row => wire.skip()?,
            Event::Ready => return failure.map_or(Ok(changed), Err),
            _ => {}
        }
    }
}
