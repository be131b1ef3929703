//! [`Socket`]: a listening socket that exists independently of its server, and can outlive the
//! process that serves.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;

use crate::address::Address;
use crate::counters::SharedCounters;
use crate::error::Error;
use crate::sys::{self, EventFd, Listener, ListenerName};

/// The signals that a child process ignores if it uses its parent's socket. A terminal or service
/// manager may send these signals to both processes, and only the parent must handle them.
const OF_THE_LENDER: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A listening socket, and the event descriptor that stops the server on it.
///
/// A supervisor process binds the socket and passes it to a child process that serves. If the child
/// crashes, the supervisor passes the socket to a new child, which accepts the connections in the
/// kernel's queue.
#[derive(Debug)]
pub struct Socket {
    /// The listener; `None` after this process has stopped listening ([`Socket::stop`]).
    listener: Option<Listener>,
    address: Address,
    stop: EventFd,
}

impl Socket {
    /// Listens at `address`. If the port is 0, the system chooses a free port, which
    /// [`Socket::address`] returns. A stale unix socket at the path, on which no process listens,
    /// is replaced. The file of a unix socket is deleted when this process stops listening.
    ///
    /// # Errors
    /// [`Error::AddressInUse`], [`Error::Occupied`], [`Error::Bind`], [`Error::System`].
    pub fn bind(address: Address) -> Result<Socket, Error> {
        Socket::bind_with_mode(address, None)
    }

    /// Listens like [`Socket::bind`]. The file of a unix socket gets the permissions `mode` (such
    /// as `0o660`), whatever the umask is.
    ///
    /// # Errors
    /// The errors of [`Socket::bind`].
    pub fn bind_with_mode(address: Address, mode: Option<u32>) -> Result<Socket, Error> {
        let listener = match &address {
            Address::Ip(ip) => Listener::at_ip(*ip),
            Address::Unix(path) => Listener::at_path(path, mode),
        };
        let listener = listener.map_err(|source| match (source.kind(), &address) {
            (io::ErrorKind::AddrInUse, _) => Error::AddressInUse { address },
            (io::ErrorKind::AlreadyExists, Address::Unix(path)) => Error::Occupied {
                path: path.to_owned(),
            },
            _ => Error::Bind { address, source },
        })?;
        Socket::new(listener, EventFd::new().map_err(Error::system("eventfd"))?)
    }

    /// Creates a [`Socket`] from the descriptor of a TCP or unix socket that already listens. A
    /// service manager or the parent process provides such a descriptor. The file of a unix socket
    /// is not deleted.
    ///
    /// # Errors
    /// [`Error::NotListening`] if the descriptor is not a TCP or unix socket, or does not listen.
    /// [`Error::System`] if another system call fails.
    pub fn of_descriptor(descriptor: OwnedFd) -> Result<Socket, Error> {
        let number = descriptor.as_raw_fd();
        let listener = Listener::of(descriptor).map_err(|source| Error::NotListening {
            descriptor: number,
            source,
        })?;
        Socket::new(listener, EventFd::new().map_err(Error::system("eventfd"))?)
    }

    fn new(listener: Listener, stop: EventFd) -> Result<Socket, Error> {
        let name = listener.name().map_err(Error::system("getsockname"))?;
        Ok(Socket {
            address: match name {
                ListenerName::Ip(ip) => Address::Ip(ip),
                ListenerName::Unix(path) => Address::Unix(path),
            },
            listener: Some(listener),
            stop,
        })
    }

    /// Returns the address of the listener, with the port that the system has chosen if port 0 was
    /// requested.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Passes the socket and `counters` to the child process that `command` starts. The child gets
    /// them by [`Socket::inherited`]. From its first instruction on, the child ignores SIGINT,
    /// SIGTERM and SIGHUP. A call to [`Socket::stop`] in this process stops the server in the
    /// child.
    ///
    /// The caller must keep the socket and `counters` as long as `command` may be spawned. After a
    /// call to [`Socket::stop`], spawning fails.
    pub fn lend(&self, command: &mut Command, counters: &SharedCounters) {
        let listener = self.listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let counters = counters.as_fd().as_raw_fd();
        sys::lend(
            command,
            [listener, self.stop.as_raw_fd(), counters],
            OF_THE_LENDER,
        );
    }

    /// Returns the socket and the counters that the parent process passed to this process by
    /// [`Socket::lend`]. After this call, the kernel kills this process (SIGKILL) when the parent's
    /// thread that spawned it ends. Returns `None` if the parent passed no socket. A second call
    /// always returns `None`.
    ///
    /// # Errors
    /// [`Error::System`], for example if the parent has already ended.
    #[must_use]
    pub fn inherited() -> Option<Result<(Socket, SharedCounters), Error>> {
        let taken = sys::take_lent()?.map_err(Error::system("taking the socket of the parent"));
        Some(taken.and_then(|[listener, stop, counters]| {
            let listener = Listener::of(listener).map_err(Error::system("taking the socket"))?;
            let counters = SharedCounters::of_descriptor(counters)
                .map_err(Error::system("taking the counters"))?;
            Ok((Socket::new(listener, EventFd::from(stop))?, counters))
        }))
    }

    /// Stops the server that uses this socket, in this process or in a child process. The first
    /// call lets active requests end, and closes the listener of this process. A second call stops
    /// the server immediately.
    pub fn stop(&mut self) {
        self.listener = None;
        self.stop.add(1);
    }

    /// Splits the socket into its parts: the listener (`None` after [`Socket::stop`]), the address
    /// of the listener, and the event descriptor that stops the server.
    pub(crate) fn into_parts(self) -> (Option<Listener>, Address, EventFd) {
        (self.listener, self.address, self.stop)
    }
}
