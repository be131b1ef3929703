//! A configuration behind a listening socket.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use onecopy_serve::{Address, Handle, Server, Socket, Stopped};
use onecopy_text::Ledger;

use crate::check::check_supervised;
use crate::config::{Config, resolve};
use crate::endpoint::Gateway;
use crate::log::Log;
use crate::supervision::Supervision;

/// What the command line adds to a configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Listen at an address that other machines reach.
    pub public: bool,
    /// Where log lines go.
    pub log: Log,
    /// Limits of the server.
    pub limits: onecopy_serve::Limits,
    /// Where the text of all answers is counted.
    pub ledger: Ledger,
    /// Look at each database and query in the background when serving starts, and log what is wrong.
    pub check_at_start: bool,
    /// For a process that a supervisor starts again after a crash.
    pub supervision: Supervision,
}

impl Options {
    /// The defaults, with this log.
    #[must_use]
    pub fn new(log: Log) -> Options {
        Options {
            public: false,
            log,
            limits: onecopy_serve::Limits::default(),
            ledger: Ledger::off(),
            check_at_start: false,
            supervision: Supervision::default(),
        }
    }
}

/// What is known once the socket listens.
#[derive(Clone, Debug)]
pub struct Serving {
    /// Where it listens, with the port that was taken.
    pub address: Address,
    /// Stops it.
    pub handle: Handle,
}

/// Why a gateway cannot serve.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// `bind` is no address. Write it as `127.0.0.1:8000` or `unix:/run/rows.sock`.
    Address {
        /// As written.
        bind: String,
    },
    /// Other machines would reach it, and nobody said that they may. Bind to 127.0.0.1, or give `--public`.
    NotPublic {
        /// The address.
        address: SocketAddr,
    },
    /// The server could not start or go on.
    Server(onecopy_serve::Error),
    /// The thread of the time limits could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Address { bind } => write!(
                f,
                "`{bind}` is no address and port\nwrite it as `127.0.0.1:8000`, `[::1]:8000` or `unix:/run/rows.sock`"
            ),
            ServeError::NotPublic { address } => write!(
                f,
                "`{address}` can be reached from other machines\n\
                 bind to `127.0.0.1:{}`, or give `--public` if everyone who reaches it may read these queries",
                address.port()
            ),
            ServeError::Server(error) => error.fmt(f),
            ServeError::Thread(error) => write!(f, "no thread could be started: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Listens where the configuration says, for [`serve_on`].
///
/// # Errors
/// [`ServeError`].
pub fn listen(config: &Config, public: bool) -> Result<Socket, ServeError> {
    let address = resolve(&config.server.bind).ok_or_else(|| ServeError::Address {
        bind: config.server.bind.clone(),
    })?;
    // Who reaches a unix socket is a matter of the permissions of its file.
    if let Some(address) = address.ip().filter(|a| !a.ip().is_loopback() && !public) {
        return Err(ServeError::NotPublic { address });
    }
    Socket::bind(address).map_err(ServeError::Server)
}

/// Listens and serves until stopped; `on_ready` is called once the socket listens, before the first request.
///
/// # Errors
/// [`ServeError`]; a database that is away is none, its queries answer 503.
pub fn serve(
    config: Config,
    options: Options,
    on_ready: impl FnOnce(&Serving, &Config),
) -> Result<Stopped, ServeError> {
    let socket = listen(&config, options.public)?;
    serve_on(socket, config, options, on_ready)
}

/// As [`serve()`], on a socket that listens already; where it does is no matter of the configuration then.
///
/// # Errors
/// [`ServeError`].
pub fn serve_on(
    socket: Socket,
    config: Config,
    options: Options,
    on_ready: impl FnOnce(&Serving, &Config),
) -> Result<Stopped, ServeError> {
    // The access log needs the gateway, which needs the address, which only the bound server knows.
    let gateway: Arc<std::sync::OnceLock<Arc<Gateway>>> = Arc::default();
    let logging = Arc::clone(&gateway);
    let mut server_config = onecopy_serve::Config::default();
    server_config.limits = options.limits;
    // Each stream may block a worker for as long as its database lets it wait; one more is for what has no slot.
    let n_streams: usize = config.databases.iter().map(|d| d.max_concurrent).sum();
    server_config.workers = n_streams + 1;
    server_config.on_access = Some(Arc::new(move |access| {
        if let Some(gateway) = logging.get() {
            gateway.log_access(access);
        }
    }));
    let server = Server::on(socket, server_config).map_err(ServeError::Server)?;
    let serving = Serving {
        address: server.address().clone(),
        handle: server.handle(),
    };
    let shown = config.clone();
    let handler = Gateway::new(
        config,
        serving.address.clone(),
        options.log.clone(),
        &options.ledger,
        &options.supervision,
    )
    .map_err(ServeError::Thread)?;
    let handler = Arc::clone(gateway.get_or_init(|| Arc::new(handler)));
    on_ready(&serving, &shown);
    if options.check_at_start {
        // It may wait for a database that is away, so nothing waits for it.
        let checking = std::thread::Builder::new().name("gateway-check".to_owned());
        let (log, supervision) = (options.log, options.supervision);
        drop(checking.spawn(move || log_check(&shown, &supervision, &log)));
    }
    server.run(handler).map_err(ServeError::Server)
}

/// Logs what a check finds wrong, so that a mistake shows before the first request does.
fn log_check(config: &Config, supervision: &Supervision, log: &Log) {
    for found in check_supervised(config, supervision) {
        if let Err(wrong) = found.outcome {
            let query = match found.query.as_str() {
                "" => String::new(),
                query => format!(" query={query}"),
            };
            log.line(&format!(
                "check{query} database={}: {wrong}",
                found.database
            ));
        }
    }
}
