//! [`Handshakes`] runs the handshakes of several senders at the same time, so that one sender that
//! does not complete its handshake does not block the others.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::channel::Channel;
use crate::error::Error;
use crate::identity::CertificateIdentity;
use crate::receiver::{Greeted, Receiver};

/// The limits for connections in their handshake, before the sender has presented its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLimits {
    /// The time limit for a whole handshake, which consists of TLS and the greeting. Default 10
    /// seconds.
    pub time: Duration,
    /// The largest number of connections that are handled at the same time. A connection counts
    /// until [`Handshakes::next`] has returned the result of its handshake. Default 16. More
    /// connections wait in the kernel's queue.
    pub at_once: usize,
}

impl Default for HandshakeLimits {
    fn default() -> HandshakeLimits {
        HandshakeLimits {
            time: Duration::from_secs(10),
            at_once: 16,
        }
    }
}

/// An event that [`Handshakes::next`] returns.
pub enum HandshakeEvent {
    /// A connection was accepted.
    Began {
        /// The address of the sender.
        from: SocketAddr,
        /// The number of other connections that are counted for [`HandshakeLimits::at_once`].
        n_others: usize,
    },
    /// A handshake has ended, with or without success.
    Ended {
        /// The address of the sender.
        from: SocketAddr,
        /// The sender, which the caller passes to [`Receiver::receive`], or the error of the
        /// handshake.
        result: Result<Greeted, Error>,
    },
    /// The listener failed, so no further connection can be accepted.
    Failed(io::Error),
}

/// Accepts senders and runs the handshake of each one in a thread.
pub struct Handshakes {
    events: mpsc::Receiver<(HandshakeEvent, Option<Permit>)>,
    shared: Arc<SharedHandshakes>,
    /// The thread that accepts connections, and the write end of a pipe. Closing the pipe ends the
    /// thread.
    accepting: Option<(JoinHandle<()>, OwnedFd)>,
}

struct SharedHandshakes {
    receiver: Arc<Receiver>,
    identity: Option<CertificateIdentity>,
    limits: HandshakeLimits,
    open: Mutex<OpenHandshake>,
    changed: Condvar,
}

#[derive(Default)]
struct OpenHandshake {
    n_connections: usize,
    /// `true` after the [`Handshakes`] was dropped. No more connections are accepted then.
    is_closed: bool,
}

impl Handshakes {
    /// Accepts connections at `listener`, until the returned value is dropped.
    ///
    /// # Errors
    /// The error of the system if the listener cannot be set up or no thread can be started.
    pub fn start(
        listener: TcpListener,
        receiver: Arc<Receiver>,
        identity: Option<CertificateIdentity>,
        limits: HandshakeLimits,
    ) -> io::Result<Handshakes> {
        listener.set_nonblocking(true)?;
        let shared = Arc::new(SharedHandshakes {
            receiver,
            identity,
            limits,
            open: Mutex::default(),
            changed: Condvar::new(),
        });
        let (end, closes_it) = pipe_with(PipeFlags::CLOEXEC)?;
        let (sender, events) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || theirs.accept_all(&listener, &end, &sender))?;
        Ok(Handshakes {
            events,
            shared,
            accepting: Some((accepting, closes_it)),
        })
    }

    /// Waits for the next event. Returns `None` if no event occurs within the time `most`.
    #[must_use]
    pub fn next(&self, most: Duration) -> Option<HandshakeEvent> {
        match self.events.recv_timeout(most) {
            // Dropping the permit here lets another connection be accepted.
            Ok((event, _permit)) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let gone = io::Error::other("the thread that accepts has ended");
                Some(HandshakeEvent::Failed(gone))
            }
        }
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        self.shared.open().is_closed = true;
        self.shared.changed.notify_all();
        if let Some((accepting, closes_it)) = self.accepting.take() {
            drop(closes_it);
            let _ = accepting.join();
        }
    }
}

/// A permit for one open connection. When the permit is dropped, another connection may be opened.
struct Permit(Arc<SharedHandshakes>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open().n_connections -= 1;
        self.0.changed.notify_all();
    }
}

impl SharedHandshakes {
    fn open(&self) -> MutexGuard<'_, OpenHandshake> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept_all(
        self: Arc<SharedHandshakes>,
        listener: &TcpListener,
        end: &OwnedFd,
        events: &Sender<(HandshakeEvent, Option<Permit>)>,
    ) {
        while let Some(permit) = self.permit() {
            let (socket, from) = match accept(listener, end) {
                Ok(Some(accepted)) => accepted,
                Ok(None) => return,
                Err(e) => {
                    let _ = events.send((HandshakeEvent::Failed(e), None));
                    return;
                }
            };
            let n_others = self.open().n_connections - 1;
            let _ = events.send((HandshakeEvent::Began { from, n_others }, None));
            let (shared, theirs) = (Arc::clone(&self), events.clone());
            let handshake = move || {
                let result = shared.shake_hands(socket);
                let _ = theirs.send((HandshakeEvent::Ended { from, result }, Some(permit)));
            };
            let started = thread::Builder::new()
                .name("handshake".to_owned())
                .spawn(handshake);
            if let Err(e) = started {
                let result = Err(Error::Broken(e));
                let _ = events.send((HandshakeEvent::Ended { from, result }, None));
            }
        }
    }

    /// Waits until the number of open connections is below the limit, and returns the permit for
    /// one more connection. Returns `None` after the [`Handshakes`] was dropped.
    fn permit(self: &Arc<SharedHandshakes>) -> Option<Permit> {
        let is_full =
            |open: &mut OpenHandshake| open.n_connections >= self.limits.at_once && !open.is_closed;
        let waited = self.changed.wait_while(self.open(), is_full);
        let mut open = waited.unwrap_or_else(PoisonError::into_inner);
        if open.is_closed {
            return None;
        }
        open.n_connections += 1;
        drop(open);
        Some(Permit(Arc::clone(self)))
    }

    fn shake_hands(&self, socket: TcpStream) -> Result<Greeted, Error> {
        let channel = Channel::receiving(socket, self.identity.as_ref(), self.limits.time)?;
        self.receiver.greet(channel)
    }
}

/// Waits for the next connection. `end` is the read end of a pipe. Returns `None` after the write
/// end of this pipe was closed.
fn accept(listener: &TcpListener, end: &OwnedFd) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    loop {
        let mut polled = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) if !polled[1].revents().is_empty() => return Ok(None),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        match listener.accept() {
            Ok((socket, from)) => {
                socket.set_nonblocking(false)?;
                return Ok(Some((socket, from)));
            }
            Err(e) if is_passing(&e) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Returns `true` for an error of accept(2) after which the call can be repeated: the connection
/// has already ended, no connection is waiting, or a signal interrupted the call.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
