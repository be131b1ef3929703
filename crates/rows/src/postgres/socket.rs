//! `Socket`: the connection to the server, by TCP or a unix socket, with or without TLS.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::ClientConnection;

use super::buffer::Buffer;
use crate::error::Error;
use crate::task::{self, Wait};

/// The number of bytes that are encrypted in one step before they are sent.
const TLS_PART: usize = 64 << 10;

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

/// A reader of a [`Stream`] whose reads fail after a deadline.
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
        if task::is_running() {
            loop {
                match recv(self, &mut *buffer, RecvFlags::DONTWAIT) {
                    Ok((n, _)) => return Ok(n),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => {
                        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                            return Err(ErrorKind::TimedOut.into());
                        }
                        // The next `recv` finds out whether the event has occurred.
                        task::wait(Wait {
                            fd: self.as_fd().as_raw_fd(),
                            is_for_write: false,
                            deadline,
                        })?;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if deadline.is_some() {
            wait_for(self.as_fd(), PollFlags::IN, deadline)?;
        }
        match self {
            Stream::Tcp(stream) => (&mut &*stream).read(buffer),
            Stream::Unix(stream) => (&mut &*stream).read(buffer),
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
    /// Encrypted bytes that were not sent yet.
    encrypted: Vec<u8>,
    /// The time after which reads and writes fail; `None` for no limit. It is set while a session
    /// is opened or closed, and during a wait for notifications.
    deadline: Option<Instant>,
}

impl Socket {
    pub(super) fn new(stream: Stream, deadline: Option<Instant>) -> Socket {
        Socket {
            stream,
            tls: None,
            encrypted: Vec::new(),
            deadline,
        }
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

    /// Reads the available bytes, decrypted; waits for at least one byte. Returns 0 at the end of
    /// the stream.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.tls {
                None => self.stream.read_before(buffer, self.deadline),
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

    /// Sends all of `bytes`. The server may stop reading until this client has received the
    /// server's bytes. Such bytes are therefore received into `inbox` meanwhile, so that the two
    /// sides do not wait for each other.
    pub(super) fn write_all(&mut self, bytes: &[u8], inbox: &mut Buffer) -> io::Result<()> {
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

/// Reads encrypted bytes from the socket, and decrypts them in the TLS session.
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
