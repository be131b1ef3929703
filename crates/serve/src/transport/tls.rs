//! [`TlsStream`]: TLS over a socket (TLS 1.3: RFC 8446, TLS 1.2: RFC 5246). The library rustls
//! encrypts and decrypts the records. This module transfers the records between rustls and the
//! socket.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;

use onecopy_text::{ByteSink, Chunk};
use rustls::ServerConnection;

use crate::sys::{self, Stream};

/// The largest number of bytes that one call encrypts, which fit into four TLS records. More bytes
/// are encrypted only after the kernel has accepted all records of the earlier bytes.
const BATCH_BYTES: usize = 64 * 1024;

/// The response to a client that sends plain HTTP to a TLS port.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 49\r\n\
    Connection: close\r\n\
    \r\n\
    this port speaks TLS: write https:// for http://\n";

/// A TLS session over a connected socket.
pub(crate) struct TlsStream {
    stream: Stream,
    session: ServerConnection,
    /// The number of bytes at the start of the output queue that are already encrypted. They stay
    /// in the queue until the kernel has accepted all TLS records that contain them.
    n_encrypted: usize,
    /// A buffer into which a part of a file is read before it is encrypted.
    block: Vec<u8>,
    heard: Received,
    said_end: bool,
}

/// Facts about the bytes that were received from the client. This module records these facts
/// because rustls does not report them.
#[derive(Default)]
struct Received {
    /// The first byte that the client sent. It shows whether the client sends plain HTTP instead of
    /// TLS.
    first: Option<u8>,
    /// `true` if the last read from the socket did not fill its buffer. Such a read has emptied the
    /// socket.
    drained: bool,
}

/// The result of [`TlsStream::write_out`]: how many of the encrypted bytes the kernel has accepted.
pub(crate) struct WriteProgress {
    /// `true` if the kernel accepted some of the encrypted bytes in this call to
    /// [`TlsStream::write_out`].
    pub(crate) any: bool,
    /// `true` if the kernel has accepted all encrypted bytes, so that none wait to be sent.
    pub(crate) all: bool,
}

/// The socket through which rustls reads and writes records. Each read also updates the
/// [`Received`].
struct RustlsSocket<'a>(&'a Stream, &'a mut Received);

impl Read for RustlsSocket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        self.1.drained = n < buffer.len();
        if n > 0 {
            self.1.first.get_or_insert(buffer[0]);
        }
        Ok(n)
    }
}

impl Write for RustlsSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_bytes(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send(parts, false)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    pub(super) fn new(stream: Stream, mut session: ServerConnection) -> TlsStream {
        // rustls does not limit its output buffer. This module does, by the number of bytes that
        // the kernel has accepted.
        session.set_buffer_limit(None);
        TlsStream {
            stream,
            session,
            n_encrypted: 0,
            block: Vec::new(),
            heard: Received::default(),
            said_end: false,
        }
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn is_in_handshake(&self) -> bool {
        self.session.is_handshaking()
    }

    pub(super) fn has_heard(&self) -> bool {
        self.heard.first.is_some()
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fetch()?;
        or_end(self.session.reader().read(buffer))
    }

    /// Appends up to `n_bytes` decrypted bytes to `chunk`, and returns their number, or 0 at the
    /// end of the stream. Copies: the bytes are copied twice, from the socket to the buffer in
    /// which rustls decrypts the record, and from there to `chunk`.
    pub(super) fn receive(&mut self, chunk: &mut Chunk, n_bytes: usize) -> io::Result<usize> {
        self.fetch()?;
        let mut reader = self.session.reader();
        let come = match reader.fill_buf() {
            Ok(come) => come,
            Err(e) => return or_end(Err(e)),
        };
        let n = come.len().min(n_bytes);
        let full = |_| io::Error::from(io::ErrorKind::OutOfMemory);
        chunk.put(&come[..n]).map_err(full)?;
        reader.consume(n);
        Ok(n)
    }

    /// Returns `true` if the caller must read again without waiting for an event of epoll. The read
    /// may return bytes, or the end of the stream, for which epoll reports no further event.
    pub(super) fn may_hold_more(&mut self) -> bool {
        !self.heard.drained || self.has_come()
    }

    fn has_come(&mut self) -> bool {
        let come = self.session.reader().fill_buf().map(|_| ());
        !matches!(come, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads once from the socket and decrypts the bytes. Does nothing if an earlier call decrypted
    /// bytes that were not taken yet.
    fn fetch(&mut self) -> io::Result<()> {
        if self.has_come() {
            return Ok(());
        }
        let mut wire = RustlsSocket(&self.stream, &mut self.heard);
        self.session.read_tls(&mut wire)?;
        if let Err(error) = self.session.process_new_packets() {
            self.object();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        // The output belongs to the handshake. If encrypted bytes of a response are still queued,
        // the output is sent together with these.
        if self.session.wants_write() && self.n_encrypted == 0 {
            self.write_out()?;
        }
        match self.has_come() {
            true => Ok(()),
            // The received bytes belong to a handshake, or to a record that is still incomplete.
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    }

    /// Reports to the client that it has violated the TLS protocol: by a TLS alert, or by an HTTP
    /// response if the client has sent plain HTTP. Does not wait: bytes of this report that the
    /// kernel does not accept immediately are lost.
    fn object(&mut self) {
        let is_http = self.heard.first.is_some_and(|b| b.is_ascii_uppercase());
        let _ = match is_http && self.session.is_handshaking() {
            true => self
                .stream
                .send(&[IoSlice::new(PLAIN_HTTP)], false)
                .map(drop),
            false => self.write_out().map(drop),
        };
    }

    pub(super) fn owes(&self) -> bool {
        self.session.wants_write()
    }

    /// Writes the encrypted records to the socket. Stops when the kernel has accepted all of them,
    /// or when the kernel accepts no more bytes now.
    pub(crate) fn write_out(&mut self) -> io::Result<WriteProgress> {
        let mut any = false;
        while self.session.wants_write() {
            let mut wire = RustlsSocket(&self.stream, &mut self.heard);
            match self.session.write_tls(&mut wire) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => any = true,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(WriteProgress { any, all: false });
                }
                Err(e) => return Err(e),
            }
        }
        Ok(WriteProgress { any, all: true })
    }

    /// Returns the number of bytes of the output queue that were sent since the last call of this
    /// method, counted before their encryption. This method may be called only after
    /// [`TlsStream::write_out`] has sent all records.
    pub(crate) fn take_encrypted(&mut self) -> usize {
        std::mem::take(&mut self.n_encrypted)
    }

    /// The largest number of bytes that one call to [`TlsStream::encrypt`] accepts.
    pub(crate) const MOST_BYTES: usize = BATCH_BYTES;

    /// Encrypts `parts` into new records. Copies: the bytes are copied once, into the records, and
    /// are encrypted there.
    pub(crate) fn encrypt(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.n_encrypted = self.session.writer().write_vectored(parts)?;
        Ok(())
    }

    /// Reads up to `n_bytes` bytes of a file at `offset` and encrypts them into new records.
    /// Copies: the bytes are copied twice, from the file to a buffer and from the buffer to the
    /// records.
    pub(crate) fn encrypt_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        n_bytes: usize,
    ) -> io::Result<()> {
        self.block.resize(BATCH_BYTES, 0);
        let block = &mut self.block[..n_bytes.min(BATCH_BYTES)];
        let n = sys::read_file(file, offset, block)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.n_encrypted = self.session.writer().write(&block[..n])?;
        Ok(())
    }

    /// Frees the buffer into which parts of files are read before their encryption. Called when the
    /// output queue of the connection is empty.
    pub(crate) fn rest(&mut self) {
        self.block = Vec::new();
    }

    /// Sends the TLS alert close_notify, unless an earlier call has sent it, after all other
    /// encrypted bytes. Returns `false` if the kernel has not yet accepted all of these bytes.
    pub(super) fn say_end(&mut self) -> io::Result<bool> {
        if !self.said_end {
            self.said_end = true;
            self.session.send_close_notify();
        }
        self.write_out().map(|written| written.all)
    }
}

/// Converts the error of a connection that ended without the TLS alert close_notify to 0, which
/// means the end of the stream. This is safe for HTTP, because the server determines the end of a
/// request from its head or its chunks and not from the end of the connection.
fn or_end(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}
