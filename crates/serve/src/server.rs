//! Bind, run, stop.

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

/// A server that listens. Nothing is answered until [`Server::run`].
pub struct Server {
    /// `None`: the socket was stopped before.
    listener: Option<Listener>,
    address: Address,
    config: Config,
    signals: Arc<Signals>,
}

/// Stops or wakes a server, from any thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Signals>);

impl Server {
    /// Listens at `address` (port 0: a free port, see [`Server::address`]).
    ///
    /// # Errors
    /// As [`Socket::bind`].
    pub fn bind(address: Address, config: Config) -> Result<Server, Error> {
        Server::on(Socket::bind(address)?, config)
    }

    /// A server on a socket that listens already.
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

    /// The address listened at, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The number of connections that are open at once, at most: [`crate::Limits::n_connections`],
    /// or the number that the limit of open files permits, where that is lower.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        let n_files = sys::max_open_files().unwrap_or(usize::MAX);
        let n_max = self.config.limits.n_connections;
        n_max.min(connections_for(n_files))
    }

    /// Has handlers watched that make no progress.
    pub fn watch(&mut self, watchdog: Watchdog) {
        self.config.watchdog = Some(watchdog);
    }

    /// The descriptor that listens, to be lent to other processes; `None`: the socket was stopped before.
    #[must_use]
    pub fn listener_fd(&self) -> Option<RawFd> {
        self.listener.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// A handle that stops this server.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.signals))
    }

    /// Serves until the server is stopped through its handle. The calling thread waits meanwhile.
    ///
    /// # Errors
    /// [`Error::System`] if the event loop cannot be set up or breaks.
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

/// Raises the limit of open files of this process to the number that `n_connections` need, or to
/// the hard limit where that is lower (setrlimit(2)). Processes that this one starts inherit it.
///
/// # Errors
/// [`Error::System`].
pub fn raise_open_files(n_connections: usize) -> Result<(), Error> {
    sys::raise_max_open_files(files_for(n_connections)).map_err(Error::system("setrlimit"))
}

impl Handle {
    /// Stops the server gracefully: the listener and idle connections are closed at once, requests under way get
    /// [`crate::Limits::stop`], what is left then is cut. Returns at once; further calls do nothing.
    pub fn stop(&self) {
        if !self.0.stop_asked.swap(true, Ordering::SeqCst) {
            self.0.stop.add(1);
        }
    }

    /// Stops the server gracefully where another one has taken its place at the socket: connections without a request are left
    /// open for `idle_grace` yet. A client that has connected, or was told that its connection stays open, may be sending just
    /// now; that request is answered, and the answer says that it is the last. Returns at once.
    pub fn retire(&self, idle_grace: Duration) {
        if !self.0.stop_asked.swap(true, Ordering::SeqCst) {
            let grace_ms = millis(idle_grace);
            self.0.idle_grace_ms.store(grace_ms, Ordering::SeqCst);
            self.0.stop.add(1);
        }
    }

    /// Stops the server and cuts requests under way.
    pub fn cut(&self) {
        self.0.stop_asked.store(true, Ordering::SeqCst);
        self.0.stop.add(2);
    }

    /// Makes the server look at its clock again: for clocks that are moved by hand.
    pub fn wake(&self) {
        self.0.wake.add(1);
    }

    /// An event descriptor (eventfd(2)): writing a native-endian `1_u64` asks for a graceful stop, writing it again
    /// cuts. write(2) is all that is needed, so a signal handler may do it. It is open as long as this handle lives.
    #[must_use]
    pub fn stop_fd(&self) -> RawFd {
        self.0.stop.as_raw_fd()
    }
}
