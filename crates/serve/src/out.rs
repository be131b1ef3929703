//! What waits to be sent on one connection.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use onecopy_text::Chunk;

use crate::body::{FileBody, Held};
use crate::buffers::Buffers;
use crate::sys::Stream;
use crate::transport::{TlsStream, Transport};

/// Parts handed to the kernel in one call: of one answer, and at most.
const FEW_PARTS: usize = 8;
const MAX_PARTS: usize = 256;
/// A file up to here shares packets with what stands before it. A longer one does not wait for them: sent apart, its pages cost the
/// kernel less (decision 0096).
const SHORT_FILE_BYTES: usize = 16 * 1024;
/// Bytes that one connection sends before the others have their turn: a client that takes them as fast as they come would have the
/// thread for as long as its file is.
const TURN_BYTES: usize = 8 * 1024 * 1024;

/// Bytes in the order they go out, each where its owner put it: payload is never copied into a buffer of the server.
#[derive(Default)]
pub(crate) struct OutQueue {
    /// Heads and chunk framing; emptied with the queue.
    framing: Vec<u8>,
    parts: VecDeque<Part>,
    /// Bytes of the first part that were sent already.
    n_of_first: usize,
    n_pending: usize,
    n_pushed: u64,
}

/// Bytes of an answer, by where they lie.
enum Part {
    Framing(Range<usize>),
    Owned(Vec<u8>),
    Shared(Arc<[u8]>),
    Static(&'static [u8]),
    Chunk(Chunk),
    Held(Held),
    File(FileBody),
}

/// How far [`OutQueue::flush`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nothing waits any more.
    All,
    /// The kernel takes no more for now; some bytes went if `progress`.
    Blocked { progress: bool },
    /// The kernel would take more; others are to have their turn.
    Paused,
}

/// What [`OutQueue::views`] shows.
#[derive(Default)]
struct Offered {
    n_views: usize,
    n_bytes: usize,
    /// A file comes next, and a short one.
    before_file: bool,
    before_short_file: bool,
}

impl OutQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.n_pending == 0
    }

    /// Bytes that wait.
    pub(crate) fn n_pending(&self) -> usize {
        self.n_pending
    }

    /// Bytes ever put in.
    pub(crate) fn n_pushed(&self) -> u64 {
        self.n_pushed
    }

    /// Bytes ever taken by the kernel.
    pub(crate) fn n_sent(&self) -> u64 {
        self.n_pushed - self.n_pending as u64
    }

    /// Appends what `write` writes: a head, a chunk's size line.
    pub(crate) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.framing.len();
        write(&mut self.framing);
        let end = self.framing.len();
        self.count(end - start);
        match self.parts.back_mut() {
            Some(Part::Framing(last)) if last.end == start => last.end = end,
            _ if end > start => self.parts.push_back(Part::Framing(start..end)),
            _ => {}
        }
    }

    pub(crate) fn owned(&mut self, bytes: Vec<u8>) {
        self.push(bytes.len(), Part::Owned(bytes));
    }

    pub(crate) fn shared(&mut self, bytes: Arc<[u8]>) {
        self.push(bytes.len(), Part::Shared(bytes));
    }

    pub(crate) fn fixed(&mut self, bytes: &'static [u8]) {
        self.push(bytes.len(), Part::Static(bytes));
    }

    pub(crate) fn chunk(&mut self, chunk: Chunk) {
        self.push(chunk.len(), Part::Chunk(chunk));
    }

    /// Bytes of somebody else's object, given back when they are with the kernel.
    pub(crate) fn held(&mut self, bytes: Held) {
        self.push(bytes.len(), Part::Held(bytes));
    }

    /// Bytes that the kernel takes from a file.
    pub(crate) fn file(&mut self, file: FileBody) {
        self.push(file.n_bytes, Part::File(file));
    }

    fn push(&mut self, n: usize, part: Part) {
        if n > 0 {
            self.count(n);
            self.parts.push_back(part);
        }
    }

    fn count(&mut self, n: usize) {
        self.n_pending += n;
        self.n_pushed += n as u64;
    }

    /// Sends until all is gone or the kernel takes no more. Chunks that are through go back to `buffers`.
    ///
    /// # Errors
    /// What sendmsg(2) or sendfile(2) says when the connection is dead; a file that has become shorter.
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
                Some(Part::File(file)) => {
                    let left = (file.n_bytes - self.n_of_first).min(TURN_BYTES - n_turn);
                    let at = file.offset + self.n_of_first as u64;
                    // A short count says nothing here: the kernel sends a file in portions.
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
                        // The socket buffer is full; the next edge says when it has room.
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

    /// Through TLS: what is in records stays in the queue until the kernel has these, so that what waits is counted alike.
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
            if let Some(Part::File(file)) = self.parts.front() {
                let at = file.offset + self.n_of_first as u64;
                tls.encrypt_file(file.fd(), at, file.n_bytes - self.n_of_first)?;
            } else {
                let mut views = [IoSlice::new(&[]); MAX_PARTS];
                let offered = self.views(&mut views, TlsStream::MOST_BYTES);
                tls.encrypt(&views[..offered.n_views])?;
            }
        }
    }

    /// Sends the first part alone.
    fn send_part(&self, stream: &Stream, part: &Part) -> (io::Result<usize>, Option<usize>) {
        let bytes = &part.bytes(&self.framing)[self.n_of_first..];
        (stream.send_bytes(bytes), Some(bytes.len()))
    }

    /// Sends the first parts, up to a file; how many bytes the kernel took, and were offered to it.
    fn send_parts<const N: usize>(&self, stream: &Stream) -> (io::Result<usize>, Option<usize>) {
        let mut views = [IoSlice::new(&[]); N];
        let offered = self.views(&mut views, usize::MAX);
        let sent = stream.send(&views[..offered.n_views], offered.before_short_file);
        (sent, Some(offered.n_bytes))
    }

    /// Views of the first parts, up to a file, of `most_bytes` together.
    fn views<'a>(&'a self, views: &mut [IoSlice<'a>], most_bytes: usize) -> Offered {
        let mut offered = Offered::default();
        for part in self.parts.iter().take(views.len()) {
            if let Part::File(file) = part {
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
            if let Some(Part::Chunk(chunk)) = self.parts.pop_front() {
                buffers.give(chunk);
            }
        }
        self.framing.clear();
    }

    /// Forgets what waits: the connection is dead.
    pub(crate) fn clear(&mut self, buffers: &Buffers) {
        for part in self.parts.drain(..) {
            if let Part::Chunk(chunk) = part {
                buffers.give(chunk);
            }
        }
        self.n_pushed -= self.n_pending as u64;
        self.n_pending = 0;
        self.n_of_first = 0;
        self.framing = Vec::new();
    }
}

impl Part {
    fn bytes<'a>(&'a self, framing: &'a [u8]) -> &'a [u8] {
        match self {
            Part::Framing(range) => &framing[range.clone()],
            Part::Owned(bytes) => bytes,
            Part::Shared(bytes) => bytes,
            Part::Static(bytes) => bytes,
            Part::Chunk(chunk) => chunk,
            Part::Held(bytes) => bytes,
            Part::File(_) => &[],
        }
    }

    fn len(&self, framing: &[u8]) -> usize {
        match self {
            Part::File(file) => file.n_bytes,
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
