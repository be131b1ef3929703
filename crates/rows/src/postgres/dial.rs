//! Connects to a server: resolves its host name, opens the socket, and starts TLS.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use onecopy_wire::lock::lock;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, shutdown,
    socket_with, sockopt,
};

use super::connect_defaults::user_name;
use super::settings::{Address, Host, Keepalives, Settings};
use super::socket::{Socket, Stream, USER_TIMEOUT, wait_for};
use super::tls;
use super::tls_settings::{SslMode, TlsSettings};
use crate::error::{Error, ErrorKind};
use crate::task;

/// The time between two attempts to connect to a unix socket whose queue is full.
const UNIX_RETRY: Duration = Duration::from_millis(10);

/// A duplicate of the socket's file descriptor, with which another thread ends a blocking read or
/// write.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    socket: Mutex<Option<OwnedFd>>,
    is_broken: AtomicBool,
}

impl Breaker {
    fn socket(&self) -> std::sync::MutexGuard<'_, Option<OwnedFd>> {
        lock(&self.socket)
    }

    /// Stores the descriptor of a new socket, and closes the descriptor of an earlier socket. If
    /// [`Breaker::break_off`] was called before, shuts the new socket down.
    fn set(&self, fd: OwnedFd) {
        *self.socket() = Some(fd);
        if self.is_broken() {
            self.break_off();
        }
    }

    /// Returns `true` after a call to [`Breaker::break_off`].
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(SeqCst)
    }

    /// Shuts the socket down, so that blocking reads and writes on it return. If no socket was
    /// created yet, the next socket is shut down immediately after its creation.
    pub(super) fn break_off(&self) {
        self.is_broken.store(true, SeqCst);
        if let Some(fd) = self.socket().as_ref() {
            let _ = shutdown(fd, Shutdown::Both);
        }
    }
}

/// The server to which a session is connected. A CancelRequest is sent to its address.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    pub(super) endpoint: Endpoint,
    pub(super) host_name: String,
    pub(super) tls: Option<TlsSettings>,
}

/// An address of a server: a resolved IP address, or the path of a unix socket.
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

/// Describes a system error for an error message.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "the time to connect has passed".to_owned(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

/// Resolves the host name of `address`; returns its endpoints in the order of the resolver. Stops
/// waiting for the resolver at `deadline`.
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
    // The C library finds `localhost` in the hosts file or by itself, so no thread is needed.
    let found = if name.parse::<std::net::IpAddr>().is_ok() || name == "localhost" {
        lookup()
    } else {
        lookup_until(deadline, lookup).map_err(|e| match e.kind() {
            io::ErrorKind::TimedOut => error(ErrorKind::Timeout, &describe(&e)),
            _ => error(ErrorKind::Operational, &e),
        })?
    };
    let found = found.map_err(|e| error(ErrorKind::Connect, &e))?;
    Ok(found.into_iter().map(Endpoint::Tcp).collect())
}

/// Runs `lookup` in a new thread, and returns its result. The name lookup of the C library has no
/// time limit and cannot be suspended, so this function stops waiting for the thread at the
/// deadline.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] after the deadline; the system's error if no thread can be started.
fn lookup_until<T: Send + 'static>(
    deadline: Instant,
    lookup: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<io::Result<T>> {
    let (wake_reader, wake_writer) = UnixStream::pair()?;
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().name("onecopy-lookup".to_owned());
    thread.spawn(move || {
        // After the deadline the receiver no longer exists, so the send may fail.
        let _ = sender.send(lookup());
        drop(wake_writer); // The other end becomes readable.
    })?;
    wait_for(wake_reader.as_fd(), PollFlags::IN, Some(deadline))?;
    let found = receiver.try_recv();
    Ok(found.unwrap_or_else(|_| Err(io::Error::other("the lookup failed"))))
}

/// Connects a socket to an endpoint, and stores a descriptor of it in `breaker`. A TCP socket gets
/// the settings `keepalives`.
pub(super) fn open_stream(
    endpoint: &Endpoint,
    keepalives: Option<&Keepalives>,
    deadline: Instant,
    breaker: &Breaker,
) -> Result<Stream, Error> {
    let opened = match endpoint {
        Endpoint::Unix(path) => open_unix(path, deadline).map(Stream::Unix),
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

fn open_unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = match path.as_os_str().as_bytes() {
        [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name)?,
        _ => SocketAddrUnix::new(path)?,
    };
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            // The server's queue of connections is full, and the system does not signal when it has
            // space.
            Err(Errno::AGAIN) if Instant::now() < deadline => task::sleep(UNIX_RETRY)?,
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
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

/// Connects a socket to an endpoint, and starts TLS if `mode` requires or prefers it.
///
/// # Errors
/// [`ErrorKind::Connect`]; [`ErrorKind::Timeout`] after the time limit.
pub(super) fn open_socket(
    settings: &Settings,
    host: &Host,
    endpoint: &Endpoint,
    mode: SslMode,
    deadline: Instant,
    breaker: &Breaker,
) -> Result<Socket, Error> {
    let stream = open_stream(endpoint, Some(&settings.keepalives), deadline, breaker)?;
    if let (Some(required), Stream::Unix(unix)) = (&settings.required_peer, &stream) {
        check_peer(required, unix, endpoint)?;
    }
    let mut socket = Socket::new(stream, Some(deadline));
    // A unix socket is used without TLS, as in libpq.
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

/// Returns an error unless the server at the other end of the unix socket runs as the system user
/// `required` (the keyword `requirepeer`).
fn check_peer(required: &str, unix: &UnixStream, endpoint: &Endpoint) -> Result<(), Error> {
    let peer = sockopt::socket_peercred(unix).map_err(|e| connect_error(endpoint, &e.into()))?;
    let name = user_name(peer.uid.as_raw());
    match name.as_deref() == Some(required) {
        true => Ok(()),
        false => {
            let found = name.unwrap_or_else(|| format!("number {}", peer.uid.as_raw()));
            let message =
                format!("the server runs as the user {found}, but `requirepeer` is {required}");
            Err(Error::new(ErrorKind::Connect, message))
        }
    }
}

/// Requests TLS and performs the handshake. If the server does not support TLS, the connection
/// stays unencrypted if `sslmode` is `prefer` or weaker; otherwise an error is returned.
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
                    match error.kind() {
                        io::ErrorKind::UnexpectedEof => describe(&error),
                        _ => tls::explain(&error, host_name),
                    }
                ),
            ),
        })
}
