//! The `onecopy` command as a library: [`run`] runs the command with the given arguments and
//! returns an exit code.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] | the arguments of the command line |
//! | [`exit`] | exit codes |
//! | `query`, `export` with `export_parts`, `copy`, `verify`, `plan` | commands for rows of a database |
//! | `serve`, `serve_files`, `transcode`, `bson`, [`transfer`], `doctor` | the other commands |
//! | `supervisor` | starts the process that serves, and restarts it after a crash |
//! | `statement` | the SQL statement of `query`, `export`, `copy` and `plan` |
//! | `row_progress` | the display of the progress while rows are written |
//! | `table` | rows as an aligned table |
//! | `parameter` | converts `--param` arguments to values for the placeholders of the SQL |
//! | `failure` | why a command failed, with its message and exit code |
//! | `input` | the input: a file or stdin |
//! | `output` | the destination of the output: stdout, or a file that gets its name when complete |
//! | `interrupt` | cancels the running operation on Ctrl-C or at the end of `--time-limit` |
//! | `console` | output on stderr: errors, notices, progress, counts of copied bytes, colours |
#![deny(unsafe_code)]

pub mod args;
mod bson;
mod console;
mod copy;
mod crashes;
mod doctor;
pub mod exit;
mod export;
mod export_parts;
mod failure;
mod input;
mod interrupt;
mod output;
mod parameter;
mod plan;
mod query;
mod row_progress;
mod serve;
mod serve_files;
mod statement;
mod supervisor;
mod table;
mod transcode;
pub mod transfer;
mod verify;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, FromArgMatches};

use failure::Failure;

/// Features that the caller of [`run`] adds to the command. The caller is the script `onecopy` of
/// the Python wheel.
#[derive(Default)]
pub struct Extra {
    /// Commands in addition to those of this crate.
    pub commands: Vec<ExtraCommand>,
    /// Additional lines for `--version` and `doctor`, such as `Python 3.13.1`.
    pub features: Vec<String>,
    /// The command line with which this process was started, beginning with the program's name.
    /// `serve` executes it again to start a child process, which runs third-party drivers. `None`
    /// if the command line cannot be executed again; `serve` then runs the drivers in this process.
    pub again: Option<Vec<OsString>>,
}

/// A command that is not part of this crate.
pub struct ExtraCommand {
    /// The name of the command.
    pub name: &'static str,
    /// A description in one sentence, for `--help`.
    pub about: &'static str,
    /// Runs the command with the arguments after its name; returns the exit code.
    pub run: Box<dyn FnOnce(Vec<OsString>) -> i32>,
}

/// Runs the command with `args`, of which the first is the program's name. Returns the exit code.
/// If Ctrl-C or SIGTERM ends the process, the function does not return. The first such signal ends
/// the process only while the command connects to a database, waits for stdin or converts to a
/// file. The second such signal always ends the process.
pub fn run(args: impl Iterator<Item = OsString>, extra: Extra) -> i32 {
    let Extra {
        commands,
        features,
        again,
    } = extra;
    let mut command = args::Cli::command();
    for extra in &commands {
        let rest = clap::Arg::new("args")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(clap::value_parser!(OsString));
        command = command.subcommand(
            clap::Command::new(extra.name)
                .about(extra.about)
                .disable_help_flag(true)
                .arg(rest),
        );
    }
    let matches = match command.try_get_matches_from(transcode::with_suffix_apart(args)) {
        Ok(matches) => matches,
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayVersion => {
            return doctor::print_version(&features);
        }
        Err(error) => {
            // This also prints help texts.
            let printed = error.print().and_then(|()| io::stdout().flush());
            return match printed {
                Err(failed) if !error.use_stderr() => Failure::Stdout(failed).report(),
                _ => error.exit_code(),
            };
        }
    };
    if let Some((name, inner)) = matches.subcommand()
        && let Some(extra) = commands.into_iter().find(|c| c.name == name)
    {
        let rest = inner.get_many::<OsString>("args").unwrap_or_default();
        return (extra.run)(rest.cloned().collect());
    }
    let cli = match args::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return error.exit_code();
        }
    };
    match cli.command {
        args::Command::Query(query) => query::run(&query),
        args::Command::Export(export) => export::run(&export),
        args::Command::Copy(copy) => copy::run(&copy),
        args::Command::Verify(verify) => verify::run(&verify),
        args::Command::Plan(plan) => plan::run(&plan),
        args::Command::Serve(serve) => {
            raise_open_files();
            serve::run(&serve, again.as_deref())
        }
        args::Command::ServeFiles(files) => {
            raise_open_files();
            serve_files::run(&files)
        }
        args::Command::Run(_) => without_python("`run` serves a Python application"),
        args::Command::Bench(_) => without_python("`bench` compares libraries of Python"),
        args::Command::Transcode(transcode) => transcode::run(&transcode),
        args::Command::Bson2Json(args) => bson::run_to_json(&args),
        args::Command::Json2Bson(args) => bson::run_from_json(&args),
        args::Command::Send(send) => transfer::run_send(&send),
        args::Command::Receive(receive) => transfer::run_receive(&receive),
        args::Command::Doctor(doctor) => doctor::run(&doctor, &features),
    }
}

/// Prints the error that this build has no Python, which the command needs for `purpose`. Returns
/// the exit code.
fn without_python(purpose: &str) -> i32 {
    console::error(&format!(
        "{purpose}, and this command was built without Python\n\
         build the wheel (`make wheel` in the repository), install it with \
         `pip install dist/*.whl`, and run the `onecopy` command of that environment"
    ));
    exit::USAGE
}

/// Raises the limit of open files of this process, so that the HTTP server can serve its default
/// number of connections. If the system permits fewer files, raises the limit as far as possible.
fn raise_open_files() {
    let n_connections = onecopy_serve::Limits::default().n_connections;
    if let Err(error) = onecopy_serve::raise_open_files(n_connections) {
        console::notice(&error.to_string());
    }
}
