//! A connection between a sender and a receiver, plain or TLS: messages and bytes of files, one after the other.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onecopy_files::moving::{Readiness, wait_for};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::error::Error;
use crate::identity::{Fingerprint, Identity, client_config};
use crate::message::{HEADER_BYTES, Header, MAX_BODY_BYTES, Message};

/// What waits to be sent is sent from this size on.
const OUT_BYTES: usize = 128 * 1024;
/// How long the peer may take to read the last words.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection; blocks for as long as its timeout says.
pub struct Link {
    stream: Stream,
    /// Messages that wait for company.
    out: Vec<u8>,
    body: Vec<u8>,
}

enum Stream {
    Plain(TimedSocket),
    Client(Box<StreamOwned<ClientConnection, TimedSocket>>),
    Server(Box<StreamOwned<ServerConnection, TimedSocket>>),
}

/// A socket whose reads and writes fail after a deadline, if there is one, however many they are.
struct TimedSocket {
    socket: TcpStream,
    deadline: Option<Instant>,
}

impl TimedSocket {
    /// The time until the deadline; `None` if there is no deadline.
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

/// What came: a message, or bytes of a file that are still to be read.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Message),
    Block(u32),
}

impl Link {
    /// The sender's end: TLS where there is a fingerprint.
    ///
    /// # Errors
    /// [`Error::Fingerprint`], [`Error::Broken`].
    pub fn sending(
        socket: TcpStream,
        fingerprint: Option<Fingerprint>,
        timeout: Duration,
    ) -> Result<Link, Error> {
        let socket = prepare(socket, timeout, None).map_err(Error::Broken)?;
        let Some(fingerprint) = fingerprint else {
            return Ok(Link::over(Stream::Plain(socket)));
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
        Ok(Link::over(Stream::Client(stream)))
    }

    /// The receiver's end, with TLS if `identity` is given. The sender has `limit` for its whole
    /// handshake, up to the end of [`crate::Receiver::greet`].
    ///
    /// # Errors
    /// [`Error::Broken`].
    pub fn receiving(
        socket: TcpStream,
        identity: Option<&Identity>,
        limit: Duration,
    ) -> Result<Link, Error> {
        let deadline = Instant::now() + limit;
        let socket = prepare(socket, limit, Some(deadline)).map_err(Error::Broken)?;
        let Some(identity) = identity else {
            return Ok(Link::over(Stream::Plain(socket)));
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
        Ok(Link::over(Stream::Server(stream)))
    }

    fn over(stream: Stream) -> Link {
        Link {
            stream,
            out: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Ends the handshake's deadline; from now on each read and write may wait for `timeout`.
    pub(crate) fn end_handshake(&mut self, timeout: Duration) -> Result<(), Error> {
        self.timed().deadline = None;
        let socket = self.socket();
        socket
            .set_read_timeout(Some(timeout))
            .and_then(|()| socket.set_write_timeout(Some(timeout)))
            .map_err(Error::Broken)
    }

    /// The socket where bytes may go to and come from past this: no TLS.
    pub(crate) fn plain(&self) -> Option<&TcpStream> {
        match &self.stream {
            Stream::Plain(timed) => Some(&timed.socket),
            _ => None,
        }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(timed) => &timed.socket,
            Stream::Client(stream) => &stream.sock.socket,
            Stream::Server(stream) => &stream.sock.socket,
        }
    }

    fn timed(&mut self) -> &mut TimedSocket {
        match &mut self.stream {
            Stream::Plain(timed) => timed,
            Stream::Client(stream) => &mut stream.sock,
            Stream::Server(stream) => &mut stream.sock,
        }
    }

    /// A message waits to be sent with those behind it.
    pub(crate) fn say(&mut self, message: &Message) -> Result<(), Error> {
        message.write(&mut self.out);
        match self.out.len() >= OUT_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Bytes of a file behind their header.
    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.out.len() + bytes.len() <= OUT_BYTES {
            self.out.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        self.write_all(bytes).map_err(Error::Broken)
    }

    /// Sends what waits.
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
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Client(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Stream::Server(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Reads bytes of a file.
    pub(crate) fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        match &mut self.stream {
            Stream::Plain(socket) => socket.read_exact(bytes),
            Stream::Client(stream) => stream.read_exact(bytes),
            Stream::Server(stream) => stream.read_exact(bytes),
        }
        .map_err(Error::Broken)
    }

    /// Waits for what comes next.
    pub(crate) fn hear(&mut self) -> Result<Incoming, Error> {
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

    /// Waits for a message of the receiver's; a refusal is an error.
    pub(crate) fn hear_answer(&mut self) -> Result<Message, Error> {
        match self.hear()? {
            Incoming::Message(Message::Refused(reason, words)) => {
                Err(Error::Refused(reason, words))
            }
            Incoming::Message(message) => Ok(message),
            Incoming::Block(_) => Err(Error::Protocol("a receiver sends bytes".to_owned())),
        }
    }

    /// Whether the other end has said something already.
    pub(crate) fn has_word(&self) -> bool {
        wait_for(self.socket().as_fd(), Readiness::Readable, Duration::ZERO).unwrap_or(false)
    }

    /// What the receiver said before it left, if it said why; else `error`.
    pub(crate) fn reason_of(&mut self, error: Error) -> Error {
        if !matches!(error, Error::Broken(_)) {
            return error;
        }
        match self.hear_answer() {
            Err(refused @ Error::Refused(..)) => refused,
            _ => error,
        }
    }

    /// Says why it ends, and reads on for a while, so that the words arrive: a socket that is closed
    /// with bytes unread takes back what it said. A peer without the code has two seconds for that,
    /// all others two seconds for each read.
    pub(crate) fn leave(&mut self, last: &Message) {
        let timed = self.timed();
        timed.deadline = timed
            .deadline
            .map(|deadline| deadline.min(Instant::now() + LEAVE_TIMEOUT));
        self.out.clear();
        last.write(&mut self.out);
        if self.flush().is_err() {
            return;
        }
        if let Stream::Server(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        let timed = self.timed();
        let _ = timed.socket.shutdown(std::net::Shutdown::Write);
        let _ = timed.socket.set_read_timeout(Some(LEAVE_TIMEOUT));
        let mut rest = vec![0; 64 * 1024];
        // What is under way: what two buffers of a connection hold.
        for _ in 0..4096 {
            match timed.read(&mut rest) {
                Ok(1..) => {}
                _ => return,
            }
        }
    }
}

impl Drop for Link {
    /// Ends the connection, also where somebody holds another descriptor of it, to shut it at a signal: the peer learns at once.
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

/// rustls tells of a certificate inside of an error of the system's kind.
fn failed_handshake(error: io::Error) -> Error {
    let told = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>());
    match told {
        Some(rustls::Error::InvalidCertificate(_)) => Error::Fingerprint,
        Some(e) => Error::Protocol(e.to_string()),
        None => Error::Broken(error),
    }
}
