//! `onecopy serve`.

use std::fmt::Write as _;
use std::io::IsTerminal;

use onecopy_gateway::{Checked, Config, Log, Options, ServeError, check, curl};
use onecopy_serve::{Error as ServerError, stop_on_signals};
use onecopy_text::Ledger;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::Serve;
use crate::console::{coloured, error, ledger_table, notice, styled, tell};
use crate::exit;

/// Runs the command.
pub(crate) fn run(args: &Serve) -> i32 {
    let mut config = match Config::load(&args.file) {
        Ok(config) => config,
        Err(problems) => {
            match problems.problems.len() {
                1 => error(&problems.to_string()),
                n => error(&format!("the configuration has {n} problems\n{problems}")),
            }
            return exit::USAGE;
        }
    };
    if let Some(bind) = &args.bind {
        config.server.bind.clone_from(bind);
    }
    if let Some(port) = args.port {
        // The last colon: before it may stand an IPv6 address.
        let host = config
            .server
            .bind
            .rsplit_once(':')
            .map_or("127.0.0.1", |(host, _)| host);
        config.server.bind = format!("{host}:{port}");
    }
    if args.check {
        return run_check(&config);
    }
    let mut options = Options::new(Log::new(tell));
    options.public = args.public;
    options.check_at_start = true;
    if args.ledger {
        options.ledger = Ledger::within(&Ledger::off());
    }
    let ledger = options.ledger.clone();
    let mut guard = None;
    let served = onecopy_gateway::serve(config, options, |serving, config| {
        match stop_on_signals(&serving.handle, &[SIGINT, SIGTERM]) {
            Ok(g) => guard = Some(g),
            Err(e) => notice(&format!("Ctrl-C will not end requests in order: {e}")),
        }
        tell(&welcome(config, &serving.address.to_string()));
    });
    match served {
        Ok(stopped) => {
            if stopped.n_cut > 0 {
                notice(&format!("{} requests were cut", stopped.n_cut));
            }
            if args.ledger {
                tell(&ledger_table(&ledger));
            }
            exit::OK
        }
        Err(e) => {
            match &e {
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
    }
}

/// What there is to try.
fn welcome(config: &Config, address: &str) -> String {
    let colour = coloured(std::io::stderr().is_terminal());
    let mut out = format!(
        "{} serves at {}\n",
        config.server.title,
        styled(&format!("http://{address}/"), "1", colour)
    );
    for query in &config.queries {
        let _ = writeln!(out, "  {}", curl(query, address));
    }
    out.push_str("Ctrl-C stops.");
    out
}

/// Tells what the check found, each problem with its remedy. Data are the table, so it goes to stdout.
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
    let written = std::io::Write::write_all(&mut std::io::stdout().lock(), out.as_bytes());
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
