//! [`Units`]: borrowed text in the encoding of its owner; the input of every conversion.

/// Borrowed text as 8, 16 or 32-bit units: the form in which conversions receive a Python `str`, an
/// ODBC cell or a request body.
///
/// Creating a value copies and checks nothing; the conversions validate the text. 16-bit and 32-bit
/// units are in the machine's byte order (little-endian on every supported platform).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units<'a> {
    /// Each byte is one code point, U+0000 to U+00FF (ISO 8859-1; PEP 393 kind 1).
    Latin1(&'a [u8]),
    /// Text that is declared as UTF-8 (RFC 3629) and not yet validated.
    Utf8(&'a [u8]),
    /// Text that is declared as UTF-16 (RFC 2781) and not yet validated: it may contain lone
    /// surrogates.
    Utf16(&'a [u16]),
    /// Each unit is one code point below U+10000 (PEP 393 kind 2). Every surrogate is malformed,
    /// because in this variant two units never form a pair.
    Ucs2(&'a [u16]),
    /// Each unit is one code point (PEP 393 kind 4, UTF-32), not yet validated.
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

    /// Returns the length of the text in code units of 8, 16 or 32 bits, not in code points.
    #[must_use]
    pub fn len_units(&self) -> usize {
        match self {
            Units::Latin1(u) | Units::Utf8(u) => u.len(),
            Units::Utf16(u) | Units::Ucs2(u) => u.len(),
            Units::Utf32(u) => u.len(),
        }
    }

    /// Returns the size of the text in bytes, which is the number that the copy counters (`Ledger`)
    /// count as `taken`.
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
