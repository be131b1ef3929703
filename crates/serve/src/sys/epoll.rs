//! epoll(7).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::check;

/// A set of watched descriptors.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

/// What to watch a descriptor for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Interest {
    /// Reported as long as there is something to read: the event descriptors.
    ReadLevel,
    /// Reported once per change: input, room for output, the peer's end. Connections, for their whole life, so that
    /// none is armed again per request.
    AllEdges,
}

/// One report of [`Epoll::wait`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Event(libc::epoll_event);

impl Event {
    pub(crate) const NONE: Event = Event(libc::epoll_event { events: 0, u64: 0 });

    pub(crate) fn token(&self) -> u64 {
        self.0.u64
    }

    fn has(&self, flags: libc::c_int) -> bool {
        // The flags are declared as signed and stored as unsigned; all are positive.
        self.0.events & (flags as u32) != 0
    }

    pub(crate) fn readable(&self) -> bool {
        self.has(libc::EPOLLIN)
    }

    pub(crate) fn writable(&self) -> bool {
        self.has(libc::EPOLLOUT)
    }

    /// The peer has closed its side, or the connection is dead.
    pub(crate) fn hung_up(&self) -> bool {
        self.has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR)
    }
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no pointer is passed; the result is checked.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: `fd` was just made and nobody else knows it.
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

    /// Waits for reports, at most `timeout_ms` (for ever if `None`), and returns how many came. Being interrupted by a
    /// signal counts as none.
    pub(crate) fn wait(&self, events: &mut [Event], timeout_ms: Option<u64>) -> io::Result<usize> {
        let timeout = timeout_ms.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
        let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
        // SAFETY: `Event` is a transparent `epoll_event`; the kernel writes at most `room` of them into `events`.
        let n = check(unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr().cast::<libc::epoll_event>(),
                room,
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
