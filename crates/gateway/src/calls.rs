//! Marks of databases whose drivers are in use, kept where a supervisor reads them after a driver
//! has crashed the process.

use onecopy_serve::SharedCounters;

/// The kinds of call counted for each database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Connections being opened.
    Connect,
    /// Statements between their start and their end, with the threads that read for them.
    Statement,
}

const N_CALLS: usize = 2;

/// The driver calls of each database in this process, or in the one that this process has started.
#[derive(Clone, Debug)]
pub struct DriverCalls(SharedCounters);

impl DriverCalls {
    /// The counters for `n_databases`, all 0.
    ///
    /// # Errors
    /// As [`SharedCounters::new`].
    pub fn counters(n_databases: usize) -> std::io::Result<SharedCounters> {
        SharedCounters::new(n_databases * N_CALLS)
    }

    /// Driver calls counted in `counters`, which [`DriverCalls::counters`] has made here or in the
    /// parent process.
    #[must_use]
    pub fn new(counters: SharedCounters) -> DriverCalls {
        DriverCalls(counters)
    }

    /// Counts a call until the mark is dropped. `database` is the index in the configuration.
    pub(crate) fn mark(&self, database: usize, call: Call) -> CallMark {
        let index = database * N_CALLS + call as usize;
        self.0.increment(index);
        CallMark {
            counters: self.0.clone(),
            index,
        }
    }

    /// Returns the databases, by their indexes below `n_databases`, whose drivers may have crashed
    /// the process that counted: those that were connecting, or else those with statements. Sets
    /// all counts to 0.
    #[must_use]
    pub fn take_suspects(&self, n_databases: usize) -> Vec<usize> {
        let with = |call: Call| -> Vec<usize> {
            let count = |database: &usize| self.0.get(database * N_CALLS + call as usize);
            (0..n_databases).filter(|d| count(d) > 0).collect()
        };
        let connecting = with(Call::Connect);
        let suspects = match connecting.is_empty() {
            true => with(Call::Statement),
            false => connecting,
        };
        self.0.clear();
        suspects
    }
}

/// One call under way.
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
            calls.mark(0, Call::Statement),
            calls.mark(2, Call::Statement),
        ];
        let connecting = calls.mark(1, Call::Connect);
        assert_eq!(calls.take_suspects(3), [1]);
        assert_eq!(calls.take_suspects(3), [0; 0], "the counts are cleared");
        std::mem::forget((running, connecting));
        let ended = calls.mark(1, Call::Connect);
        let running = [
            calls.mark(0, Call::Statement),
            calls.mark(2, Call::Statement),
        ];
        drop(ended);
        assert_eq!(calls.take_suspects(3), [0, 2]);
        std::mem::forget(running);
    }
}
