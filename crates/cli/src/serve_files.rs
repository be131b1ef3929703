//! `onecopy serve-files`: serves a folder over HTTP.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use onecopy_serve::access::{Format, LogTarget};
use onecopy_serve::static_files::{FilesError, FilesOptions};
use onecopy_serve::{
    AccessLog, Address, Config, Error, Files, Handler, Request, Response, Server, Tls,
    host_is_loopback, reopen_on_signal, stop_on_signals,
};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

use crate::args::{LogFormat, ServeFiles};
use crate::console::{coloured, notice, print_line, styled};
use crate::exit;
use crate::failure::Failure;

/// Checks the `Host` field of a request, and then answers the request with `files`.
struct Guarded {
    files: Files,
    /// The permitted values of the `Host` field. Names of the loopback address are permitted in
    /// addition. `None` permits any value, and is used if other machines can reach the server.
    hosts: Option<Vec<String>>,
}

impl Handler for Guarded {
    fn is_quick(&self) -> bool {
        self.files.is_quick()
    }

    fn handle(&self, request: Request<'_>) -> Response {
        if let (Some(hosts), Some(bound)) = (&self.hosts, request.local()) {
            let host = request.host().unwrap_or_default();
            let named = |name: &String| name.as_bytes().eq_ignore_ascii_case(host);
            if !host_is_loopback(host, bound.port()) && !hosts.iter().any(named) {
                return Response::problem(
                    421,
                    "Misdirected Request",
                    "this server listens on loopback and does not answer to this `Host`; name it with `--host` if it is right",
                );
            }
        }
        self.files.handle(request)
    }
}

/// Runs the command `onecopy serve-files`; returns the exit code of the process.
pub(crate) fn run(args: &ServeFiles) -> i32 {
    match open(args).and_then(|files| serve(args, files)) {
        Ok(()) => exit::OK,
        Err(failure) => failure.report(),
    }
}

fn open(args: &ServeFiles) -> Result<Files, Failure> {
    let mut options = FilesOptions::default();
    options.listing = args.listing;
    options.hidden = args.hidden;
    options.precompressed = args.precompressed;
    options.cache_control.clone_from(&args.cache_control);
    Files::new(&args.folder, options).map_err(|problem| {
        let folder = args.folder.display();
        let message = match &problem {
            FilesError::Open(e) if e.kind() == io::ErrorKind::NotADirectory => {
                format!("`{folder}` is no folder\ngive the folder that the file is in")
            }
            FilesError::Open(e) => {
                format!(
                    "`{folder}` cannot be opened: {e}\nname an existing folder that you may read"
                )
            }
            _ => problem.to_string(),
        };
        Failure::Usage(message)
    })
}

fn serve(args: &ServeFiles, files: Files) -> Result<(), Failure> {
    let mut config = Config::default();
    if let Some(certificates) = &args.certfile {
        let key = args.keyfile.as_ref().unwrap_or(certificates);
        config.tls = Some(Tls::from_files(certificates, key)?);
    }
    config.on_trouble = Some(Arc::new(|e| {
        notice(&format!(
            "no connections are accepted at present: {e}\nallow more open files (`ulimit -n`), or fewer connections"
        ));
    }));
    let log = match &args.access_log {
        Some(path) => Some(access_log(path, args.access_log_format, &mut config)?),
        None => None,
    };
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let server = Server::bind(Address::resolve(&args.bind)?, config)?;
    let is_loopback = server
        .address()
        .ip()
        .is_some_and(|address| address.ip().is_loopback());
    let handler = Guarded {
        files,
        hosts: is_loopback.then(|| args.hosts.clone()),
    };
    let handle = server.handle();
    let _stops = stop_on_signals(&handle, &[SIGINT, SIGTERM])
        .map_err(|e| notice(&format!("Ctrl-C will not end downloads in order: {e}")));
    let _reopens = log.is_some().then(|| reopen_on_signal(SIGUSR1));
    print_line(&welcome(&args.folder, scheme, server.address()));
    if let Some(log) = &log {
        let doing = "starting the thread of the access log";
        log.start()
            .map_err(|source| Error::System { doing, source })?;
    }
    let stopped = server.run(handler);
    if let Some(log) = &log {
        log.close();
    }
    let n_cut = stopped?.n_cut;
    if n_cut > 0 {
        notice(&format!("{n_cut} requests were cut"));
    }
    Ok(())
}

fn access_log(path: &Path, format: LogFormat, config: &mut Config) -> Result<AccessLog, Failure> {
    let format = match format {
        LogFormat::Common => Format::Common,
        LogFormat::Combined => Format::Combined,
        LogFormat::Json => Format::Json,
    };
    let failed = |e: io::Error| {
        let path = path.display();
        let remedy = "name a file that this user may append to, or `-`";
        Failure::Usage(format!(
            "the access log `{path}` cannot be opened: {e}\n{remedy}"
        ))
    };
    let to = match path == Path::new("-") {
        true => LogTarget::Descriptor(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?),
        false => LogTarget::Path(path.to_owned()),
    };
    let report = Arc::new(|text: &str| notice(text));
    let log = AccessLog::open(to, format, config.metrics.clone(), report).map_err(failed)?;
    config.keep = format.keep(false);
    let lines = log.clone();
    config.on_access = Some(Arc::new(move |access| lines.put(access)));
    Ok(log)
}

/// Returns the message that is printed at the start, with the address to open in a browser.
fn welcome(folder: &Path, scheme: &str, address: &Address) -> String {
    let colour = coloured(io::stderr().is_terminal());
    let at = match address {
        Address::Ip(ip) => format!("{scheme}://{ip}/"),
        Address::Unix(_) => address.to_string(),
    };
    format!(
        "{} is served at {}\nCtrl-C stops.",
        folder.display(),
        styled(&at, "1", colour)
    )
}
