//! [`Channel`]: the connection between a sender and a receiver, with or without TLS. Messages and
//! the bytes of files are sent over it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onecopy_files::sendfile::{Readiness, wait_for};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::error::Error;
use crate::identity::{CertificateIdentity, Fingerprint, client_config};
use crate::message::{HEADER_BYTES, Header, MAX_BODY_BYTES, Message};

/// The queued output is sent when it has at least this number of bytes.
const OUT_BYTES: usize = 128 * 1024;
/// The time for which [`Channel::close_with`] waits for the peer to read the last message.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection between a sender and a receiver. Its methods block; each read or write of the
/// socket fails if it takes longer than the timeout of the channel.
pub struct Channel {
    stream: ChannelStream,
    /// The bytes of queued messages and files that were not sent yet.
    out: Vec<u8>,
    body: Vec<u8>,
}

enum ChannelStream {
    Plain(TimedSocket),
    Client(Box<StreamOwned<ClientConnection, TimedSocket>>),
    Server(Box<StreamOwned<ServerConnection, TimedSocket>>),
}

/// A socket with an optional deadline. After the deadline, each read and write fails.
struct TimedSocket {
    socket: TcpStream,
    deadline: Option<Instant>,
}

impl TimedSocket {
    /// Returns the time until the deadline; `None` if there is no deadline. After the deadline,
    /// returns an error.
    fn time_left(&self) -> io::Result<Option<Duration>> {
        let Some(deadline) = self.deadline else {
            return Ok(None);
        };
        match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for TimedSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let left @ Some(_) = self.time_left()? {
            self.socket.set_read_timeout(left)?;
        }
        self.socket.read(bytes)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let left @ Some(_) = self.time_left()? {
            self.socket.set_write_timeout(left)?;
        }
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// A received message. For a block, only its header was received; the bytes of the block must be
/// read next.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Message),
    Block(u32),
}

impl Channel {
    /// Creates the channel of a sender. If `fingerprint` is given, the channel uses TLS, and the
    /// receiver's certificate must have this fingerprint.
    ///
    /// # Errors
    /// [`Error::Fingerprint`], [`Error::Broken`].
    pub fn sending(
        socket: TcpStream,
        fingerprint: Option<Fingerprint>,
        timeout: Duration,
    ) -> Result<Channel, Error> {
        let socket = prepare(socket, timeout, None).map_err(Error::Broken)?;
        let Some(fingerprint) = fingerprint else {
            return Ok(Channel::over(ChannelStream::Plain(socket)));
        };
        let config = client_config(fingerprint).map_err(Error::Broken)?;
        let name =
            ServerName::try_from("onecopy").map_err(|e| Error::Broken(io::Error::other(e)))?;
        let session =
            ClientConnection::new(config, name).map_err(|e| Error::Broken(io::Error::other(e)))?;
        let mut stream = Box::new(StreamOwned::new(session, socket));
        while stream.conn.is_handshaking() {
            stream
                .conn
                .complete_io(&mut stream.sock)
                .map_err(failed_handshake)?;
        }
        Ok(Channel::over(ChannelStream::Client(stream)))
    }

    /// Creates the channel of a receiver, with TLS if `identity` is given. The whole handshake, up
    /// to the end of [`crate::Receiver::greet`], must end within `limit`.
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub fn receiving(
        socket: TcpStream,
        identity: Option<&CertificateIdentity>,
        limit: Duration,
    ) -> Result<Channel, Error> {
        let deadline = Instant::now() + limit;
        let socket = prepare(socket, limit, Some(deadline)).map_err(Error::Broken)?;
        let Some(identity) = identity else {
            return Ok(Channel::over(ChannelStream::Plain(socket)));
        };
        let session = ServerConnection::new(Arc::clone(&identity.config))
            .map_err(|e| Error::Broken(io::Error::other(e)))?;
        let mut stream = Box::new(StreamOwned::new(session, socket));
        while stream.conn.is_handshaking() {
            stream
                .conn
                .complete_io(&mut stream.sock)
                .map_err(failed_handshake)?;
        }
        Ok(Channel::over(ChannelStream::Server(stream)))
    }

    fn over(stream: ChannelStream) -> Channel {
        Channel {
            stream,
            out: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Removes the deadline of the handshake. After this call, each read and each write may wait
    /// for `timeout`.
    pub(crate) fn end_handshake(&mut self, timeout: Duration) -> Result<(), Error> {
        self.timed().deadline = None;
        let socket = self.socket();
        socket
            .set_read_timeout(Some(timeout))
            .and_then(|()| socket.set_write_timeout(Some(timeout)))
            .map_err(Error::Broken)
    }

    /// Returns the socket if the connection has no TLS, so that the kernel can move bytes to or
    /// from the socket. Returns `None` for a connection with TLS.
    pub(crate) fn plain(&self) -> Option<&TcpStream> {
        match &self.stream {
            ChannelStream::Plain(timed) => Some(&timed.socket),
            _ => None,
        }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.stream {
            ChannelStream::Plain(timed) => &timed.socket,
            ChannelStream::Client(stream) => &stream.sock.socket,
            ChannelStream::Server(stream) => &stream.sock.socket,
        }
    }

    fn timed(&mut self) -> &mut TimedSocket {
        match &mut self.stream {
            ChannelStream::Plain(timed) => timed,
            ChannelStream::Client(stream) => &mut stream.sock,
            ChannelStream::Server(stream) => &mut stream.sock,
        }
    }

    /// Queues a message. It is sent by [`Channel::flush`], or when enough bytes are queued.
    pub(crate) fn send(&mut self, message: &Message) -> Result<(), Error> {
        message.write(&mut self.out);
        match self.out.len() >= OUT_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Queues or sends bytes of a file. The header of the block to which they belong must have been
    /// queued before.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.out.len() + bytes.len() <= OUT_BYTES {
            self.out.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        self.write_all(bytes).map_err(Error::Broken)
    }

    /// Sends the queued messages and bytes.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if self.out.is_empty() {
            return Ok(());
        }
        let out = std::mem::take(&mut self.out);
        let done = self.write_all(&out);
        self.out = out;
        self.out.clear();
        done.map_err(Error::Broken)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            ChannelStream::Plain(socket) => socket.write_all(bytes),
            ChannelStream::Client(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            ChannelStream::Server(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Reads bytes of a block until the slice `bytes` is full.
    pub(crate) fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        match &mut self.stream {
            ChannelStream::Plain(socket) => socket.read_exact(bytes),
            ChannelStream::Client(stream) => stream.read_exact(bytes),
            ChannelStream::Server(stream) => stream.read_exact(bytes),
        }
        .map_err(Error::Broken)
    }

    /// Waits for the next message. For a block, returns after its header was received.
    pub(crate) fn recv(&mut self) -> Result<Incoming, Error> {
        let mut header = [0; HEADER_BYTES];
        self.read_exact(&mut header)?;
        let header = Header::read(header)?;
        if header.is_block() {
            return Ok(Incoming::Block(header.len_bytes));
        }
        let mut body = std::mem::take(&mut self.body);
        body.resize((header.len_bytes as usize).min(MAX_BODY_BYTES), 0);
        let read = self.read_exact(&mut body);
        let message = read.and_then(|()| Ok(Message::read(header, &body)?));
        self.body = body;
        Ok(Incoming::Message(message?))
    }

    /// Waits for a message from the receiver; returns an error if the message refuses the transfer.
    pub(crate) fn recv_reply(&mut self) -> Result<Message, Error> {
        match self.recv()? {
            Incoming::Message(Message::Refused(reason, words)) => {
                Err(Error::Refused(reason, words))
            }
            Incoming::Message(message) => Ok(message),
            Incoming::Block(_) => Err(Error::Protocol("a receiver sends bytes".to_owned())),
        }
    }

    /// Returns `true` if a read would not wait: bytes of the peer have arrived, or the peer has
    /// closed the connection.
    pub(crate) fn is_readable(&self) -> bool {
        wait_for(self.socket().as_fd(), Readiness::Readable, Duration::ZERO).unwrap_or(false)
    }

    /// If `error` is [`Error::Broken`], reads the refusal that the receiver may have sent before it
    /// closed the connection, and returns this refusal. Otherwise returns `error`.
    pub(crate) fn reason_of(&mut self, error: Error) -> Error {
        if !matches!(error, Error::Broken(_)) {
            return error;
        }
        match self.recv_reply() {
            Err(refused @ Error::Refused(..)) => refused,
            _ => error,
        }
    }

    /// Sends the message `last`, and then discards received bytes until the peer closes the
    /// connection. If the socket were closed with unread bytes, the peer might not receive `last`.
    /// During the handshake, the call waits at most two seconds in total. After the handshake, it
    /// waits at most two seconds for each read.
    pub(crate) fn close_with(&mut self, last: &Message) {
        let timed = self.timed();
        timed.deadline = timed
            .deadline
            .map(|deadline| deadline.min(Instant::now() + LEAVE_TIMEOUT));
        self.out.clear();
        last.write(&mut self.out);
        if self.flush().is_err() {
            return;
        }
        if let ChannelStream::Server(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        let timed = self.timed();
        let _ = timed.socket.shutdown(std::net::Shutdown::Write);
        let _ = timed.socket.set_read_timeout(Some(LEAVE_TIMEOUT));
        let mut rest = vec![0; 64 * 1024];
        // This is more than the bytes in flight, which fill at most two socket buffers.
        for _ in 0..4096 {
            match timed.read(&mut rest) {
                Ok(1..) => {}
                _ => return,
            }
        }
    }
}

impl Drop for Channel {
    /// Shuts down the connection, so that the peer detects its end immediately. Closing this
    /// descriptor would not suffice, because a signal handler may have another descriptor of the
    /// same socket.
    fn drop(&mut self) {
        let _ = self.socket().shutdown(std::net::Shutdown::Both);
    }
}

fn prepare(
    socket: TcpStream,
    timeout: Duration,
    deadline: Option<Instant>,
) -> io::Result<TimedSocket> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.set_write_timeout(Some(timeout))?;
    Ok(TimedSocket { socket, deadline })
}

/// Converts the I/O error of a failed handshake. If its cause is an error of rustls, the result
/// describes that error.
fn failed_handshake(error: io::Error) -> Error {
    let cause = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => Error::Fingerprint,
        Some(e) => Error::Protocol(e.to_string()),
        None => Error::Broken(error),
    }
}
