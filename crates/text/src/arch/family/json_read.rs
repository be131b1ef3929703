//! The trait `JsonSteps`: the operations of the JSON reader that each kernel family implements, and
//! the types of their results.

use super::cell::CellSteps;
use crate::arch::new_cell::MOST_CELL_BYTES;

/// Text that is known to be ASCII, because it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ascii<'a>(pub(in crate::arch) &'a [u8]);

impl<'a> Ascii<'a> {
    /// Returns the text as [`Ascii`] if it is ASCII and has at most [`MOST_CELL_BYTES`] bytes;
    /// otherwise `None`. The check is inlined and uses the kernels of `K`.
    #[inline(always)]
    #[must_use]
    pub fn of_cell<K: CellSteps>(kernels: K, text: &'a [u8]) -> Option<Ascii<'a>> {
        (text.len() <= MOST_CELL_BYTES && kernels.is_ascii(text)).then_some(Ascii(text))
    }

    /// Returns the text as bytes, all of which are below 0x80.
    #[inline(always)]
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// The bytes of a JSON string before its closing quote or its first escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<'a> {
    /// The bytes are all ASCII.
    Ascii(Ascii<'a>),
    /// At least one byte is not ASCII; the bytes are not validated as UTF-8.
    Other(&'a [u8]),
}

impl Plain<'_> {
    /// Returns the number of bytes of the text.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Plain::Ascii(text) => text.0.len(),
            Plain::Other(text) => text.len(),
        }
    }

    /// Returns `true` if the text has no bytes.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A JSON number without an exponent and with at most 19 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortNumber {
    /// The length in bytes of the number's text, not including a minus sign.
    pub len: usize,
    /// The integer that all digits form, with the decimal point ignored: 125 for `1.25`.
    pub digits: u64,
    /// The number of digits after the decimal point; 0 if the number has no point.
    pub n_after: usize,
}

/// A classification of 64 bytes of JSON text. Each mask has one bit per byte; the first byte has
/// the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// A mask of the bytes at which a search in a string stops: `"`, `\`, and bytes below U+0020.
    pub special: u64,
    /// A mask of the bytes that are not ASCII.
    pub high: u64,
    /// A mask of the bytes that are digits.
    pub digit: u64,
    /// A mask of the bytes that are white space.
    pub blank: u64,
}

/// The result of replacing the escapes in the body of a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnescapedLength {
    /// The number of bytes of the string body that were read. Reading stops before the first `\u`
    /// and before the first invalid escape. If the body contains neither, this is the length of the
    /// body.
    pub n_read: usize,
    /// The number of bytes that were written.
    pub n_written: usize,
}

/// The operations of the JSON reader that each kernel family implements.
pub trait JsonSteps: Copy {
    /// Returns the bytes before the first `"`, `\` or byte below U+0020; all bytes if there is
    /// none.
    fn plain_u8(self, rest: &[u8]) -> Plain<'_>;

    /// Returns the number of 16-bit units before the first `"`, `\` or unit below U+0020, and
    /// `true` if all units before it are ASCII.
    fn plain_u16(self, rest: &[u16]) -> (usize, bool);

    /// Returns the number of 32-bit units before the first `"`, `\` or unit below U+0020, and
    /// `true` if all units before it are ASCII.
    fn plain_u32(self, rest: &[u32]) -> (usize, bool);

    /// Returns the number of white-space bytes (space, tab, line feed, carriage return) at the
    /// start of `rest`.
    fn blank_u8(self, rest: &[u8]) -> usize;

    /// `true` if it is fastest to classify 64 bytes with one call to [`JsonSteps::look`], and to
    /// use the result for all strings and numbers in these bytes. `false` if a separate search for
    /// each string and number is faster.
    const LOOKS: bool;

    /// Classifies the first 64 bytes of `rest`. If `rest` is shorter, the missing bytes are
    /// classified as special, so that a search stops at the end of `rest`.
    fn look(self, rest: &[u8]) -> Look;

    /// Returns the integer that the digits from position `at` on represent. `n_before` is the
    /// number of digits before the decimal point, and `n_after` the number after it. If `n_after`
    /// is 0, there is no decimal point. There are at most 19 digits in total.
    fn digits(self, text: &[u8], at: usize, n_before: u32, n_after: u32) -> u64;

    /// Returns the offset of the closing quote of a string. `rest` starts inside the string, and
    /// its first byte is not escaped. Returns `None` if there is no closing quote, or if a byte
    /// below U+0020 precedes it.
    fn closing_quote_u8(self, rest: &[u8]) -> Option<usize>;

    /// Copies the body of a string to `out` and replaces its escapes of one letter, such as `\n`.
    /// Stops at the first other escape (`\u`, or an invalid one). `body` must have no character
    /// below U+0020.
    ///
    /// # Panics
    /// Panics if `out` is shorter than the body.
    fn unescape_u8(self, body: &[u8], out: &mut [u8]) -> UnescapedLength;

    /// Copies a text of at most 64 bytes to `out`.
    ///
    /// The method makes only one store. A second store, under a mask that is empty for short text,
    /// would stall if its destination is on a page that was not accessed before.
    ///
    /// # Safety
    /// `out` must be writable for as many bytes as `text` has, and must not overlap `text`.
    unsafe fn copy_half(self, text: &[u8], out: *mut u8);

    /// Returns `true` if `rest` starts with `text`.
    fn starts_with(self, rest: &[u8], text: &[u8]) -> bool;
}

/// Returns a mask of the bytes that are escaped by the backslash before them. `carry` is 1 if the
/// previous vector ended with a backslash that escapes the first byte of this vector, and 0
/// otherwise. The function sets `carry` for the next vector.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(in crate::arch) fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let open = backslashes & !*carry;
    let follows = open << 1 | *carry;
    // A carry of this addition passes through each sequence of backslashes that starts at an odd
    // position, which inverts the parity of the bits in this sequence (the algorithm of simdjson).
    let odd_starts = open & !EVEN & !follows;
    let (sum, over) = odd_starts.overflowing_add(open);
    *carry = u64::from(over);
    (EVEN ^ (sum << 1)) & follows
}
