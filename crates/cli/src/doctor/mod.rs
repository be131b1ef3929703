//! `onecopy doctor`, and what `--version` tells.
//!
//! | module | what it holds |
//! |---|---|
//! | `report` | findings, as a page for people and as JSON |
//! | `machine` | what this machine has: kernels, driver manager, drivers |
//! | `target` | a database that is connected to: what it goes through, and what is asked of it |
//! | `questions` | the SQL of those questions, per dialect, and the text that travels |

mod machine;
mod questions;
mod report;
mod target;

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Connection;

use crate::args::Doctor;
use crate::{console, exit, query};
use report::{Level, Report};

/// `onecopy --version`.
pub(crate) fn print_version(features: &[String]) -> i32 {
    print(&format!("onecopy {}\n", version_text(features)))
}

/// Writes to stdout.
fn print(text: &str) -> i32 {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => exit::OK,
        Err(_) => exit::PIPE_CLOSED,
    }
}

/// Version and build features.
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

/// Runs the command.
pub(crate) fn run(args: &Doctor, features: &[String]) -> i32 {
    let database = match args.database.as_deref().map(query::database).transpose() {
        Ok(database) => database,
        Err(message) => {
            console::error(&message);
            return exit::USAGE;
        }
    };
    let mut report = Report::default();
    machine::look(&mut report, features);
    let connected = database.is_none_or(|target| target::look(&mut report, &target));
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
