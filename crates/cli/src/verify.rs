//! `onecopy verify`: compares exported files with their manifest.

use std::io::{self, Write};

use indicatif::{HumanBytes, HumanCount};
use onecopy_export::{Observer, verify};

use crate::args::Verify;
use crate::console::{ByteProgress, notice, shown};
use crate::exit;
use crate::failure::Failure;

/// Shows the number of bytes that were read.
struct Reading(ByteProgress);

impl Observer for Reading {
    fn progress(&mut self, _n_rows: u64, n_bytes: u64) {
        self.0.set(n_bytes);
    }
}

/// Runs `onecopy verify`.
pub(crate) fn run(args: &Verify) -> i32 {
    let mut reading = Reading(ByteProgress::named(!args.quiet, "verifying", None));
    let report = verify(&args.path, &mut reading);
    reading.0.end();
    let report = match report {
        Ok(report) => report,
        Err(error) => return Failure::of_export(error, false).report(),
    };
    let mut out = io::stdout().lock();
    for problem in &report.problems {
        // A name of a file may contain a line end.
        let line = shown(problem).replace('\n', " ");
        if let Err(error) = writeln!(out, "{line}") {
            return Failure::Stdout(error).report();
        }
    }
    if !report.problems.is_empty() {
        return exit::FAILED;
    }
    if !args.quiet {
        let n_files = report.manifest.files.len();
        notice(&format!(
            "{n_files} {}, {} rows, {}: no difference",
            if n_files == 1 { "file" } else { "files" },
            HumanCount(report.manifest.n_rows()),
            HumanBytes(report.manifest.n_bytes()),
        ));
    }
    exit::OK
}
