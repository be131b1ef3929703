//! [`JsonEvents`]: the event handler that receives a JSON value from the reader.

use onecopy_text::Units;
use onecopy_text::convert::Ascii;

use super::error::Reason;
use super::escape::Escaped;

/// The text of a string without escapes.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// Text that is known to be ASCII.
    Ascii(Ascii<'a>),
    /// Text in the units of the input, which may be non-ASCII and is not validated.
    Units(Units<'a>),
}

impl<'a> Text<'a> {
    /// Returns the text as [`Units`].
    #[inline(always)]
    #[must_use]
    pub fn units(self) -> Units<'a> {
        match self {
            Text::Ascii(text) => Units::Utf8(text.bytes()),
            Text::Units(units) => units,
        }
    }
}

/// The reason why an event handler rejects a value, and the position in the value.
///
/// If the handler keeps an error of its own, the reason is [`Reason::Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reason why the value is rejected.
    pub reason: Reason,
    /// The offset in units from the start of the text, number or bracket that the handler rejects.
    pub at_units: usize,
}

impl Rejection {
    /// The rejection by a handler that keeps the error itself; the reader then ends with
    /// [`Reason::Events`].
    pub const OWN: Rejection = Rejection::here(Reason::Events);

    /// Returns a rejection with this reason, at the start of the value.
    #[must_use]
    pub const fn here(reason: Reason) -> Rejection {
        Rejection {
            reason,
            at_units: 0,
        }
    }
}

/// The result of a method of an event handler: an error stops the reader.
pub type EventResult = Result<(), Rejection>;

/// Receives a JSON value as events, in the order of the text: keys precede their values.
///
/// Short methods should be `#[inline(always)]`, because the reader's loop contains them. The loop is
/// compiled once for each set of CPU instructions (AVX-512, AVX2, SSE2).
pub trait JsonEvents {
    /// Receives the value `null`.
    fn null(&mut self) -> EventResult;
    /// Receives the value `true` or `false`.
    fn boolean(&mut self, value: bool) -> EventResult;
    /// Receives an integer that fits into 64 bits.
    fn int(&mut self, value: i64) -> EventResult;
    /// Receives an integer that does not fit into 64 bits: its ASCII digits, with a leading `-` if
    /// it is negative.
    fn big_int(&mut self, digits: &[u8]) -> EventResult;
    /// Receives a number with a fraction or an exponent: its value, which is infinite if the number
    /// is too large for a float, and its ASCII text.
    fn float(&mut self, value: f64, text: Units<'_>) -> EventResult;
    /// Receives the value `NaN`, `Infinity` or `-Infinity`. By default, it is rejected.
    fn not_finite(&mut self, _value: f64) -> EventResult {
        Err(Rejection::here(Reason::NotFinite))
    }
    /// Receives a string without escapes.
    fn string(&mut self, text: Text<'_>) -> EventResult;
    /// Receives a string with escapes.
    fn escaped_string(&mut self, text: Escaped<'_>) -> EventResult;
    /// Receives a key without escapes.
    fn key(&mut self, text: Text<'_>) -> EventResult;
    /// Receives a key with escapes.
    fn escaped_key(&mut self, text: Escaped<'_>) -> EventResult;
    /// Called when an array begins.
    fn begin_array(&mut self) -> EventResult;
    /// Called when the innermost array ends.
    fn end_array(&mut self) -> EventResult;
    /// Called when an object begins.
    fn begin_object(&mut self) -> EventResult;
    /// Called when the innermost object ends.
    fn end_object(&mut self) -> EventResult;

    /// Called for an empty array, written as `[]` without white space.
    #[inline(always)]
    fn empty_array(&mut self) -> EventResult {
        self.begin_array()?;
        self.end_array()
    }
    /// Called for an empty object, written as `{}` without white space.
    #[inline(always)]
    fn empty_object(&mut self) -> EventResult {
        self.begin_object()?;
        self.end_object()
    }

    /// Returns the key that the handler expects next, without escapes; `None` if it expects no
    /// particular key. The key must be ASCII if `_is_utf8` is `false`, and UTF-8 otherwise. If the
    /// text has this key, the reader calls `likely_key` instead of `key`.
    #[inline(always)]
    fn guess(&self, _is_utf8: bool) -> Option<&[u8]> {
        None
    }
    /// Called instead of [`JsonEvents::key`] if the next key is the one that [`JsonEvents::guess`]
    /// returned.
    fn likely_key(&mut self) -> EventResult {
        unreachable!("no key was guessed")
    }
}
