//! [`serve()`] serves a configuration on a listening socket.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use onecopy_serve::{Address, Handle, Server, Socket, Stopped};
use onecopy_text::Ledger;

use crate::config::{Config, resolve};
use crate::config_check::check_supervised;
use crate::endpoint::Gateway;
use crate::log::Log;
use crate::supervision::Supervision;

/// The settings that the command line adds to those of the configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// `true` to permit an address that other machines can reach.
    pub public: bool,
    /// The log to which each request and failure is written.
    pub log: Log,
    /// The limits of the HTTP server, such as its number of connections.
    pub limits: onecopy_serve::Limits,
    /// Counts the bytes of text that are converted and copied for all responses.
    pub ledger: Ledger,
    /// `true` to check each database and query in the background when the server starts. The
    /// problems found are logged.
    pub check_at_start: bool,
    /// The state that this process shares with its supervisor process. The supervisor starts a new
    /// process after this one has crashed.
    pub supervision: Supervision,
}

impl Options {
    /// Returns the default options, with `log` as the receiver of log lines.
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

/// The address of a gateway that is ready to accept connections, and the handle that stops it.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The address of the listener, with the port that the system chose.
    pub address: Address,
    /// A handle with which any thread can stop the server.
    pub handle: Handle,
}

/// The reason why a gateway cannot serve.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// `bind` is not an address. Write it as `127.0.0.1:8000` or `unix:/run/rows.sock`.
    Address {
        /// The address as written in the configuration.
        bind: String,
    },
    /// Other machines can reach the address, but the option `--public` was not set. Bind to
    /// 127.0.0.1, or set `--public`.
    NotPublic {
        /// The address at which the gateway would listen.
        address: SocketAddr,
    },
    /// The server could not start, or failed while it was running.
    Server(onecopy_serve::Error),
    /// The thread that enforces the time limits could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Address { bind } => write!(
                f,
                "`{bind}` is not an address and port\nwrite it as `127.0.0.1:8000`, `[::1]:8000` or `unix:/run/rows.sock`"
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

/// Opens a listening socket at the address of the configuration, for [`serve_on`].
///
/// # Errors
/// [`ServeError`].
pub fn listen(config: &Config, public: bool) -> Result<Socket, ServeError> {
    let address = resolve(&config.server.bind).ok_or_else(|| ServeError::Address {
        bind: config.server.bind.clone(),
    })?;
    // For a unix socket, access is controlled by the permissions of its file.
    if let Some(address) = address.ip().filter(|a| !a.ip().is_loopback() && !public) {
        return Err(ServeError::NotPublic { address });
    }
    Socket::bind(address).map_err(ServeError::Server)
}

/// Listens at the address of the configuration and serves until it is stopped. `on_ready` is called
/// when the socket listens, before the first request.
///
/// # Errors
/// [`ServeError`]. An unreachable database is not an error: requests for its queries are answered
/// with the status 503.
pub fn serve(
    config: Config,
    options: Options,
    on_ready: impl FnOnce(&Serving, &Config),
) -> Result<Stopped, ServeError> {
    let socket = listen(&config, options.public)?;
    serve_on(socket, config, options, on_ready)
}

/// Does the same as [`serve()`], on a socket that already listens. The address in the configuration
/// is ignored.
///
/// # Errors
/// [`ServeError`].
pub fn serve_on(
    socket: Socket,
    config: Config,
    options: Options,
    on_ready: impl FnOnce(&Serving, &Config),
) -> Result<Stopped, ServeError> {
    // The access log requires the gateway, and the gateway requires the address, which is known
    // only after the server was bound.
    let gateway: Arc<std::sync::OnceLock<Arc<Gateway>>> = Arc::default();
    let logging = Arc::clone(&gateway);
    let mut server_config = onecopy_serve::Config::default();
    server_config.limits = options.limits;
    // Each stream may block a worker as long as it waits for its database. One more worker serves
    // streams that have no slot.
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
        // The check may wait for a database that does not respond, so it runs in a background
        // thread.
        let checking = std::thread::Builder::new().name("gateway-check".to_owned());
        let (log, supervision) = (options.log, options.supervision);
        drop(checking.spawn(move || log_check(&shown, &supervision, &log)));
    }
    server.run(handler).map_err(ServeError::Server)
}

/// Checks the configuration when the gateway starts, and logs the problems that it finds.
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
