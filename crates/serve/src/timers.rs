//! Deadlines of all connections, without a thread or a system call per connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// A limit in the clock's unit.
pub(crate) fn millis(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(NEVER / 4)
}

/// A sorted set of `(deadline in ms, token)`.
///
/// A connection keeps its true deadline itself, in an atomic, and moves it later for the cost of one store: the entry
/// here is then early, and is put back at the true time when it comes up. Only an earlier deadline needs a new entry. So
/// a busy keep-alive connection touches this heap about once per idle limit, not once per request.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Timers {
    /// Adds an entry, and says whether it is now the first.
    pub(crate) fn push(&mut self, at_ms: u64, token: u64) -> bool {
        let first = self.first().is_none_or(|f| at_ms < f);
        self.heap.push(Reverse((at_ms, token)));
        first
    }

    /// The earliest deadline.
    pub(crate) fn first(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes an entry that is due at `now_ms`.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<u64> {
        let Reverse((at, token)) = *self.heap.peek()?;
        if at > now_ms {
            return None;
        }
        self.heap.pop();
        Some(token)
    }
}

/// Deadlines, and the time up to which the poll under way waits for them.
#[derive(Default)]
pub(crate) struct PollTimers {
    pub(crate) timers: Timers,
    /// When the poll under way returns by itself; 0 while nobody polls.
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
