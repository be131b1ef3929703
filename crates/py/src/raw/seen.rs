//! Short texts that were made before in the same column: equal ones share a `str`.
//!
//! Columns of towns, states and currencies say the same few words in all their rows. To find one costs a tenth of what it costs to
//! make it, and it takes no memory, which is dearer still where rows are many. In columns of distinct texts looking is given
//! up for a while.

use onecopy_text::{Policy, Tally, Units};
use pyo3::prelude::*;

use super::objects::values;
use super::text::{self, MakeError};

/// Texts that a column remembers.
const SLOTS: usize = 256;
/// The longest that is worth while, in bytes as they come.
const MOST_BYTES: usize = 48;
/// Texts that are made before any is looked for: short results do not pay for a table.
const FIRST: u32 = 32;
/// Looks in a row, of which so many must be good, or else as many texts are made without a look.
const LOOKS: u32 = 64;
const LEAST_HITS: u32 = 16;
const REST: u32 = 4096;

/// A text and what was made of it.
struct Slot {
    made: Py<PyAny>,
    hash: u32,
    form: Form,
    len: u8,
    copy: Copied,
}

/// The bytes of a text, and zeros.
#[derive(Clone, Copy)]
#[repr(align(4))]
struct Copied([u8; MOST_BYTES]);

impl Copied {
    /// The first bytes, as a text in the form that they came in.
    #[inline(always)]
    fn units(&self, form: Form, len_bytes: usize) -> Units<'_> {
        let bytes = &self.0[..len_bytes];
        // SAFETY: aligned for both, by the type; any bits are a good unit.
        let (wide, ucs4) = unsafe { (bytes.align_to::<u16>().1, bytes.align_to::<u32>().1) };
        match form {
            Form::Latin1 => Units::Latin1(bytes),
            Form::Utf8 => Units::Utf8(bytes),
            Form::Utf16 => Units::Utf16(wide),
            Form::Ucs2 => Units::Ucs2(wide),
            Form::Utf32 => Units::Utf32(ucs4),
        }
    }
}

/// The encoding that a text came in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Latin1,
    Utf8,
    Utf16,
    Ucs2,
    Utf32,
}

/// The texts of one column.
pub(crate) struct Seen {
    /// `SLOTS` of them, or none.
    slots: Vec<Option<Slot>>,
    /// Looks, or texts without a look, until this is thought over.
    n_left: u32,
    n_hits: u32,
}

impl Seen {
    /// Nothing was seen yet.
    pub(crate) fn new() -> Seen {
        Seen {
            slots: Vec::new(),
            n_left: FIRST,
            n_hits: 0,
        }
    }

    /// The `str` of `text`: the one that was made of an equal text before, or a new one, as
    /// [`text::make_of_cell`] makes it.
    ///
    /// # Errors
    /// [`MakeError`].
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
        // A copy, since the text may change meanwhile.
        let (form, bytes) = bytes_of(text);
        let mut copy = Copied([0; MOST_BYTES]);
        copy.0[..bytes.len()].copy_from_slice(bytes);
        let bytes = &copy.0[..bytes.len()];
        let hash = values::hash(bytes);
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
        *slot = Some(Slot {
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

/// A text as the bytes that it came in.
#[inline(always)]
fn bytes_of(text: Units<'_>) -> (Form, &[u8]) {
    match text {
        Units::Latin1(bytes) => (Form::Latin1, bytes),
        Units::Utf8(bytes) => (Form::Utf8, bytes),
        Units::Utf16(units) => (Form::Utf16, bytes_of_numbers(units)),
        Units::Ucs2(units) => (Form::Ucs2, bytes_of_numbers(units)),
        Units::Utf32(units) => (Form::Utf32, bytes_of_numbers(units)),
    }
}

/// What `u16` and `u32` are: every bit of them is part of a number.
trait Number {}
impl Number for u16 {}
impl Number for u32 {}

#[inline(always)]
fn bytes_of_numbers<T: Number>(numbers: &[T]) -> &[u8] {
    // SAFETY: numbers have no bytes that are not initialised, and bytes need no alignment; the length is that of the slice.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}
