//! The kinds of a `str` (the widths of its characters, PEP 393), and the narrowest kind that can
//! store a text.

/// The width of the code units of a Python `str` (PEP 393).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All code points are below U+0080. Each of them is stored as one byte, and the bytes of the
    /// text are also valid UTF-8.
    Ascii,
    /// All code points are below U+0100. Each of them is stored as one byte.
    Latin1,
    /// All code points are below U+10000. Each of them is stored as two bytes.
    Ucs2,
    /// The text may have any code points. Each of them is stored as four bytes.
    Ucs4,
}

impl Kind {
    /// Returns the narrowest kind of `str` that can store a code point.
    #[must_use]
    pub fn of(code_point: u32) -> Kind {
        match code_point {
            0..0x80 => Kind::Ascii,
            0x80..0x100 => Kind::Latin1,
            0x100..0x10000 => Kind::Ucs2,
            _ => Kind::Ucs4,
        }
    }

    /// Returns the kind of `str` for a text in UTF-8 whose largest byte is `max`. The largest byte
    /// of non-ASCII text is a lead byte, and a greater lead byte starts characters with greater
    /// code points.
    #[must_use]
    pub(crate) fn of_utf8(max: u8) -> Kind {
        match max {
            0..0x80 => Kind::Ascii,
            0x80..=0xC3 => Kind::Latin1,
            0xC4..=0xEF => Kind::Ucs2,
            0xF0.. => Kind::Ucs4,
        }
    }

    /// Returns the number of bytes of a code unit of this kind.
    #[must_use]
    pub fn unit_bytes(self) -> usize {
        match self {
            Kind::Ascii | Kind::Latin1 => 1,
            Kind::Ucs2 => 2,
            Kind::Ucs4 => 4,
        }
    }

    /// Returns the largest code point of the kind, which CPython's `PyUnicode_New` requires as its
    /// second argument.
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

/// The kind and length of the narrowest `str` (PEP 393) that can store a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The narrowest kind that can hold all characters of the text.
    pub kind: Kind,
    /// The length of the text in code points.
    pub n_chars: usize,
}
