//! What a value is told to.

use onecopy_text::Units;
use onecopy_text::convert::Ascii;

use super::error::Reason;
use super::escape::Escaped;

/// The text of a string without escapes.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// Known to be ASCII.
    Ascii(Ascii<'a>),
    /// Anything else, in the form of the source: not yet validated.
    Units(Units<'a>),
}

impl<'a> Text<'a> {
    /// The text in the form of the source.
    #[inline(always)]
    #[must_use]
    pub fn units(self) -> Units<'a> {
        match self {
            Text::Ascii(text) => Units::Utf8(text.bytes()),
            Text::Units(units) => units,
        }
    }
}

/// Why a text, or anything else, was not taken: the reason, and how many units behind the start of what was told.
///
/// An error of the reader's own is kept by it, and told as [`Reason::Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// How many units behind the start of the text, number or bracket.
    pub at_units: usize,
}

impl Refusal {
    /// An error of the reader's own.
    pub const OWN: Refusal = Refusal::here(Reason::Events);

    /// One at the start of what was told.
    #[must_use]
    pub const fn here(reason: Reason) -> Refusal {
        Refusal {
            reason,
            at_units: 0,
        }
    }
}

/// What became of an event.
pub type Told = Result<(), Refusal>;

/// What a value is told to, part by part, in the order of the text. Keys come before their values.
///
/// All functions should be `#[inline(always)]` where they are short: they are compiled into the reader's loop, for the
/// kernels that run.
pub trait Events {
    /// `null`.
    fn null(&mut self) -> Told;
    /// `true` or `false`.
    fn boolean(&mut self, value: bool) -> Told;
    /// An integer of 64 bits.
    fn int(&mut self, value: i64) -> Told;
    /// A larger integer: its digits in ASCII, with a `-` where it has one.
    fn big_int(&mut self, digits: &[u8]) -> Told;
    /// A number with a fraction or an exponent: its value (infinite where it is too large), and its text, which is ASCII.
    fn float(&mut self, value: f64, text: Units<'_>) -> Told;
    /// `NaN`, `Infinity` or `-Infinity`. Refused unless asked.
    fn not_finite(&mut self, _value: f64) -> Told {
        Err(Refusal::here(Reason::NotFinite))
    }
    /// A string without escapes.
    fn string(&mut self, text: Text<'_>) -> Told;
    /// A string with escapes.
    fn escaped_string(&mut self, text: Escaped<'_>) -> Told;
    /// A key without escapes.
    fn key(&mut self, text: Text<'_>) -> Told;
    /// A key with escapes.
    fn escaped_key(&mut self, text: Escaped<'_>) -> Told;
    /// `[`.
    fn begin_array(&mut self) -> Told;
    /// `]`.
    fn end_array(&mut self) -> Told;
    /// `{`.
    fn begin_object(&mut self) -> Told;
    /// `}`.
    fn end_object(&mut self) -> Told;

    /// `[]`, written without a blank.
    #[inline(always)]
    fn empty_array(&mut self) -> Told {
        self.begin_array()?;
        self.end_array()
    }
    /// `{}`, written without a blank.
    #[inline(always)]
    fn empty_object(&mut self) -> Told {
        self.begin_object()?;
        self.end_object()
    }

    /// A key that is likely to come next, without escapes, where one is known: in UTF-8, and all ASCII where the text is in
    /// another form. Where the text has it, `likely_key` is told, not `key`.
    #[inline(always)]
    fn guess(&self, _is_utf8: bool) -> Option<&[u8]> {
        None
    }
    /// The key of [`Events::guess`].
    fn likely_key(&mut self) -> Told {
        unreachable!("no key was guessed")
    }
}
