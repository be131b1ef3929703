//! Why a value cannot be written in a format.

use std::fmt;

use onecopy_text::convert::ConvertError;
use onecopy_text::{Malformed, SinkFull};

/// A value has no form in the format, or there is no room for it.
///
/// Nothing of the value stands in the message: a cell may hold what must not reach a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// Text is malformed and the policy is strict. From every writer of text. The database holds text in another
    /// encoding than it says: mend it there, or ask for [`onecopy_text::Policy::Replace`].
    Malformed(Malformed),
    /// The sink cannot grow: memory ran out, or its fixed size is used up. From every writer.
    SinkFull(SinkFull),
    /// NaN or an infinity, which JSON numbers do not know. From the writers of floats and decimals under
    /// [`crate::NonFinite::Error`]; ask for null or text, or filter in SQL.
    NonFinite,
    /// The digits of a decimal are not `[+-]digits[.digits][e[+-]digits]`. From the writers of decimals; the driver
    /// writes numbers by a locale (a comma), or the column is no number: cast it to text in SQL.
    NotADecimal,
    /// A year outside 0 to 9999, which RFC 3339 cannot say, and no driver tells for certain. From the writers of dates; cast the column to text in SQL.
    YearOutOfRange(i32),
    /// A month, day, hour, minute, second, fraction or offset outside its range (MariaDB's `0000-00-00`). From the
    /// writers of dates and times; cast the column to text in SQL.
    NotADate,
    /// A decimal with more than 34 digits, or an exponent past −6176 to 6111: 128 bits would have to round it. From
    /// [`crate::bson::Decimal128::of_digits`]; ask for decimals as text, or round or cast it in SQL.
    DecimalTooLong,
    /// A document or a value in it with more bytes than this. From the writers of BSON; select fewer or shorter columns.
    TooLong(usize),
    /// A key or regex that holds NUL, where BSON ends it. From the writers of BSON; give it another name.
    NulInKey,
    /// A field delimiter that would make numbers, dates or quotes ambiguous. From [`crate::csv::Dialect::new`]; use
    /// `,` `;` `|` or a tab.
    UnfitDelimiter(u8),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Malformed(e) => write!(
                f,
                "the text is malformed: {e}\nmend it in the database"
            ),
            WriteError::SinkFull(e) => e.fmt(f),
            WriteError::NonFinite => f.write_str(
                "NaN and infinities have no form in this format\nfilter them in SQL, or ask for null or text instead",
            ),
            WriteError::NotADecimal => {
                f.write_str("the decimal is not written in digits\ncast the column to text in SQL")
            }
            WriteError::YearOutOfRange(year) => write!(
                f,
                "year `{year}` is outside 0 to 9999\ncast the column to text in SQL"
            ),
            WriteError::NotADate => f.write_str(
                "a part of the date or time is out of its range\ncast the column to text in SQL",
            ),
            WriteError::DecimalTooLong => f.write_str(
                "the decimal has more than the 34 digits of decimal128, or too large an exponent\nask for decimals as text, or round or cast it in SQL",
            ),
            WriteError::TooLong(most_bytes) => write!(
                f,
                "the document would be longer than {most_bytes} bytes\nselect fewer or shorter columns, or allow longer documents"
            ),
            WriteError::NulInKey => {
                f.write_str("a key holds NUL, which ends it in BSON\ngive it another name")
            }
            WriteError::UnfitDelimiter(byte) => write!(
                f,
                "`{}` cannot part CSV fields\nuse `,` `;` `|` or a tab",
                byte.escape_ascii()
            ),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Malformed(e) => Some(e),
            WriteError::SinkFull(e) => Some(e),
            _ => None,
        }
    }
}

impl From<SinkFull> for WriteError {
    fn from(e: SinkFull) -> Self {
        WriteError::SinkFull(e)
    }
}

impl From<Malformed> for WriteError {
    fn from(e: Malformed) -> Self {
        WriteError::Malformed(e)
    }
}

impl From<ConvertError> for WriteError {
    /// `ConvertError` may grow kinds; one we do not know yet is told as a sink that is full rather than lost.
    fn from(e: ConvertError) -> Self {
        match e {
            ConvertError::Malformed(e) => WriteError::Malformed(e),
            ConvertError::SinkFull(e) => WriteError::SinkFull(e),
            _ => WriteError::SinkFull(SinkFull { asked_bytes: 0 }),
        }
    }
}

/// What to write for NaN and the infinities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NonFinite {
    /// Nothing: fail with [`WriteError::NonFinite`].
    #[default]
    Error,
    /// JSON `null`; in CSV an empty field, as for NULL.
    Null,
    /// `NaN`, `Infinity`, `-Infinity` as text: in JSON as strings, in CSV as they are.
    Text,
    /// The same without quotes in JSON too, which RFC 8259 does not allow, as Python's `json` writes
    /// it.
    Literal,
}

/// The text for a float or decimal that is no number, by `policy`; `None` asks for null.
pub(crate) fn non_finite(
    text: &'static str,
    policy: NonFinite,
) -> Result<Option<&'static str>, WriteError> {
    match policy {
        NonFinite::Error => Err(WriteError::NonFinite),
        NonFinite::Null => Ok(None),
        NonFinite::Text | NonFinite::Literal => Ok(Some(text)),
    }
}

/// The name of a float that is no number.
pub(crate) fn non_finite_name(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}
