//! [`Transport`]: the byte stream of a connection, either a plain socket or TLS over a socket. See
//! `docs/decisions/0092-transport.md`.

mod tls;

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use onecopy_text::Chunk;

use crate::sys::Stream;
use crate::tls::Tls;

pub(crate) use tls::TlsStream;

/// The byte stream of one connection: a plain socket, or TLS over a socket. It is an enum and not a
/// trait object, so a plain socket needs neither an allocation nor indirect calls.
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

    /// Reads the available bytes into `buffer`, and returns their number. Returns 0 after the peer
    /// has closed its side.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes are available now. `Interrupted` if the bytes that arrived belong
    /// to the TLS protocol itself; the caller must then call this method again.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.read(buffer),
            Transport::Tls(tls) => tls.read(buffer),
        }
    }

    /// Reads up to `n_bytes` bytes, appends them to `chunk`, and returns their number. Returns 0
    /// after the peer has closed its side. The errors are those of [`Transport::read`].
    pub(crate) fn receive(&mut self, chunk: &mut Chunk, n_bytes: usize) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.receive(chunk, n_bytes),
            Transport::Tls(tls) => tls.receive(chunk, n_bytes),
        }
    }

    /// Is called after a read that did not fill its buffer. Returns `true` if another read may
    /// return further bytes immediately. For a plain socket, always returns `false`, because a read
    /// that does not fill its buffer has emptied the socket (epoll(7)).
    pub(crate) fn may_hold_more(&mut self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.may_hold_more(),
        }
    }

    /// Reads bytes from the socket in order to discard them. With TLS, the bytes are not decrypted.
    pub(crate) fn discard(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream().read(buffer)
    }

    /// Returns `true` if bytes of TLS that are not part of a response must still be sent, such as
    /// bytes of the handshake or a session ticket.
    pub(crate) fn owes(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.owes(),
        }
    }

    /// Sends the pending bytes of the TLS protocol itself (see [`Transport::owes`]). Returns
    /// `false` if the kernel does not accept all of them now.
    pub(crate) fn settle(&mut self) -> io::Result<bool> {
        match self {
            Transport::Plain(_) => Ok(true),
            Transport::Tls(tls) => tls.write_out().map(|written| written.all),
        }
    }

    /// Returns `true` until the TLS handshake has ended; `false` for a plain socket.
    pub(crate) fn is_in_handshake(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.is_in_handshake(),
        }
    }

    /// Returns `true` if any bytes of a TLS handshake have arrived. For a plain socket, always
    /// returns `true`.
    pub(crate) fn has_heard(&self) -> bool {
        match self {
            Transport::Plain(_) => true,
            Transport::Tls(tls) => tls.has_heard(),
        }
    }

    /// Sends the TLS alert close_notify, which marks the end of the stream. Returns `false` if the
    /// kernel does not accept all its bytes now. Has no effect on a plain socket.
    pub(crate) fn say_end(&mut self) -> io::Result<bool> {
        match self {
            Transport::Plain(_) => Ok(true),
            Transport::Tls(tls) => tls.say_end(),
        }
    }

    /// Closes the sending side of the socket without sending a TLS alert.
    pub(crate) fn shut_write(&self) -> io::Result<()> {
        self.stream().shut_write()
    }

    /// Makes the kernel reset the connection when it is closed, if the socket supports this.
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
