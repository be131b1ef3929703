//! The thread that looks at the time limits of runs.

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

#[derive(Default)]
struct State {
    runs: Vec<(Instant, Weak<Run>)>,
    ended: bool,
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

    /// Looks at `run` when its time is up.
    pub(crate) fn add(&self, run: &Arc<Run>) {
        // Long before the first deadline the thread asks the run when that is.
        self.put(Instant::now(), Arc::downgrade(run));
    }

    /// Looks at `run`, which was stopped, until it ended.
    pub(crate) fn look_soon(&self, run: &Arc<Run>) {
        self.put(Instant::now() + AGAIN, Arc::downgrade(run));
    }

    fn put(&self, when: Instant, run: Weak<Run>) {
        lock(&self.0.0.state).runs.push((when, run));
        self.0.0.changed.notify_one();
    }
}

impl Shared {
    fn work(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            let now = Instant::now();
            let (due, later): (Vec<_>, Vec<_>) =
                state.runs.drain(..).partition(|(when, _)| *when <= now);
            state.runs = later;
            if !due.is_empty() {
                // A look may wait for a driver's cancel; new runs must not wait for it.
                drop(state);
                let next: Vec<_> = due
                    .into_iter()
                    .filter_map(|(_, weak)| {
                        let when = weak.upgrade()?.look(now, AGAIN)?;
                        Some((when, weak))
                    })
                    .collect();
                state = lock(&self.state);
                state.runs.extend(next);
                continue;
            }
            let next = state.runs.iter().map(|(when, _)| *when).min();
            state = match next {
                None => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(when) => {
                    let wait = when.saturating_duration_since(now);
                    let waited = self.changed.wait_timeout(state, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        lock(&self.0.state).ended = true;
        self.0.changed.notify_one();
    }
}
