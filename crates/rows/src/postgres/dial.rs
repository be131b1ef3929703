//! Connects to the first of several servers that accepts: name lookup, socket, TLS, login, the kind of session.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, connect, shutdown, socket_with, sockopt,
};

use super::settings::{Address, Host, Keepalives, Settings, SslMode, TlsSettings};
use super::socket::{Socket, Stream, wait_for};
use super::tls;
use crate::error::{Error, ErrorKind};

/// How long sent bytes may stay without acknowledgement, unless the connection string says otherwise: a connection to a
/// server that is gone is an error after this time, not after the quarter of an hour of TCP.
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// A second handle of the socket, which ends what another thread waits for.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    socket: Mutex<Option<OwnedFd>>,
    is_broken: AtomicBool,
}

impl Breaker {
    fn socket(&self) -> std::sync::MutexGuard<'_, Option<OwnedFd>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the socket.
    fn set(&self, fd: OwnedFd) {
        *self.socket() = Some(fd);
        if self.is_broken() {
            self.break_off();
        }
    }

    /// Whether [`Breaker::break_off`] was called.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(SeqCst)
    }

    /// Shuts the socket down, now or as soon as there is one: reads and writes return.
    pub(super) fn break_off(&self) {
        self.is_broken.store(true, SeqCst);
        if let Some(fd) = self.socket().as_ref() {
            let _ = shutdown(fd, Shutdown::Both);
        }
    }
}

/// The address at which a session's server was found, to which a CancelRequest is sent.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub(super) endpoint: Endpoint,
    pub(super) host_name: String,
    pub(super) tls: Option<TlsSettings>,
}

/// An address that needs no lookup.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    Tcp(SocketAddr),
    Unix(std::path::PathBuf),
}

fn connect_error(endpoint: &Endpoint, error: &io::Error) -> Error {
    let server = match endpoint {
        Endpoint::Tcp(address) => address.to_string(),
        Endpoint::Unix(path) => path.display().to_string(),
    };
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => ErrorKind::Timeout,
        _ => ErrorKind::Connect,
    };
    let mut connect_error = Error::new(
        kind,
        format!(
            "cannot connect to the PostgreSQL server at `{server}`: {}",
            describe(error)
        ),
    )
    .transient();
    "08001".clone_into(&mut connect_error.sqlstate);
    connect_error
}

/// An error in words, without the system's number.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "the time to connect has passed".to_owned(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

/// The addresses of a host, within the time to connect.
pub(super) fn endpoints(address: &Address, deadline: Instant) -> Result<Vec<Endpoint>, Error> {
    let (name, port) = match address {
        Address::Unix(path) => return Ok(vec![Endpoint::Unix(path.clone())]),
        Address::Tcp(name, port) => (name.clone(), *port),
    };
    let error = |kind, what: &dyn std::fmt::Display| {
        let message = format!("cannot find the PostgreSQL server `{name}`: {what}");
        Error::new(kind, message).transient()
    };
    let lookup = {
        let name = name.clone();
        move || {
            (name.as_str(), port)
                .to_socket_addrs()
                .map(Iterator::collect::<Vec<_>>)
        }
    };
    let found = if name.parse::<std::net::IpAddr>().is_ok() || name == "localhost" {
        lookup()
    } else {
        // The C library's lookup has no time limit that is ours: it may be left to itself.
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("onecopy-lookup".to_owned());
        thread
            .spawn(move || sender.send(lookup()))
            .map_err(|e| error(ErrorKind::Operational, &e))?;
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(found) => found,
            Err(RecvTimeoutError::Timeout) => {
                return Err(error(ErrorKind::Timeout, &"the time to connect has passed"));
            }
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the lookup failed")),
        }
    };
    let found = found.map_err(|e| error(ErrorKind::Connect, &e))?;
    Ok(found.into_iter().map(Endpoint::Tcp).collect())
}

/// A connected socket.
pub(super) fn open_stream(
    endpoint: &Endpoint,
    keepalives: Option<&Keepalives>,
    deadline: Instant,
    breaker: &Breaker,
) -> Result<Stream, Error> {
    let opened = match endpoint {
        Endpoint::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
        Endpoint::Tcp(address) => open_tcp(*address, deadline, breaker).map(Stream::Tcp),
    };
    let stream = opened.map_err(|e| connect_error(endpoint, &e))?;
    let options = || -> io::Result<()> {
        if let Stream::Tcp(tcp) = &stream {
            tcp.set_nodelay(true)?;
            if let Some(keepalives) = keepalives {
                set_keepalives(tcp, keepalives)?;
            }
        }
        breaker.set(stream.try_clone_fd()?);
        Ok(())
    };
    options().map_err(|e| connect_error(endpoint, &e))?;
    Ok(stream)
}

fn open_tcp(address: SocketAddr, deadline: Instant, breaker: &Breaker) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    breaker.set(socket.try_clone()?);
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            wait_for(socket.as_fd(), PollFlags::OUT, Some(deadline))?;
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn set_keepalives(tcp: &TcpStream, keepalives: &Keepalives) -> io::Result<()> {
    let user_timeout = keepalives.user_timeout.unwrap_or(USER_TIMEOUT).as_millis();
    sockopt::set_tcp_user_timeout(tcp, u32::try_from(user_timeout).unwrap_or(u32::MAX))?;
    if !keepalives.is_on {
        return Ok(());
    }
    sockopt::set_socket_keepalive(tcp, true)?;
    if let Some(idle) = keepalives.idle {
        sockopt::set_tcp_keepidle(tcp, idle)?;
    }
    if let Some(interval) = keepalives.interval {
        sockopt::set_tcp_keepintvl(tcp, interval)?;
    }
    if let Some(count) = keepalives.count {
        sockopt::set_tcp_keepcnt(tcp, count)?;
    }
    Ok(())
}

/// The socket, with TLS as `mode` has it; whether TLS is used is in the socket.
///
/// # Errors
/// [`ErrorKind::Connect`], [`ErrorKind::Timeout`].
pub(super) fn open_socket(
    settings: &Settings,
    host: &Host,
    endpoint: &Endpoint,
    mode: SslMode,
    deadline: Instant,
    breaker: &Breaker,
) -> Result<Socket, Error> {
    let stream = open_stream(endpoint, Some(&settings.keepalives), deadline, breaker)?;
    let mut socket = Socket::new(stream, Some(deadline));
    // TLS is not for unix sockets, as in libpq.
    if matches!(endpoint, Endpoint::Unix(_)) || mode <= SslMode::Allow {
        return Ok(socket);
    }
    let tls_settings = TlsSettings {
        mode,
        ..settings.tls.clone()
    };
    start_tls(&mut socket, &tls_settings, &host.name, endpoint)?;
    Ok(socket)
}

/// Requests TLS and makes its handshake. A server without TLS is accepted where the mode allows it.
pub(super) fn start_tls(
    socket: &mut Socket,
    settings: &TlsSettings,
    host_name: &str,
    endpoint: &Endpoint,
) -> Result<(), Error> {
    if !settings.is_direct {
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        let mut answer = || {
            rustix::net::send(socket.stream(), &request, rustix::net::SendFlags::NOSIGNAL)?;
            socket.read_byte()
        };
        match answer().map_err(|e| connect_error(endpoint, &e))? {
            b'S' => {}
            b'N' if settings.mode <= SslMode::Prefer => return Ok(()),
            b'N' => {
                let message = "the server does not support TLS, but `sslmode` requires it";
                return Err(Error::new(ErrorKind::Connect, message));
            }
            _ => {
                let message = "the server's answer to the request for TLS is neither yes nor no";
                return Err(super::message::violation(message));
            }
        }
    }
    let session = tls::session(settings, host_name)?;
    socket
        .start_tls(session)
        .map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => connect_error(endpoint, &error),
            _ => Error::new(
                ErrorKind::Connect,
                format!(
                    "the TLS handshake with the server failed: {}",
                    describe(&error)
                ),
            ),
        })
}
