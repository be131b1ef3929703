//! `onecopy doctor`, and the output of `--version`.
//!
//! | module | contents |
//! |---|---|
//! | `report` | findings, as a page for people and as JSON |
//! | `machine` | this machine: kernels for text conversion, driver manager, drivers |
//! | `database` | a connected database: its driver and settings, and the results of test queries |
//! | `test_queries` | the SQL of the test queries, per dialect, and their test texts |

mod database;
mod machine;
mod report;
mod test_queries;

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Connection;

use crate::args::Doctor;
use crate::failure::Failure;
use crate::{console, exit, query, statement};
use report::{Level, Report};

/// Prints the version and the build features (`onecopy --version`); returns the exit code.
pub(crate) fn print_version(features: &[String]) -> i32 {
    print(&format!("onecopy {}\n", version_text(features)))
}

/// Writes `text` to stdout; returns the exit code.
fn print(text: &str) -> i32 {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Ok(()) => exit::OK,
        Err(error) => Failure::Stdout(error).report(),
    }
}

/// Returns the version and the build features as text.
fn version_text(features: &[String]) -> String {
    let mut text = format!("{}\n{}", env!("CARGO_PKG_VERSION"), report::build());
    if let Ok(sqlite) = Connection::open("sqlite::memory:", &ConnectOptions::default()) {
        let _ = write!(text, "\n{}, built in", sqlite.describe());
    }
    text.push_str("\nODBC through the driver manager of the system, loaded when it is needed");
    for feature in features {
        text.push('\n');
        text.push_str(feature);
    }
    text
}

/// Runs the command `onecopy doctor`; returns the exit code of the process.
pub(crate) fn run(args: &Doctor, features: &[String]) -> i32 {
    let database = match args
        .database
        .as_deref()
        .map(statement::database)
        .transpose()
    {
        Ok(database) => database,
        Err(message) => {
            console::error(&message);
            return exit::USAGE;
        }
    };
    let mut report = Report::default();
    machine::look(&mut report, features);
    let connected = database.is_none_or(|target| database::look(&mut report, &target));
    let text = match args.json {
        true => report.json(),
        false => {
            let colour = console::coloured(std::io::stdout().is_terminal());
            report.page(query::line_width().unwrap_or(report::PAGE_WIDTH), colour)
        }
    };
    let code = match (connected, report.worst()) {
        (false, _) => exit::CONNECT,
        (true, Some(Level::Broken)) => exit::FAILED,
        (true, _) => exit::OK,
    };
    match print(&text) {
        exit::OK => code,
        closed => closed,
    }
}
