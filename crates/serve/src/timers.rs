//! [`Timers`]: the deadlines of all connections. A connection needs neither a thread nor a system
//! call for its deadlines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// A time in milliseconds that means "no deadline".
pub(crate) const NEVER: u64 = u64::MAX;

/// Converts a time limit to milliseconds.
pub(crate) fn millis(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(NEVER / 4)
}

/// A priority queue of pairs of a deadline (in milliseconds) and a token.
///
/// A connection stores its current deadline in an atomic. Setting a later deadline costs only one
/// store. The connection's entry in this queue is then due too early; when it is due, the entry is
/// added again with the current deadline. Only an earlier deadline needs a new entry. Therefore a
/// busy keep-alive connection changes the queue about once per [`crate::Limits::idle`], and not
/// once per request.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Timers {
    /// Adds an entry. Returns `true` if its deadline is earlier than those of all other entries.
    pub(crate) fn push(&mut self, at_ms: u64, token: u64) -> bool {
        let first = self.first().is_none_or(|f| at_ms < f);
        self.heap.push(Reverse((at_ms, token)));
        first
    }

    /// Returns the earliest deadline of all entries; `None` if there is no entry.
    pub(crate) fn first(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes an entry that is due at `now_ms`, and returns its token. Returns `None` if no entry
    /// is due.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<u64> {
        let Reverse((at, token)) = *self.heap.peek()?;
        if at > now_ms {
            return None;
        }
        self.heap.pop();
        Some(token)
    }
}

/// The timers of the server, and the time at which the thread that waits in epoll stops waiting.
#[derive(Default)]
pub(crate) struct PollTimers {
    pub(crate) timers: Timers,
    /// The time, in milliseconds of the server's clock, at which the current wait in epoll ends if
    /// no event occurs. 0 if no thread waits in epoll.
    pub(crate) poll_until_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_entries_come_in_order_and_no_others() {
        let mut timers = Timers::default();
        assert!(timers.push(30, 3));
        assert!(timers.push(10, 1));
        assert!(!timers.push(20, 2));
        assert_eq!(timers.first(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        assert_eq!(timers.pop_due(20), Some(1));
        assert_eq!(timers.pop_due(20), Some(2));
        assert_eq!(timers.pop_due(20), None);
        assert_eq!(timers.first(), Some(30));
    }
}
