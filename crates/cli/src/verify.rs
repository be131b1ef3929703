//! `onecopy verify`: compares exported files with their manifest, and the number of their rows with
//! that of the database.

use std::io::{self, Write};

use indicatif::{HumanBytes, HumanCount};
use onecopy_export::{Manifest, Observer, plan, verify};
use onecopy_text::Policy;

use crate::args::Verify;
use crate::console::{ByteProgress, notice, shown};
use crate::exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::statement::{self, Source, go_on};

/// Displays the number of bytes that were read so far.
struct Reading(ByteProgress);

impl Observer for Reading {
    fn progress(&mut self, _n_rows: u64, n_bytes: u64) {
        self.0.set(n_bytes);
    }
}

/// Runs the command `onecopy verify`; returns the exit code of the process.
pub(crate) fn run(args: &Verify) -> i32 {
    let mut reading = Reading(ByteProgress::named(!args.quiet, "verifying", None));
    let report = verify(&args.path, &mut reading);
    reading.0.end();
    let report = match report {
        Ok(report) => report,
        Err(error) => return Failure::of_export(error, false).report(),
    };
    for problem in &report.problems {
        if let Err(failure) = print(problem) {
            return failure.report();
        }
    }
    let manifest = &report.manifest;
    let mut is_same = report.problems.is_empty();
    let mut counted = String::new();
    if let Some(database) = &args.database {
        let code = statement::run(args.time_limit, args.quiet, |interrupt| {
            let found = count(args, database, manifest, interrupt)?;
            if found == manifest.n_rows() {
                counted = format!("; the statement has {} rows now", HumanCount(found));
                return Ok(());
            }
            is_same = false;
            let listed = manifest.n_rows();
            print(&format!(
                "the manifest has {listed} rows, and the statement has {found} now"
            ))
        });
        if code != exit::OK {
            return code;
        }
    }
    if !is_same {
        return exit::FAILED;
    }
    if !args.quiet {
        let n_files = manifest.files.len();
        notice(&format!(
            "{n_files} {}, {} rows, {}: no difference{counted}",
            if n_files == 1 { "file" } else { "files" },
            HumanCount(manifest.n_rows()),
            HumanBytes(manifest.n_bytes()),
        ));
    }
    exit::OK
}

/// Writes a difference to stdout as one line. Line ends are replaced, because a file name may
/// contain them.
fn print(problem: &str) -> Result<(), Failure> {
    let line = shown(problem).replace('\n', " ");
    writeln!(io::stdout().lock(), "{line}").map_err(Failure::Stdout)
}

/// Executes the statement of the manifest in `database`; returns the number of its rows.
fn count(
    args: &Verify,
    database: &str,
    manifest: &Manifest,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    let source = Source::of_manifest(database, manifest, &args.params)?;
    let connection = source.connect(true, Policy::Strict, args.time_limit)?;
    interrupt.cancels(connection.cancel_handle());
    let found = plan::count(&connection, source.sql(), source.values(), None);
    go_on(interrupt)?;
    found.map_err(|error| Failure::of_export(error, false))
}
