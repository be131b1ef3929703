//! The trait `JsonSteps`: the operations of the JSON reader for each kernel family.

use super::cell::CellSteps;
use crate::arch::new_cell::MOST_CELL_BYTES;

/// Text that was checked to be ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ascii<'a>(pub(in crate::arch) &'a [u8]);

impl<'a> Ascii<'a> {
    /// Returns the text if it is ASCII and has at most [`MOST_CELL_BYTES`] bytes.
    #[inline(always)]
    #[must_use]
    pub fn of_cell<K: CellSteps>(kernels: K, text: &'a [u8]) -> Option<Ascii<'a>> {
        (text.len() <= MOST_CELL_BYTES && kernels.is_ascii(text)).then_some(Ascii(text))
    }

    /// Returns the bytes of the text.
    #[inline(always)]
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// The bytes of a JSON string before its closing quote or first escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain<'a> {
    /// The bytes are all ASCII.
    Ascii(Ascii<'a>),
    /// At least one byte is not ASCII. The text may be invalid UTF-8.
    Other(&'a [u8]),
}

impl Plain<'_> {
    /// Returns the number of bytes.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Plain::Ascii(text) => text.0.len(),
            Plain::Other(text) => text.len(),
        }
    }

    /// Returns `true` if there are no bytes.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A JSON number without an exponent and with at most 19 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortNumber {
    /// The length of the number in bytes, without a minus sign.
    pub len: usize,
    /// The integer of all digits without the point: 125 for `1.25`.
    pub digits: u64,
    /// The number of digits after the decimal point; 0 without a point.
    pub n_after: usize,
}

/// The classes of 64 bytes of JSON text. The first byte has the lowest bit of each mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// A mask of `"`, `\`, and bytes below U+0020, which end a search.
    pub special: u64,
    /// A mask of the non-ASCII bytes.
    pub high: u64,
    /// A mask of the digits.
    pub digit: u64,
    /// A mask of the white space.
    pub blank: u64,
}

/// The result of [`JsonSteps::unescape_u8`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnescapedLength {
    /// The number of bytes read, up to the first `\u` or invalid escape.
    pub n_read: usize,
    /// The number of bytes written.
    pub n_written: usize,
}

/// The operations of the JSON reader for a kernel family.
pub trait JsonSteps: Copy {
    /// Returns the bytes before the first `"`, `\` or byte below U+0020, or all bytes.
    fn plain_u8(self, rest: &[u8]) -> Plain<'_>;

    /// Returns the number of 16-bit units before the first `"`, `\` or unit below U+0020. Also
    /// returns `true` if all these units are ASCII.
    fn plain_u16(self, rest: &[u16]) -> (usize, bool);

    /// Returns the number of 32-bit units before the first `"`, `\` or unit below U+0020. Also
    /// returns `true` if all these units are ASCII.
    fn plain_u32(self, rest: &[u32]) -> (usize, bool);

    /// Returns the number of white-space bytes at the start of `rest`. White space is a space, tab,
    /// line feed or carriage return.
    fn blank_u8(self, rest: &[u8]) -> usize;

    /// `true` if the reader calls [`JsonSteps::look`] for all tokens in 64 bytes. `false` if a
    /// search for each token is faster.
    const LOOKS: bool;

    /// Classifies the first 64 bytes of `rest`. Positions after the end of `rest` count as special,
    /// so a search stops there.
    fn look(self, rest: &[u8]) -> Look;

    /// Returns the integer of at most 19 digits from position `at` on. `n_before` digits precede
    /// the decimal point, and `n_after` digits follow it. Without a point, `n_after` is 0.
    fn digits(self, text: &[u8], at: usize, n_before: u32, n_after: u32) -> u64;

    /// Returns the offset of a string's closing quote. `rest` starts inside the string, with an
    /// unescaped byte. Returns `None` if there is no closing quote, or a byte below U+0020 before
    /// it.
    fn closing_quote_u8(self, rest: &[u8]) -> Option<usize>;

    /// Copies the body of a string to `out` and replaces escapes of one letter, such as `\n`. Stops
    /// at the first `\u` or invalid escape. `body` must have no byte below U+0020.
    ///
    /// # Panics
    /// Panics if `out` is shorter than the body.
    fn unescape_u8(self, body: &[u8], out: &mut [u8]) -> UnescapedLength;

    /// Copies a text of at most 64 bytes to `out`.
    ///
    /// The method makes only one store. A second store with an empty mask would stall on a new
    /// page.
    ///
    /// # Safety
    /// `out` must be writable for as many bytes as `text` has, and must not overlap `text`.
    unsafe fn copy_half(self, text: &[u8], out: *mut u8);

    /// Returns `true` if `rest` starts with `text`.
    fn starts_with(self, rest: &[u8], text: &[u8]) -> bool;
}

/// Returns a mask of the bytes after an escaping backslash. `carry` is 1 if the previous vector
/// ended with such a backslash, otherwise 0. The function updates `carry` for the next vector.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(in crate::arch) fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let open = backslashes & !*carry;
    let follows = open << 1 | *carry;
    // The algorithm of simdjson. A carry inverts the bits of each backslash sequence from an odd
    // position.
    let odd_starts = open & !EVEN & !follows;
    let (sum, over) = odd_starts.overflowing_add(open);
    *carry = u64::from(over);
    (EVEN ^ (sum << 1)) & follows
}
