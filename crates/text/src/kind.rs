//! The narrowest PEP 393 representation that holds a text.

/// How wide the code units of a Python `str` are (PEP 393).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All code points below U+0080: one byte each, and the bytes are UTF-8.
    Ascii,
    /// All below U+0100: one byte each.
    Latin1,
    /// All below U+10000: two bytes each.
    Ucs2,
    /// Any: four bytes each.
    Ucs4,
}

impl Kind {
    /// The kind that a code point needs.
    #[must_use]
    pub fn of(code_point: u32) -> Kind {
        match code_point {
            0..0x80 => Kind::Ascii,
            0x80..0x100 => Kind::Latin1,
            0x100..0x10000 => Kind::Ucs2,
            _ => Kind::Ucs4,
        }
    }

    /// The kind of a text in UTF-8 whose largest byte this is.
    #[must_use]
    pub(crate) fn of_utf8(max: u8) -> Kind {
        match max {
            0..0x80 => Kind::Ascii,
            0x80..=0xC3 => Kind::Latin1,
            0xC4..=0xEF => Kind::Ucs2,
            0xF0.. => Kind::Ucs4,
        }
    }

    /// Bytes of a code unit.
    #[must_use]
    pub fn unit_bytes(self) -> usize {
        match self {
            Kind::Ascii | Kind::Latin1 => 1,
            Kind::Ucs2 => 2,
            Kind::Ucs4 => 4,
        }
    }

    /// The largest code point of the kind, as `PyUnicode_New` wants it.
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

/// What a `str` for a text needs: its kind and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Narrowest representation.
    pub kind: Kind,
    /// Length in code points.
    pub n_chars: usize,
}
