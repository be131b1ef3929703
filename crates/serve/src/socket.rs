//! A socket that listens, apart from the server that answers on it: it can outlive the process that serves.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use crate::error::Error;
use crate::sys::{self, EventFd};

/// The signals that a process which was lent a socket leaves to its lender: a terminal and a service manager send them to
/// both, and they are to be in force once.
const OF_THE_LENDER: &[i32] = &[libc::SIGINT, libc::SIGTERM];

/// A listening socket, and the counter that stops whoever serves on it.
///
/// A supervisor binds it, lends it to a process that serves, and lends it to another one when that crashed: connections
/// that wait in the kernel meanwhile are answered by the next.
#[derive(Debug)]
pub struct Socket {
    /// `None` once this process does not listen any more.
    listener: Option<TcpListener>,
    local: SocketAddr,
    stop: EventFd,
}

impl Socket {
    /// Listens at `address` (port 0: a free port, see [`Socket::local_addr`]).
    ///
    /// # Errors
    /// [`Error::AddressInUse`], [`Error::Bind`], [`Error::System`].
    pub fn bind(address: SocketAddr) -> Result<Socket, Error> {
        let listener = sys::listen(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::AddressInUse { address },
            _ => Error::Bind { address, source },
        })?;
        Socket::new(listener, EventFd::new().map_err(Error::system("eventfd"))?)
    }

    /// A socket that another program listens at, or has bound for this one: of a service manager, or of the parent of this process.
    ///
    /// # Errors
    /// [`Error::System`]: it is no TCP socket that listens.
    pub fn of_descriptor(descriptor: OwnedFd) -> Result<Socket, Error> {
        let listener = TcpListener::from(descriptor);
        sys::prepare(&listener).map_err(Error::system("taking a socket that listens"))?;
        Socket::new(listener, EventFd::new().map_err(Error::system("eventfd"))?)
    }

    fn new(listener: TcpListener, stop: EventFd) -> Result<Socket, Error> {
        Ok(Socket {
            local: listener
                .local_addr()
                .map_err(Error::system("getsockname"))?,
            listener: Some(listener),
            stop,
        })
    }

    /// The address listened at, with the port that was taken.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Has the child that `command` starts hold the socket too; it takes it by [`Socket::inherited`]. The child ignores
    /// SIGINT and SIGTERM from its first instruction on: [`Socket::stop`] stops it, here.
    ///
    /// This socket is to be kept for as long as `command` may be spawned. Once it was stopped, spawning fails.
    pub fn lend(&self, command: &mut Command) {
        let listener = self.listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        sys::lend(command, [listener, self.stop.as_raw_fd()], OF_THE_LENDER);
    }

    /// Takes the socket that the parent of this process lent it; from then on this process is ended by SIGKILL when the
    /// parent ends (to be exact: the parent's thread that spawned it). `None` where nothing was lent, and the second time.
    ///
    /// # Errors
    /// [`Error::System`]: the parent has ended already.
    #[must_use]
    pub fn inherited() -> Option<Result<Socket, Error>> {
        let taken = sys::take_lent()?.map_err(Error::system("taking the socket of the parent"));
        Some(taken.and_then(|[listener, stop]| {
            Socket::new(TcpListener::from(listener), EventFd::from(stop))
        }))
    }

    /// Stops whoever serves on the socket, here or in the process that it was lent to: in order the first time, at once
    /// the next. From the first time on this process does not listen.
    pub fn stop(&mut self) {
        self.listener = None;
        self.stop.add(1);
    }

    /// The listener, unless it was stopped, and the counter.
    pub(crate) fn into_parts(self) -> (Option<TcpListener>, EventFd) {
        (self.listener, self.stop)
    }
}
