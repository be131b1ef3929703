//! [`FileSender`] moves bytes from a file to a socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::sendfile;
use rustix::io::pread;
use rustix::net::{SendFlags, getpeername, getsockname, send};

use super::{Moved, is_unsupported};

/// The largest number of bytes that one system call sends. A call then lasts only a few
/// milliseconds, after which the caller can do other work.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// The number of bytes that one call to [`FileSender::step`] reads into the buffer and sends from
/// it. Of the sizes measured over loopback, this one is the fastest
/// (`docs/decisions/0095-moving-files.md`).
const READ_BYTES: usize = 512 * 1024;

/// Moves bytes from files to sockets by `sendfile(2)`, or through a buffer if `sendfile(2)` is not
/// supported or is slower.
#[derive(Debug, Default)]
pub struct FileSender {
    buffer: Option<SendBuffer>,
}

/// Bytes that were read from a file, and their position in the file.
#[derive(Debug)]
struct SendBuffer {
    bytes: Vec<u8>,
    /// The position in the file of the first byte in the buffer.
    offset: u64,
    len_bytes: usize,
}

impl FileSender {
    /// Creates a sender that uses `sendfile(2)` as long as the kernel supports it.
    #[must_use]
    pub fn new() -> FileSender {
        FileSender::default()
    }

    /// Creates the fastest sender for `socket`. The caller must wait for the socket between two
    /// calls to [`FileSender::step`]. For a TCP peer on this machine, the sender uses a buffer: the
    /// kernel copies every byte of such a connection in any case, and it copies faster from a
    /// buffer in the cache (`docs/decisions/0095-moving-files.md`).
    #[must_use]
    pub fn fastest_for(socket: impl AsFd) -> FileSender {
        FileSender {
            buffer: is_loopback(&socket).then(SendBuffer::new),
        }
    }

    /// Sends up to `most_bytes` bytes of `file` to the socket, from the position `offset` on. The
    /// current position of the file is neither used nor changed. At the end of the file, no bytes
    /// are sent.
    ///
    /// For a blocking socket, the call waits until at least one byte was sent. Usually this process
    /// does not copy the bytes. If the kernel cannot send the file directly, the bytes are copied
    /// once, through a buffer.
    ///
    /// # Errors
    /// The error of the system: `WouldBlock`, `Interrupted`, `BrokenPipe`. SIGPIPE ends the process
    /// unless it is ignored.
    pub fn step(
        &mut self,
        socket: impl AsFd,
        file: impl AsFd,
        offset: u64,
        most_bytes: u64,
    ) -> io::Result<Moved> {
        let (socket, file) = (socket.as_fd(), file.as_fd());
        let most = usize::try_from(most_bytes.min(MOST_BYTES)).unwrap_or(usize::MAX);
        if most == 0 {
            return Ok(Moved::default());
        }
        if self.buffer.is_none() {
            let mut at = offset;
            match sendfile(socket, file, Some(&mut at), most) {
                Ok(n) => return Ok(Moved::by_kernel(n)),
                Err(e) if is_unsupported(e) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let buffer = self.buffer.get_or_insert_with(SendBuffer::new);
        let bytes = buffer.read(file, offset, most)?;
        if bytes.is_empty() {
            return Ok(Moved::default());
        }
        Ok(Moved::by_buffer(send(socket, bytes, SendFlags::NOSIGNAL)?))
    }
}

impl SendBuffer {
    fn new() -> SendBuffer {
        SendBuffer {
            bytes: vec![0; READ_BYTES],
            offset: 0,
            len_bytes: 0,
        }
    }

    /// Returns at most `most` bytes of the file from `offset` on. If the buffer still has these
    /// bytes, because the previous step has read them but not sent them, they are returned.
    /// Otherwise the file is read.
    fn read(&mut self, file: BorrowedFd<'_>, offset: u64, most: usize) -> io::Result<&[u8]> {
        let begun = offset.checked_sub(self.offset).map(usize::try_from);
        let skip = match begun {
            Some(Ok(skip)) if skip < self.len_bytes => skip,
            _ => {
                let most = most.min(self.bytes.len());
                self.len_bytes = 0;
                self.len_bytes = pread(file, &mut self.bytes[..most], offset)?;
                self.offset = offset;
                0
            }
        };
        let end = self.len_bytes.min(skip.saturating_add(most));
        Ok(&self.bytes[skip..end])
    }
}

/// Returns `true` if `socket` is a TCP connection whose peer is on this machine. On such a
/// connection, bytes in a buffer are sent faster than pages of a file
/// (`docs/decisions/0095-moving-files.md`).
#[must_use]
pub fn is_loopback(socket: impl AsFd) -> bool {
    let socket = socket.as_fd();
    let ip = |address: rustix::net::SocketAddrAny| SocketAddr::try_from(address).ok();
    let Some(peer) = getpeername(socket).ok().flatten().and_then(ip) else {
        return false;
    };
    let own = getsockname(socket).ok().and_then(ip);
    peer.ip().to_canonical().is_loopback() || own.is_some_and(|own| own.ip() == peer.ip())
}
