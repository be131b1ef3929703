//! The ledger: counts of received, converted and copied bytes of text, by stage.
//!
//! An operation has a [`Ledger`] handle, which any thread can use. Code that converts or copies
//! text adds its counts to a local [`Tally`], and adds the tally to the ledger once per batch. The
//! counts are added to the scope of the handle and to all outer scopes.
//!
//! # Definitions
//!
//! Sizes are numbers of bytes in memory before processing: ten units of UTF-16 are 20 bytes. Only
//! text is counted, and values that are written as text, such as decimals. Quotes and commas are
//! not counted. [`Stage::Head`] counts header fields, and [`Stage::Move`] the bytes of files.
//!
//! - **taken**: the text received, counted once, by the first stage. The sum over all stages is the
//!   size of the payload. Neither the converted nor the copied bytes may exceed this size. A later
//!   stage uses the `_again` methods, which do not change this count.
//! - **converted**: text that was written in another encoding or unit width, or searched for
//!   escapes during the write. The body of a JSON string is always converted. A scan that writes
//!   nothing is not counted.
//! - **copied**: text that user space moved unchanged. Examples are ASCII from UTF-8 to a `str`, a
//!   chunk that moves when it grows, and the joined parts of a long value. Copies by the kernel or
//!   the driver are not counted. A borrowed view is not a copy.
//! - **conversions**: the number of converted texts (cells, or parts of a long value).
//!
//! The code that writes the bytes also counts them. [`Tally::decoded`] and [`Tally::encoded`]
//! decide between converted and copied.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::convert::Made;
use crate::{Measured, Units};

/// A stage of the processing of text, such as fetching or encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// The transfer from the driver or the socket to a block of rows. Bytes count as copied if the
    /// buffer of a long value grows, or if an incomplete row is moved to the next buffer.
    Fetch,
    /// The conversion of cells to a `str`.
    Decode,
    /// The conversion of cells or a `str` to output bytes (JSON, CSV, BSON).
    Encode,
    /// The conversion of a `str` to the buffer of a statement's parameter.
    Parameters,
    /// The conversion of HTTP response headers to output bytes.
    Head,
    /// The bytes of files that are sent to a socket or copied to another file. Bytes that the
    /// operating system's kernel moves are taken, but not copied.
    Move,
}

impl Stage {
    /// All stages in their order.
    pub const ALL: [Stage; 6] = [
        Stage::Fetch,
        Stage::Decode,
        Stage::Encode,
        Stage::Parameters,
        Stage::Head,
        Stage::Move,
    ];

    /// Returns the name of the stage for users.
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

/// The counts of one stage, in bytes of the original text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The number of received bytes, without those that an earlier stage received.
    pub taken: u64,
    /// The number of bytes converted, or searched for escapes while they were written.
    pub converted: u64,
    /// The number of bytes copied unchanged.
    pub copied: u64,
    /// The number of converted texts (cells, or parts of a long value).
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

/// The counts of one batch of texts at one stage. They are added to a [`Ledger`] at the end of the
/// batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally(Entry);

impl Tally {
    /// Counts a text of `len_bytes` bytes that was received and converted.
    #[inline]
    pub fn converted(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
        self.0.converted += len_bytes as u64;
        self.0.conversions += 1;
    }

    /// Counts `n_texts` texts that were received and converted. They have `len_bytes` bytes in
    /// total.
    #[inline]
    pub fn converted_many(&mut self, n_texts: u64, len_bytes: u64) {
        self.0.taken += len_bytes;
        self.0.converted += len_bytes;
        self.0.conversions += n_texts;
    }

    /// Counts a text of `len_bytes` bytes that was received and copied unchanged.
    #[inline]
    pub fn copied(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
        self.0.copied += len_bytes as u64;
    }

    /// Counts a text of `len_bytes` bytes whose conversion was already in a cache.
    #[inline]
    pub fn found(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
    }

    /// Counts bytes that the operating system's kernel moved, as taken only.
    #[inline]
    pub fn moved(&mut self, len_bytes: u64) {
        self.0.taken += len_bytes;
    }

    /// Counts a text that was converted to a `str`. If the `str` has the encoding of the text, the
    /// text counts as copied.
    #[inline]
    pub fn decoded(&mut self, text: &Measured<'_>) {
        if text.is_copied() {
            self.copied(text.len_bytes());
        } else {
            self.converted(text.len_bytes());
        }
    }

    /// Counts a text of `len_bytes` bytes that was converted to a `str` in one pass. Bytes in a
    /// discarded `str` of too narrow a kind also count as copied.
    pub fn decoded_large<S>(&mut self, len_bytes: usize, made: &Made<S>) {
        if made.is_copied {
            self.copied(len_bytes);
        } else {
            self.converted(len_bytes);
        }
        self.copied_again(made.in_vain_bytes);
    }

    /// Counts a text that was written as UTF-8 without escapes. UTF-8 text counts as copied, and
    /// any other text as converted.
    #[inline]
    pub fn encoded(&mut self, units: Units<'_>) {
        match units {
            Units::Utf8(u) => self.copied(u.len()),
            units => self.converted(units.len_bytes()),
        }
    }

    /// Counts a second conversion of bytes, which an earlier stage has counted as received.
    #[inline]
    pub fn converted_again(&mut self, len_bytes: usize) {
        self.0.converted += len_bytes as u64;
        self.0.conversions += 1;
    }

    /// Counts a second copy of bytes, which an earlier stage has counted as received.
    #[inline]
    pub fn copied_again(&mut self, len_bytes: usize) {
        self.0.copied += len_bytes as u64;
    }

    /// Adds the counts to `stage` in `ledger`, and resets them to 0.
    pub fn enter(&mut self, ledger: &Ledger, stage: Stage) {
        if self.0 != Entry::default() {
            ledger.enter(stage, &self.0);
            self.0 = Entry::default();
        }
    }

    /// Returns the counts that [`Tally::enter`] has not yet added to a ledger.
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

/// A handle to a scope, which counts bytes of text. The default handle has no scope and counts
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Option<Arc<Scope>>);

impl Ledger {
    /// Returns a ledger that counts nothing.
    #[must_use]
    pub fn off() -> Ledger {
        Ledger(None)
    }

    /// Creates a scope inside the scope of `outer`. Its counts are also added to `outer`.
    #[must_use]
    pub fn within(outer: &Ledger) -> Ledger {
        Ledger(Some(Arc::new(Scope {
            stages: Default::default(),
            outer: outer.clone(),
        })))
    }

    /// Returns `true` if the handle has a scope.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds `entry` to the counts of `stage`, in this scope and in all outer scopes.
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

    /// Returns the counts of `stage` in this scope.
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

    /// Returns the sum of all stages.
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
