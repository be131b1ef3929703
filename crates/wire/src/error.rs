//! [`WriteError`]: the reason why a value cannot be written in an output format.

use std::fmt;

use onecopy_text::convert::ConvertError;
use onecopy_text::{Malformed, SinkFull};

use crate::datetime::Date;

/// The reason why a value cannot be written. Either the output format cannot represent the value,
/// or the sink is full.
///
/// The message never contains the value, because a cell may contain data that must not be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The text is malformed, and the policy does not replace malformed sequences. Usually the
    /// database contains text in another encoding than the declared one. Correct the text in the
    /// database, or use [`onecopy_text::Policy::Replace`]. Every writer of text can return this
    /// error.
    Malformed(Malformed),
    /// The sink cannot grow: either no more memory is available, or a sink of fixed size is full.
    /// Every writer can return this error.
    SinkFull(SinkFull),
    /// The value is NaN or an infinity, which JSON numbers cannot represent. The writers of floats
    /// and decimals return this error under the policy [`crate::NonFinite::Error`]. Choose a policy
    /// that writes null or text, or exclude the value in SQL.
    NonFinite,
    /// The text of a decimal does not have the syntax `[+-]digits[.digits][e[+-]digits]`. Either
    /// the driver formats numbers for a locale (with a comma), or the column is not numeric. Cast
    /// the column to text in SQL. The writers of decimals return this error.
    NotADecimal,
    /// The year is not 0 to 9999, or is unknown because PostgreSQL wrote the date in a `DateStyle`
    /// other than ISO ([`Date::OTHER_STYLE`]). RFC 3339 cannot represent other years, and drivers
    /// do not return them reliably. Cast the column to text in SQL. The writers of dates return
    /// this error.
    YearOutOfRange(i32),
    /// A month, day, hour, minute, second, fraction or offset is outside its range (such as
    /// MariaDB's `0000-00-00`). The writers of dates and times return this error. Cast the column
    /// to text in SQL.
    NotADate,
    /// A decimal has more than 34 digits, or an exponent outside of −6176 to 6111, so that 128 bits
    /// cannot represent it exactly. [`crate::bson::Decimal128::of_digits`] returns this error.
    /// Select the option that writes decimals as text, or round or cast the value in SQL.
    DecimalTooLong,
    /// A BSON document, or a value in it, would be longer than the maximum size, which is the field
    /// in bytes. The writers of BSON return this error. Select fewer or shorter columns.
    TooLong(usize),
    /// A key or a regular expression contains NUL, which is the terminator of these strings in
    /// BSON. The writers of BSON return this error. Rename the column or change the pattern.
    NulInKey,
    /// The text of a JSON column is not valid JSON. [`crate::json::write_value`] returns this
    /// error. Cast the column to text in SQL.
    NotJson,
    /// The text of an array column is not an array. Cast the column to text in SQL.
    NotAnArray,
    /// The chosen delimiter of CSV fields is not permitted, because it can also occur in numbers or
    /// dates, or as a quote; the CSV would be ambiguous. [`crate::csv::Dialect::new`] returns this
    /// error. Use `,` `;` `|` or a tab.
    UnfitDelimiter(u8),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Malformed(e) => write!(
                f,
                "the text is malformed: {e}\nfix it in the database"
            ),
            WriteError::SinkFull(e) => e.fmt(f),
            WriteError::NonFinite => f.write_str(
                "this format cannot represent NaN and infinities\nfilter them in SQL, or request null or text instead",
            ),
            WriteError::NotADecimal => {
                f.write_str("the decimal is not written in digits\ncast the column to text in SQL")
            }
            WriteError::YearOutOfRange(i32::MAX) => f.write_str(
                "this format has no date `infinity`\ncast the column to text in SQL",
            ),
            WriteError::YearOutOfRange(i32::MIN) => f.write_str(
                "this format has no date `-infinity`\ncast the column to text in SQL",
            ),
            WriteError::YearOutOfRange(year) if *year == Date::OTHER_STYLE.year => f.write_str(
                "the date is not in ISO style\nset the session's `DateStyle` to ISO, or cast the column to text in SQL",
            ),
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
                f.write_str("a key contains NUL, which ends a key in BSON\nrename it")
            }
            WriteError::NotJson => {
                f.write_str("the value is not valid JSON\ncast the column to text in SQL")
            }
            WriteError::NotAnArray => {
                f.write_str("the value is not an array\ncast the column to text in SQL")
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
    /// Converts the error of a text conversion. `ConvertError` is `non_exhaustive`; a variant that
    /// this crate does not have a case for becomes [`WriteError::SinkFull`].
    fn from(e: ConvertError) -> Self {
        match e {
            ConvertError::Malformed(e) => WriteError::Malformed(e),
            ConvertError::SinkFull(e) => WriteError::SinkFull(e),
            _ => WriteError::SinkFull(SinkFull { requested_bytes: 0 }),
        }
    }
}

/// The way in which a writer represents NaN and the infinities, which JSON numbers cannot
/// represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NonFinite {
    /// NaN and the infinities cause the error [`WriteError::NonFinite`].
    #[default]
    Error,
    /// NaN and the infinities are written like NULL: as `null` in JSON, and as an empty field in
    /// CSV.
    Null,
    /// NaN and the infinities are written as the text `NaN`, `Infinity` or `-Infinity`. JSON
    /// encloses it in quotes as a string, and CSV does not.
    Text,
    /// NaN and the infinities are written as `NaN`, `Infinity` or `-Infinity` without quotes, also
    /// in JSON. RFC 8259 does not permit this, but Python's `json` module does it too.
    Literal,
}

/// Returns the text that is written for a float or decimal that is NaN or infinite. `text` is its
/// name, such as `NaN`, and `policy` determines the result. `None` means that the value is written
/// like NULL.
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

/// Returns the name `NaN`, `Infinity` or `-Infinity` of a float that is not finite.
pub(crate) fn non_finite_name(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}
