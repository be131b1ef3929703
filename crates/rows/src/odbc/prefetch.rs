//! Reading ahead: a thread fetches a statement's next blocks while those before become text, objects or columns.
//!
//! ```text
//!             empty blocks ───────────► SQLFetch, SQLFetch, …
//! statement                                          │         its thread
//!             emit ◄─────────── blocks with rows ────┘
//! ```
//!
//! One call is under way at a time, inside the connection's lock as any other; the thread knows the driver alone. It stops by
//! itself behind the last row, behind an error, and where reading on would hold others up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::context::{FetchOutcome, StatementContext, read};
use super::reader::Reader;
use super::unblock::block_signals;
use crate::odbc::block::CurrentBlock;
use crate::source::Budget;

/// Blocks that are fetched when they are asked for, before the first that is fetched ahead: a short result is not worth a thread.
pub(crate) const FIRST_BLOCKS: u64 = 2;

/// So many times as many where a thread has stopped before the last row.
pub(crate) const RESTART_BACKOFF: u64 = 8;

/// Blocks that may wait to be asked for. One would do where both sides are quick; where the asking side waits for the GIL, it
/// finds these.
const WAITING_BLOCKS: usize = 3;

/// A block that was read.
pub(crate) struct PrefetchedBlock {
    block: CurrentBlock,
    pub(crate) ended: FetchOutcome,
}

/// The thread of a statement.
pub(crate) struct Prefetcher {
    empty: Sender<CurrentBlock>,
    outcomes: Receiver<PrefetchedBlock>,
    arrived: Option<PrefetchedBlock>,
    stop: Arc<AtomicBool>,
    /// What rows are read with comes back at the thread's end.
    thread: JoinHandle<Box<Reader>>,
}

impl Prefetcher {
    /// Starts the thread, with blocks like the one that was read before.
    ///
    /// # Errors
    /// The reader, where there is no thread to be had.
    pub(crate) fn start(
        context: StatementContext,
        reader: Box<Reader>,
        before: &CurrentBlock,
        budget: Budget,
    ) -> Result<Prefetcher, Box<Reader>> {
        let (empty, asked) = channel();
        let (given, outcomes) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // Where no thread is made, what it was to own is given back through this.
        let (owner, owned) = channel::<Box<Reader>>();
        let thread = std::thread::Builder::new().name("onecopy-fetch".to_owned());
        let started = thread.spawn(move || {
            block_signals();
            let mut reader = owned.recv().expect("it is sent below");
            while let (false, Ok(block)) = (stopped.load(Relaxed), asked.recv()) {
                if stopped.load(Relaxed) {
                    break;
                }
                let mut block = block;
                let ended = read(&context, &mut reader, &mut block, budget);
                let can_prefetch = ended.can_prefetch(&reader);
                if given.send(PrefetchedBlock { block, ended }).is_err() || !can_prefetch {
                    break;
                }
            }
            reader
        });
        let Ok(thread) = started else {
            return Err(reader);
        };
        // The thread waits for it.
        owner.send(reader).map_err(|refused| refused.0)?;
        for _ in 0..WAITING_BLOCKS {
            // Refused where it has stopped already.
            let _ = empty.send(before.another());
        }
        Ok(Prefetcher {
            empty,
            outcomes,
            arrived: None,
            stop,
            thread,
        })
    }

    /// Whether a block waits, and [`Prefetcher::next`] does not.
    pub(crate) fn is_ready(&mut self) -> bool {
        if self.arrived.is_none() {
            self.arrived = self.outcomes.try_recv().ok();
        }
        self.arrived.is_some()
    }

    /// The next block in place of `block`, which is filled in turn; how its fetch ended. `None`, and `block` as it was, where the
    /// thread has stopped and all that it read was given.
    pub(crate) fn next(&mut self, block: &mut CurrentBlock) -> Option<FetchOutcome> {
        let outcome = match self.arrived.take() {
            Some(outcome) => outcome,
            None => self.outcomes.recv().ok()?,
        };
        // Refused where it has stopped.
        let _ = self.empty.send(std::mem::replace(block, outcome.block));
        Some(outcome.ended)
    }

    /// Stops the thread behind the fetch that is under way. What rows are read with, and the blocks that nobody asked for;
    /// no reader where the thread panicked.
    pub(crate) fn end(self) -> (Option<Box<Reader>>, Vec<PrefetchedBlock>) {
        self.stop.store(true, Relaxed);
        drop(self.empty);
        let reader = self.thread.join().ok();
        let left = self.arrived.into_iter().chain(self.outcomes.try_iter());
        (reader, left.collect())
    }

    /// Forgets the thread, in a process that does not have it.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

/// Whether this thread may run on more than one processor: else there is nothing to gain.
pub(crate) fn is_worth_while() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: the set is zeroed, and filled by the call, which knows its size; 0 is the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) == 0
            && libc::CPU_COUNT(&set) > 1
    }
    #[cfg(not(target_os = "linux"))]
    std::thread::available_parallelism().is_ok_and(|n| n.get() > 1)
}
