//! `TextCache`: a cache of recent short strings of a result column, so that equal strings share one
//! `str`.
//!
//! Columns of towns, states and currencies often contain only a few different words. A successful
//! lookup takes a tenth of the time of creating a `str`, and saves the memory of a new `str`. If
//! few strings of a column are repeated, the next [`REST`] strings are not looked up, because an
//! unsuccessful lookup costs time.

use onecopy_text::{Policy, Tally, Units};
use pyo3::prelude::*;

use super::objects::text_hash;
use super::text::{self, MakeError};

/// The number of slots in the cache of one column. The hash of a string determines its slot.
const SLOTS: usize = 256;
/// The maximum size of a cached string in bytes, in the encoding in which the database has sent it.
const MOST_BYTES: usize = 48;
/// The number of strings that are created before the first lookup. For a result with fewer rows,
/// allocating the table would take longer than the lookups save.
const FIRST: u32 = 32;
/// How often the cache decides whether it is worthwhile: after this number of strings, the hits
/// (successful lookups) are counted. If there were fewer than [`LEAST_HITS`], the next [`REST`]
/// strings are created without a lookup.
const LOOKS: u32 = 64;
const LEAST_HITS: u32 = 16;
const REST: u32 = 4096;

/// A cached string in its source encoding, and the `str` that was created from it.
struct TextSlot {
    made: Py<PyAny>,
    hash: u32,
    form: SourceEncoding,
    len: u8,
    copy: Copied,
}

/// The bytes of a string in its source encoding, padded with zeros to [`MOST_BYTES`].
#[derive(Clone, Copy)]
#[repr(align(4))]
struct Copied([u8; MOST_BYTES]);

impl Copied {
    /// Returns the first `len_bytes` bytes as the code units of a text in the encoding `form`.
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

/// The cache of one column's strings.
pub(crate) struct TextCache {
    /// The table. It has [`SLOTS`] slots, or none before the first lookup.
    slots: Vec<Option<TextSlot>>,
    /// The number of strings that remain until the cache is switched on or off again, according to
    /// the number of hits.
    n_left: u32,
    n_hits: u32,
}

impl TextCache {
    /// Creates an empty cache.
    pub(crate) fn new() -> TextCache {
        TextCache {
            slots: Vec::new(),
            n_left: FIRST,
            n_hits: 0,
        }
    }

    /// Returns a `str` with the characters of `text`: a cached `str`, or a new one if no equal
    /// string is cached.
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
        // The text is copied first, because the driver may change it while it is compared.
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

/// Returns the encoding in which the database has sent a string, and the bytes of the string.
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

/// A marker of the types `u16` and `u32`. They have no padding, so all their bytes are initialised.
trait Number {}
impl Number for u16 {}
impl Number for u32 {}

#[inline(always)]
fn bytes_of_numbers<T: Number>(numbers: &[T]) -> &[u8] {
    // SAFETY: numbers have no bytes that are not initialised, and bytes need no alignment; the
    // length is that of the slice.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}
