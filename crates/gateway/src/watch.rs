//! The thread that looks at the time limits of runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::pool::lock;
use crate::run::Run;

/// How soon a run that was stopped is stopped again, until it ends.
const AGAIN: Duration = Duration::from_millis(100);

/// A handle to the thread; it ends when the last handle is dropped.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Owner>);

/// Tells the thread to end.
struct Owner(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Runs by the time they are to be looked at. A run stands in it once, and no longer than it lives: at thousands of
/// requests a second those that ended long before their limit must not pile up.
#[derive(Default)]
struct State {
    runs: BTreeMap<(Instant, Key), Weak<Run>>,
    times: HashMap<Key, Instant>,
    ended: bool,
}

/// A run's address: unique while anything points to it.
type Key = usize;

fn key(run: &Arc<Run>) -> Key {
    Arc::as_ptr(run).addr()
}

impl State {
    /// Plans a look; returns whether it is now the first.
    fn plan(&mut self, when: Instant, key: Key, run: Weak<Run>) -> bool {
        self.remove(key);
        self.times.insert(key, when);
        self.runs.insert((when, key), run);
        self.runs.keys().next() == Some(&(when, key))
    }

    fn remove(&mut self, key: Key) {
        if let Some(when) = self.times.remove(&key) {
            self.runs.remove(&(when, key));
        }
    }
}

impl Watch {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system's, where no thread can be started.
    pub(crate) fn start() -> std::io::Result<Watch> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("gateway-watch".to_owned())
            .spawn(move || theirs.work())?;
        Ok(Watch(Arc::new(Owner(shared))))
    }

    /// Looks at `run` at its deadline.
    pub(crate) fn add(&self, run: &Arc<Run>, deadline: Instant) {
        self.0.0.plan(deadline, run);
    }

    /// Looks at `run`, which was stopped, soon and until it ended.
    pub(crate) fn look_soon(&self, run: &Arc<Run>) {
        self.0.0.plan(Instant::now() + AGAIN, run);
    }

    /// Looks at it no more.
    pub(crate) fn remove(&self, run: &Arc<Run>) {
        lock(&self.0.0.state).remove(key(run));
    }
}

impl Shared {
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
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if when > now {
                let waited = self.changed.wait_timeout(state, when - now);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let run = state.runs.remove(&(when, key));
            state.times.remove(&key);
            // A look may wait for a driver's cancel; new runs must not wait for it.
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
