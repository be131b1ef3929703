//! [`JsonEvents`]: the trait of event handlers, which receive a JSON value from the reader.

use onecopy_text::Units;
use onecopy_text::convert::Ascii;

use super::error::Reason;
use super::escape::Escaped;

/// The text of a JSON string that contains no escapes.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// Text that is known to be ASCII.
    Ascii(Ascii<'a>),
    /// Text in the encoding of the input. It may contain characters other than ASCII, and is not
    /// validated.
    Units(Units<'a>),
}

impl<'a> Text<'a> {
    /// Returns the text together with its encoding, as [`Units`].
    #[inline(always)]
    #[must_use]
    pub fn units(self) -> Units<'a> {
        match self {
            Text::Ascii(text) => Units::Utf8(text.bytes()),
            Text::Units(units) => units,
        }
    }
}

/// The reason why an event handler rejects a value, and the position of the error in the value.
///
/// If the handler stores its own error, the reason is [`Reason::Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reason why the value is rejected.
    pub reason: Reason,
    /// The offset of the error in units, from the start of the rejected text, number or bracket.
    pub at_units: usize,
}

impl Rejection {
    /// The rejection that an event handler returns if it stores its own error. The reader then
    /// stops with [`Reason::Events`], and its caller reports the stored error.
    pub const OWN: Rejection = Rejection::here(Reason::Events);

    /// Creates a rejection for `reason`, with the start of the value as its position.
    #[must_use]
    pub const fn here(reason: Reason) -> Rejection {
        Rejection {
            reason,
            at_units: 0,
        }
    }
}

/// The result of an event handler method. If it is an error, the reader stops.
pub type EventResult = Result<(), Rejection>;

/// An event handler, which receives a JSON value as events in the order of the text. The event of a
/// key precedes the events of its value.
///
/// Short methods should be `#[inline(always)]`, because the reader's loop contains them. The
/// compiler generates this loop once for each set of CPU instructions (AVX-512, AVX2, SSE2).
pub trait JsonEvents {
    /// Called for the value `null`.
    fn null(&mut self) -> EventResult;
    /// Called for the value `true` or `false`.
    fn boolean(&mut self, value: bool) -> EventResult;
    /// Called for an integer that fits into 64 bits.
    fn int(&mut self, value: i64) -> EventResult;
    /// Called for an integer that does not fit into 64 bits. `digits` are its ASCII digits, with a
    /// leading `-` if the integer is negative.
    fn big_int(&mut self, digits: &[u8]) -> EventResult;
    /// Called for a number with a fraction or an exponent. `value` is its value as a float, which
    /// is infinite if the number is too large for a float. `text` is its ASCII text.
    fn float(&mut self, value: f64, text: Units<'_>) -> EventResult;
    /// Called for the value `NaN`, `Infinity` or `-Infinity`. These values are not valid JSON, so
    /// the default implementation rejects them.
    fn not_finite(&mut self, _value: f64) -> EventResult {
        Err(Rejection::here(Reason::NotFinite))
    }
    /// Called for a string value without escapes.
    fn string(&mut self, text: Text<'_>) -> EventResult;
    /// Called for a string value that contains escapes.
    fn escaped_string(&mut self, text: Escaped<'_>) -> EventResult;
    /// Called for a key without escapes.
    fn key(&mut self, text: Text<'_>) -> EventResult;
    /// Called for a key that contains escapes.
    fn escaped_key(&mut self, text: Escaped<'_>) -> EventResult;
    /// Called at the start of an array.
    fn begin_array(&mut self) -> EventResult;
    /// Called at the end of the innermost open array.
    fn end_array(&mut self) -> EventResult;
    /// Called at the start of an object.
    fn begin_object(&mut self) -> EventResult;
    /// Called at the end of the innermost open object.
    fn end_object(&mut self) -> EventResult;

    /// Called for an empty array without white space (`[]`), instead of the events for its start
    /// and end.
    #[inline(always)]
    fn empty_array(&mut self) -> EventResult {
        self.begin_array()?;
        self.end_array()
    }
    /// Called for an empty object without white space (`{}`), instead of the events for its start
    /// and end.
    #[inline(always)]
    fn empty_object(&mut self) -> EventResult {
        self.begin_object()?;
        self.end_object()
    }

    /// Returns the key that the handler expects next, or `None` if it expects no particular key.
    /// The key must have no escapes. It must be UTF-8 if `_is_utf8` is `true`, and otherwise ASCII.
    /// If the text has this key, the reader calls `likely_key` instead of `key`, which saves a
    /// search for the key.
    #[inline(always)]
    fn guess(&self, _is_utf8: bool) -> Option<&[u8]> {
        None
    }
    /// Called for the next key, instead of [`JsonEvents::key`], if this key equals the key that
    /// [`JsonEvents::guess`] returned.
    fn likely_key(&mut self) -> EventResult {
        unreachable!("no key was guessed")
    }
}
