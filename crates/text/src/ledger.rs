//! The ledger: counts of the bytes of text that were received, converted and copied, by stage.
//!
//! An operation carries a [`Ledger`] handle. Code that converts or copies text adds its counts to a
//! local [`Tally`], and adds the tally to the ledger once per batch (a block of rows or a chunk of
//! output). The cost is a few additions per cell. A handle can be used in any thread. Its counts
//! are added to the scope to which it belongs, and to every scope that contains that scope.
//!
//! # Definitions
//!
//! All sizes are the numbers of bytes that the text has in memory before it is processed. For
//! example, ten units of UTF-16 are 20 bytes, regardless of the encoding to which they are
//! converted. The counted bytes are those of text, and of values that are written as text, such as
//! the digits of a decimal. Quotes and commas are not counted. [`Stage::Head`] counts header
//! fields, and [`Stage::Move`] the bytes of files.
//!
//! Sending a filled chunk is not counted, because the operating system's kernel reads the chunk in
//! place, without a further copy in user space. (The independent counter of `tests/copies` verifies
//! this.)
//!
//! - **taken**: the text received, counted once, by the first stage that handles it. The sum over
//!   all stages is therefore the size of the payload. The converted bytes must not exceed this
//!   size, and neither must the copied bytes. A later stage that handles the same text uses the
//!   `_again` methods, which do not change this count.
//! - **converted**: text that was read and written in another encoding, or with another width of
//!   units (UTF-16 to a `str` of one byte per character). Text that is searched for escapes while
//!   it is written also counts as converted. Therefore, the body of a JSON string always does, even
//!   if no byte changed. A scan that writes nothing (validation, measuring) is neither a conversion
//!   nor a copy.
//! - **copied**: text that user space moved unchanged. Examples are ASCII in UTF-8 to a `str`,
//!   UTF-16 to a `str` of kind 2, and a chunk that moves when it grows. Other examples are the
//!   parts of a long value that are gathered, and bytes that are joined for a caller that needs
//!   them contiguous. Copies by the kernel or the driver are not counted. A borrowed view is not a
//!   copy.
//! - **conversions**: the number of texts (cells, or parts of a long value) that were converted.
//!
//! The code that writes the bytes also counts them. [`Tally::decoded`] and [`Tally::encoded`]
//! decide whether the bytes count as converted or as copied.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::convert::Made;
use crate::{Measured, Units};

/// A stage of the processing of text, such as fetching or encoding. Each stage has its own counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// The transfer from the driver or the socket directly to a block of rows. Bytes count as
    /// copied in two cases: a long value is moved because its buffer has to grow, or an incomplete
    /// row is moved to the next buffer.
    Fetch,
    /// The conversion of a cell to a Python `str`.
    Decode,
    /// The conversion of a cell or a `str` to output bytes (JSON, CSV, BSON).
    Encode,
    /// The conversion of a Python `str` to the buffer of a statement's parameter.
    Parameters,
    /// The conversion of the header fields of an HTTP response to output bytes.
    Head,
    /// Bytes of files that are sent to a socket or copied to another file, regardless of their
    /// content. Bytes that the operating system's kernel moves are counted as taken, but not as
    /// copied.
    Move,
}

impl Stage {
    /// All stages, in the order in which text passes through them.
    pub const ALL: [Stage; 6] = [
        Stage::Fetch,
        Stage::Decode,
        Stage::Encode,
        Stage::Parameters,
        Stage::Head,
        Stage::Move,
    ];

    /// Returns the name of the stage, as it is shown to users.
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

/// The counts of one stage. All sizes are in bytes of the text in its original encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The number of bytes of text that were received in this stage. Bytes that an earlier stage
    /// has received are not counted again.
    pub taken: u64,
    /// The number of received bytes that were converted to another encoding, or searched for
    /// escapes while they were written.
    pub converted: u64,
    /// The number of received bytes that were copied unchanged.
    pub copied: u64,
    /// The number of texts (cells, or parts of a long value) that were converted.
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

/// The counts of one batch of texts at one stage (such as the conversion), in plain integers
/// instead of atomics. They are added to a [`Ledger`] at the end of the batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally(Entry);

impl Tally {
    /// Adds a text of `len_bytes` bytes to the counts: the text was received (`taken`), and
    /// converted.
    #[inline]
    pub fn converted(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
        self.0.converted += len_bytes as u64;
        self.0.conversions += 1;
    }

    /// Adds `n_texts` texts to the counts: the texts have `len_bytes` bytes in total, and were
    /// received (`taken`) and converted.
    #[inline]
    pub fn converted_many(&mut self, n_texts: u64, len_bytes: u64) {
        self.0.taken += len_bytes;
        self.0.converted += len_bytes;
        self.0.conversions += n_texts;
    }

    /// Adds a text of `len_bytes` bytes to the counts: the text was received (`taken`), and copied
    /// without a conversion.
    #[inline]
    pub fn copied(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
        self.0.copied += len_bytes as u64;
    }

    /// Adds a text of `len_bytes` bytes to the counts: the text was received (`taken`), but not
    /// converted, because the result of its conversion was already in a cache.
    #[inline]
    pub fn found(&mut self, len_bytes: usize) {
        self.0.taken += len_bytes as u64;
    }

    /// Counts bytes that the operating system's kernel moved. They are added to `taken`, but not to
    /// `copied`, because this process did not read or write them.
    #[inline]
    pub fn moved(&mut self, len_bytes: u64) {
        self.0.taken += len_bytes;
    }

    /// Counts a text that was converted to a `str`. The text counts as copied if the characters of
    /// the `str` are stored in the same encoding as the text, and otherwise as converted.
    #[inline]
    pub fn decoded(&mut self, text: &Measured<'_>) {
        if text.is_copied() {
            self.copied(text.len_bytes());
        } else {
            self.converted(text.len_bytes());
        }
    }

    /// Counts a text of `len_bytes` bytes that was converted to a `str` in one pass. Bytes that
    /// were first written to a `str` of too narrow a kind, which was then discarded, also count as
    /// copied.
    pub fn decoded_large<S>(&mut self, len_bytes: usize, made: &Made<S>) {
        if made.is_copied {
            self.copied(len_bytes);
        } else {
            self.converted(len_bytes);
        }
        self.copied_again(made.in_vain_bytes);
    }

    /// Counts a text that was written as UTF-8 without escapes. A text that was UTF-8 already
    /// counts as copied, and any other text as converted.
    #[inline]
    pub fn encoded(&mut self, units: Units<'_>) {
        match units {
            Units::Utf8(u) => self.copied(u.len()),
            units => self.converted(units.len_bytes()),
        }
    }

    /// Counts a second conversion of bytes. An earlier stage has already counted these bytes as
    /// received (`taken`), for example the bytes of a long value when its parts were collected.
    #[inline]
    pub fn converted_again(&mut self, len_bytes: usize) {
        self.0.converted += len_bytes as u64;
        self.0.conversions += 1;
    }

    /// Counts a second copy of `len_bytes` bytes. An earlier stage has already counted these bytes
    /// as received (`taken`). The conversions are designed to avoid such copies.
    #[inline]
    pub fn copied_again(&mut self, len_bytes: usize) {
        self.0.copied += len_bytes as u64;
    }

    /// Adds the counts in this tally to those of `stage` in `ledger`, and resets the tally to 0.
    pub fn enter(&mut self, ledger: &Ledger, stage: Stage) {
        if self.0 != Entry::default() {
            ledger.enter(stage, &self.0);
            self.0 = Entry::default();
        }
    }

    /// Returns the counts that were not yet added to a ledger by [`Tally::enter`].
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

/// A handle to a scope. A scope adds up the numbers of text bytes that were received, converted and
/// copied. The default handle belongs to no scope and counts nothing.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Option<Arc<Scope>>);

impl Ledger {
    /// Returns a ledger that counts nothing. Each call to one of its methods costs only a branch.
    #[must_use]
    pub fn off() -> Ledger {
        Ledger(None)
    }

    /// Creates a scope inside the scope of `outer`. Counts of the new scope are also added to the
    /// scope of `outer`.
    #[must_use]
    pub fn within(outer: &Ledger) -> Ledger {
        Ledger(Some(Arc::new(Scope {
            stages: Default::default(),
            outer: outer.clone(),
        })))
    }

    /// Returns `true` if the handle belongs to a scope, so that its counts are recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds `entry` to the counts of `stage`, in this scope and in every scope that contains it.
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

    /// Returns the counts of the stage `stage` in this scope.
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

    /// Returns the sum of the counts of all stages.
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
