//! `Socket`: the connection to the server, by TCP or a unix socket, with or without TLS.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use rustls::ClientConnection;

use super::buffer::Buffer;
use crate::error::Error;
use crate::task::{self, Wait};

/// The largest number of bytes that are encrypted together before they are sent.
const TLS_PART: usize = 64 << 10;

/// The default time for which sent bytes may stay unacknowledged. If the server is gone, the
/// connection fails after this time instead of after about 15 minutes, the default of TCP in Linux.
pub(super) const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// A number of bytes that fits into the TCP receive buffer of every server.
const RECEIVE_BUFFER_BYTES: usize = 16 << 10;

/// A read that receives at least this number of bytes indicates a fast server: it sends faster than
/// the system wakes this client. The number is twice the 8 KiB that PostgreSQL sends at a time.
const FAST_BYTES: usize = 16 << 10;

/// The number of bytes at the start of a response that are received without pauses between the
/// reads. In a short response, a pause at its end would cost more time than the pauses save.
const UNPACED_BYTES: usize = 512 << 10;

/// The pause before each further read of a long response from a fast server. Linux lengthens the
/// pause by about 60 µs, because of the timer slack of a thread.
const PAUSE: Duration = Duration::from_micros(1);

/// A connected socket: TCP or a unix socket.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

/// A reader of a [`Stream`]. Its reads fail after `deadline`; `None` for no limit.
struct Reader<'a> {
    stream: &'a Stream,
    deadline: Option<Instant>,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read_before(buffer, self.deadline)
    }
}

impl Stream {
    /// Reads the available bytes; waits for at least one byte until `deadline`. Returns 0 at the
    /// end of the stream.
    fn read_before(&self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        if deadline.is_none() && !task::is_running() {
            return match self {
                Stream::Tcp(stream) => (&mut &*stream).read(buffer),
                Stream::Unix(stream) => (&mut &*stream).read(buffer),
            };
        }
        loop {
            match recv(self, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((n, _)) => return Ok(n),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    // A task may be resumed early; the next `recv` shows if bytes have arrived.
                    let is_suspended = task::wait(Wait {
                        fd: self.as_fd().as_raw_fd(),
                        is_for_write: false,
                        deadline,
                    })?;
                    if !is_suspended {
                        wait_for(self.as_fd(), PollFlags::IN, deadline)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns a second descriptor of this socket, with which another thread can shut it down.
    pub(super) fn try_clone_fd(&self) -> io::Result<OwnedFd> {
        self.as_fd().try_clone_to_owned()
    }
}

/// Waits until `fd` is ready for reading or writing (`flags`), or until `deadline`; returns the
/// events that occurred. Within a task, suspends the task.
///
/// # Errors
/// [`ErrorKind::TimedOut`] after the deadline.
pub(super) fn wait_for(
    fd: BorrowedFd<'_>,
    flags: PollFlags,
    deadline: Option<Instant>,
) -> io::Result<PollFlags> {
    let event = Wait {
        fd: fd.as_raw_fd(),
        is_for_write: flags.contains(PollFlags::OUT),
        deadline,
    };
    loop {
        let is_suspended = task::wait(event)?;
        let timeout = match deadline {
            _ if is_suspended => Some(Timespec::default()),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(ErrorKind::TimedOut.into());
                }
                Timespec::try_from(left).ok()
            }
            None => None,
        };
        let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                return Err(ErrorKind::TimedOut.into());
            }
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(fds[0].revents()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A socket and its TLS session, if any. Reads and writes block.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Stream,
    tls: Option<Box<ClientConnection>>,
    /// Bytes that were encrypted and not sent yet.
    encrypted: Vec<u8>,
    /// The time after which reads and writes fail; `None` for no limit. It is set while a session
    /// is opened or closed, and during a wait for notifications.
    deadline: Option<Instant>,
    /// The number of bytes that were sent since the last time at which the server had responded to
    /// all messages.
    unanswered_bytes: usize,
    /// `true` while the limit [`USER_TIMEOUT`] is removed from the socket (see
    /// [`Socket::count_sent`]).
    is_unlimited: bool,
    /// The number of bytes that were received since the server last completed its responses to all
    /// messages. With TLS, bytes are not counted.
    received_bytes: usize,
    /// `true` if the last read received everything that had arrived, and at least [`FAST_BYTES`].
    is_fast: bool,
}

impl Socket {
    pub(super) fn new(stream: Stream, deadline: Option<Instant>) -> Socket {
        Socket {
            stream,
            tls: None,
            encrypted: Vec::new(),
            deadline,
            unanswered_bytes: 0,
            is_unlimited: false,
            received_bytes: 0,
            is_fast: false,
        }
    }

    /// Records that the server has responded to all messages: resets the counters, and sets
    /// [`USER_TIMEOUT`] again if it was removed.
    #[inline]
    pub(super) fn reset_sent(&mut self) {
        self.unanswered_bytes = 0;
        self.received_bytes = 0;
        if self.is_unlimited {
            // An error is ignored: it only has the effect that a lost connection is detected later.
            let _ = self.replace_user_timeout(Duration::ZERO, USER_TIMEOUT);
            self.is_unlimited = false;
        }
    }

    /// Records that `n_bytes` are sent.
    ///
    /// A server that waits for a lock does not receive. Once the server's receive buffer is full,
    /// TCP's limit for acknowledgements would end the connection, although the server responds to
    /// probes (`tcp_probe_timer` in Linux). The limit therefore only applies while the unanswered
    /// bytes fit into any receive buffer. A limit that the user has set is not changed.
    fn count_sent(&mut self, n_bytes: usize) -> io::Result<()> {
        self.unanswered_bytes = self.unanswered_bytes.saturating_add(n_bytes);
        if self.unanswered_bytes > RECEIVE_BUFFER_BYTES && !self.is_unlimited {
            self.is_unlimited = self.replace_user_timeout(USER_TIMEOUT, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Sets TCP's limit for acknowledgements (`TCP_USER_TIMEOUT`) to `to` if its value is `from`;
    /// returns `true` if the value was changed.
    fn replace_user_timeout(&self, from: Duration, to: Duration) -> io::Result<bool> {
        let Stream::Tcp(tcp) = &self.stream else {
            return Ok(false);
        };
        let is_found = u128::from(sockopt::tcp_user_timeout(tcp)?) == from.as_millis();
        if is_found {
            sockopt::set_tcp_user_timeout(tcp, u32::try_from(to.as_millis()).unwrap_or(u32::MAX))?;
        }
        Ok(is_found)
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn tls(&self) -> Option<&ClientConnection> {
        self.tls.as_deref()
    }

    /// Sets the time at which blocked reads and writes fail; `None` for no limit.
    pub(super) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Performs the TLS handshake.
    pub(super) fn start_tls(&mut self, tls: ClientConnection) -> io::Result<()> {
        let tls = self.tls.insert(Box::new(tls));
        while tls.is_handshaking() {
            self.encrypted.clear();
            while tls.wants_write() {
                tls.write_tls(&mut self.encrypted)?;
            }
            send_all(&self.stream, &self.encrypted)?;
            if tls.wants_read() {
                read_tls(tls, &self.stream, self.deadline)?;
            }
        }
        self.send_pending()
    }

    /// Sends pending TLS records that contain no application data, such as handshake messages.
    fn send_pending(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        self.encrypted.clear();
        while tls.wants_write() {
            tls.write_tls(&mut self.encrypted)?;
        }
        send_all(&self.stream, &self.encrypted)
    }

    /// Reads one byte from the socket, without decryption.
    pub(super) fn read_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        let (stream, deadline) = (&self.stream, self.deadline);
        Reader { stream, deadline }.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// Reads the available bytes, and decrypts them if the connection uses TLS; waits for at least
    /// one byte. Returns 0 at the end of the stream.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.tls {
                None => self.read_paced(buffer),
                Some(tls) => match tls.reader().read(buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        read_tls(tls, &self.stream, self.deadline)?;
                        if tls.wants_write() {
                            self.send_pending()?;
                        }
                        continue;
                    }
                    read => read,
                },
            };
            match read {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Reads the available bytes of a connection that does not use TLS. If the server sends fast
    /// (`is_fast`) and the response is long, this method pauses before it reads, so that more bytes
    /// arrive.
    ///
    /// PostgreSQL sends rows in parts of 8 KiB. A client that waits for each part has to be woken
    /// by the server, which costs the server more time than sending the part. A client that only
    /// receives rows receives them 1.3 times as fast if it pauses before each read.
    #[expect(
        clippy::disallowed_methods,
        reason = "the event would cost the server more than it sends"
    )]
    fn read_paced(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_long = self.received_bytes >= UNPACED_BYTES;
        if self.is_fast && is_long && self.deadline.is_none() && !task::is_running() {
            std::thread::sleep(PAUSE);
        }
        let n = self.stream.read_before(buffer, self.deadline)?;
        self.received_bytes = self.received_bytes.saturating_add(n);
        self.is_fast = n >= FAST_BYTES && n < buffer.len();
        Ok(n)
    }

    /// Sends all of `bytes`. The server may stop reading until this client has received the
    /// server's bytes. While this function waits, it therefore receives such bytes into `inbox`.
    /// Otherwise the two sides could wait for each other.
    pub(super) fn write_all(&mut self, bytes: &[u8], inbox: &mut Buffer) -> io::Result<()> {
        self.count_sent(bytes.len())?;
        let Some(mut tls) = self.tls.take() else {
            return self.write_parts(bytes, inbox, None);
        };
        let mut encrypted = std::mem::take(&mut self.encrypted);
        let mut written = Ok(());
        for part in bytes.chunks(TLS_PART) {
            encrypted.clear();
            written = encrypt(&mut tls, part, &mut encrypted)
                .and_then(|()| self.write_parts(&encrypted, inbox, Some(&mut tls)));
            if written.is_err() {
                break;
            }
        }
        (self.tls, self.encrypted) = (Some(tls), encrypted);
        written
    }

    fn write_parts(
        &self,
        mut bytes: &[u8],
        inbox: &mut Buffer,
        mut tls: Option<&mut ClientConnection>,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(
                &self.stream,
                bytes,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(n) => bytes = &bytes[n..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let flags = PollFlags::IN | PollFlags::OUT;
                    let ready = wait_for(self.stream.as_fd(), flags, self.deadline)?;
                    if ready.contains(PollFlags::IN) {
                        self.receive_meanwhile(inbox, tls.as_deref_mut())?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the available bytes into `inbox`; the socket must be ready for reading.
    fn receive_meanwhile(
        &self,
        inbox: &mut Buffer,
        tls: Option<&mut ClientConnection>,
    ) -> io::Result<()> {
        let free = inbox.free().map_err(|e| io::Error::other(e.message))?;
        let n = match tls {
            None => self.stream.read_before(free, None)?,
            Some(tls) => {
                read_tls(tls, &self.stream, None)?;
                match tls.reader().read(free) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    read => read?,
                }
            }
        };
        if n == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        inbox.received(n);
        Ok(())
    }
}

fn encrypt(tls: &mut ClientConnection, part: &[u8], encrypted: &mut Vec<u8>) -> io::Result<()> {
    let mut rest = part;
    while !rest.is_empty() {
        let n = io::Write::write(&mut tls.writer(), rest)?;
        rest = &rest[n..];
        while tls.wants_write() {
            tls.write_tls(encrypted)?;
        }
    }
    Ok(())
}

/// Reads encrypted bytes from the socket, and decrypts them with the TLS session.
fn read_tls(
    tls: &mut ClientConnection,
    stream: &Stream,
    deadline: Option<Instant>,
) -> io::Result<()> {
    let mut reader = Reader { stream, deadline };
    let n = loop {
        match tls.read_tls(&mut reader) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    tls.process_new_packets().map_err(io::Error::other)?;
    match n {
        0 if tls.is_handshaking() => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn send_all(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Creates the error of a failed read or write of the socket.
pub(super) fn lost(error: &io::Error) -> Error {
    let what = match error.kind() {
        ErrorKind::UnexpectedEof => "the server closed it".to_owned(),
        _ => error.to_string(),
    };
    let message = format!("the connection to the server was lost: {what}");
    let mut error = Error::new(crate::ErrorKind::Operational, message).transient();
    "08006".clone_into(&mut error.sqlstate);
    error
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    /// Returns two connected sockets: the client's, with `limit` as its `TCP_USER_TIMEOUT`, and the
    /// server's.
    fn pair(limit: Duration) -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let tcp = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        sockopt::set_tcp_user_timeout(&tcp, limit.as_millis() as u32).expect("an option");
        let (peer, _) = listener.accept().expect("a client");
        (Socket::new(Stream::Tcp(tcp), None), peer)
    }

    fn limit(socket: &Socket) -> Duration {
        let Stream::Tcp(tcp) = &socket.stream else {
            panic!("a TCP socket");
        };
        Duration::from_millis(sockopt::tcp_user_timeout(tcp).expect("an option").into())
    }

    #[test]
    fn many_unanswered_bytes_have_no_limit_until_the_response() {
        let (mut socket, mut peer) = pair(USER_TIMEOUT);
        let mut inbox = Buffer::new().expect("memory");
        let part = [0; RECEIVE_BUFFER_BYTES / 2];
        for expected in [USER_TIMEOUT, USER_TIMEOUT, Duration::ZERO] {
            socket.write_all(&part, &mut inbox).expect("written");
            peer.read_exact(&mut part.clone()).expect("read");
            assert_eq!(limit(&socket), expected);
        }
        socket.reset_sent();
        assert_eq!(limit(&socket), USER_TIMEOUT);
    }

    #[test]
    fn a_limit_of_the_user_is_kept() {
        for own in [Duration::ZERO, Duration::from_secs(9)] {
            let (mut socket, mut peer) = pair(own);
            let part = [0; 2 * RECEIVE_BUFFER_BYTES];
            let written = socket.write_all(&part, &mut Buffer::new().expect("memory"));
            written.expect("written");
            peer.read_exact(&mut part.clone()).expect("read");
            assert_eq!(limit(&socket), own);
            socket.reset_sent();
            assert_eq!(limit(&socket), own);
        }
    }
}
