//! `onecopy query`.

use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

use indicatif::HumanCount;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::sink::BsonOptions;
use onecopy_rows::{BlockPosition, Budget, ErrorKind, LongValues, PumpError, Pumped, Value};
use onecopy_rows::{ConnectOptions, Format};
use onecopy_text::{Chunk, Ledger, Policy, planted};
use onecopy_wire::{ChunkError, ChunkErrorKind, ChunkSource, Filled};

use crate::args::{Form, Query, TextErrors};
use crate::console::{self, Progress, coloured, error, notice, tell};
use crate::interrupt::{Interrupt, Stop};
use crate::output::Output;
use crate::table::Table;
use crate::{exit, parameter};

/// The size of a chunk: a write of this size costs a system call per 64 KiB.
const CHUNK_BYTES: usize = 64 << 10;

/// Why the command ends early.
enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// The database, its driver or the statement.
    Rows(onecopy_rows::Error),
    /// A stream of chunks.
    Chunk(ChunkError),
    /// Stdout.
    Stdout(io::Error),
    /// The file of `--output`.
    File(io::Error),
    /// Threads or signal handlers.
    System(io::Error),
}

impl From<onecopy_rows::Error> for Failure {
    fn from(error: onecopy_rows::Error) -> Failure {
        Failure::Rows(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) => f.write_str(message),
            Failure::Rows(error) => write_rows_error(f, error),
            Failure::Chunk(error) => match error.source.downcast_ref() {
                Some(rows) => write_rows_error(f, rows),
                None => error.fmt(f),
            },
            Failure::Stdout(source) => write!(f, "stdout cannot be written: {source}"),
            // It names the file and what was being done.
            Failure::File(source) => source.fmt(f),
            Failure::System(source) => write!(f, "cannot start: {source}"),
        }
    }
}

/// A database's error, with the command's own way out of malformed text.
fn write_rows_error(f: &mut fmt::Formatter<'_>, error: &onecopy_rows::Error) -> fmt::Result {
    let replace = "give `--text-errors replace` to read it with U+FFFD there";
    f.write_str(&with_state(&error.clone().or_else_replace(replace)))
}

/// A database's error as text, with its SQLSTATE at the end of the first line where the message does not tell it.
pub(crate) fn with_state(error: &onecopy_rows::Error) -> String {
    let text = error.to_string();
    if error.sqlstate.is_empty() || error.message.contains(&error.sqlstate) {
        return text;
    }
    let end = text.find('\n').unwrap_or(text.len());
    format!("{} [{}]{}", &text[..end], error.sqlstate, &text[end..])
}

impl Failure {
    fn exit_code(&self) -> i32 {
        match self {
            Failure::Usage(_) => exit::USAGE,
            Failure::Rows(error) if error.kind == ErrorKind::Connect => exit::CONNECT,
            Failure::Stdout(source) if source.kind() == io::ErrorKind::BrokenPipe => {
                exit::PIPE_CLOSED
            }
            _ => exit::FAILED,
        }
    }

    fn is_cancel(&self) -> bool {
        match self {
            Failure::Rows(error) => matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Timeout),
            Failure::Chunk(error) => error.kind == ChunkErrorKind::Cancelled,
            _ => false,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Query) -> i32 {
    let interrupt = match Interrupt::start(args.timeout) {
        Ok(interrupt) => interrupt,
        Err(source) => {
            error(&Failure::System(source).to_string());
            return exit::FAILED;
        }
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
            let limit = args.timeout.unwrap_or_default().as_secs_f64();
            error(&format!(
                "the query took longer than {limit} s and was cancelled"
            ));
            exit::FAILED
        }
        _ => {
            let code = failure.exit_code();
            if code != exit::PIPE_CLOSED {
                error(&failure.to_string());
            }
            code
        }
    }
}

fn query(args: &Query, interrupt: &Interrupt) -> Result<(), Failure> {
    let target = database(&args.database).map_err(Failure::Usage)?;
    let sql = text_of(&args.sql, "the SQL").map_err(Failure::Usage)?;
    let (sql, values) = parameter::bind(&sql, &args.params, Connection::dialect_of(&target))
        .map_err(Failure::Usage)?;
    let form = form(args);
    if form == Form::Bson && args.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "BSON is not for a terminal\ngive `--output FILE`, or write to a pipe".to_owned(),
        ));
    }
    let started = Instant::now();
    let options = ConnectOptions {
        read_only: args.read_only,
        // A path with a slip in it must not make a database.
        create: Connection::creates_database(&target, &sql),
        login_timeout_s: login_timeout_s(args.timeout),
        text_policy: match args.text_errors {
            TextErrors::Strict => Policy::Strict,
            TextErrors::Replace => Policy::Replace,
        },
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
            tell(&match n {
                Some(1) => "1 row changed".to_owned(),
                Some(n) => format!("{} rows changed", HumanCount(n)),
                None => "done".to_owned(),
            });
        }
        return Ok(());
    }
    let mut out = match &args.output {
        Some(path) => Output::file(path).map_err(|e| Failure::File(e.into()))?,
        None => Output::stdout().map_err(Failure::Stdout)?,
    };
    let format = match form {
        Form::Table => None,
        Form::Json => Some(Format::Json),
        Form::Ndjson => Some(Format::Ndjson),
        Form::Csv => Some(Format::Csv),
        Form::Bson => Some(Format::Bson(BsonOptions::default())),
    };
    let n_rows = match format {
        None => write_table(args, statement, &mut out, interrupt)?,
        Some(format) => write_chunks(args, statement, format, &mut out, interrupt, &ledger)?,
    };
    // A statement that changes rows and returns them (`insert … returning`) is to last.
    connection.commit()?;
    out.finish().map_err(|e| Failure::File(e.into()))?;
    if !args.quiet && (args.output.is_some() || io::stdout().is_terminal()) {
        let colour = coloured(io::stderr().is_terminal());
        let rows = if n_rows == 1 { "row" } else { "rows" };
        let text = format!(
            "{} {rows} in {}",
            HumanCount(n_rows),
            duration(started.elapsed())
        );
        tell(&console::styled(&text, "2", colour));
    }
    match (args.ledger, form) {
        (true, Form::Table) => {
            notice("a table is for people, its text is not counted\nuse --format")
        }
        (true, _) => tell(&console::ledger_table(&ledger)),
        (false, _) => {}
    }
    Ok(())
}

/// The time limit holds for connecting too, in the whole seconds that drivers know.
fn login_timeout_s(timeout: Option<Duration>) -> u32 {
    let usual = ConnectOptions::default().login_timeout_s;
    timeout.map_or(usual, |t| usual.min(t.as_secs_f64().ceil() as u32).max(1))
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
    // From here on a stop is remembered: each later fetch fails at once.
    interrupt.cancels(statement.cancel_handle());
    Ok(statement)
}

/// Refuses to go on after a stop: a driver may answer a cancel with a result (MariaDB's `sleep` gives a row).
fn go_on(interrupt: &Interrupt) -> Result<(), Failure> {
    match interrupt.stopped() {
        None => Ok(()),
        Some(_) => Err(Failure::Rows(onecopy_rows::Error::new(
            ErrorKind::Cancelled,
            "the query was stopped",
        ))),
    }
}

/// The database as `connect` takes it.
pub(crate) fn database(text: &str) -> Result<String, String> {
    let target = match text {
        // Only a file: a password in SQL from stdin is nobody's habit, and stdin may be the SQL's.
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

/// What an argument says: `@FILE` is the file's text, `-` that of stdin.
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

/// The form asked for, or the one that fits the destination.
fn form(args: &Query) -> Form {
    if let Some(form) = args.format {
        return form;
    }
    match &args.output {
        Some(path) => match path.extension().and_then(|e| e.to_str()) {
            Some("json") => Form::Json,
            Some("ndjson" | "jsonl") => Form::Ndjson,
            Some("bson") => Form::Bson,
            Some("txt") => Form::Table,
            _ => Form::Csv,
        },
        None if io::stdout().is_terminal() => Form::Table,
        None => Form::Csv,
    }
}

fn write_failure(args: &Query, source: io::Error) -> Failure {
    match args.output {
        Some(_) => Failure::File(source),
        None => Failure::Stdout(source),
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
    // Rows on the terminal tell enough of the progress.
    let to_terminal = args.output.is_none() && io::stdout().is_terminal();
    let progress = Progress::new(!args.quiet && !to_terminal);
    let mut chunk = Chunk::with_capacity(CHUNK_BYTES);
    let mut n_bytes = 0;
    loop {
        chunk.clear();
        let filled = source.fill(&mut chunk).map_err(Failure::Chunk)?;
        planted::extra_work_on_chunk(&chunk);
        go_on(interrupt)?;
        out.write_all(&chunk)
            .map_err(|source| write_failure(args, source))?;
        n_bytes += chunk.len() as u64;
        progress.set(source.n_rows(), n_bytes);
        if filled == Filled::Done {
            if to_terminal && !chunk.ends_with(b"\n") {
                // The prompt is to stand on a line of its own; a file or a pipe gets the format's bytes alone.
                out.write_all(b"\n")
                    .map_err(|source| write_failure(args, source))?;
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
        table.write(&mut buffer)?;
        out.write_all(&buffer)
    };
    loop {
        let pumped = match statement.pump(&mut position, Budget::default(), &mut table) {
            Ok(pumped) => pumped,
            Err(PumpError::Source(error)) => {
                // What was fetched is shown: people look at it together with the error.
                let _ = write(&mut table);
                return Err(error.into());
            }
            Err(PumpError::Sink(never)) => match never {},
        };
        go_on(interrupt)?;
        if table.is_full() || pumped == Pumped::End {
            write(&mut table).map_err(|source| write_failure(args, source))?;
        }
        if pumped == Pumped::End {
            return Ok(table.n_rows());
        }
    }
}

/// Columns of the terminal.
pub(crate) fn line_width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let asked = || {
        ::console::Term::stdout()
            .size_checked()
            .map(|(_, columns)| columns.into())
    };
    set.or_else(asked).filter(|&w: &usize| w >= 20)
}

fn duration(d: Duration) -> String {
    match d.as_secs() {
        0 => format!("{} ms", d.as_millis()),
        s @ 1..60 => format!("{s}.{} s", d.subsec_millis() / 100),
        s => format!("{} min {} s", s / 60, s % 60),
    }
}
