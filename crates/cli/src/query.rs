//! `onecopy query`: runs one statement and writes its rows.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use indicatif::HumanCount;
use onecopy_export::{Error, FileFormat, RowOptions, write_rows};
use onecopy_rows::connect::Statement;
use onecopy_rows::{BlockPosition, Budget, LongValues, PumpError, Pumped};
use onecopy_text::Ledger;

use crate::args::Query;
use crate::console::{self, coloured, notice, print_line};
use crate::failure::Failure;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::row_progress::{RowProgress, duration};
use crate::statement::{self, Source, go_on};
use crate::table::Table;

/// A long value for a table is fetched in parts of this number of bytes, because the table displays
/// only the beginning of such a value.
const PART_BYTES: usize = 64 << 10;

/// Runs the command `onecopy query`; returns the exit code of the process.
pub(crate) fn run(args: &Query) -> i32 {
    statement::run(args.time_limit, args.quiet, |interrupt| {
        query(args, interrupt)
    })
}

fn query(args: &Query, interrupt: &Interrupt) -> Result<(), Failure> {
    let source = Source::read(&args.database, &args.sql, &args.params)?;
    let form = form(args).map_err(Failure::Usage)?;
    if let Form::Rows(file) = form
        && file.format().is_binary()
        && output_file(args).is_none()
        && io::stdout().is_terminal()
    {
        let name = file.format().title();
        return Err(Failure::Usage(format!(
            "{name} is not for a terminal\ngive `--output FILE`, or write to a pipe"
        )));
    }
    let started = Instant::now();
    let connection = source.connect(args.read_only, args.errors, args.time_limit)?;
    if !args.quiet {
        connection.notices().iter().for_each(|n| notice(n));
    }
    let ledger = match args.ledger {
        true => Ledger::within(&Ledger::off()),
        false => Ledger::off(),
    };
    let statement = source.execute(&connection, interrupt)?;
    if !statement.schema().has_rows() {
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
    let mut out = match output_file(args) {
        Some(path) => Output::file(path)?,
        None => Output::stdout()?,
    };
    let n_rows = match form {
        Form::Table => write_table(args, statement, &mut out, interrupt)?,
        Form::Rows(file) => {
            let options = RowOptions {
                ledger: ledger.clone(),
                ..RowOptions::new(file)
            };
            write_formatted(args, statement, &options, &mut out, interrupt)?
        }
    };
    // A statement that changes rows and also returns them (`insert … returning`) must be committed.
    connection.commit()?;
    out.finish()?;
    if !args.quiet && (output_file(args).is_some() || io::stdout().is_terminal()) {
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
        (true, Form::Table) => {
            notice("a table is for people, its text is not counted\nuse --format")
        }
        (true, _) => print_line(&console::ledger_table(&ledger)),
        (false, _) => {}
    }
    Ok(())
}

/// The format of the output: an aligned table for reading on a screen, or rows in a file format.
#[derive(Clone, Copy)]
enum Form {
    Table,
    Rows(FileFormat),
}

/// Returns the format of the output. `--format` determines it if given, otherwise the ending of the
/// file name of `--output`. Without both options, the output is a table if stdout is a terminal,
/// otherwise CSV. If the file name has the ending of a compressed file, the file is compressed.
///
/// # Errors
/// The name of the output file has none of the known endings. A default format would surprise a
/// user who expects the format from the name.
fn form(args: &Query) -> Result<Form, String> {
    let by_name = output_file(args).map(FileFormat::of_path);
    if let Some(form) = args.format {
        let compression = match &by_name {
            Some(Ok(file)) if !file.format().compresses_itself() => Some(file.compression()),
            _ => None,
        };
        return match form.format() {
            None => Ok(Form::Table),
            Some(format) => FileFormat::new(format, compression)
                .map(Form::Rows)
                .map_err(|error| error.to_string()),
        };
    }
    match by_name {
        Some(Ok(file)) => Ok(Form::Rows(file)),
        Some(Err(_)) if output_file(args).is_some_and(is_text_page) => Ok(Form::Table),
        Some(Err(error @ Error::UnknownEnding(_))) => {
            Err(format!("{error}; .txt is a table; or give `--format`"))
        }
        Some(Err(error)) => Err(error.to_string()),
        None if io::stdout().is_terminal() => Ok(Form::Table),
        None => FileFormat::new(onecopy_export::Format::Csv, None)
            .map(Form::Rows)
            .map_err(|error| error.to_string()),
    }
}

/// Returns the path of the output file; `None` if the output is stdout.
fn output_file(args: &Query) -> Option<&Path> {
    let path = args.output.as_deref();
    path.filter(|path| !input::is_dash(path))
}

/// Returns `true` for a file name with the ending `.txt`, for which the output is a table.
fn is_text_page(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("txt"))
}

/// Writes the rows in a file format; returns the number of rows.
fn write_formatted(
    args: &Query,
    statement: Statement,
    options: &RowOptions,
    out: &mut Output,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    // Rows that are written to the terminal are themselves a progress display.
    let to_terminal = output_file(args).is_none() && io::stdout().is_terminal();
    let mut progress = RowProgress::line(interrupt, !args.quiet && !to_terminal, None);
    let mut last = LastByte {
        out: out.as_write(),
        byte: b'\n',
    };
    let written = write_rows(statement, options, &mut last, false, &mut progress);
    progress.end();
    let ends_a_line = last.byte == b'\n';
    let written = written.map_err(|error| Failure::of_export(error, out.is_stdout()))?;
    if to_terminal && !ends_a_line {
        // On a terminal, a line end is added so that the prompt begins on a new line. A file or a
        // pipe gets only the bytes of the format.
        out.write(b"\n")?;
    }
    Ok(written.n_rows)
}

/// A writer that passes bytes on to `out` and stores the last byte that was written.
struct LastByte<'o> {
    out: &'o mut (dyn Write + Send),
    byte: u8,
}

impl Write for LastByte<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.byte = bytes[..n].last().copied().unwrap_or(self.byte);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_table(
    args: &Query,
    mut statement: Statement,
    out: &mut Output,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    statement.set_long_values(LongValues::Parts {
        part_bytes: PART_BYTES,
    });
    interrupt.cancels(statement.cancel_handle());
    let to_terminal = output_file(args).is_none() && io::stdout().is_terminal();
    let colour = output_file(args).is_none() && coloured(to_terminal);
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
