//! Steps with the GIL released: waits, timeouts, signals.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use onecopy_files::moving::{Moved, Readiness, SendLimit, wait_for};
use pyo3::prelude::*;

use crate::raw::ending;

use super::ends::Socket;

/// How long no signal is looked at, in moving and in waiting: one that came right before a wait interrupts nothing.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A run of steps to or from one socket.
pub(super) struct Drive<'a> {
    socket: &'a Socket,
    what: Readiness,
    count: u64,
    pub(super) moved: Moved,
    /// Since when nothing has moved, where it waits.
    waits_since: Option<Instant>,
}

/// Why the steps paused.
enum Pause {
    /// All has moved, or the source has ended.
    Done,
    /// Signals are to be looked at.
    Look,
    /// A non-blocking socket: nothing goes now.
    WouldBlock,
}

impl<'a> Drive<'a> {
    pub(super) fn new(socket: &'a Socket, what: Readiness, count: u64) -> Drive<'a> {
        Drive {
            socket,
            what,
            count,
            moved: Moved::default(),
            waits_since: None,
        }
    }

    /// Moves up to the count; `step` is told how many have moved and how many may.
    pub(super) fn run(
        &mut self,
        py: Python<'_>,
        mut step: impl FnMut(u64, u64) -> io::Result<Moved> + Send,
    ) -> PyResult<u64> {
        let is_limited = self.socket.blocks && matches!(self.what, Readiness::Writable);
        let _limit = is_limited.then(|| SendLimit::set(self.socket.fd.as_fd(), LOOK_EVERY));
        loop {
            let pause = ending::detach(py, || self.steps(&mut step));
            match pause? {
                Pause::Done => break,
                Pause::Look => py.check_signals()?,
                Pause::WouldBlock if self.moved.n_bytes > 0 => break,
                Pause::WouldBlock => return Err(io::Error::from(io::ErrorKind::WouldBlock).into()),
            }
        }
        Ok(self.moved.n_bytes)
    }

    fn steps(
        &mut self,
        step: &mut (impl FnMut(u64, u64) -> io::Result<Moved> + Send),
    ) -> io::Result<Pause> {
        let begun = Instant::now();
        loop {
            let left = self.count - self.moved.n_bytes;
            if left == 0 {
                return Ok(Pause::Done);
            }
            if begun.elapsed() >= LOOK_EVERY {
                return Ok(Pause::Look);
            }
            // A socket that blocks is waited for here first, where signals are looked at.
            if self.socket.blocks && !self.wait(begun)? {
                return Ok(Pause::Look);
            }
            match step(self.moved.n_bytes, left) {
                Ok(moved) if moved.n_bytes == 0 => return Ok(Pause::Done),
                Ok(moved) => {
                    self.moved.add(moved);
                    self.waits_since = None;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(Pause::Look),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if self.socket.timeout.is_some_and(|t| t.is_zero()) {
                        return Ok(Pause::WouldBlock);
                    }
                    if !self.wait(begun)? {
                        return Ok(Pause::Look);
                    }
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Waits until the socket is ready; `false` where signals are to be looked at first.
    fn wait(&mut self, begun: Instant) -> io::Result<bool> {
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let mut most = LOOK_EVERY.saturating_sub(begun.elapsed());
        if let Some(timeout) = self.socket.timeout {
            let left = timeout.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            most = most.min(left);
        }
        match wait_for(self.socket.fd.as_fd(), self.what, most) {
            Ok(ready) => Ok(ready),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(e) => Err(e),
        }
    }
}
