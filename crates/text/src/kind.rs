//! The kinds of a `str` (PEP 393): the widths of its characters.

/// The width of the code units of a `str` (PEP 393).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All code points are below U+0080. Each is one byte, and the text is also UTF-8.
    Ascii,
    /// All code points are below U+0100. Each is one byte.
    Latin1,
    /// All code points are below U+10000. Each is two bytes.
    Ucs2,
    /// Any code points. Each is four bytes.
    Ucs4,
}

impl Kind {
    /// Returns the narrowest kind for a code point.
    #[must_use]
    pub fn of(code_point: u32) -> Kind {
        match code_point {
            0..0x80 => Kind::Ascii,
            0x80..0x100 => Kind::Latin1,
            0x100..0x10000 => Kind::Ucs2,
            _ => Kind::Ucs4,
        }
    }

    /// Returns the kind for UTF-8 text whose largest byte is `max`. In non-ASCII text, this byte is
    /// the lead byte of the largest character.
    #[must_use]
    pub(crate) fn of_utf8(max: u8) -> Kind {
        match max {
            0..0x80 => Kind::Ascii,
            0x80..=0xC3 => Kind::Latin1,
            0xC4..=0xEF => Kind::Ucs2,
            0xF0.. => Kind::Ucs4,
        }
    }

    /// Returns the size of a code unit in bytes.
    #[must_use]
    pub fn unit_bytes(self) -> usize {
        match self {
            Kind::Ascii | Kind::Latin1 => 1,
            Kind::Ucs2 => 2,
            Kind::Ucs4 => 4,
        }
    }

    /// Returns the largest code point of the kind, as `PyUnicode_New` requires.
    #[must_use]
    pub fn max_char(self) -> u32 {
        match self {
            Kind::Ascii => 0x7F,
            Kind::Latin1 => 0xFF,
            Kind::Ucs2 => 0xFFFF,
            Kind::Ucs4 => 0x10_FFFF,
        }
    }
}

/// The kind and length of the narrowest `str` for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The narrowest kind for all characters.
    pub kind: Kind,
    /// The number of code points.
    pub n_chars: usize,
}
