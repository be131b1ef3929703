//! A file to a socket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::sendfile;
use rustix::io::pread;
use rustix::net::{SendFlags, getpeername, getsockname, send};

use super::{Moved, is_unsupported};

/// Bytes that one call is asked to move: a call lasts some milliseconds, so that whoever waits for the caller need not wait long.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes that are read and sent at a time where no others leave: with these it is fastest over loopback.
const READ_BYTES: usize = 512 * 1024;

/// Moves bytes of files to sockets by `sendfile(2)`; where that cannot be, or is slower, through a buffer.
#[derive(Debug, Default)]
pub struct FileSender {
    buffer: Option<Buffer>,
}

/// Bytes that were read, and where in the file.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// The file's bytes from this offset on stand at the start.
    offset: u64,
    len_bytes: usize,
}

impl FileSender {
    /// One that copies nothing as long as the kernel can.
    #[must_use]
    pub fn new() -> FileSender {
        FileSender::default()
    }

    /// The fastest for `socket`, which is waited for between steps: to a peer on this machine over TCP the kernel copies every byte
    /// in any case, and from a buffer that is still in the cache it does so faster (`docs/decisions/0095-moving-files.md`).
    #[must_use]
    pub fn fastest_for(socket: impl AsFd) -> FileSender {
        FileSender {
            buffer: is_loopback(&socket).then(Buffer::new),
        }
    }

    /// Moves up to `most_bytes` of `file` from `offset` on, whatever its position; nothing at its end.
    ///
    /// A socket that blocks is waited for until at least a byte has gone. Copies: none; one through a buffer.
    ///
    /// # Errors
    /// The system's: `WouldBlock`, `Interrupted`, `BrokenPipe`. Who has not put SIGPIPE away is ended by that one.
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
        let buffer = self.buffer.get_or_insert_with(Buffer::new);
        let bytes = buffer.read(file, offset, most)?;
        if bytes.is_empty() {
            return Ok(Moved::default());
        }
        Ok(Moved::by_buffer(send(socket, bytes, SendFlags::NOSIGNAL)?))
    }
}

impl Buffer {
    fn new() -> Buffer {
        Buffer {
            bytes: vec![0; READ_BYTES],
            offset: 0,
            len_bytes: 0,
        }
    }

    /// Bytes from `offset` on: those that did not go last time, else the next of the file.
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

/// Whether a TCP connection ends on this machine; of other families not. There what was read costs less than the kernel's pages
/// (decision 0095).
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
