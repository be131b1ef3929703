//! What a connection speaks through: a socket as it is, or TLS over it. See `docs/decisions/0092-transport.md`.

mod tls;

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use onecopy_text::Chunk;

use crate::sys::Stream;
use crate::tls::Tls;

pub(crate) use tls::TlsStream;

/// The bytes of one connection, in and out. Which of the two it is, is asked once per call: nothing is allocated and no call is
/// indirect for the plain one.
pub(crate) enum Transport {
    Plain(Stream),
    Tls(Box<TlsStream>),
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Transport::Plain(stream) => stream.as_raw_fd(),
            Transport::Tls(tls) => tls.stream().as_raw_fd(),
        }
    }
}

impl Transport {
    pub(crate) fn new(stream: Stream, tls: Option<&Tls>) -> io::Result<Transport> {
        Ok(match tls {
            None => Transport::Plain(stream),
            Some(tls) => Transport::Tls(Box::new(TlsStream::new(stream, tls.session()?))),
        })
    }

    /// Reads what has come into `buffer`; 0 at the peer's end.
    ///
    /// # Errors
    /// `WouldBlock`: nothing, for now. `Interrupted`: something came, but none of it for here; to be called again.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.read(buffer),
            Transport::Tls(tls) => tls.read(buffer),
        }
    }

    /// As [`Transport::read`], up to `n_bytes`, behind what `chunk` holds.
    pub(crate) fn receive(&mut self, chunk: &mut Chunk, n_bytes: usize) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.receive(chunk, n_bytes),
            Transport::Tls(tls) => tls.receive(chunk, n_bytes),
        }
    }

    /// Whether there may be more to read after a read that did not fill its room, which has emptied a socket (epoll(7)).
    pub(crate) fn may_hold_more(&mut self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.may_hold_more(),
        }
    }

    /// Reads bytes that nobody looks at.
    pub(crate) fn discard(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream().read(buffer)
    }

    /// Whether something of the transport itself waits to be sent: a handshake, a ticket.
    pub(crate) fn owes(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.owes(),
        }
    }

    /// Sends what the transport owes; `false` if the kernel takes no more for now.
    pub(crate) fn settle(&mut self) -> io::Result<bool> {
        match self {
            Transport::Plain(_) => Ok(true),
            Transport::Tls(tls) => tls.write_out().map(|written| written.all),
        }
    }

    /// Inside a handshake, or before it.
    pub(crate) fn is_in_handshake(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.is_in_handshake(),
        }
    }

    /// Whether a handshake was begun: something has come.
    pub(crate) fn has_heard(&self) -> bool {
        match self {
            Transport::Plain(_) => true,
            Transport::Tls(tls) => tls.has_heard(),
        }
    }

    /// Says that nothing more comes and that all was said; `false` if the kernel takes no more for now. A socket says so by its end
    /// alone.
    pub(crate) fn say_end(&mut self) -> io::Result<bool> {
        match self {
            Transport::Plain(_) => Ok(true),
            Transport::Tls(tls) => tls.say_end(),
        }
    }

    /// Ends the sending side.
    pub(crate) fn shut_write(&self) -> io::Result<()> {
        self.stream().shut_write()
    }

    /// Makes the next close a reset, where sockets have them.
    pub(crate) fn reset_on_close(&self) -> io::Result<()> {
        self.stream().reset_on_close()
    }

    fn stream(&self) -> &Stream {
        match self {
            Transport::Plain(stream) => stream,
            Transport::Tls(tls) => tls.stream(),
        }
    }
}
