//! The `onecopy` command as a library: [`run`] takes the arguments and gives an exit code.
//!
//! | module | what it holds |
//! |---|---|
//! | [`args`] | what the command line can say |
//! | [`exit`] | exit codes |
//! | `query`, `serve`, `serve_files`, `transcode`, `bson`, [`transfer`], `doctor` | the commands |
//! | `supervisor` | the process that outlives one that serves and crashes |
//! | `table` | rows as an aligned table |
//! | `parameter` | `--param` to a bound value |
//! | `output` | where bytes go: stdout, or a file that appears whole |
//! | `interrupt` | Ctrl-C and `--timeout` to a cancel |
//! | `console` | what is told on stderr: errors, notices, progress, the ledger; colours |
#![deny(unsafe_code)]

pub mod args;
mod bson;
mod console;
mod crashes;
mod doctor;
pub mod exit;
mod interrupt;
mod output;
mod parameter;
mod query;
mod serve;
mod serve_files;
mod supervisor;
mod table;
mod transcode;
pub mod transfer;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

/// What the wheel's script adds to the command.
#[derive(Default)]
pub struct Extra {
    /// Further commands.
    pub commands: Vec<ExtraCommand>,
    /// What is to stand in `--version` and `doctor` besides, one fact each: `Python 3.13.1`.
    pub features: Vec<String>,
    /// The command line of this process, the program's name first, if running it again runs this command again: `serve`
    /// over foreign drivers starts a process by it, and starts another one when that crashes. `None`: it serves here.
    pub again: Option<Vec<OsString>>,
}

/// A command that this crate does not know.
pub struct ExtraCommand {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence for `--help`.
    pub about: &'static str,
    /// Runs it with the arguments behind its name; gives the exit code.
    pub run: Box<dyn FnOnce(Vec<OsString>) -> i32>,
}

/// Runs the command with `args`, the program's name first. Returns the exit code; never ends the process, but for a
/// second Ctrl-C, and one while it connects.
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
            // Help comes here too; a closed pipe is silent.
            let _ = error.print();
            return error.exit_code();
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
        args::Command::Serve(serve) => {
            raise_open_files();
            serve::run(&serve, again.as_deref())
        }
        args::Command::ServeFiles(files) => {
            raise_open_files();
            serve_files::run(&files)
        }
        args::Command::Run(_) => {
            console::error(
                "`run` serves a Python application, and this command was built without Python\n\
                 build the wheel (`make wheel` in the repository), install it with \
                 `pip install dist/*.whl`, and run the `onecopy` command of that environment",
            );
            exit::USAGE
        }
        args::Command::Transcode(transcode) => transcode::run(&transcode),
        args::Command::Bson2Json(args) => bson::run_to_json(&args),
        args::Command::Json2Bson(args) => bson::run_from_json(&args),
        args::Command::Send(send) => transfer::run_send(&send),
        args::Command::Receive(receive) => transfer::run_receive(&receive),
        args::Command::Doctor(doctor) => doctor::run(&doctor, &features),
    }
}

/// Raises the limit of open files to what the default number of connections needs, as far as the
/// system permits.
fn raise_open_files() {
    let n_connections = onecopy_serve::Limits::default().n_connections;
    if let Err(error) = onecopy_serve::raise_open_files(n_connections) {
        console::notice(&error.to_string());
    }
}
