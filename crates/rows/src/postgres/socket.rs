//! The connection to the server: TCP or a unix socket, plain or with TLS.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustls::ClientConnection;

use super::buffer::Buffer;

/// Bytes that TLS encrypts before they are sent.
const TLS_PART: usize = 64 << 10;

/// A connected socket.
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

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).read(buffer),
            Stream::Unix(stream) => (&mut &*stream).read(buffer),
        }
    }
}

impl Stream {
    /// A second descriptor of the same socket, to shut it down by from another thread.
    pub(super) fn try_clone_fd(&self) -> io::Result<OwnedFd> {
        self.as_fd().try_clone_to_owned()
    }
}

/// Waits until `fd` is ready for `flags`, or until `deadline`.
///
/// # Errors
/// [`ErrorKind::TimedOut`] after the deadline.
pub(super) fn wait_for(
    fd: BorrowedFd<'_>,
    flags: PollFlags,
    deadline: Option<Instant>,
) -> io::Result<PollFlags> {
    loop {
        let timeout = match deadline {
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
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(fds[0].revents()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A socket and its TLS session. Reads and writes block.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Stream,
    tls: Option<Box<ClientConnection>>,
    /// Encrypted bytes on their way.
    encrypted: Vec<u8>,
    /// When reads end without bytes: while the session starts.
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

    /// Lets reads wait without an end.
    pub(super) fn clear_deadline(&mut self) {
        self.deadline = None;
    }

    /// Makes the handshake of TLS.
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

    /// Sends the records of TLS that are no data.
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

    /// Reads one byte that is not encrypted.
    pub(super) fn read_byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        if self.deadline.is_some() {
            wait_for(self.stream.as_fd(), PollFlags::IN, self.deadline)?;
        }
        (&self.stream).read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// Reads what there is, waiting for at least a byte; 0 at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.tls {
                None => {
                    if self.deadline.is_some() {
                        wait_for(self.stream.as_fd(), PollFlags::IN, self.deadline)?;
                    }
                    (&self.stream).read(buffer)
                }
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

    /// Sends all of `bytes`. Where the server sends meanwhile and takes nothing, what it sends is
    /// received into `inbox`: neither side waits for the other.
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

    /// Receives what has come; the descriptor is ready.
    fn receive_meanwhile(
        &self,
        inbox: &mut Buffer,
        tls: Option<&mut ClientConnection>,
    ) -> io::Result<()> {
        let free = inbox.free().map_err(|e| io::Error::other(e.message))?;
        let n = match tls {
            None => (&self.stream).read(free)?,
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

/// Reads encrypted bytes, and decrypts them inside the session.
fn read_tls(
    tls: &mut ClientConnection,
    stream: &Stream,
    deadline: Option<Instant>,
) -> io::Result<()> {
    if deadline.is_some() {
        wait_for(stream.as_fd(), PollFlags::IN, deadline)?;
    }
    let mut reader = stream;
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
