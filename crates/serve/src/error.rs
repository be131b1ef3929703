//! Why a server could not start or go on.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// An error of the server itself. What goes wrong with one client never ends the server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// From bind: another program listens at the address. Stop it or take another port.
    AddressInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// From bind: the system refuses the address: not of this machine, or a port below 1024 without the right.
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// From bind or run: a system call for the event loop or a thread failed; most often a limit on open files or
    /// threads. Raise it (`ulimit -n`, `ulimit -u`).
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn system(doing: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::System { doing, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::AddressInUse { address } => write!(
                f,
                "port `{}` of `{}` is in use by another program\nstop that program or choose another port",
                address.port(),
                address.ip()
            ),
            Error::Bind { address, source } => write!(
                f,
                "cannot listen at `{address}`: {source}\nchoose an address of this machine and a port from 1024 up"
            ),
            Error::System { doing, source } => write!(
                f,
                "`{doing}` failed: {source}\nlook at the limits of this process (`ulimit -n`, `ulimit -u`)"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::AddressInUse { .. } => None,
            Error::Bind { source, .. } | Error::System { source, .. } => Some(source),
        }
    }
}
