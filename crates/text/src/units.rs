//! [`Units`]: borrowed text, the input of every conversion.

/// Borrowed text in 8-bit, 16-bit or 32-bit units, such as a `str` or an ODBC cell.
///
/// The text is not copied. The conversions validate it. Units are in the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units<'a> {
    /// Each byte is a code point, U+0000 to U+00FF (ISO 8859-1; PEP 393 kind 1).
    Latin1(&'a [u8]),
    /// UTF-8 (RFC 3629), not yet validated.
    Utf8(&'a [u8]),
    /// UTF-16 (RFC 2781), not yet validated. It may contain lone surrogates.
    Utf16(&'a [u16]),
    /// Each unit is a code point below U+10000 (PEP 393 kind 2). Every surrogate is malformed.
    Ucs2(&'a [u16]),
    /// Each unit is a code point (PEP 393 kind 4, UTF-32), not yet validated.
    Utf32(&'a [u32]),
}

impl<'a> Units<'a> {
    /// Returns the text from unit `n_units` on.
    ///
    /// # Panics
    /// Panics if the text has fewer than `n_units` units.
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

    /// Returns the first `n_units` units.
    ///
    /// # Panics
    /// Panics if the text has fewer than `n_units` units.
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

    /// Returns the number of code units.
    #[must_use]
    pub fn len_units(&self) -> usize {
        match self {
            Units::Latin1(u) | Units::Utf8(u) => u.len(),
            Units::Utf16(u) | Units::Ucs2(u) => u.len(),
            Units::Utf32(u) => u.len(),
        }
    }

    /// Returns the size of the text in bytes, as the copy counters (`Ledger`) count it.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        match self {
            Units::Latin1(u) | Units::Utf8(u) => u.len(),
            Units::Utf16(u) | Units::Ucs2(u) => u.len() * 2,
            Units::Utf32(u) => u.len() * 4,
        }
    }

    /// Returns `true` if there are no units.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len_units() == 0
    }
}
