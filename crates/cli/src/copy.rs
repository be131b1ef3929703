//! `onecopy copy`: inserts the rows of one statement into a table of another database.

use std::time::Instant;

use onecopy_export::Observer;
use onecopy_rows::arrow::{ArrowOptions, ArrowStream};
use onecopy_rows::table_copy::{CopyError, TargetTable, exact_types};
use onecopy_rows::{Error, ErrorKind};
use onecopy_text::Ledger;
use onecopy_wire::CancelHandle;

use crate::args::Copy;
use crate::console::notice;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::statement::{Source, arrow_types, go_on, open_to_write};

/// Runs the command `onecopy copy`; returns the exit code of the process.
pub(crate) fn run(args: &Copy) -> i32 {
    args.rows
        .reporting()
        .run(args.rows.time_limit, |interrupt| copy(args, interrupt))
}

fn copy(args: &Copy, interrupt: &Interrupt) -> Result<(), Failure> {
    let source = Source::read(&args.from, &args.sql, &args.params)?;
    let types = arrow_types(&args.types)?;
    refuse_same_database(source.is_at(&args.to)?)?;
    let started = Instant::now();
    // The target is opened before the query is executed, because the query may take long and an
    // error of the target should be reported at once.
    let to = open_to_write(&args.to, args.rows.time_limit)?;
    interrupt.cancels(to.cancel_handle());
    let table = TargetTable::open(&to, &args.table)?;
    go_on(interrupt)?;
    let from = source.connect(true, args.rows.errors, args.rows.time_limit)?;
    refuse_same_database(table.is_in_file_of(&from)?)?;
    if args.rows.reporting().shows_notices() {
        let notices = from.notices().into_iter().chain(to.notices());
        notices.for_each(|text| notice(&text));
    }
    let n_estimated = match args.rows.reporting().shows_progress() {
        true => source.estimated_rows(&from),
        false => None,
    };
    let statement = source.execute(&from, interrupt)?;
    let schema = statement.schema().clone();
    if !schema.has_rows() {
        let message = "the statement returns no rows\ncopy a SELECT";
        return Err(Failure::Usage(message.to_owned()));
    }
    let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
    let columns = table.match_columns(&names, args.allow_defaults)?;
    let options = ArrowOptions {
        types: exact_types(&schema, &types),
        ..ArrowOptions::default()
    };
    let mut stream = ArrowStream::new(statement, &options, &Ledger::off())?;
    let mut progress = args.rows.reporting().progress(interrupt, n_estimated);
    let (reading, writing) = (stream.cancel_handle(), to.cancel_handle());
    progress.cancels(CancelHandle::new(move || {
        reading.cancel();
        writing.cancel();
    }));
    let (mut n_rows, mut n_bytes) = (0, 0);
    let copied = columns.insert(&mut stream, |batch| {
        n_rows += batch.n_rows as u64;
        n_bytes += batch.n_bytes();
        progress.progress(n_rows, n_bytes);
        match progress.stops() {
            true => Err(Error::new(ErrorKind::Cancelled, "the copy was cancelled")),
            false => Ok(()),
        }
    });
    progress.end();
    // The source connection is closed before the commit. While the commit waits, the source
    // transaction would otherwise keep its locks.
    drop(stream);
    let _ = from.close();
    let ended = copied.map_err(|error| failure(args, error)).and_then(|n| {
        go_on(interrupt)?;
        to.commit()?;
        Ok(n)
    });
    match ended {
        Ok(n_rows) => {
            args.rows
                .reporting()
                .done(n_rows, n_bytes, started, Vec::new());
            Ok(())
        }
        Err(failure) => {
            // The error of the rollback is ignored: if the connection is lost, the database rolls
            // back by itself.
            let _ = to.rollback();
            Err(failure)
        }
    }
}

/// Returns an error if `is_same` is `true`: the source and the target are then the same database.
/// The inserts could wait for a lock that the query of the same command holds.
fn refuse_same_database(is_same: bool) -> Result<(), Failure> {
    let message = "source and target are the same database\n\
                   use `onecopy query DATABASE 'insert into … select …'`";
    match is_same {
        true => Err(Failure::Usage(message.to_owned())),
        false => Ok(()),
    }
}

/// Converts a [`CopyError`] to the failure of the command. If the target database reported the
/// error, the name of the target table is added to the message.
fn failure(args: &Copy, error: CopyError) -> Failure {
    Failure::Rows(match error {
        CopyError::Source(error) => error,
        CopyError::Target(mut error) => {
            error.message = format!("cannot insert into `{}`: {}", args.table, error.message);
            error
        }
    })
}
