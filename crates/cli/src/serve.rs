//! `onecopy serve`: serves a configuration, in this process or in a supervised child process.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::Path;

use onecopy_gateway::{
    Checked, Config, ConfigError, Log, Options, ServeError, Serving, Supervision, check, curl,
    listen, serve_on,
};
use onecopy_serve::{Address, Error as ServerError, SharedCounters, Socket, stop_on_signals};
use onecopy_text::Ledger;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::Serve;
use crate::console::log_line;
use crate::console::{coloured, error, ledger_table, notice, print_line, styled};
use crate::exit;
use crate::supervisor;

/// Runs the command `onecopy serve`; returns the exit code of the process. If the configuration has
/// third-party drivers, a child process serves. `again` is the command line with which the child
/// process is started.
pub(crate) fn run(args: &Serve, again: Option<&[OsString]>) -> i32 {
    if let Some(lent) = Socket::inherited() {
        return run_child(args, lent);
    }
    let (text, mut config) = match load(&args.file) {
        Ok(loaded) => loaded,
        Err(problems) => return tell_problems(&problems),
    };
    if let Some(bind) = &args.bind {
        config.server.bind.clone_from(bind);
    }
    if let Some(port) = args.port {
        // Only the last colon separates host and port; an IPv6 address contains further colons.
        let host = config
            .server
            .bind
            .rsplit_once(':')
            .filter(|_| !config.server.bind.starts_with("unix:"))
            .map_or("127.0.0.1", |(host, _)| host);
        config.server.bind = format!("{host}:{port}");
    }
    if args.check {
        return run_check(&config);
    }
    let socket = match listen(&config, args.public) {
        Ok(socket) => socket,
        Err(e) => return tell_failure(&e),
    };
    let log = Log::new(log_line);
    if let Err(e) = ignore_hangups(log) {
        notice(&format!("SIGHUP will end this process: {e}"));
    }
    let foreign = supervisor::foreign_databases(&config);
    if let Some(again) = again.filter(|_| !args.unsupervised && !foreign.is_empty()) {
        print_line(&welcome(&config, socket.address()));
        let start = supervisor::Start {
            again,
            config: &text,
            foreign: &foreign,
            n_databases: config.databases.len(),
        };
        return supervisor::run(socket, &start, &Log::new(log_line));
    }
    let mut guard = None;
    let supervision = Supervision::default();
    serve(args, socket, config, supervision, |serving, config| {
        match stop_on_signals(&serving.handle, &[SIGINT, SIGTERM]) {
            Ok(g) => guard = Some(g),
            Err(e) => notice(&format!("Ctrl-C will not end requests in order: {e}")),
        }
        print_line(&welcome(config, &serving.address));
    })
}

/// Starts a thread that logs each SIGHUP and does nothing else. The configuration is read only at
/// the start, so there is nothing to reload. A SIGHUP that a closed terminal sends must not abort
/// responses.
fn ignore_hangups(log: Log) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP])?;
    let listening = std::thread::Builder::new().name("hangups".to_owned());
    listening.spawn(move || {
        for _ in signals.forever() {
            log.line("SIGHUP ignored: the configuration is read at the start only");
        }
    })?;
    Ok(())
}

/// Serves as the child process of a supervisor. The child uses the supervisor's socket, and reads
/// the text of the configuration, which the supervisor sends, from stdin. It does not print the
/// addresses, because the supervisor has printed them.
fn run_child(args: &Serve, lent: Result<(Socket, SharedCounters), ServerError>) -> i32 {
    let (socket, counters) = match lent {
        Ok(lent) => lent,
        Err(e) => return tell_failure(&ServeError::Server(e)),
    };
    let text = match std::io::read_to_string(std::io::stdin().lock()) {
        Ok(text) => text,
        Err(e) => {
            error(&format!(
                "the configuration was not received from the parent process: {e}"
            ));
            return exit::FAILED;
        }
    };
    match Config::parse(&text, &args.file, &|name| std::env::var(name).ok()) {
        Ok(config) => {
            let supervision = supervisor::supervision(counters);
            serve(args, socket, config, supervision, |_, _| ())
        }
        Err(problems) => tell_problems(&problems),
    }
}

/// Reads the configuration file; returns its text and the configuration parsed from it.
fn load(file: &Path) -> Result<(String, Config), ConfigError> {
    let text = Config::read(file)?;
    let config = Config::parse(&text, file, &|name| std::env::var(name).ok())?;
    Ok((text, config))
}

fn tell_problems(problems: &ConfigError) -> i32 {
    match problems.problems.len() {
        1 => error(&problems.to_string()),
        n => error(&format!("the configuration has {n} problems\n{problems}")),
    }
    exit::USAGE
}

/// Serves in this process until the server is stopped.
fn serve(
    args: &Serve,
    socket: Socket,
    config: Config,
    supervision: Supervision,
    on_ready: impl FnOnce(&Serving, &Config),
) -> i32 {
    let mut options = Options::new(Log::new(log_line));
    options.check_at_start = true;
    options.supervision = supervision;
    if args.ledger {
        options.ledger = Ledger::within(&Ledger::off());
    }
    let ledger = options.ledger.clone();
    match serve_on(socket, config, options, on_ready) {
        Ok(stopped) => {
            if stopped.n_cut > 0 {
                notice(&format!("{} requests were cut", stopped.n_cut));
            }
            if args.ledger {
                print_line(&ledger_table(&ledger));
            }
            exit::OK
        }
        Err(e) => tell_failure(&e),
    }
}

fn tell_failure(e: &ServeError) -> i32 {
    match e {
        ServeError::Server(ServerError::AddressInUse { .. }) => {
            error(&format!("{e}: `--port PORT`, 0 for any that is free"));
        }
        _ => error(&e.to_string()),
    }
    match e {
        ServeError::Address { .. }
        | ServeError::NotPublic { .. }
        | ServeError::Server(ServerError::AddressInUse { .. } | ServerError::Bind { .. }) => {
            exit::USAGE
        }
        _ => exit::FAILED,
    }
}

/// Returns the message that is printed at the start: the addresses of the server, and commands to
/// try.
fn welcome(config: &Config, address: &Address) -> String {
    let colour = coloured(std::io::stderr().is_terminal());
    let (at, host, with) = match address {
        Address::Ip(ip) => (format!("http://{ip}/"), ip.to_string(), "curl".to_owned()),
        Address::Unix(path) => {
            let path = path.display().to_string().replace('\'', "'\\''");
            let with = format!("curl --unix-socket '{path}'");
            (address.to_string(), "localhost".to_owned(), with)
        }
    };
    let mut out = format!(
        "{} serves at {}\n",
        config.server.title,
        styled(&at, "1", colour)
    );
    for query in &config.queries {
        let line = curl(query, &host);
        let _ = writeln!(out, "  {}", line.replacen("curl", &with, 1));
    }
    out.push_str("Ctrl-C stops.");
    out
}

/// Checks the configuration (`--check`) and prints the result as a table on stdout, because the
/// result is the output of this command. Each problem is followed by advice.
fn run_check(config: &Config) -> i32 {
    let colour = coloured(std::io::stdout().is_terminal());
    let found = check(config);
    let width = found
        .iter()
        .map(|c| c.database.len() + 1 + c.query.len())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for Checked {
        database,
        query,
        outcome,
    } in &found
    {
        let name = match query.as_str() {
            "" => database.clone(),
            query => format!("{database}.{query}"),
        };
        let (mark, text) = match outcome {
            Ok(text) => (styled("ok   ", "32", colour), text),
            Err(text) => (styled("wrong", "1;31", colour), text),
        };
        let indent = format!("\n{}", " ".repeat(width + 8));
        let text = text.trim_end().replace('\n', &indent);
        let _ = writeln!(out, "{mark} {name:<width$}  {text}");
    }
    let wrong = found.iter().filter(|c| c.outcome.is_err()).count();
    let _ = match wrong {
        0 => writeln!(
            out,
            "{} can be served",
            count(config.queries.len(), "query", "queries")
        ),
        n => writeln!(out, "{}", count(n, "problem", "problems")),
    };
    let written = std::io::Write::write_all(&mut io::stdout().lock(), out.as_bytes());
    match (wrong, written) {
        (0, Ok(())) => exit::OK,
        (0, Err(_)) => exit::PIPE_CLOSED,
        _ => exit::FAILED,
    }
}

fn count(n: usize, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}
