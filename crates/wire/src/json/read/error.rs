//! What is wrong with a text that is no JSON, and where.

use std::fmt;

use onecopy_text::{MalformedKind, Units};

/// Why a text is not JSON, or not for who reads it. From [`super::read`] alone; what to do about it is to mend the text,
/// but where a variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text ends where a value was to come, or in the middle of one.
    End,
    /// A value was to come, and something else stands there.
    NoValue,
    /// A key in quotes was to come.
    NoKey,
    /// A colon was to come behind a key.
    NoColon,
    /// A comma or the end of the array was to come.
    NoCommaInArray,
    /// A comma or the end of the object was to come.
    NoCommaInObject,
    /// A comma stands before the end of an array or object.
    TrailingComma,
    /// Something stands behind the value.
    Behind,
    /// A byte order mark stands at the start (section 8.1). Decode it with `utf-8-sig`.
    Mark,
    /// A string has no closing quote.
    OpenString,
    /// A character below U+0020 stands in a string without an escape.
    Control,
    /// A backslash has something behind it that is no escape.
    Escape,
    /// `\u` has something behind it that is not four hexadecimal digits.
    HexEscape,
    /// A surrogate stands alone: as an escape, or in a `str`. Ask for another policy to take it.
    Surrogate,
    /// The text is malformed.
    Malformed(MalformedKind),
    /// A number is not one by the grammar: a digit is missing.
    NoDigit,
    /// A number has a zero in front.
    LeadingZero,
    /// A number is too large for a float. Ask for its digits (`float_hook`) to take it.
    FloatRange,
    /// An integer has more than 64 bits, and these are refused.
    BigInt,
    /// `NaN`, `Infinity` or `-Infinity`, which are no JSON. Ask for them to be accepted.
    NotFinite,
    /// Arrays and objects stand deeper in each other than is allowed. Raise the limit.
    Depth,
    /// An object has a key twice, and this is refused.
    DuplicateKey,
    /// The reader of the events has an error of its own, which it keeps.
    Events,
}

/// What is wrong, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Why.
    pub reason: Reason,
    /// Where, in units of the text, from 0.
    pub at_units: usize,
}

/// Where a unit of a text stands, as people count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1; line feeds part them.
    pub line: usize,
    /// Character of the line, from 1.
    pub column: usize,
    /// Character of the text, from 0.
    pub char_index: usize,
    /// Byte of the text in UTF-8, from 0.
    pub byte_index: usize,
}

impl Place {
    /// Where unit `at_units` of a text stands. It reads the text up to there.
    #[must_use]
    pub fn of(text: Units<'_>, at_units: usize) -> Place {
        let before = text.take(at_units.min(text.len_units()));
        let mut place = Place {
            line: 1,
            column: 1,
            char_index: 0,
            byte_index: 0,
        };
        match before {
            // A byte of a malformed text counts as a character where it continues none.
            Units::Utf8(u) => u.iter().for_each(|&b| {
                place.byte_index += 1;
                if b & 0xC0 != 0x80 {
                    place.pass(u32::from(b));
                }
            }),
            Units::Latin1(u) => u.iter().for_each(|&b| place.pass_char(u32::from(b))),
            Units::Ucs2(u) | Units::Utf16(u) => {
                u.iter().for_each(|&b| place.pass_char(u32::from(b)));
            }
            Units::Utf32(u) => u.iter().for_each(|&c| place.pass_char(c)),
        }
        place
    }

    fn pass(&mut self, c: u32) {
        self.char_index += 1;
        self.column += 1;
        if c == 0x0A {
            self.line += 1;
            self.column = 1;
        }
    }

    fn pass_char(&mut self, c: u32) {
        self.byte_index += match c {
            0..0x80 => 1,
            0x80..0x800 => 2,
            0x800..0x1_0000 => 3,
            _ => 4,
        };
        self.pass(c);
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::End => "unexpected end of the text",
            Reason::NoValue => "a value was expected",
            Reason::NoKey => "a key in double quotes was expected",
            Reason::NoColon => "`:` was expected behind the key",
            Reason::NoCommaInArray => "`,` or `]` was expected",
            Reason::NoCommaInObject => "`,` or `}` was expected",
            Reason::TrailingComma => "a comma with nothing behind it",
            Reason::Behind => "something stands behind the value",
            Reason::Mark => "a byte order mark stands at the start; decode with `utf-8-sig`",
            Reason::OpenString => "a string without its closing quote",
            Reason::Control => "a control character in a string; it must be escaped",
            Reason::Escape => "a backslash with something behind it that is no escape",
            Reason::HexEscape => "`\\u` wants four hexadecimal digits",
            Reason::Surrogate => "a lone surrogate; see `surrogates=`",
            Reason::Malformed(kind) => return write!(f, "malformed text: {kind}"),
            Reason::NoDigit => "a digit was expected in the number",
            Reason::LeadingZero => "a number with a zero in front",
            Reason::FloatRange => "a number too large for a float; see `float_hook=`",
            Reason::BigInt => "an integer of more than 64 bits; see `big_ints=`",
            Reason::NotFinite => "NaN and infinities are no JSON; see `nan=`",
            Reason::Depth => "arrays and objects nested too deep; see `max_depth=`",
            Reason::DuplicateKey => "a key stands twice in the object",
            Reason::Events => "the reader of the events failed",
        })
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at unit {}", self.reason, self.at_units)
    }
}

impl std::error::Error for ReadError {}
