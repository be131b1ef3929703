//! [`Error`]: the reasons why a server cannot start or continue.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;

use crate::address::Address;
use crate::tls_problem::TlsProblem;

/// An error of the server itself. A failure of one client never ends the server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is not an address. Valid addresses are, for example, `127.0.0.1:8000` and
    /// `unix:/run/app.sock`.
    Address {
        /// The text that could not be parsed as an address.
        text: String,
    },
    /// bind(2) failed because another program listens at the address. Stop that program, or choose
    /// another port or path.
    AddressInUse {
        /// The requested address.
        address: Address,
    },
    /// bind(2) failed because the path of the unix socket is an existing file that is not a socket.
    /// The server never removes such a file. Remove it, or choose another path.
    Occupied {
        /// The requested path.
        path: PathBuf,
    },
    /// The descriptor is not a listening TCP or unix socket. Call listen(2) on it, or pass another
    /// descriptor.
    NotListening {
        /// The number of the descriptor.
        descriptor: RawFd,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// The file of the certificate or of its private key cannot be used; `problem` is the reason.
    Tls {
        /// The file of the certificate or the key.
        path: PathBuf,
        /// The problem with the file.
        problem: TlsProblem,
    },
    /// bind(2) failed because the system refuses the address. For an IP address: it is not an
    /// address of this machine, or the port is below 1024 and the process lacks the permission. For
    /// a unix socket: its folder does not exist or is not writable, or its path is longer than 107
    /// bytes.
    Bind {
        /// The requested address.
        address: Address,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// A system call for the event loop or for a thread failed. The usual reason is a limit on open
    /// files or threads. Raise the limit (`ulimit -n`, `ulimit -u`).
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The error that the operating system returned.
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
                "`{text}` is not an address\nwrite it as `127.0.0.1:8000` or `unix:/run/app.sock`"
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
                "`{}` exists, and is not a socket\nremove it, or choose another path",
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
