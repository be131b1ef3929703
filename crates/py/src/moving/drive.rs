//! `Drive`: the loop of a file transfer, without the GIL.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use onecopy_files::sendfile::{Moved, Readiness, SendLimit, wait_for};
use pyo3::prelude::*;

use crate::raw::gil;

use super::ends::PlainSocket;

/// The maximum time between two checks for signals.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A file transfer to or from a socket. Each step transfers some bytes.
pub(super) struct Drive<'a> {
    socket: &'a PlainSocket,
    what: Readiness,
    count: u64,
    pub(super) moved: Moved,
    /// The start of the current wait for the socket.
    waits_since: Option<Instant>,
}

/// The reason for a pause of the transfer.
enum Pause {
    /// All bytes were transferred, or the source is empty.
    Done,
    /// The caller must check for signals.
    Look,
    /// The socket is non-blocking and not ready.
    WouldBlock,
}

impl<'a> Drive<'a> {
    pub(super) fn new(socket: &'a PlainSocket, what: Readiness, count: u64) -> Drive<'a> {
        Drive {
            socket,
            what,
            count,
            moved: Moved::default(),
            waits_since: None,
        }
    }

    /// Calls `step` with the numbers of transferred and remaining bytes, until none remain. Returns
    /// earlier if a non-blocking socket is not ready.
    pub(super) fn run(
        &mut self,
        py: Python<'_>,
        mut step: impl FnMut(u64, u64) -> io::Result<Moved> + Send,
    ) -> PyResult<u64> {
        let is_limited = self.socket.blocks && matches!(self.what, Readiness::Writable);
        let _limit = is_limited.then(|| SendLimit::set(self.socket.fd.as_fd(), LOOK_EVERY));
        loop {
            let pause = gil::detach(py, || self.steps(&mut step));
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
            // Only `wait` checks for signals, so a blocking socket waits here first.
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

    /// Returns `true` when the socket is ready, and `false` when signals must be checked.
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
