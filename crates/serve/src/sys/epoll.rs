//! [`Epoll`]: an epoll instance (epoll(7)), which reports events of descriptors.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::check;

/// An epoll instance, which reports the events of a set of file descriptors.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

/// The events for which a file descriptor is registered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interest {
    /// Level-triggered: each wait reports the event again as long as the descriptor is readable.
    /// Used for event descriptors and listeners.
    ReadLevel,
    /// Edge-triggered: each change is reported once. A change means that bytes arrived, that the
    /// socket accepts bytes again, or that the peer closed its side. Used for connections, which
    /// are registered only once.
    AllEdges,
}

/// An event that [`Epoll::wait`] reported.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Event(libc::epoll_event);

impl Event {
    pub(crate) const NONE: Event = Event(libc::epoll_event { events: 0, u64: 0 });

    pub(crate) fn token(&self) -> u64 {
        self.0.u64
    }

    fn has(&self, flags: libc::c_int) -> bool {
        // `libc` declares the flags as signed integers, and `events` is unsigned. All flags are
        // positive, so the cast does not change them.
        self.0.events & (flags as u32) != 0
    }

    pub(crate) fn readable(&self) -> bool {
        self.has(libc::EPOLLIN)
    }

    pub(crate) fn writable(&self) -> bool {
        self.has(libc::EPOLLOUT)
    }

    /// Returns `true` if the peer has closed its sending side. The peer may still read.
    pub(crate) fn peer_shut(&self) -> bool {
        self.has(libc::EPOLLRDHUP)
    }

    /// Returns `true` if both sides are closed, or if the connection has failed.
    pub(crate) fn hung_up(&self) -> bool {
        self.has(libc::EPOLLHUP | libc::EPOLLERR)
    }
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no pointer is passed; the result is checked.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: `fd` was just created, and nothing else uses it.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn add(&self, fd: &impl AsRawFd, token: u64, interest: Interest) -> io::Result<()> {
        let events = match interest {
            Interest::ReadLevel => libc::EPOLLIN,
            Interest::AllEdges => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        };
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        // SAFETY: both descriptors are open for the call; `event` is read only during it.
        check(unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                fd.as_raw_fd(),
                &raw mut event,
            )
        })?;
        Ok(())
    }

    pub(crate) fn remove(&self, fd: &impl AsRawFd) -> io::Result<()> {
        // SAFETY: the event argument is ignored for DEL since Linux 2.6.9.
        check(unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd.as_raw_fd(),
                std::ptr::null_mut(),
            )
        })?;
        Ok(())
    }

    /// Waits for events for at most `timeout_ms` milliseconds, or without a limit if `timeout_ms`
    /// is `None`. Returns the number of events, or 0 if a signal interrupted the wait.
    pub(crate) fn wait(&self, events: &mut [Event], timeout_ms: Option<u64>) -> io::Result<usize> {
        let timeout = timeout_ms.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
        let capacity = i32::try_from(events.len()).unwrap_or(i32::MAX);
        // SAFETY: `Event` is a transparent `epoll_event`; the kernel writes at most `capacity` of
        // them into `events`.
        let n = check(unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr().cast::<libc::epoll_event>(),
                capacity,
                timeout,
            )
        });
        match n {
            Ok(n) => Ok(n as usize),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(e) => Err(e),
        }
    }
}
