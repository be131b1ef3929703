//! [`Watch`]: the thread that stops each run at its time limit. A run is one execution of a query
//! for one request.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use onecopy_wire::lock::{lock, unpoisoned};

use crate::query_source::Run;

/// The time between two cancels of a run that was stopped and has not ended yet.
const AGAIN: Duration = Duration::from_millis(100);

/// A handle to the thread that enforces the time limits of runs. Clones share the thread, which
/// ends when the last handle is dropped.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Owner>);

/// The owner of the thread that enforces the time limits. When the last [`Watch`] is dropped, the
/// owner is dropped too, which ends the thread.
struct Owner(Arc<DeadlineQueue>);

#[derive(Default)]
struct DeadlineQueue {
    state: Mutex<State>,
    changed: Condvar,
}

/// The runs in progress, sorted by the time of their next check. Each run is in the queue once, and
/// is removed when it ends. If it were removed only at its deadline, ended runs would accumulate at
/// thousands of requests per second.
#[derive(Default)]
struct State {
    runs: BTreeMap<(Instant, DeadlineKey), Weak<Run>>,
    times: HashMap<DeadlineKey, Instant>,
    ended: bool,
}

/// The address of a [`Run`], which identifies the run as long as a reference to it (even a weak
/// one) exists.
type DeadlineKey = usize;

fn key(run: &Arc<Run>) -> DeadlineKey {
    Arc::as_ptr(run).addr()
}

impl State {
    /// Sets the time of the next check of `run` to `when`. Returns `true` if this check is the
    /// earliest one, so that the thread must be woken to wait for it.
    fn plan(&mut self, when: Instant, key: DeadlineKey, run: Weak<Run>) -> bool {
        self.remove(key);
        self.times.insert(key, when);
        self.runs.insert((when, key), run);
        self.runs.keys().next() == Some(&(when, key))
    }

    fn remove(&mut self, key: DeadlineKey) {
        if let Some(when) = self.times.remove(&key) {
            self.runs.remove(&(when, key));
        }
    }
}

impl Watch {
    /// Starts the thread that enforces time limits.
    ///
    /// # Errors
    /// The error of the system if no thread can be started.
    pub(crate) fn start() -> std::io::Result<Watch> {
        let shared = Arc::new(DeadlineQueue::default());
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("gateway-watch".to_owned())
            .spawn(move || theirs.work())?;
        Ok(Watch(Arc::new(Owner(shared))))
    }

    /// Makes the thread check `run`, an execution of a query, at its deadline.
    pub(crate) fn add(&self, run: &Arc<Run>, deadline: Instant) {
        self.0.0.plan(deadline, run);
    }

    /// Makes the thread check a run that was stopped. The first check is after the time [`AGAIN`];
    /// further checks follow at this interval until the run has ended.
    pub(crate) fn look_soon(&self, run: &Arc<Run>) {
        self.0.0.plan(Instant::now() + AGAIN, run);
    }

    /// Removes `run`, an execution of a query, from the queue. The thread then no longer checks it.
    pub(crate) fn remove(&self, run: &Arc<Run>) {
        lock(&self.0.0.state).remove(key(run));
    }
}

impl DeadlineQueue {
    fn plan(&self, when: Instant, run: &Arc<Run>) {
        if lock(&self.state).plan(when, key(run), Arc::downgrade(run)) {
            self.changed.notify_one();
        }
    }

    fn work(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            let now = Instant::now();
            let Some((&(when, key), _)) = state.runs.first_key_value() else {
                let waited = self.changed.wait(state);
                state = unpoisoned(waited);
                continue;
            };
            if when > now {
                let waited = self.changed.wait_timeout(state, when - now);
                state = unpoisoned(waited).0;
                continue;
            }
            let run = state.runs.remove(&(when, key));
            state.times.remove(&key);
            // The lock is released first, because a check may wait for the cancel of a driver, and
            // new runs must not wait for that.
            drop(state);
            if let Some(run) = run.and_then(|weak| weak.upgrade())
                && let Some(next) = run.look(now, AGAIN)
            {
                self.plan(next, &run);
            }
            state = lock(&self.state);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        lock(&self.0.state).ended = true;
        self.0.changed.notify_one();
    }
}
