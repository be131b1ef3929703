//! `TextCache`: a cache of recent short strings of a result column. Equal strings share one `str`.
//!
//! Many columns, such as towns or currencies, contain only a few different words. If few strings
//! are repeated, the next [`REST`] strings are not looked up.

use onecopy_text::{Policy, Tally, Units};
use pyo3::prelude::*;

use super::objects::text_hash;
use super::text::{self, MakeError};

/// The number of slots per column.
const SLOTS: usize = 256;
/// The maximum size of a cached string, in bytes as the database sends it.
const MOST_BYTES: usize = 48;
/// The number of strings before the first lookup. A short result does not need the table.
const FIRST: u32 = 32;
/// The number of strings after which the successful lookups are counted. Below [`LEAST_HITS`], the
/// next [`REST`] strings are not looked up.
const LOOKS: u32 = 64;
const LEAST_HITS: u32 = 16;
const REST: u32 = 4096;

/// A cached string in its source encoding, and its `str`.
struct TextSlot {
    made: Py<PyAny>,
    hash: u32,
    form: SourceEncoding,
    len: u8,
    copy: Copied,
}

/// The bytes of a string, padded with zeros to [`MOST_BYTES`].
#[derive(Clone, Copy)]
#[repr(align(4))]
struct Copied([u8; MOST_BYTES]);

impl Copied {
    /// Returns the first `len_bytes` bytes as text in the encoding `form`.
    #[inline(always)]
    fn units(&self, form: SourceEncoding, len_bytes: usize) -> Units<'_> {
        let bytes = &self.0[..len_bytes];
        // SAFETY: aligned for both, by the type; any bits are a good unit.
        let (wide, ucs4) = unsafe { (bytes.align_to::<u16>().1, bytes.align_to::<u32>().1) };
        match form {
            SourceEncoding::Latin1 => Units::Latin1(bytes),
            SourceEncoding::Utf8 => Units::Utf8(bytes),
            SourceEncoding::Utf16 => Units::Utf16(wide),
            SourceEncoding::Ucs2 => Units::Ucs2(wide),
            SourceEncoding::Utf32 => Units::Utf32(ucs4),
        }
    }
}

/// The encoding in which the database has sent a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceEncoding {
    Latin1,
    Utf8,
    Utf16,
    Ucs2,
    Utf32,
}

pub(crate) struct TextCache {
    /// The table; empty before the first lookup.
    slots: Vec<Option<TextSlot>>,
    /// The number of strings until the next decision for or against lookups.
    n_left: u32,
    n_hits: u32,
}

impl TextCache {
    pub(crate) fn new() -> TextCache {
        TextCache {
            slots: Vec::new(),
            n_left: FIRST,
            n_hits: 0,
        }
    }

    /// Returns a cached or new `str` with the characters of `text`.
    ///
    /// # Errors
    /// [`MakeError`] if the text is malformed, or the `str` cannot be allocated.
    #[inline]
    pub(crate) fn make<'py>(
        &mut self,
        py: Python<'py>,
        text: Units<'_>,
        policy: Policy,
        tally: &mut Tally,
    ) -> Result<Bound<'py, PyAny>, MakeError> {
        self.n_left -= 1;
        if self.n_left == 0 {
            self.think_over();
        }
        if self.slots.is_empty() || text.len_bytes() > MOST_BYTES {
            return text::make_of_cell(py, text, policy, tally);
        }
        // The driver may change the text during a comparison, so it is copied first.
        let (form, bytes) = bytes_of(text);
        let mut copy = Copied([0; MOST_BYTES]);
        copy.0[..bytes.len()].copy_from_slice(bytes);
        let bytes = &copy.0[..bytes.len()];
        let hash = text_hash::hash(bytes);
        let slot = &mut self.slots[hash as usize % SLOTS];
        if let Some(slot) = slot
            && slot.hash == hash
            && slot.form == form
            && slot.copy.0[..usize::from(slot.len)] == *bytes
        {
            self.n_hits += 1;
            tally.found(bytes.len());
            return Ok(slot.made.bind(py).clone());
        }
        let made = text::make(py, copy.units(form, bytes.len()), policy, tally)?;
        *slot = Some(TextSlot {
            made: made.clone().unbind(),
            hash,
            form,
            len: bytes.len() as u8,
            copy,
        });
        Ok(made)
    }

    #[cold]
    #[inline(never)]
    fn think_over(&mut self) {
        let looks = self.slots.is_empty() || self.n_hits >= LEAST_HITS;
        if !looks {
            self.slots = Vec::new();
        } else if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        self.n_left = if looks { LOOKS } else { REST };
        self.n_hits = 0;
    }
}

/// Returns the source encoding and the bytes of a string.
#[inline(always)]
fn bytes_of(text: Units<'_>) -> (SourceEncoding, &[u8]) {
    match text {
        Units::Latin1(bytes) => (SourceEncoding::Latin1, bytes),
        Units::Utf8(bytes) => (SourceEncoding::Utf8, bytes),
        Units::Utf16(units) => (SourceEncoding::Utf16, bytes_of_numbers(units)),
        Units::Ucs2(units) => (SourceEncoding::Ucs2, bytes_of_numbers(units)),
        Units::Utf32(units) => (SourceEncoding::Utf32, bytes_of_numbers(units)),
    }
}

/// Marks `u16` and `u32`, which have no uninitialised bytes.
trait Number {}
impl Number for u16 {}
impl Number for u32 {}

#[inline(always)]
fn bytes_of_numbers<T: Number>(numbers: &[T]) -> &[u8] {
    // SAFETY: numbers have no uninitialised bytes, and bytes need no alignment. The length is that
    // of the slice.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}
