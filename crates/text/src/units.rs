//! Borrowed text in the encoding its owner holds it in.

/// Borrowed text as 8, 16 or 32-bit units: a Python `str`, an ODBC cell and a request body look alike.
///
/// Nothing is copied or checked to make one; the conversions check. 16 and 32-bit units are in the
/// machine's byte order (little-endian on every platform we build for).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units<'a> {
    /// Each byte is one code point, U+0000 to U+00FF (ISO 8859-1; PEP 393 kind 1).
    Latin1(&'a [u8]),
    /// UTF-8 by claim, not yet validated (RFC 3629).
    Utf8(&'a [u8]),
    /// UTF-16 by claim, not yet validated: may hold lone surrogates (RFC 2781).
    Utf16(&'a [u16]),
    /// Each unit is one code point below U+10000 (PEP 393 kind 2). A surrogate is malformed even where two
    /// stand as if they were a pair: in this form they are two code points.
    Ucs2(&'a [u16]),
    /// Each unit is one code point (PEP 393 kind 4, UTF-32), not yet validated.
    Utf32(&'a [u32]),
}

impl<'a> Units<'a> {
    /// The text from unit `n_units` on.
    ///
    /// # Panics
    /// Where it has fewer (so for [`Units::take`]).
    #[inline]
    #[must_use]
    pub fn skip(self, n_units: usize) -> Units<'a> {
        match self {
            Units::Latin1(u) => Units::Latin1(&u[n_units..]),
            Units::Utf8(u) => Units::Utf8(&u[n_units..]),
            Units::Utf16(u) => Units::Utf16(&u[n_units..]),
            Units::Ucs2(u) => Units::Ucs2(&u[n_units..]),
            Units::Utf32(u) => Units::Utf32(&u[n_units..]),
        }
    }

    /// The first `n_units` units.
    #[inline]
    #[must_use]
    pub fn take(self, n_units: usize) -> Units<'a> {
        match self {
            Units::Latin1(u) => Units::Latin1(&u[..n_units]),
            Units::Utf8(u) => Units::Utf8(&u[..n_units]),
            Units::Utf16(u) => Units::Utf16(&u[..n_units]),
            Units::Ucs2(u) => Units::Ucs2(&u[..n_units]),
            Units::Utf32(u) => Units::Utf32(&u[..n_units]),
        }
    }

    /// Number of units: bytes, 16-bit or 32-bit units, not code points.
    #[must_use]
    pub fn len_units(&self) -> usize {
        match self {
            Units::Latin1(u) | Units::Utf8(u) => u.len(),
            Units::Utf16(u) | Units::Ucs2(u) => u.len(),
            Units::Utf32(u) => u.len(),
        }
    }

    /// Size in bytes as held: what the ledger counts as taken in.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        match self {
            Units::Latin1(u) | Units::Utf8(u) => u.len(),
            Units::Utf16(u) | Units::Ucs2(u) => u.len() * 2,
            Units::Utf32(u) => u.len() * 4,
        }
    }

    /// Whether there are no units at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len_units() == 0
    }
}
