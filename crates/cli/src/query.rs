//! `onecopy query`: runs one statement and writes its rows.

use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};

use indicatif::HumanCount;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::sink::BsonOptions;
use onecopy_rows::{BlockPosition, Budget, LongValues, PumpError, Pumped, Value};
use onecopy_rows::{ConnectOptions, Format};
use onecopy_text::{Chunk, Ledger, planted};
use onecopy_wire::{ChunkSource, Filled};

use crate::args::{OutputForm, Query};
use crate::console::{self, Progress, coloured, error, notice, print_line};
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Stop};
use crate::output::Output;
use crate::table::Table;
use crate::{exit, parameter};

/// The size in bytes of a chunk of formatted rows. One system call writes one chunk.
const CHUNK_BYTES: usize = 64 << 10;

/// Runs `onecopy query`.
pub(crate) fn run(args: &Query) -> i32 {
    let interrupt = match Interrupt::start(args.time_limit) {
        Ok(interrupt) => interrupt,
        Err(source) => return Failure::System(source).report(),
    };
    let Err(failure) = query(args, &interrupt) else {
        return exit::OK;
    };
    match interrupt.stopped() {
        Some(Stop::Signal) => {
            if !args.quiet {
                notice("stopped");
            }
            exit::STOPPED
        }
        Some(Stop::Timeout) if failure.is_cancel() => {
            let limit = args.time_limit.unwrap_or_default().as_secs_f64();
            error(&format!(
                "the query took longer than {limit} s and was cancelled"
            ));
            exit::FAILED
        }
        _ => failure.report(),
    }
}

fn query(args: &Query, interrupt: &Interrupt) -> Result<(), Failure> {
    let target = database(&args.database).map_err(Failure::Usage)?;
    let sql = text_of(&args.sql, "the SQL").map_err(Failure::Usage)?;
    let (sql, values) = parameter::bind(&sql, &args.params, Connection::dialect_of(&target))
        .map_err(Failure::Usage)?;
    let form = form(args).map_err(Failure::Usage)?;
    if form == OutputForm::Bson && args.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "BSON is not for a terminal\ngive `--output FILE`, or write to a pipe".to_owned(),
        ));
    }
    let started = Instant::now();
    let options = ConnectOptions {
        read_only: args.read_only,
        // A path with a typing error must not create a database file.
        create: Connection::creates_database(&target, &sql),
        login_timeout_s: login_timeout_s(args.time_limit),
        text_policy: args.errors,
        ..ConnectOptions::default()
    };
    let connection = Connection::open(&target, &options)?;
    if !args.quiet {
        connection.notices().iter().for_each(|n| notice(n));
    }
    let ledger = match args.ledger {
        true => Ledger::within(&Ledger::off()),
        false => Ledger::off(),
    };
    let statement = execute(&connection, &sql, &values, interrupt)?;
    if statement.schema().n_columns() == 0 {
        let n = statement.row_count();
        drop(statement);
        connection.commit()?;
        if !args.quiet {
            print_line(&match n {
                Some(1) => "1 row changed".to_owned(),
                Some(n) => format!("{} rows changed", HumanCount(n)),
                None => "done".to_owned(),
            });
        }
        return Ok(());
    }
    let mut out = match &args.output {
        Some(path) => Output::file(path)?,
        None => Output::stdout()?,
    };
    let format = match form {
        OutputForm::Table => None,
        OutputForm::Json => Some(Format::Json),
        OutputForm::Ndjson => Some(Format::Ndjson),
        OutputForm::Csv => Some(Format::Csv),
        OutputForm::Bson => Some(Format::Bson(BsonOptions::default())),
    };
    let n_rows = match format {
        None => write_table(args, statement, &mut out, interrupt)?,
        Some(format) => write_chunks(args, statement, format, &mut out, interrupt, &ledger)?,
    };
    // A statement that changes rows and also returns them (`insert … returning`) must be committed.
    connection.commit()?;
    out.finish()?;
    if !args.quiet && (args.output.is_some() || io::stdout().is_terminal()) {
        let colour = coloured(io::stderr().is_terminal());
        let rows = if n_rows == 1 { "row" } else { "rows" };
        let text = format!(
            "{} {rows} in {}",
            HumanCount(n_rows),
            duration(started.elapsed())
        );
        print_line(&console::styled(&text, "2", colour));
    }
    match (args.ledger, form) {
        (true, OutputForm::Table) => {
            notice("a table is for people, its text is not counted\nuse --format")
        }
        (true, _) => print_line(&console::ledger_table(&ledger)),
        (false, _) => {}
    }
    Ok(())
}

/// Returns the time limit for connecting. It is in whole seconds, because drivers accept no
/// fractions.
fn login_timeout_s(time_limit: Option<Duration>) -> u32 {
    let usual = ConnectOptions::default().login_timeout_s;
    time_limit.map_or(usual, |t| usual.min(t.as_secs_f64().ceil() as u32).max(1))
}

fn execute(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    interrupt: &Interrupt,
) -> Result<Statement, Failure> {
    interrupt.cancels(connection.cancel_handle());
    go_on(interrupt)?;
    let statement = connection.execute(sql, values)?;
    go_on(interrupt)?;
    // From here on the statement records a stop, so that each later fetch fails immediately.
    interrupt.cancels(statement.cancel_handle());
    Ok(statement)
}

/// Returns an error if the command was stopped. This check is necessary because a driver may
/// respond to a cancel with a result (MariaDB's `sleep` returns a row).
fn go_on(interrupt: &Interrupt) -> Result<(), Failure> {
    match interrupt.stopped() {
        None => Ok(()),
        Some(_) => Err(Failure::Stopped("")),
    }
}

/// Converts the DATABASE argument to a connection string: reads it from the file for `@FILE`, and
/// removes white space around it.
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

/// Returns the text that an argument denotes: for `@FILE` the text of the file, for `-` the text of
/// stdin, otherwise the argument itself.
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

/// Returns the output format. It is the value of `--format`; without `--format`, it follows from
/// the ending of the file name of `--output`. Without both options, it is a table if stdout is a
/// terminal, otherwise CSV.
///
/// # Errors
/// The name of the output file has none of the known endings. A default format would surprise a
/// user who expects the format from the name.
fn form(args: &Query) -> Result<OutputForm, String> {
    if let Some(form) = args.format {
        return Ok(form);
    }
    let Some(path) = &args.output else {
        return Ok(match io::stdout().is_terminal() {
            true => OutputForm::Table,
            false => OutputForm::Csv,
        });
    };
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    match ending.to_ascii_lowercase().as_str() {
        "json" => Ok(OutputForm::Json),
        "ndjson" | "jsonl" => Ok(OutputForm::Ndjson),
        "csv" => Ok(OutputForm::Csv),
        "bson" => Ok(OutputForm::Bson),
        "txt" => Ok(OutputForm::Table),
        _ => Err(format!(
            "the name `{}` does not say the output format\n\
             end it in .json, .ndjson, .jsonl, .csv, .bson or .txt, or give `--format`",
            path.display()
        )),
    }
}

fn write_chunks(
    args: &Query,
    statement: Statement,
    format: Format,
    out: &mut Output,
    interrupt: &Interrupt,
    ledger: &Ledger,
) -> Result<u64, Failure> {
    let mut source = statement.into_chunks(format, ledger)?;
    interrupt.cancels(source.cancel_handle());
    // If rows are written to the terminal, they already show the progress.
    let to_terminal = args.output.is_none() && io::stdout().is_terminal();
    let progress = Progress::new(!args.quiet && !to_terminal);
    let mut chunk = Chunk::with_capacity(CHUNK_BYTES);
    let mut n_bytes = 0;
    loop {
        chunk.clear();
        let filled = source.fill(&mut chunk)?;
        planted::extra_work_on_chunk(&chunk);
        go_on(interrupt)?;
        out.write(&chunk)?;
        n_bytes += chunk.len() as u64;
        progress.set(source.n_rows(), n_bytes);
        if filled == Filled::Done {
            if to_terminal && !chunk.ends_with(b"\n") {
                // On a terminal, a line end is added so that the prompt begins on a new line. A
                // file or a pipe gets only the bytes of the format.
                out.write(b"\n")?;
            }
            progress.end();
            return Ok(source.n_rows());
        }
    }
}

fn write_table(
    args: &Query,
    mut statement: Statement,
    out: &mut Output,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    statement.set_long_values(LongValues::Parts {
        part_bytes: CHUNK_BYTES,
    });
    interrupt.cancels(statement.cancel_handle());
    let to_terminal = args.output.is_none() && io::stdout().is_terminal();
    let colour = args.output.is_none() && coloured(to_terminal);
    let width = if to_terminal { line_width() } else { None };
    let mut table = Table::new(statement.schema(), width, colour);
    let mut position = BlockPosition::default();
    let mut write = |table: &mut Table| {
        let mut buffer = Vec::new();
        table.write(&mut buffer).map_err(Failure::System)?;
        out.write(&buffer)
    };
    loop {
        let pumped = match statement.pump(&mut position, Budget::default(), &mut table) {
            Ok(pumped) => pumped,
            Err(PumpError::Source(error)) => {
                // The rows fetched so far are written, so that the user sees them together with the
                // error.
                let _ = write(&mut table);
                return Err(error.into());
            }
            Err(PumpError::Sink(never)) => match never {},
        };
        go_on(interrupt)?;
        if table.is_full() || pumped == Pumped::End {
            write(&mut table)?;
        }
        if pumped == Pumped::End {
            return Ok(table.n_rows());
        }
    }
}

/// Returns the width of the terminal in columns; `None` if stdout is not a terminal.
pub(crate) fn line_width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let of_terminal = || {
        ::console::Term::stdout()
            .size_checked()
            .map(|(_, columns)| columns.into())
    };
    set.or_else(of_terminal).filter(|&w: &usize| w >= 20)
}

fn duration(d: Duration) -> String {
    match d.as_secs() {
        0 => format!("{} ms", d.as_millis()),
        s @ 1..60 => format!("{s}.{} s", d.subsec_millis() / 100),
        s => format!("{} min {} s", s / 60, s % 60),
    }
}
