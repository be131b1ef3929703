//! `Prefetcher`: a thread that fetches the next blocks of a statement while earlier blocks are
//! converted to text, objects or columns.
//!
//! ```text
//!             empty blocks ───────────► SQLFetch, SQLFetch, …
//! statement                                          │         its thread
//!             emit ◄─────────── blocks with rows ────┘
//! ```
//!
//! The thread makes each driver call while it holds the connection's lock, so only one driver call
//! of a connection is active at a time. The thread ends after the last row, after an error, and
//! after a fetch that took so long that the next fetch could block other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::context::{FetchOutcome, StatementContext, read};
use super::reader::BlockReader;
use super::unblock::block_signals;
use crate::odbc::block::CurrentBlock;
use crate::source::Budget;

/// The number of blocks at the start of a result that are fetched without a prefetch thread. For a
/// short result, the cost of a thread exceeds its benefit.
pub(crate) const FIRST_BLOCKS: u64 = 2;

/// The factor by which prefetching is delayed after its thread has stopped before the last row of a
/// statement. A thread is started after [`FIRST_BLOCKS`] blocks were fetched without a thread; each
/// stop multiplies this number of blocks by the factor.
pub(crate) const RESTART_BACKOFF: u64 = 8;

/// The largest number of prefetched blocks in the queue. With several blocks, the prefetch thread
/// can continue while the consumer of the blocks waits for the GIL.
const WAITING_BLOCKS: usize = 3;

/// A block that the prefetch thread has filled, with the outcome of the fetch.
pub(crate) struct PrefetchedBlock {
    block: CurrentBlock,
    pub(crate) ended: FetchOutcome,
}

/// The handle with which a statement uses its prefetch thread.
pub(crate) struct Prefetcher {
    empty: Sender<CurrentBlock>,
    outcomes: Receiver<PrefetchedBlock>,
    arrived: Option<PrefetchedBlock>,
    stop: Arc<AtomicBool>,
    /// The handle of the thread; the thread returns the reader when it ends.
    thread: JoinHandle<Box<BlockReader>>,
}

impl Prefetcher {
    /// Starts the prefetch thread. The thread fills new blocks with the same layout as `before`,
    /// which is the block that was fetched last.
    ///
    /// # Errors
    /// Returns the reader if the thread cannot be started.
    pub(crate) fn start(
        context: StatementContext,
        reader: Box<BlockReader>,
        before: &CurrentBlock,
        budget: Budget,
    ) -> Result<Prefetcher, Box<BlockReader>> {
        let (empty, requests) = channel();
        let (given, outcomes) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // The thread receives the reader through this channel, not with its closure. The reader is
        // therefore not lost if no thread can be started.
        let (owner, owned) = channel::<Box<BlockReader>>();
        let thread = std::thread::Builder::new().name("onecopy-fetch".to_owned());
        let started = thread.spawn(move || {
            block_signals();
            let mut reader = owned.recv().expect("it is sent below");
            while let (false, Ok(block)) = (stopped.load(Relaxed), requests.recv()) {
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
        // The thread starts its work when it receives the reader.
        owner.send(reader).map_err(|refused| refused.0)?;
        for _ in 0..WAITING_BLOCKS {
            // The send fails if the thread has ended already.
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

    /// Returns `true` if a filled block is ready, so that [`Prefetcher::next`] does not wait.
    pub(crate) fn is_ready(&mut self) -> bool {
        if self.arrived.is_none() {
            self.arrived = self.outcomes.try_recv().ok();
        }
        self.arrived.is_some()
    }

    /// Replaces `block` by the next filled block, and queues the old block, so that the thread
    /// fills it again. Returns the outcome of the fetch that filled the new block. If the thread
    /// has stopped and no filled block is left, returns `None` and leaves `block` unchanged.
    pub(crate) fn next(&mut self, block: &mut CurrentBlock) -> Option<FetchOutcome> {
        let outcome = match self.arrived.take() {
            Some(outcome) => outcome,
            None => self.outcomes.recv().ok()?,
        };
        // The send fails if the thread has ended.
        let _ = self.empty.send(std::mem::replace(block, outcome.block));
        Some(outcome.ended)
    }

    /// Stops the thread after its current fetch. Returns the reader (`None` if the thread
    /// panicked), and the filled blocks that [`Prefetcher::next`] has not returned.
    pub(crate) fn end(self) -> (Option<Box<BlockReader>>, Vec<PrefetchedBlock>) {
        self.stop.store(true, Relaxed);
        drop(self.empty);
        let reader = self.thread.join().ok();
        let left = self.arrived.into_iter().chain(self.outcomes.try_iter());
        (reader, left.collect())
    }

    /// Leaks the handle of the thread in a forked process, in which the thread does not exist.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

/// Returns `true` if a prefetch thread can save time: if the calling thread may use more than one
/// processor.
pub(crate) fn is_worth_while() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: the set is zeroed, and the call fills it and receives its size; process id 0 is the
    // calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) == 0
            && libc::CPU_COUNT(&set) > 1
    }
    #[cfg(not(target_os = "linux"))]
    std::thread::available_parallelism().is_ok_and(|n| n.get() > 1)
}
