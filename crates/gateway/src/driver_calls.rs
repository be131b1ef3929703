//! [`DriverCalls`] counts the driver calls in progress for each database. The counters are in
//! memory that the supervisor reads after a driver has crashed this process.

use onecopy_serve::SharedCounters;

/// The kinds of driver calls. Calls of each kind are counted separately for each database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriverCall {
    /// Opening a connection.
    Connect,
    /// Executing a statement, from its start until its last row was read.
    Statement,
}

const N_CALLS: usize = 2;

/// Counters of the driver calls in progress for each database. They are in memory that the serving
/// process shares with its supervisor.
#[derive(Clone, Debug)]
pub struct DriverCalls(SharedCounters);

impl DriverCalls {
    /// Creates the counters for `n_databases`, all 0.
    ///
    /// # Errors
    /// The errors of [`SharedCounters::new`].
    pub fn counters(n_databases: usize) -> std::io::Result<SharedCounters> {
        SharedCounters::new(n_databases * N_CALLS)
    }

    /// Wraps `counters`, which [`DriverCalls::counters`] has created in this process or in its
    /// parent.
    #[must_use]
    pub fn new(counters: SharedCounters) -> DriverCalls {
        DriverCalls(counters)
    }

    /// Counts a call as in progress until the returned value is dropped. `database` is the index of
    /// the called database in the configuration.
    pub(crate) fn mark(&self, database: usize, call: DriverCall) -> CallMark {
        let index = database * N_CALLS + call as usize;
        self.0.increment(index);
        CallMark {
            counters: self.0.clone(),
            index,
        }
    }

    /// Returns the indexes (below `n_databases`) of the databases whose driver may have crashed the
    /// serving process. These are the databases to which connections were being opened; if there
    /// are none, the databases with a statement in progress. Sets all counters to 0.
    #[must_use]
    pub fn take_suspects(&self, n_databases: usize) -> Vec<usize> {
        let with = |call: DriverCall| -> Vec<usize> {
            let count = |database: &usize| self.0.get(database * N_CALLS + call as usize);
            (0..n_databases).filter(|d| count(d) > 0).collect()
        };
        let connecting = with(DriverCall::Connect);
        let suspects = match connecting.is_empty() {
            true => with(DriverCall::Statement),
            false => connecting,
        };
        self.0.clear();
        suspects
    }
}

/// Marks a driver call as in progress: the call is counted until the `CallMark` is dropped. The
/// supervisor can read the count.
#[derive(Debug)]
pub(crate) struct CallMark {
    counters: SharedCounters,
    index: usize,
}

impl Drop for CallMark {
    fn drop(&mut self) {
        self.counters.decrement(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_connects_is_suspected_before_those_with_statements() {
        let calls = DriverCalls::new(DriverCalls::counters(3).unwrap());
        let running = [
            calls.mark(0, DriverCall::Statement),
            calls.mark(2, DriverCall::Statement),
        ];
        let connecting = calls.mark(1, DriverCall::Connect);
        assert_eq!(calls.take_suspects(3), [1]);
        assert_eq!(calls.take_suspects(3), [0; 0], "the counts are cleared");
        std::mem::forget((running, connecting));
        let ended = calls.mark(1, DriverCall::Connect);
        let running = [
            calls.mark(0, DriverCall::Statement),
            calls.mark(2, DriverCall::Statement),
        ];
        drop(ended);
        assert_eq!(calls.take_suspects(3), [0, 2]);
        std::mem::forget(running);
    }
}
