//! [`Address`]: the address at which a server listens, parsed from text.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;

/// The prefix that distinguishes the path of a unix socket from an IP address.
const UNIX: &str = "unix:";

/// The address of a listener: `127.0.0.1:8000`, `[::1]:8000` or `unix:/run/app.sock`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IP address and a port. If the port is 0, the system chooses a free port.
    Ip(SocketAddr),
    /// The path of a unix socket. A path that starts with `@` is the name of an abstract socket,
    /// which has no file. A server can use an abstract socket only through an inherited descriptor.
    Unix(PathBuf),
}

impl Address {
    /// Parses `unix:PATH` or `HOST:PORT`. If `HOST` is a name, it is resolved, which may wait for
    /// the network.
    ///
    /// # Errors
    /// [`Error::Address`] if the text has another syntax, or if the host name has no address.
    pub fn resolve(text: &str) -> Result<Address, Error> {
        text.parse().or_else(|error| {
            let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
            found.map(Address::Ip).ok_or(error)
        })
    }

    /// Returns the IP address and port; `None` for a unix socket.
    #[must_use]
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Address::Ip(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    /// Parses an address: either `unix:PATH`, or an IP address followed by `:` and a port.
    fn from_str(text: &str) -> Result<Address, Error> {
        let path = text.strip_prefix(UNIX).filter(|path| !path.is_empty());
        let address = match path {
            Some(path) => Some(Address::Unix(PathBuf::from(path))),
            None => text.parse().ok().map(Address::Ip),
        };
        address.ok_or_else(|| Error::Address {
            text: text.to_owned(),
        })
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Ip(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for text in ["127.0.0.1:8000", "[::1]:0", "unix:/run/a b.sock", "unix:at"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!(
            matches!(Address::resolve("localhost:1"), Ok(Address::Ip(a)) if a.ip().is_loopback())
        );
    }

    #[test]
    fn what_is_no_address_is_told_with_its_text() {
        for text in ["", "unix:", "8000", "127.0.0.1", "/run/app.sock", "a:b"] {
            let error = Address::resolve(text).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
