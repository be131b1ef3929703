//! TLS over a socket (RFC 8446, RFC 5246): rustls makes and reads the records, the connection's own steps move them.

use std::io::{self, BufRead, IoSlice, Read, Write};
use std::os::fd::BorrowedFd;

use onecopy_text::{ByteSink, Chunk};
use rustls::ServerConnection;

use crate::sys::{self, Stream};

/// Bytes that are encrypted at once: four whole records. As long as these are not with the kernel, none are behind them.
const BATCH_BYTES: usize = 64 * 1024;

/// What a client is told that speaks HTTP where TLS is spoken.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 49\r\n\
    Connection: close\r\n\
    \r\n\
    this port speaks TLS: write https:// for http://\n";

/// A TLS session and its socket.
pub(crate) struct TlsStream {
    stream: Stream,
    session: ServerConnection,
    /// Bytes of the answer in records that are not all with the kernel. They wait in the queue until they are.
    n_encrypted: usize,
    /// A block of a file, while one is sent.
    block: Vec<u8>,
    heard: Heard,
    said_end: bool,
}

/// What came over the socket.
#[derive(Default)]
struct Heard {
    /// The very first byte.
    first: Option<u8>,
    /// The last read has emptied the socket.
    drained: bool,
}

/// How far [`TlsStream::write_out`] came.
pub(crate) struct Written {
    /// The kernel took something.
    pub(crate) any: bool,
    /// Nothing waits any more.
    pub(crate) all: bool,
}

/// The socket, as rustls wants it.
struct Wire<'a>(&'a Stream, &'a mut Heard);

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        self.1.drained = n < buffer.len();
        if n > 0 {
            self.1.first.get_or_insert(buffer[0]);
        }
        Ok(n)
    }
}

impl Write for Wire<'_> {
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
        // What is encrypted is limited here, by what the kernel has taken.
        session.set_buffer_limit(None);
        TlsStream {
            stream,
            session,
            n_encrypted: 0,
            block: Vec::new(),
            heard: Heard::default(),
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

    /// Copies: two, out of the record, which rustls has decrypted where it lay, and from there into `chunk`.
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

    /// Whether there is something to read that no event will tell of, an end too.
    pub(super) fn may_hold_more(&mut self) -> bool {
        !self.heard.drained || self.has_come()
    }

    fn has_come(&mut self) -> bool {
        let come = self.session.reader().fill_buf().map(|_| ());
        !matches!(come, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads from the socket once, unless something is there already.
    fn fetch(&mut self) -> io::Result<()> {
        if self.has_come() {
            return Ok(());
        }
        let mut wire = Wire(&self.stream, &mut self.heard);
        self.session.read_tls(&mut wire)?;
        if let Err(error) = self.session.process_new_packets() {
            self.object();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        // What the handshake has to say. Behind bytes of an answer it goes with these.
        if self.session.wants_write() && self.n_encrypted == 0 {
            self.write_out()?;
        }
        match self.has_come() {
            true => Ok(()),
            // It was a handshake's, or half a record.
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    }

    /// Tells the peer what is wrong with what it sent: by an alert, or by a page where it speaks plain HTTP. As far as the kernel
    /// takes it: nobody waits for that.
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

    /// Hands the records there are to the kernel.
    pub(crate) fn write_out(&mut self) -> io::Result<Written> {
        let mut any = false;
        while self.session.wants_write() {
            let mut wire = Wire(&self.stream, &mut self.heard);
            match self.session.write_tls(&mut wire) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => any = true,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Written { any, all: false });
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Written { any, all: true })
    }

    /// How many bytes of the answer were in records that the kernel has by now.
    pub(crate) fn take_encrypted(&mut self) -> usize {
        std::mem::take(&mut self.n_encrypted)
    }

    /// The most that [`TlsStream::encrypt`] is to be given at once.
    pub(crate) const MOST_BYTES: usize = BATCH_BYTES;

    /// Makes records of `parts`. Copies: one, into the record, where it is encrypted.
    pub(crate) fn encrypt(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.n_encrypted = self.session.writer().write_vectored(parts)?;
        Ok(())
    }

    /// Makes records of the next block of a file. Copies: two, into the block and into the record.
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

    /// The queue is empty: the room for a block of a file is let go.
    pub(crate) fn rest(&mut self) {
        self.block = Vec::new();
    }

    /// Sends close_notify.
    pub(super) fn say_end(&mut self) -> io::Result<bool> {
        if !self.said_end {
            self.said_end = true;
            self.session.send_close_notify();
        }
        self.write_out().map(|written| written.all)
    }
}

/// An end is an end, though TLS did not say so: each request says itself where it ends.
fn or_end(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}
