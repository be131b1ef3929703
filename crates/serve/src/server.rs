//! [`Server`]: a server, which accepts connections and handles requests until it is stopped.
//! [`Handle`] stops it.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::accept_gate::{connections_for, files_for};
use crate::address::Address;
use crate::config::Config;
use crate::error::Error;
use crate::event_loop::{join, start};
use crate::handler::Handler;
use crate::liveness::Watchdog;
use crate::shared::Shared;
use crate::signals::Signals;
pub use crate::signals::Stopped;
use crate::socket::Socket;
use crate::sys::{self, EventFd, Listener};
use crate::timers::millis;

/// A server that listens at an address. It handles requests only while [`Server::run`] runs.
pub struct Server {
    /// The listener; `None` if the socket was stopped before the server was created.
    listener: Option<Listener>,
    address: Address,
    config: Config,
    signals: Arc<Signals>,
}

/// A handle with which any thread can stop or wake a server. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Signals>);

impl Server {
    /// Listens at `address`. If its port is 0, the system chooses a free port, which
    /// [`Server::address`] returns.
    ///
    /// # Errors
    /// The errors of [`Socket::bind`].
    pub fn bind(address: Address, config: Config) -> Result<Server, Error> {
        Server::on(Socket::bind(address)?, config)
    }

    /// Creates a server on a socket that already listens.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn on(socket: Socket, config: Config) -> Result<Server, Error> {
        let (listener, address, stop) = socket.into_parts();
        let signals = Arc::new(Signals {
            stop,
            wake: EventFd::new().map_err(Error::system("eventfd"))?,
            stop_asked: AtomicBool::new(false),
            idle_grace_ms: AtomicU64::new(0),
        });
        Ok(Server {
            listener,
            address,
            config,
            signals,
        })
    }

    /// Returns the address of the listener, with the port that the system has chosen if port 0 was
    /// requested.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the largest number of connections that the server keeps open. This is the smaller of
    /// two numbers: [`crate::Limits::n_connections`], and the number that the limit of open files
    /// permits.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        let n_files = sys::max_open_files().unwrap_or(usize::MAX);
        let n_max = self.config.limits.n_connections;
        n_max.min(connections_for(n_files))
    }

    /// Sets the watchdog, which detects that handlers make no progress.
    pub fn watch(&mut self, watchdog: Watchdog) {
        self.config.watchdog = Some(watchdog);
    }

    /// Returns the file descriptor of the listener, which can be passed to another process. `None`
    /// if the socket was stopped before the server was created.
    #[must_use]
    pub fn listener_fd(&self) -> Option<RawFd> {
        self.listener.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Returns a handle that stops this server.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.signals))
    }

    /// Handles requests until the server is stopped through its handle, and then returns.
    ///
    /// # Errors
    /// [`Error::System`] if the event loop cannot be set up or fails.
    pub fn run(self, handler: impl Handler) -> Result<Stopped, Error> {
        let shared = Shared::new(self.listener, Box::new(handler), self.config, self.signals)
            .map_err(Error::system("epoll_create1"))?;
        let shared = Arc::new(shared);
        if let Err(source) = start(&shared) {
            shared.finish(true);
            join(&shared);
            return Err(Error::System {
                doing: "starting a thread",
                source,
            });
        }
        let (stopped, error) = join(&shared);
        match error {
            Some(source) => Err(Error::System {
                doing: "epoll_wait",
                source,
            }),
            None => Ok(stopped),
        }
    }
}

/// Raises this process's limit of open files to the number that `n_connections` connections need,
/// or to the hard limit if this is lower (setrlimit(2)). Child processes inherit the limit.
///
/// # Errors
/// [`Error::System`].
pub fn raise_open_files(n_connections: usize) -> Result<(), Error> {
    sys::raise_max_open_files(files_for(n_connections)).map_err(Error::system("setrlimit"))
}

impl Handle {
    /// Stops the server gracefully. The listener and idle connections are closed immediately.
    /// Requests in progress are aborted if they last longer than [`crate::Limits::stop`]. The call
    /// does not wait. Further calls have no effect.
    pub fn stop(&self) {
        if !self.0.stop_asked.swap(true, Ordering::SeqCst) {
            self.0.stop.add(1);
        }
    }

    /// Stops the server gracefully after another server has taken over its socket. Idle connections
    /// stay open for `idle_grace`, because a client may already be sending a request on such a
    /// connection. This request is answered, and the connection is closed after the response. The
    /// call does not wait.
    pub fn retire(&self, idle_grace: Duration) {
        if !self.0.stop_asked.swap(true, Ordering::SeqCst) {
            let grace_ms = millis(idle_grace);
            self.0.idle_grace_ms.store(grace_ms, Ordering::SeqCst);
            self.0.stop.add(1);
        }
    }

    /// Stops the server immediately, and aborts the requests in progress.
    pub fn cut(&self) {
        self.0.stop_asked.store(true, Ordering::SeqCst);
        self.0.stop.add(2);
    }

    /// Makes the server read its clock again. Tests call this method after they have set the clock.
    pub fn wake(&self) {
        self.0.wake.add(1);
    }

    /// Returns an event descriptor (eventfd(2)). Writing a native-endian `1_u64` to it requests a
    /// graceful stop, and a second write aborts requests in progress. A signal handler may do this,
    /// because write(2) is async-signal-safe. The descriptor stays open as long as this handle
    /// exists.
    #[must_use]
    pub fn stop_fd(&self) -> RawFd {
        self.0.stop.as_raw_fd()
    }
}
