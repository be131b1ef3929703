//! Why a server could not start or go on.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use crate::address::Address;
use crate::tls_problem::TlsProblem;

/// An error of the server itself. What goes wrong with one client never ends the server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// From reading an address: it is none. Write it as `127.0.0.1:8000` or `unix:/run/app.sock`.
    Address {
        /// As written.
        text: String,
    },
    /// From bind: another program listens at the address. Stop it or take another port or path.
    AddressInUse {
        /// The address asked for.
        address: Address,
    },
    /// From bind: where the unix socket is to be stands a file that is none. It is never removed: do so, or take another path.
    Occupied {
        /// The path asked for.
        path: PathBuf,
    },
    /// From taking a descriptor: it is no TCP or unix socket, or it does not listen. Call listen(2), or name the right number.
    NotListening {
        /// Its number.
        descriptor: RawFd,
        /// What the system said.
        source: io::Error,
    },
    /// From reading a certificate and its key: see [`TlsProblem`].
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: TlsProblem,
    },
    /// From bind: the system refuses the address: not of this machine, a port below 1024 without the right, a folder that is not
    /// there or may not be written, a path of more than 107 bytes.
    Bind {
        /// The address asked for.
        address: Address,
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
            Error::Address { text } => write!(
                f,
                "`{text}` is no address\nwrite it as `127.0.0.1:8000` or `unix:/run/app.sock`"
            ),
            Error::AddressInUse {
                address: Address::Ip(address),
            } => write!(
                f,
                "port `{}` of `{}` is in use by another program\nstop that program or choose another port",
                address.port(),
                address.ip()
            ),
            Error::AddressInUse { address } => write!(
                f,
                "`{address}` is in use by another program\nstop that program or choose another path"
            ),
            Error::Occupied { path } => write!(
                f,
                "`{}` is there, and is no socket\nremove it, or choose another path",
                path.display()
            ),
            Error::NotListening { descriptor, source } => write!(
                f,
                "descriptor `{descriptor}` is no TCP or unix socket that listens: {source}\n\
                 listen(2) comes before it is handed over"
            ),
            Error::Tls { path, problem } => write!(f, "`{}` {problem}", path.display()),
            Error::Bind {
                address: address @ Address::Ip(_),
                source,
            } => write!(
                f,
                "cannot listen at `{address}`: {source}\nchoose an address of this machine and a port from 1024 up"
            ),
            Error::Bind { address, source } => write!(
                f,
                "cannot listen at `{address}`: {source}\n\
                 choose a path of at most 107 bytes in a folder that this process may write to"
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
            Error::Address { .. }
            | Error::AddressInUse { .. }
            | Error::Occupied { .. }
            | Error::Tls { .. } => None,
            Error::Bind { source, .. }
            | Error::NotListening { source, .. }
            | Error::System { source, .. } => Some(source),
        }
    }
}
