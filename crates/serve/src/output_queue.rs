//! [`OutQueue`]: the queue of the bytes to send on one connection.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use onecopy_text::Chunk;

use crate::body::{FileBody, SharedBytes};
use crate::buffers::Buffers;
use crate::sys::Stream;
use crate::transport::{TlsStream, Transport};

/// The largest number of queued parts that one system call passes to the kernel from a short queue.
/// From a longer queue, a call passes up to `MAX_PARTS` parts, which needs a larger array on the
/// stack.
const FEW_PARTS: usize = 8;
const MAX_PARTS: usize = 256;
/// The size in bytes of the longest file that is sent in the same packets as the bytes queued
/// before it. A longer file is sent separately, because the kernel then needs less time per page of
/// the file (`docs/decisions/0096-files-over-http.md`).
const SHORT_FILE_BYTES: usize = 16 * 1024;
/// The number of bytes that a thread sends on one connection before it serves other connections.
/// Without this limit, a client that reads fast would occupy the thread until a complete file is
/// sent.
const TURN_BYTES: usize = 8 * 1024 * 1024;

/// The bytes to send on a connection, in order. The queue refers to the memory in which the bytes
/// of response bodies already are, so these bytes are not copied.
#[derive(Default)]
pub(crate) struct OutQueue {
    /// The bytes of response heads and of the framing of chunks. They are cleared when the queue is
    /// empty.
    framing: Vec<u8>,
    parts: VecDeque<QueuedPart>,
    /// The number of bytes of the queue's first part that were already sent.
    n_of_first: usize,
    n_pending: usize,
    n_pushed: u64,
}

/// A part of the queue: bytes in memory, with a variant for each kind of owner, or a range of a
/// file.
enum QueuedPart {
    Framing(Range<usize>),
    Owned(Vec<u8>),
    Shared(Arc<[u8]>),
    Static(&'static [u8]),
    Chunk(Chunk),
    SharedBytes(SharedBytes),
    File(FileBody),
}

/// The result of [`OutQueue::flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// The queue is empty.
    All,
    /// The kernel accepts no more bytes now. `progress` is `true` if it accepted at least one byte
    /// in this call.
    Blocked { progress: bool },
    /// The kernel would accept more bytes, but the thread serves other connections first.
    Paused,
}

/// The result of [`OutQueue::views`]: the number of the collected parts, and their total length in
/// bytes.
#[derive(Default)]
struct SendViews {
    n_views: usize,
    n_bytes: usize,
    /// `true` if the queue entry after the collected parts is a file. The next field,
    /// `before_short_file`, is `true` if this file has at most [`SHORT_FILE_BYTES`] bytes.
    before_file: bool,
    before_short_file: bool,
}

impl OutQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.n_pending == 0
    }

    /// Returns the number of bytes that are queued now.
    pub(crate) fn n_pending(&self) -> usize {
        self.n_pending
    }

    /// Returns the number of bytes that were queued since the connection was opened.
    pub(crate) fn n_pushed(&self) -> u64 {
        self.n_pushed
    }

    /// Returns the number of bytes that the kernel has accepted since the connection was opened.
    pub(crate) fn n_sent(&self) -> u64 {
        self.n_pushed - self.n_pending as u64
    }

    /// Queues the bytes that `write` appends to the buffer, such as a response head or the size
    /// line of a chunk.
    pub(crate) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.framing.len();
        write(&mut self.framing);
        let end = self.framing.len();
        self.count(end - start);
        match self.parts.back_mut() {
            Some(QueuedPart::Framing(last)) if last.end == start => last.end = end,
            _ if end > start => self.parts.push_back(QueuedPart::Framing(start..end)),
            _ => {}
        }
    }

    pub(crate) fn owned(&mut self, bytes: Vec<u8>) {
        self.push(bytes.len(), QueuedPart::Owned(bytes));
    }

    pub(crate) fn shared(&mut self, bytes: Arc<[u8]>) {
        self.push(bytes.len(), QueuedPart::Shared(bytes));
    }

    pub(crate) fn fixed(&mut self, bytes: &'static [u8]) {
        self.push(bytes.len(), QueuedPart::Static(bytes));
    }

    pub(crate) fn chunk(&mut self, chunk: Chunk) {
        self.push(chunk.len(), QueuedPart::Chunk(chunk));
    }

    /// Queues bytes in the memory of another object. The object is released when the kernel has
    /// accepted the bytes.
    pub(crate) fn held(&mut self, bytes: SharedBytes) {
        self.push(bytes.len(), QueuedPart::SharedBytes(bytes));
    }

    /// Queues a range of a file, which the kernel reads when it sends the range.
    pub(crate) fn file(&mut self, file: FileBody) {
        self.push(file.n_bytes, QueuedPart::File(file));
    }

    fn push(&mut self, n: usize, part: QueuedPart) {
        if n > 0 {
            self.count(n);
            self.parts.push_back(part);
        }
    }

    fn count(&mut self, n: usize) {
        self.n_pending += n;
        self.n_pushed += n as u64;
    }

    /// Sends queued bytes until the queue is empty, the kernel accepts no more bytes, or other
    /// connections must be served. Chunks whose bytes were sent are put back into `buffers`.
    ///
    /// # Errors
    /// The error of sendmsg(2) or sendfile(2) if the connection has failed. `UnexpectedEof` if a
    /// queued file was truncated.
    pub(crate) fn flush(&mut self, to: &mut Transport, buffers: &Buffers) -> io::Result<Flushed> {
        match to {
            Transport::Plain(stream) => self.flush_plain(stream, buffers),
            Transport::Tls(tls) => self.flush_tls(tls, buffers),
        }
    }

    fn flush_plain(&mut self, stream: &Stream, buffers: &Buffers) -> io::Result<Flushed> {
        let mut progress = false;
        let before = self.n_pending;
        while self.n_pending > 0 {
            let n_turn = before - self.n_pending;
            if n_turn >= TURN_BYTES {
                return Ok(Flushed::Paused);
            }
            let (sent, offered) = match self.parts.front() {
                Some(QueuedPart::File(file)) => {
                    let left = (file.n_bytes - self.n_of_first).min(TURN_BYTES - n_turn);
                    let at = file.offset + self.n_of_first as u64;
                    // A count below `left` does not show that the socket buffer is full, because
                    // the kernel sends a file in portions.
                    (stream.send_file(file.fd(), at, left), None)
                }
                Some(part) if self.parts.len() == 1 => self.send_part(stream, part),
                _ if self.parts.len() <= FEW_PARTS => self.send_parts::<FEW_PARTS>(stream),
                _ => self.send_parts::<MAX_PARTS>(stream),
            };
            match sent {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    progress = true;
                    self.advance(n, buffers);
                    if offered.is_some_and(|offered| n < offered) {
                        // The socket buffer is full; the next epoll event reports that it has
                        // space.
                        return Ok(Flushed::Blocked { progress });
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Flushed::Blocked { progress });
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Flushed::All)
    }

    /// Sends queued bytes through TLS. Encrypted bytes stay in the queue until the kernel has
    /// accepted their TLS records. Therefore the queue counts bytes as sent only when the kernel
    /// has accepted them, as it does without TLS.
    fn flush_tls(&mut self, tls: &mut TlsStream, buffers: &Buffers) -> io::Result<Flushed> {
        let mut progress = false;
        let before = self.n_pending;
        loop {
            let written = tls.write_out()?;
            progress |= written.any;
            if !written.all {
                return Ok(Flushed::Blocked { progress });
            }
            self.advance(tls.take_encrypted(), buffers);
            if self.n_pending == 0 {
                tls.rest();
                return Ok(Flushed::All);
            }
            if before - self.n_pending >= TURN_BYTES {
                return Ok(Flushed::Paused);
            }
            if let Some(QueuedPart::File(file)) = self.parts.front() {
                let at = file.offset + self.n_of_first as u64;
                tls.encrypt_file(file.fd(), at, file.n_bytes - self.n_of_first)?;
            } else {
                let mut views = [IoSlice::new(&[]); MAX_PARTS];
                let offered = self.views(&mut views, TlsStream::MOST_BYTES);
                tls.encrypt(&views[..offered.n_views])?;
            }
        }
    }

    /// Sends `part`, the first part of the queue. Returns the result of the send, which is the
    /// number of bytes that the kernel has accepted. Also returns the number of bytes that were
    /// passed to the kernel.
    fn send_part(&self, stream: &Stream, part: &QueuedPart) -> (io::Result<usize>, Option<usize>) {
        let bytes = &part.bytes(&self.framing)[self.n_of_first..];
        (stream.send_bytes(bytes), Some(bytes.len()))
    }

    /// Sends up to `N` parts at the start of the queue, but no file. Returns the result of the
    /// send, which is the number of bytes that the kernel has accepted. Also returns the number of
    /// bytes that were passed to the kernel.
    fn send_parts<const N: usize>(&self, stream: &Stream) -> (io::Result<usize>, Option<usize>) {
        let mut views = [IoSlice::new(&[]); N];
        let offered = self.views(&mut views, usize::MAX);
        let sent = stream.send(&views[..offered.n_views], offered.before_short_file);
        (sent, Some(offered.n_bytes))
    }

    /// Collects parts from the start of the queue in `views`, up to the first file, and up to a
    /// total of `most_bytes` bytes.
    fn views<'a>(&'a self, views: &mut [IoSlice<'a>], most_bytes: usize) -> SendViews {
        let mut offered = SendViews::default();
        for part in self.parts.iter().take(views.len()) {
            if let QueuedPart::File(file) = part {
                offered.before_file = true;
                offered.before_short_file = file.n_bytes <= SHORT_FILE_BYTES;
            }
            if offered.before_file || offered.n_bytes == most_bytes {
                break;
            }
            let skip = match offered.n_views {
                0 => self.n_of_first,
                _ => 0,
            };
            let bytes = &part.bytes(&self.framing)[skip..];
            let bytes = &bytes[..bytes.len().min(most_bytes - offered.n_bytes)];
            views[offered.n_views] = IoSlice::new(bytes);
            offered.n_views += 1;
            offered.n_bytes += bytes.len();
        }
        offered
    }

    fn advance(&mut self, mut n: usize, buffers: &Buffers) {
        self.n_pending -= n;
        while let Some(first) = self.parts.front() {
            let left = first.len(&self.framing) - self.n_of_first;
            if n < left {
                self.n_of_first += n;
                return;
            }
            n -= left;
            self.n_of_first = 0;
            if let Some(QueuedPart::Chunk(chunk)) = self.parts.pop_front() {
                buffers.give(chunk);
            }
        }
        self.framing.clear();
    }

    /// Discards the queued bytes of a connection that has failed.
    pub(crate) fn clear(&mut self, buffers: &Buffers) {
        for part in self.parts.drain(..) {
            if let QueuedPart::Chunk(chunk) = part {
                buffers.give(chunk);
            }
        }
        self.n_pushed -= self.n_pending as u64;
        self.n_pending = 0;
        self.n_of_first = 0;
        self.framing = Vec::new();
    }
}

impl QueuedPart {
    fn bytes<'a>(&'a self, framing: &'a [u8]) -> &'a [u8] {
        match self {
            QueuedPart::Framing(range) => &framing[range.clone()],
            QueuedPart::Owned(bytes) => bytes,
            QueuedPart::Shared(bytes) => bytes,
            QueuedPart::Static(bytes) => bytes,
            QueuedPart::Chunk(chunk) => chunk,
            QueuedPart::SharedBytes(bytes) => bytes,
            QueuedPart::File(_) => &[],
        }
    }

    fn len(&self, framing: &[u8]) -> usize {
        match self {
            QueuedPart::File(file) => file.n_bytes,
            part => part.bytes(framing).len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (b, _) = listener.accept().unwrap();
        a.set_nonblocking(true).unwrap();
        (a, b)
    }

    fn plain(stream: &TcpStream) -> Transport {
        let fd = OwnedFd::from(stream.try_clone().unwrap());
        Transport::new(Stream::from(fd), None).unwrap()
    }

    #[test]
    fn parts_of_every_kind_go_out_in_order() {
        let (a, mut b) = pair();
        let buffers = Buffers::new(16, 4);
        let mut out = OutQueue::default();
        for i in 0..100_u8 {
            out.frame(|v| v.push(i));
            out.frame(|v| v.extend_from_slice(b"<"));
            out.owned(vec![b'o'; 2]);
            out.owned(Vec::new());
            out.shared(Arc::from(&b"ss"[..]));
            out.fixed(b"t");
            out.chunk(Chunk::from(b"chunk".to_vec()));
        }
        assert_eq!(out.n_pending(), 1200);
        let mut to = plain(&a);
        assert_eq!(out.flush(&mut to, &buffers).unwrap(), Flushed::All);
        assert!(out.is_empty() && out.n_sent() == 1200);
        assert_eq!(buffers.n_kept(), 4, "sent chunks are kept, up to the limit");
        drop((a, to));
        let mut got = Vec::new();
        b.read_to_end(&mut got).unwrap();
        let expected: Vec<u8> = (0..100_u8)
            .flat_map(|i| [&[i][..], b"<oosstchunk"].concat())
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_full_socket_blocks_and_goes_on_at_the_very_byte() {
        let (a, mut b) = pair();
        let buffers = Buffers::new(16, 4);
        let mut out = OutQueue::default();
        let mut to = plain(&a);
        let payload: Vec<u8> = (0..40_000_000_u32).map(|i| (i / 7) as u8).collect();
        for piece in payload.chunks(999_983) {
            out.owned(piece.to_vec());
        }
        assert_eq!(
            out.flush(&mut to, &buffers).unwrap(),
            Flushed::Blocked { progress: true }
        );
        assert_eq!(
            out.flush(&mut to, &buffers).unwrap(),
            Flushed::Blocked { progress: false }
        );
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            b.read_to_end(&mut got).unwrap();
            got
        });
        a.set_nonblocking(false).unwrap();
        while out.flush(&mut to, &buffers).unwrap() != Flushed::All {}
        drop((a, to));
        assert!(reader.join().unwrap() == payload);
    }
}
