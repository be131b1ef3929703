//! A socket that listens, apart from the server that answers on it: it can outlive the process that serves.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;

use crate::address::Address;
use crate::counters::SharedCounters;
use crate::error::Error;
use crate::sys::{self, EventFd, Listener, Name};

/// The signals that a process which was lent a socket leaves to its lender: a terminal and a service manager send them to
/// both, and they are to be in force once.
const OF_THE_LENDER: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// A listening socket, and the counter that stops whoever serves on it.
///
/// A supervisor binds it, lends it to a process that serves, and lends it to another one when that crashed: connections
/// that wait in the kernel meanwhile are answered by the next.
#[derive(Debug)]
pub struct Socket {
    /// `None` once this process does not listen any more.
    listener: Option<Listener>,
    address: Address,
    stop: EventFd,
}

impl Socket {
    /// Listens at `address` (port 0: a free port, see [`Socket::address`]). At a path, a socket that nobody listens at any more is
    /// replaced; the file goes when this process stops listening.
    ///
    /// # Errors
    /// [`Error::AddressInUse`], [`Error::Occupied`], [`Error::Bind`], [`Error::System`].
    pub fn bind(address: Address) -> Result<Socket, Error> {
        Socket::bind_with_mode(address, None)
    }

    /// As [`Socket::bind`]; the file of a unix socket gets the permissions `mode` (as of chmod(2): `0o660`), whatever the umask.
    ///
    /// # Errors
    /// As [`Socket::bind`].
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

    /// A socket that listens already, TCP or unix: of a service manager, or of the parent of this process. The file of a unix socket
    /// stays that of who made it.
    ///
    /// # Errors
    /// [`Error::NotListening`]: it is no such socket, or it does not listen.
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
                Name::Ip(ip) => Address::Ip(ip),
                Name::Unix(path) => Address::Unix(path),
            },
            listener: Some(listener),
            stop,
        })
    }

    /// The address listened at, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Has the child that `command` starts share the socket and `counters`; it takes them by
    /// [`Socket::inherited`]. The child ignores SIGINT, SIGTERM and SIGHUP from its first
    /// instruction on: [`Socket::stop`] stops it, here.
    ///
    /// Both are to be kept for as long as `command` may be spawned. Once the socket was stopped,
    /// spawning fails.
    pub fn lend(&self, command: &mut Command, counters: &SharedCounters) {
        let listener = self.listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let counters = counters.as_fd().as_raw_fd();
        sys::lend(
            command,
            [listener, self.stop.as_raw_fd(), counters],
            OF_THE_LENDER,
        );
    }

    /// Takes the socket and the counters that the parent of this process lent it; from then on this
    /// process is ended by SIGKILL when the parent ends (to be exact: the parent's thread that
    /// spawned it). `None` where nothing was lent, and the second time.
    ///
    /// # Errors
    /// [`Error::System`]: the parent has ended already.
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

    /// Stops whoever serves on the socket, here or in the process that it was lent to: in order the first time, at once
    /// the next. From the first time on this process does not listen.
    pub fn stop(&mut self) {
        self.listener = None;
        self.stop.add(1);
    }

    /// The listener, unless it was stopped, where it listens, and the counter.
    pub(crate) fn into_parts(self) -> (Option<Listener>, Address, EventFd) {
        (self.listener, self.address, self.stop)
    }
}
