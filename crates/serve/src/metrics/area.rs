//! Memory for the counters of many servers, which processes share by a descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{Metrics, text, word};
use crate::sys::{self, SharedWords};

/// Words of a place, and of the head before the first one. A place has cache lines of its own.
const PLACE_WORDS: usize = word::N.next_multiple_of(16);
const HEAD_WORDS: usize = 16;
/// The first word: what it is, and how many words a place has, so that another version's is not taken for it.
const MAGIC: u64 = 0x6f6e_6563_0001_0000 | PLACE_WORDS as u64;

/// Places for the counters of many servers, in memory that processes share by its descriptor. Clones are the same area.
///
/// Each server takes a place ([`MetricsArea::place`]) and holds it by a lock on the descriptor's file, which goes with its process
/// whatever ends it. A place whose server has ended keeps its counters, and the next server that takes it counts on; what it said
/// of the present (connections, handlers, streams) counts no more. So whoever has the descriptor can tell the sum at any time.
///
/// ```
/// use onecopy_serve::{Config, MetricsArea};
///
/// let area = MetricsArea::new(4)?;
/// let mut config = Config::default();
/// config.metrics = area.place()?;
/// assert!(area.text().contains("onecopy_http_connections 0"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MetricsArea(Arc<SharedWords>);

impl MetricsArea {
    /// An area for `n_places` servers at once, at least one.
    ///
    /// # Errors
    /// What memfd_create(2) and mmap(2) say.
    pub fn new(n_places: usize) -> io::Result<MetricsArea> {
        let words = SharedWords::create(HEAD_WORDS + n_places.max(1) * PLACE_WORDS)?;
        words.words()[0].store(MAGIC, Relaxed);
        Ok(MetricsArea(Arc::new(words)))
    }

    /// The area that another process has made, by its descriptor.
    ///
    /// # Errors
    /// `InvalidData`: it is none, or of another version of this crate. What mmap(2) says.
    pub fn of_descriptor(descriptor: OwnedFd) -> io::Result<MetricsArea> {
        let words = SharedWords::of_descriptor(descriptor)?;
        let magic = words.words().first().map(|word| word.load(Relaxed));
        if magic != Some(MAGIC) || words.words().len() < HEAD_WORDS + PLACE_WORDS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(MetricsArea(Arc::new(words)))
    }

    /// Takes a place for a server of this process.
    ///
    /// # Errors
    /// `QuotaExceeded`: all places have servers that live. What opening /proc/self/fd says.
    pub fn place(&self) -> io::Result<Metrics> {
        let lock = self.0.open_again()?;
        for at in 0..self.n_places() {
            if sys::try_lock(&lock, at)? {
                let place = Place {
                    memory: Memory::Shared(self.clone(), at),
                    _lock: Some(lock),
                };
                for gauge in &place.words()[word::GAUGES..] {
                    gauge.store(0, Relaxed);
                }
                return Ok(Metrics(Arc::new(place)));
            }
        }
        Err(io::ErrorKind::QuotaExceeded.into())
    }

    /// The sum of all places as text for Prometheus (exposition format 0.0.4).
    #[must_use]
    pub fn text(&self) -> String {
        let places = (0..self.n_places()).map(|at| {
            // Where the system does not say, its gauges count: too many is seen, too few is not.
            let lives = sys::is_locked(self.0.as_fd(), at).unwrap_or(true);
            (self.words_of(at), lives)
        });
        text::of(places)
    }

    fn n_places(&self) -> usize {
        (self.0.words().len() - HEAD_WORDS) / PLACE_WORDS
    }

    fn words_of(&self, at: usize) -> &[AtomicU64] {
        let start = HEAD_WORDS + at * PLACE_WORDS;
        &self.0.words()[start..start + word::N]
    }
}

impl AsFd for MetricsArea {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The words that one server counts in.
pub(super) struct Place {
    memory: Memory,
    /// Its lock is held for as long as this descriptor is open.
    _lock: Option<OwnedFd>,
}

enum Memory {
    Own(Box<[AtomicU64]>),
    Shared(MetricsArea, usize),
}

impl Place {
    pub(super) fn own() -> Place {
        Place {
            memory: Memory::Own((0..word::N).map(|_| AtomicU64::new(0)).collect()),
            _lock: None,
        }
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        match &self.memory {
            Memory::Own(words) => words,
            Memory::Shared(area, at) => area.words_of(*at),
        }
    }

    pub(super) fn text(&self) -> String {
        match &self.memory {
            Memory::Own(words) => text::of([(&**words, true)].into_iter()),
            Memory::Shared(area, _) => area.text(),
        }
    }
}
