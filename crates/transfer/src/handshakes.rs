//! Handshakes of several senders at once, so that one who does not finish its own keeps nobody out.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::Error;
use crate::identity::Identity;
use crate::link::Link;
use crate::receiver::{Greeted, Receiver};

/// Limits of senders that have not given the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLimits {
    /// For a whole handshake, TLS and greeting: 10 seconds unless set.
    pub time: Duration,
    /// Connections that are in their handshakes, or have ended them and are not taken yet: 16
    /// unless set. Further ones wait in the kernel.
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

/// Something that happened at the listener.
pub enum Event {
    /// A connection came.
    Began {
        /// The sender's address.
        from: SocketAddr,
        /// Connections that came before, are open and are not taken yet.
        n_others: usize,
    },
    /// A handshake ended.
    Ended {
        /// The sender's address.
        from: SocketAddr,
        /// The sender, ready for [`Receiver::receive`], or why it is refused.
        result: Result<Greeted, Error>,
    },
    /// No connection can be accepted any more.
    Failed(io::Error),
}

/// Accepts senders and runs their handshakes, each in a thread.
pub struct Handshakes {
    events: mpsc::Receiver<(Event, Option<Permit>)>,
    shared: Arc<Shared>,
    /// The thread that accepts, which ends when the pipe is closed.
    accepting: Option<(JoinHandle<()>, OwnedFd)>,
}

struct Shared {
    receiver: Arc<Receiver>,
    identity: Option<Identity>,
    limits: HandshakeLimits,
    open: Mutex<Open>,
    changed: Condvar,
}

#[derive(Default)]
struct Open {
    n_connections: usize,
    /// No further one is wanted.
    is_closed: bool,
}

impl Handshakes {
    /// Accepts at `listener` until it is dropped.
    ///
    /// # Errors
    /// The system's, where the listener cannot be set up or no thread can be started.
    pub fn start(
        listener: TcpListener,
        receiver: Arc<Receiver>,
        identity: Option<Identity>,
        limits: HandshakeLimits,
    ) -> io::Result<Handshakes> {
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
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

    /// Waits for the next event, for this time at most.
    #[must_use]
    pub fn next(&self, most: Duration) -> Option<Event> {
        match self.events.recv_timeout(most) {
            // The permit goes here: another connection may come.
            Ok((event, _permit)) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let gone = io::Error::other("the thread that accepts has ended");
                Some(Event::Failed(gone))
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

/// Counts a connection among those that are open.
struct Permit(Arc<Shared>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open().n_connections -= 1;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept_all(
        self: Arc<Shared>,
        listener: &TcpListener,
        end: &OwnedFd,
        events: &Sender<(Event, Option<Permit>)>,
    ) {
        while let Some(permit) = self.permit() {
            let (socket, from) = match accept(listener, end) {
                Ok(Some(accepted)) => accepted,
                Ok(None) => return,
                Err(e) => {
                    let _ = events.send((Event::Failed(e), None));
                    return;
                }
            };
            let n_others = self.open().n_connections - 1;
            let _ = events.send((Event::Began { from, n_others }, None));
            let (shared, theirs) = (Arc::clone(&self), events.clone());
            let handshake = move || {
                let result = shared.shake_hands(socket);
                let _ = theirs.send((Event::Ended { from, result }, Some(permit)));
            };
            let started = thread::Builder::new()
                .name("handshake".to_owned())
                .spawn(handshake);
            if let Err(e) = started {
                let result = Err(Error::Broken(e));
                let _ = events.send((Event::Ended { from, result }, None));
            }
        }
    }

    /// Waits until one more connection may be open. `None` at the end.
    fn permit(self: &Arc<Shared>) -> Option<Permit> {
        let is_full =
            |open: &mut Open| open.n_connections >= self.limits.at_once && !open.is_closed;
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
        let link = Link::receiving(socket, self.identity.as_ref(), self.limits.time)?;
        self.receiver.greet(link)
    }
}

/// The next connection; `None` when `end` is closed.
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

/// Somebody came and left, or a signal.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
