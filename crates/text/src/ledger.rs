//! The ledger: how many bytes of text were taken in, converted and copied, by stage.
//!
//! An operation carries a [`Ledger`] handle. Where payload is converted or copied, a [`Tally`] is kept on the
//! spot and entered once per batch (a block, a chunk), so the cost is a few additions per cell. A handle can go to
//! any thread: the counts land in the scope that started the work, and in every scope around it.
//!
//! # What counts as what
//!
//! All sizes are bytes of text as its owner holds it, before it is handled: 20 bytes for ten units of UTF-16, whatever
//! they become. Only text (and what is written as text: digits of a decimal) is counted, no headers, quotes, commas.
//!
//! There is no stage behind the chunk: the kernel takes it from where it was filled, and nothing is left to count. (The
//! witness sees it, `tests/copies`.)
//!
//! - **taken**: the text entered, noted once, by the first stage that touches it. The sum over the stages is then the
//!   payload, the 1 in "converted ≤ 1 × payload and copied ≤ 1 × payload". A later stage that handles the same text uses
//!   the `_again` methods, which leave it alone.
//! - **converted**: read and written in another form: another encoding, another width of units (UTF-16 to a `str` of one
//!   byte a character), or with escapes looked for on the way (a JSON body is converted even where no byte changed). A
//!   look that writes nothing (validation, measuring) counts as nothing: it is no second conversion, and no copy.
//! - **copied**: moved by user space as it is: UTF-8 that is ASCII to a `str`, UTF-16 to a `str` of kind 2, pieces of a
//!   long value gathered, a chunk that moves because it grows, bytes joined for a caller who wants them in one. What the
//!   kernel or the driver copies is theirs and not here; a borrowed view is no copy.
//! - **conversions**: how many texts (cells, parts of a long one) were converted.
//!
//! Whoever writes the bytes notes them, at the place that writes; [`Tally::decoded`] and [`Tally::encoded`] know which
//! of the two it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::convert::Made;
use crate::{Measured, Units};

/// Where text was handled on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Driver to block: the driver writes there itself, so what counts here is what moves where the place of gathered long
    /// values grows.
    Fetch,
    /// Cell to Python `str`.
    Decode,
    /// Cell or `str` to bytes that go out (JSON, CSV, BSON).
    Encode,
    /// Python `str` to a parameter buffer.
    Parameters,
    /// The head of an HTTP answer: its fields, into the bytes that go out.
    Head,
    /// Bytes of files on their way to a socket or another file, whatever they are. Those that the kernel moves are taken, and nothing
    /// else.
    Move,
}

impl Stage {
    /// Every stage, in the order text passes them.
    pub const ALL: [Stage; 6] = [
        Stage::Fetch,
        Stage::Decode,
        Stage::Encode,
        Stage::Parameters,
        Stage::Head,
        Stage::Move,
    ];

    /// The name shown to users.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::Fetch => "fetch",
            Stage::Decode => "decode",
            Stage::Encode => "encode",
            Stage::Parameters => "parameters",
            Stage::Head => "head",
            Stage::Move => "move",
        }
    }
}

/// Counts of one stage. All sizes are bytes of text as its owner held it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Bytes of text that entered at this stage.
    pub taken: u64,
    /// Bytes of it that were converted to another encoding, or scanned for escapes on their way.
    pub converted: u64,
    /// Bytes of it that were copied with no change.
    pub copied: u64,
    /// How many texts were converted.
    pub conversions: u64,
}

impl Entry {
    fn add(&mut self, other: &Entry) {
        self.taken += other.taken;
        self.converted += other.converted;
        self.copied += other.copied;
        self.conversions += other.conversions;
    }
}

/// Counts of one batch on one stage: kept without atomics, entered into a [`Ledger`] when the batch ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally(Entry);

impl Tally {
    /// Notes a text of `len_bytes` that was converted.
    #[inline]
    pub fn converted(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
        self.0.converted += len_bytes as u64;
        self.0.conversions += 1;
    }

    /// Notes `n_texts` of `len_bytes` in all that were converted.
    #[inline]
    pub fn converted_many(&mut self, n_texts: u64, len_bytes: u64) {
        self.0.taken += len_bytes;
        self.0.converted += len_bytes;
        self.0.conversions += n_texts;
    }

    /// Notes a text of `len_bytes` that was copied as it is.
    #[inline]
    pub fn copied(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
        self.0.copied += len_bytes as u64;
    }

    /// Notes a text of `len_bytes` for which stands already what it would have become.
    #[inline]
    pub fn found(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
    }

    /// Notes bytes that the kernel moved: taken, and not touched here.
    #[inline]
    pub fn moved(&mut self, len_bytes: u64) {
        self.0.taken += len_bytes;
    }

    /// Notes a text on its way into a `str`: a copy where its units match the `str`'s already, else a conversion.
    #[inline]
    pub fn decoded(&mut self, text: &Measured<'_>) {
        if text.is_copied() {
            self.copied(text.len_bytes());
        } else {
            self.converted(text.len_bytes());
        }
    }

    /// Notes a text of `len_bytes` that was made a `str` in one pass.
    pub fn decoded_large<S>(&mut self, len_bytes: usize, made: &Made<S>) {
        if made.is_copied {
            self.copied(len_bytes);
        } else {
            self.converted(len_bytes);
        }
        self.copied_again(made.in_vain_bytes);
    }

    /// Notes a text on its way to plain UTF-8: a copy where it was UTF-8, else a conversion.
    #[inline]
    pub fn encoded(&mut self, units: Units<'_>) {
        match units {
            Units::Utf8(u) => self.copied(u.len()),
            units => self.converted(units.len_bytes()),
        }
    }

    /// Notes a conversion of bytes that an earlier stage took in (a long value that was gathered first).
    #[inline]
    pub fn converted_again(&mut self, len_bytes: usize) {
        self.0.converted += len_bytes as u64;
        self.0.conversions += 1;
    }

    /// Notes a copy of bytes that were counted as taken in before: the extra copies that must not be.
    #[inline]
    pub fn copied_again(&mut self, len_bytes: usize) {
        self.0.copied += len_bytes as u64;
    }

    /// Enters the counts into `ledger` under `stage` and starts anew.
    pub fn enter(&mut self, ledger: &Ledger, stage: Stage) {
        if self.0 != Entry::default() {
            ledger.enter(stage, &self.0);
            self.0 = Entry::default();
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn entry(&self) -> Entry {
        self.0
    }
}

#[derive(Debug, Default)]
struct Counters {
    taken: AtomicU64,
    converted: AtomicU64,
    copied: AtomicU64,
    conversions: AtomicU64,
}

#[derive(Debug, Default)]
struct Scope {
    stages: [Counters; Stage::ALL.len()],
    outer: Ledger,
}

/// A handle to the scope whose text is counted; the default handle counts nothing.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Option<Arc<Scope>>);

impl Ledger {
    /// A handle that counts nothing and costs a branch.
    #[must_use]
    pub fn off() -> Ledger {
        Ledger(None)
    }

    /// A new scope inside `outer`: what it counts, `outer` counts too.
    #[must_use]
    pub fn within(outer: &Ledger) -> Ledger {
        Ledger(Some(Arc::new(Scope {
            stages: Default::default(),
            outer: outer.clone(),
        })))
    }

    /// Whether anything is counted.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds `entry` to `stage`, here and in every scope around.
    pub fn enter(&self, stage: Stage, entry: &Entry) {
        let mut scope = self.0.as_deref();
        while let Some(s) = scope {
            let c = &s.stages[stage as usize];
            c.taken.fetch_add(entry.taken, Relaxed);
            c.converted.fetch_add(entry.converted, Relaxed);
            c.copied.fetch_add(entry.copied, Relaxed);
            c.conversions.fetch_add(entry.conversions, Relaxed);
            scope = s.outer.0.as_deref();
        }
    }

    /// The counts of one stage so far.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> Entry {
        self.0.as_deref().map_or_else(Entry::default, |s| {
            let c = &s.stages[stage as usize];
            Entry {
                taken: c.taken.load(Relaxed),
                converted: c.converted.load(Relaxed),
                copied: c.copied.load(Relaxed),
                conversions: c.conversions.load(Relaxed),
            }
        })
    }

    /// The sum over all stages.
    #[must_use]
    pub fn total(&self) -> Entry {
        let mut sum = Entry::default();
        for stage in Stage::ALL {
            sum.add(&self.stage(stage));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_scope_counts_in_the_outer_too() {
        let outer = Ledger::within(&Ledger::off());
        let inner = Ledger::within(&outer);
        let mut tally = Tally::default();
        tally.converted(10);
        tally.copied(5);
        tally.enter(&inner, Stage::Decode);
        tally.copied(1);
        tally.enter(&outer, Stage::Encode);
        assert_eq!(
            inner.total(),
            Entry {
                taken: 15,
                converted: 10,
                copied: 5,
                conversions: 1
            }
        );
        assert_eq!(
            outer.total(),
            Entry {
                taken: 16,
                converted: 10,
                copied: 6,
                conversions: 1
            }
        );
        assert_eq!(outer.stage(Stage::Encode).copied, 1);
    }

    #[test]
    fn text_that_matches_already_is_copied_and_other_text_converted() {
        let copied = |units| {
            let mut tally = Tally::default();
            tally.decoded(&crate::measure(units, crate::Policy::Strict).unwrap());
            let entry = tally.entry();
            assert_eq!(entry.taken, units.len_bytes() as u64);
            assert_eq!(entry.taken, entry.copied + entry.converted);
            entry.copied > 0
        };
        assert!(copied(Units::Utf8(b"ascii")));
        assert!(!copied(Units::Utf8("Zürich".as_bytes())));
        assert!(copied(Units::Latin1(b"Z\xFCrich")));
        assert!(!copied(Units::Utf16(&[0x61])));
        assert!(copied(Units::Utf16(&[0x416])));
        assert!(!copied(Units::Utf16(&[0xD83D, 0xDE00])));
        assert!(copied(Units::Utf32(&[0x1F600])));
        assert!(!copied(Units::Utf32(&[0x61])));
    }

    #[test]
    fn text_that_passes_two_stages_is_taken_in_once() {
        let ledger = Ledger::within(&Ledger::off());
        let mut tally = Tally::default();
        tally.copied(100);
        tally.enter(&ledger, Stage::Fetch);
        tally.converted_again(100);
        tally.enter(&ledger, Stage::Decode);
        let total = ledger.total();
        assert_eq!(
            (total.taken, total.converted, total.copied),
            (100, 100, 100)
        );
    }

    #[test]
    fn counts_of_another_thread_land_in_the_scope_that_started_the_work() {
        let ledger = Ledger::within(&Ledger::off());
        let handle = ledger.clone();
        std::thread::spawn(move || {
            let mut tally = Tally::default();
            tally.converted(7);
            tally.enter(&handle, Stage::Encode);
        })
        .join()
        .expect("the thread only counts");
        assert_eq!(ledger.stage(Stage::Encode).converted, 7);
    }
}
