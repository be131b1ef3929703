//! [`ReadError`]: the reason why a text is not valid JSON, and the position of the error.

use std::fmt;

use onecopy_text::{MalformedKind, Units};

/// The reason why [`super::read`] rejects a text. The text is not valid JSON, or exceeds a limit
/// that the caller has set. To avoid the error, correct the text, unless the description of a
/// variant names another remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text ends where a value must begin, or inside a value.
    End,
    /// The grammar requires a value at this position, but the text does not have one.
    NoValue,
    /// The grammar requires a key (which begins with `"`) at this position, but the text does not
    /// have one.
    NoKey,
    /// A key is not followed by a colon.
    NoColon,
    /// An item of an array is followed neither by a comma nor by the end of the array.
    NoCommaInArray,
    /// A member of an object is followed neither by a comma nor by the end of the object.
    NoCommaInObject,
    /// The last item of an array or object is followed by a comma.
    TrailingComma,
    /// The value is followed by something other than white space.
    TrailingData,
    /// The text starts with a byte order mark, which RFC 8259, section 8.1, forbids. In Python,
    /// decode the text with `utf-8-sig`.
    ByteOrderMark,
    /// The text ends before the closing quote of a string.
    OpenString,
    /// A string contains an unescaped character below U+0020.
    Control,
    /// A backslash does not begin a valid escape.
    Escape,
    /// The escape `\u` is not followed by four hexadecimal digits.
    HexEscape,
    /// A string contains a lone surrogate, either as an escape or as a character of a Python `str`.
    /// A policy that accepts lone surrogates avoids this error.
    Surrogate,
    /// The text contains a sequence that is invalid in its encoding.
    Malformed(MalformedKind),
    /// A number has no digit where the grammar requires one.
    NoDigit,
    /// A number has a leading zero.
    LeadingZero,
    /// A number is too large for a float. To avoid this error, use the option `parse_float`, which
    /// receives the number as text.
    FloatRange,
    /// An integer has more than 64 bits, and the option `big_ints` rejects it.
    BigInt,
    /// The text contains `NaN`, `Infinity` or `-Infinity`, which is not valid JSON. The reader
    /// accepts these values if the caller sets an option.
    NotFinite,
    /// Arrays and objects are nested deeper than the limit permits. A higher limit avoids this
    /// error.
    Depth,
    /// An object has the same key twice, and the option `duplicate_keys` rejects this.
    DuplicateKey,
    /// The handler of the parsed events has failed. The handler has stored its error itself.
    Events,
}

/// An error in a JSON text: the reason, and the position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The reason why the text was rejected.
    pub reason: Reason,
    /// The index of the unit of the text at which the error was found.
    pub at_units: usize,
}

/// A position in a text, expressed as line and column, as an offset in characters, and as an offset
/// in bytes of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// The number of the line, from 1. Line feeds separate lines.
    pub line: usize,
    /// The number of the character in its line, from 1.
    pub column: usize,
    /// The index of the character in the text, from 0.
    pub char_index: usize,
    /// The position as a number of bytes from the start of the text converted to UTF-8.
    pub byte_index: usize,
}

impl TextPosition {
    /// Returns the position of the unit with the index `at_units`. To count lines, the function
    /// reads the text from the start to this unit.
    #[must_use]
    pub fn of(text: Units<'_>, at_units: usize) -> TextPosition {
        let before = text.take(at_units.min(text.len_units()));
        let mut place = TextPosition {
            line: 1,
            column: 1,
            char_index: 0,
            byte_index: 0,
        };
        match before {
            // In malformed UTF-8, each byte that is not a continuation byte counts as a character.
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
            Reason::NoColon => "`:` was expected after the key",
            Reason::NoCommaInArray => "`,` or `]` was expected",
            Reason::NoCommaInObject => "`,` or `}` was expected",
            Reason::TrailingComma => "trailing comma",
            Reason::TrailingData => "trailing data after the value",
            Reason::ByteOrderMark => "a byte order mark at the start; decode with `utf-8-sig`",
            Reason::OpenString => "a string without its closing quote",
            Reason::Control => "a control character in a string; it must be escaped",
            Reason::Escape => "invalid escape sequence",
            Reason::HexEscape => "`\\u` must be followed by four hexadecimal digits",
            Reason::Surrogate => "a lone surrogate; see `errors=`",
            Reason::Malformed(kind) => return write!(f, "malformed text: {kind}"),
            Reason::NoDigit => "a digit was expected in the number",
            Reason::LeadingZero => "a number with a leading zero",
            Reason::FloatRange => "a number too large for a float; see `parse_float=`",
            Reason::BigInt => "an integer of more than 64 bits; see `big_ints=`",
            Reason::NotFinite => "NaN and infinities are not valid JSON; see `nan=`",
            Reason::Depth => "arrays and objects nested too deep; see `max_depth=`",
            Reason::DuplicateKey => "duplicate key in the object",
            Reason::Events => "the event handler failed",
        })
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at unit {}", self.reason, self.at_units)
    }
}

impl std::error::Error for ReadError {}
