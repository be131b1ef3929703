//! `AsciiDecimal`: the column kind for exact decimals. It determines the ODBC buffer of such a
//! column, and the conversion of the buffer to a [`Cell`]. Decimals are bound as text, which has
//! every digit. `SQL_C_NUMERIC` would require additional calls to set precision and scale.

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::Cell;
use crate::schema::ColumnType;

/// An exact decimal, bound as ASCII text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsciiDecimal;

impl AsciiDecimal {
    /// Returns the plan of the buffer of a column. For each value, the buffer has space for the
    /// declared digits, a sign, a decimal point, a leading zero and the terminator. If a value does
    /// not fit (a `numeric` of PostgreSQL without precision can have thousands of digits),
    /// `SQLGetData` reads the whole value again.
    pub(crate) fn plan(precision: usize, scale: i16) -> ColumnBinding<Self> {
        let digits = precision.clamp(38, 255) + usize::try_from(scale.max(0)).unwrap_or(0).min(255);
        let column_type = ColumnType::Decimal {
            precision: u8::try_from(precision).unwrap_or(0),
            scale: i8::try_from(scale).unwrap_or(0),
        };
        (
            AsciiDecimal,
            Spec::digits((digits + 8).next_multiple_of(8)),
            column_type,
        )
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Decimal(raw.bytes())
    }
}

/// Inserts the zero that SQL Server's drivers omit before a decimal point: `.5` becomes `0.5`, and
/// `-.5` becomes `-0.5`. The text of the number is the first `len` bytes of `slot`. Returns the
/// new length of the text.
pub(crate) fn tidy(slot: &mut [u8], len: usize) -> usize {
    let sign = usize::from(matches!(slot.first(), Some(b'-' | b'+')));
    let has_digit = slot.get(sign + 1).is_some_and(u8::is_ascii_digit) && sign + 1 < len;
    if len <= sign || slot[sign] != b'.' || len >= slot.len() || !has_digit {
        return len;
    }
    slot.copy_within(sign..len, sign + 1);
    slot[sign] = b'0';
    len + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied(text: &str) -> String {
        let mut slot = [0u8; 16];
        slot[..text.len()].copy_from_slice(text.as_bytes());
        let len = tidy(&mut slot, text.len());
        String::from_utf8_lossy(&slot[..len]).into_owned()
    }

    #[test]
    fn a_missing_leading_zero_is_put_back() {
        for (given, expected) in [
            (".5", "0.5"),
            ("-.25", "-0.25"),
            ("1.5", "1.5"),
            ("-0", "-0"),
            ("", ""),
            (".", "."),
            ("-.", "-."),
        ] {
            assert_eq!(tidied(given), expected);
        }
    }
}
