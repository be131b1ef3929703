//! [`MetricsArea`]: shared memory in which several server processes keep their counters.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{Metrics, text, word};
use crate::sys::{self, SharedWords};

/// The number of 64-bit words of a slot. It is a multiple of 16, so that no two slots share a cache
/// line.
const SLOT_WORDS: usize = word::N.next_multiple_of(16);
const HEAD_WORDS: usize = 16;
/// The first word of the shared memory. It identifies the layout of the memory, including the
/// number of words per slot. A process in which this crate has another layout rejects the memory.
const MAGIC: u64 = 0x6f6e_6563_0001_0000 | SLOT_WORDS as u64;

/// Slots for the counters of several servers, in memory that processes share through a file
/// descriptor. Clones refer to the same memory.
///
/// Each server claims a slot ([`MetricsArea::slot`]) by a lock on the file of the descriptor. The
/// kernel releases the lock when the process ends, even after a crash. The slot of an ended server
/// keeps its counters, and the next server that claims the slot continues them. The gauges of an
/// ended server (connections, handlers, streams) are not added to the sum. Any process that has the
/// descriptor can compute the sum of all slots at any time.
///
/// ```
/// use onecopy_serve::{Config, MetricsArea};
///
/// let area = MetricsArea::new(4)?;
/// let mut config = Config::default();
/// config.metrics = area.slot()?;
/// assert!(area.text().contains("onecopy_http_connections 0"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MetricsArea(Arc<SharedWords>);

impl MetricsArea {
    /// Creates an area with `n_slots` slots, or with one slot if `n_slots` is 0.
    ///
    /// # Errors
    /// The error of memfd_create(2) or mmap(2).
    pub fn new(n_slots: usize) -> io::Result<MetricsArea> {
        let words = SharedWords::create(HEAD_WORDS + n_slots.max(1) * SLOT_WORDS)?;
        words.words()[0].store(MAGIC, Relaxed);
        Ok(MetricsArea(Arc::new(words)))
    }

    /// Opens the area that another process created, given the file descriptor of the area.
    ///
    /// # Errors
    /// `InvalidData` if the descriptor does not refer to an area, or refers to an area of another
    /// version of this crate. Otherwise the error of mmap(2).
    pub fn of_descriptor(descriptor: OwnedFd) -> io::Result<MetricsArea> {
        let words = SharedWords::of_descriptor(descriptor)?;
        let magic = words.words().first().map(|word| word.load(Relaxed));
        if magic != Some(MAGIC) || words.words().len() < HEAD_WORDS + SLOT_WORDS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(MetricsArea(Arc::new(words)))
    }

    /// Reserves a free slot for the counters of one server of this process.
    ///
    /// # Errors
    /// `QuotaExceeded` if running servers use all slots. The error of open(2) on /proc/self/fd or
    /// of fcntl(2) if the slot cannot be locked.
    pub fn slot(&self) -> io::Result<Metrics> {
        let lock = self.0.open_again()?;
        for at in 0..self.n_slots() {
            if sys::try_lock(&lock, at)? {
                let slot = MetricsSlot {
                    memory: SlotMemory::Shared(self.clone(), at),
                    _lock: Some(lock),
                };
                for gauge in &slot.words()[word::GAUGES..] {
                    gauge.store(0, Relaxed);
                }
                return Ok(Metrics(Arc::new(slot)));
            }
        }
        Err(io::ErrorKind::QuotaExceeded.into())
    }

    /// Returns the metrics, each summed over all slots, as text for Prometheus (exposition format
    /// 0.0.4).
    #[must_use]
    pub fn text(&self) -> String {
        let slots = (0..self.n_slots()).map(|at| {
            // If the system cannot report whether the slot is locked, its gauges are included. A
            // gauge that is too high is noticed, and one that is too low is not.
            let lives = sys::is_locked(self.0.as_fd(), at).unwrap_or(true);
            (self.words_of(at), lives)
        });
        text::of(slots)
    }

    fn n_slots(&self) -> usize {
        (self.0.words().len() - HEAD_WORDS) / SLOT_WORDS
    }

    fn words_of(&self, at: usize) -> &[AtomicU64] {
        let start = HEAD_WORDS + at * SLOT_WORDS;
        &self.0.words()[start..start + word::N]
    }
}

impl AsFd for MetricsArea {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The memory of the counters of one server. This is a slot of a [`MetricsArea`], or private memory
/// of this process.
pub(super) struct MetricsSlot {
    memory: SlotMemory,
    /// The file descriptor whose lock reserves the slot; `None` for private memory of this process.
    _lock: Option<OwnedFd>,
}

enum SlotMemory {
    Own(Box<[AtomicU64]>),
    Shared(MetricsArea, usize),
}

impl MetricsSlot {
    pub(super) fn own() -> MetricsSlot {
        MetricsSlot {
            memory: SlotMemory::Own((0..word::N).map(|_| AtomicU64::new(0)).collect()),
            _lock: None,
        }
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        match &self.memory {
            SlotMemory::Own(words) => words,
            SlotMemory::Shared(area, at) => area.words_of(*at),
        }
    }

    pub(super) fn text(&self) -> String {
        match &self.memory {
            SlotMemory::Own(words) => text::of([(&**words, true)].into_iter()),
            SlotMemory::Shared(area, _) => area.text(),
        }
    }
}
