//! `onecopy doctor`, and what `--version` tells.

use std::fmt::Write as _;
use std::io::Write as _;

use onecopy_rows::connect::{ConnectOptions, Connection};
use onecopy_rows::odbc;

use crate::args::Doctor;
use crate::{console, exit, query};

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
    let mut text = format!(
        "{}\n{} {}, {} build",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS,
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        }
    );
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
    let mut out = format!("onecopy {}\n", version_text(features));
    let mut code = exit::OK;
    match odbc::survey() {
        Ok((manager, drivers)) => {
            let _ = writeln!(out, "\ndriver manager: {manager}");
            if drivers.is_empty() {
                out.push_str("no ODBC driver was found; `sqlite:` databases need none\n");
            } else {
                out.push_str("drivers:\n");
            }
            for driver in drivers {
                let name = driver
                    .known_as
                    .unwrap_or("not known to onecopy, used with safe defaults");
                let _ = writeln!(out, "  Driver={}  ({name})", driver.driver);
            }
        }
        // No failure: SQLite works without.
        Err(error) => {
            let _ = writeln!(out, "\n{error}");
        }
    }
    if let Some(database) = &args.database {
        let opened = query::database(database).map_err(|message| (exit::USAGE, message));
        let opened = opened.and_then(|target| {
            let options = ConnectOptions {
                read_only: true,
                ..ConnectOptions::default()
            };
            Connection::open(&target, &options).map_err(|error| (exit::CONNECT, error.to_string()))
        });
        match opened {
            Ok(connection) => {
                let _ = writeln!(out, "\nconnected: {}", connection.describe());
                for notice in connection.notices() {
                    let _ = writeln!(out, "note: {notice}");
                }
            }
            Err((wrong, message)) => {
                console::error(&message);
                code = wrong;
            }
        }
    }
    match print(&out) {
        exit::OK => code,
        closed => closed,
    }
}
