//! `onecopy plan`: divides the rows of a query into parts and writes a description of the parts.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::HumanCount;
use onecopy_export::plan::{self, PartSpec, PlanOptions};
use onecopy_rows::connect::Connection;
use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use crate::args::{Plan, PlanForm};
use crate::console::notice;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::statement::{self, Source};

/// While `onecopy plan --hold` keeps a snapshot open, the time between two checks if the connection
/// of the snapshot is still open.
const CHECK: Duration = Duration::from_secs(10);

/// Runs the command `onecopy plan`; returns the exit code of the process.
pub(crate) fn run(args: &Plan) -> i32 {
    statement::run(args.time_limit, args.quiet, |interrupt| {
        let connection = make(args, interrupt)?;
        match args.hold {
            true => hold(args, &connection, interrupt),
            false => Ok(()),
        }
    })
}

/// Makes the plan and writes it to stdout or to the file of `--output`. Returns the connection with
/// its transaction still open. A snapshot of the plan exists only while this transaction is open.
fn make(args: &Plan, interrupt: &Interrupt) -> Result<Connection, Failure> {
    let source = Source::read(&args.database, &args.sql, &args.params)?;
    // A function that the statement calls could write, so the connection is read-only.
    let connection = source.connect(true, Policy::Strict, args.time_limit)?;
    if !args.quiet {
        connection.notices().iter().for_each(|n| notice(n));
    }
    interrupt.cancels(connection.cancel_handle());
    let options = PlanOptions {
        n_parts: args.parts,
        key: args.key.iter().map(|name| name.trim().to_owned()).collect(),
        sample_rows: args.sample_rows,
        hold: args.hold,
    };
    let made = plan::plan(&connection, source.sql(), source.values(), &options)
        .map_err(|error| Failure::of_export(error, false))?;
    statement::go_on(interrupt)?;
    let form = args.format.unwrap_or(match &args.output {
        None if io::stdout().is_terminal() => PlanForm::Table,
        _ => PlanForm::Json,
    });
    let text = match form {
        PlanForm::Table => table(&made),
        PlanForm::Json => made.to_json(),
    };
    let mut out = match &args.output {
        Some(path) => Output::file(path)?,
        None => Output::stdout()?,
    };
    out.write(text.as_bytes())?;
    out.finish()?;
    if !args.quiet && form == PlanForm::Json {
        made.notes.iter().for_each(|note| notice(note));
    }
    Ok(connection)
}

/// Keeps open the transaction that exported the plan's snapshot, until a signal arrives or the time
/// limit ends.
///
/// # Errors
/// The error of the database if the connection is lost. The snapshot then no longer exists.
fn hold(args: &Plan, connection: &Connection, interrupt: &Interrupt) -> Result<(), Failure> {
    // A signal only ends the loop below, so it must cancel nothing.
    interrupt.cancels(CancelHandle::new(|| {}));
    if !args.quiet {
        notice("the snapshot is held until Ctrl-C or SIGTERM");
    }
    while interrupt.stopped().is_none() {
        interrupt.pause(CHECK);
        if interrupt.stopped().is_none() {
            connection.execute("select 1", &[])?;
        }
    }
    connection.rollback()?;
    Ok(())
}

/// Returns the plan as readable text: a table of the parts, and sentences about their properties.
fn table(plan: &plan::Plan) -> String {
    let count = |part: &PartSpec| match part.rows {
        Some(rows) => HumanCount(rows).to_string(),
        None => "unknown".to_owned(),
    };
    let counts: Vec<String> = plan.parts.iter().map(count).collect();
    let width = counts.iter().map(String::len).chain([4]).max().unwrap_or(4);
    let mut text = format!("part  {:>width$}  condition\n", "rows");
    for (part, count) in plan.parts.iter().zip(&counts) {
        let line = format!("{:>4}  {count:>width$}  {}", part.number, part.condition);
        text.push_str(&one_line(&line));
        text.push('\n');
    }
    let key = plan.parts.first().map(|part| part.key.join(", "));
    let names = key.unwrap_or_default();
    text.push_str(&format!(
        "\nrows: estimated\nkey: {names} ({})\nindex: {}\nsnapshot: {}\n",
        plan.key_kind, plan.index, plan.snapshot
    ));
    for note in &plan.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// Returns `text` with its control characters escaped, so that a value in it cannot control the
/// terminal or begin a new line.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| match c.is_control() {
            true => c.escape_default().to_string(),
            false => c.to_string(),
        })
        .collect()
}
