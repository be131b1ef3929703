//! The steps of the reader of JSON.

use super::cell::CellSteps;
use crate::arch::is_ascii;
use crate::arch::new_cell::MOST_CELL_BYTES;

/// Text that is ASCII: whoever has one need not look at it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ascii<'a>(pub(in crate::arch) &'a [u8]);

impl<'a> Ascii<'a> {
    /// The text, where it is ASCII.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Option<Ascii<'a>> {
        is_ascii(text).then_some(Ascii(text))
    }

    /// The text, where it is ASCII and no longer than a cell ([`MOST_CELL_BYTES`]): a look of these kernels', inlined.
    #[inline(always)]
    #[must_use]
    pub fn of_cell<K: CellSteps>(kernels: K, text: &'a [u8]) -> Option<Ascii<'a>> {
        (text.len() <= MOST_CELL_BYTES && kernels.is_ascii(text)).then_some(Ascii(text))
    }

    /// The bytes, all below 0x80.
    #[inline(always)]
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// What a string of JSON holds before its end or its first escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<'a> {
    /// ASCII.
    Ascii(Ascii<'a>),
    /// Bytes not all ASCII, not validated.
    Other(&'a [u8]),
}

impl Plain<'_> {
    /// How many bytes.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Plain::Ascii(text) => text.0.len(),
            Plain::Other(text) => text.len(),
        }
    }

    /// Whether there are none.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A number of JSON without an exponent and of at most 19 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortNumber {
    /// Bytes that it has, without its sign.
    pub len: usize,
    /// All its digits as a number, before or after the point.
    pub digits: u64,
    /// The number of them after the point; 0 without a point.
    pub n_behind: usize,
}

/// What 64 bytes are, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// `"`, `\`, or below U+0020.
    pub special: u64,
    /// Not ASCII.
    pub high: u64,
    /// A digit.
    pub digit: u64,
    /// White space.
    pub blank: u64,
}

/// How much of a string with escapes was read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnescapedLength {
    /// Bytes that were read: all, or up to an escape that is not of one letter.
    pub n_read: usize,
    /// Bytes that were written.
    pub n_written: usize,
}

/// What a family of kernels does for the reader of JSON.
pub trait JsonSteps: Copy {
    /// The bytes before the first that ends a string or its plain part: `"`, `\`, or below U+0020.
    /// All, where none does.
    fn plain_u8(self, rest: &[u8]) -> Plain<'_>;

    /// As [`JsonSteps::plain_u8`], of 16-bit units: how many, and whether all are ASCII.
    fn plain_u16(self, rest: &[u16]) -> (usize, bool);

    /// As [`JsonSteps::plain_u16`], of 32-bit units.
    fn plain_u32(self, rest: &[u32]) -> (usize, bool);

    /// The number of bytes of white space (space, tab, line feed, carriage return) at the start.
    fn blank_u8(self, rest: &[u8]) -> usize;

    /// Whether [`JsonSteps::look`] is worth while: one look for several strings and numbers.
    const LOOKS: bool;

    /// The classes of the first 64 bytes. Those after the end are special.
    fn look(self, rest: &[u8]) -> Look;

    /// The number of `n_before` digits at `at`, a point if others follow it, and these: at most 19 in all.
    fn digits(self, text: &[u8], at: usize, n_before: u32, n_behind: u32) -> u64;

    /// Where the string that `rest` is in the middle of has its closing quote; `rest` starts
    /// outside of any escape. `None` where it has none, or a character below U+0020 before it.
    fn closing_quote_u8(self, rest: &[u8]) -> Option<usize>;

    /// Copies the body of a string with the escapes of one letter replaced, up to the first other
    /// escape (`\u`, or one that is wrong). `body` has no character below U+0020.
    ///
    /// # Panics
    /// Where `out` is shorter than the body.
    fn unescape_u8(self, body: &[u8], out: &mut [u8]) -> UnescapedLength;

    /// Copies a text of at most 64 bytes.
    ///
    /// A second store, under a mask without a lane, waits where its place is on a page that was not touched yet.
    ///
    /// # Safety
    /// `out` takes as many bytes, apart from the text.
    unsafe fn copy_half(self, text: &[u8], out: *mut u8);

    /// Whether two texts are the same, of which the first is known to have more bytes after it or before it.
    fn starts_with(self, rest: &[u8], text: &[u8]) -> bool;
}

/// The places that a backslash before them escapes; `carry` is 1 where the vector before ended in one that is open.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(in crate::arch) fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let open = backslashes & !*carry;
    let follows = open << 1 | *carry;
    // Runs that start at an odd place: their ends come out of the addition elsewhere than those of the others.
    let odd_starts = open & !EVEN & !follows;
    let (sum, over) = odd_starts.overflowing_add(open);
    *carry = u64::from(over);
    (EVEN ^ (sum << 1)) & follows
}
