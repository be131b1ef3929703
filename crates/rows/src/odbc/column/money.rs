//! `Money`: the column kind of PostgreSQL's `money`, bound as text. psqlodbc describes it as a
//! float, and returns text in the format of the server's `lc_monetary` (`-$1,234.50`, `1.234,50
//! €`).

use super::spec::{ColumnBinding, Raw, Spec};
use crate::cell::Cell;
use crate::schema::ColumnType;

/// An amount of money, bound as text. [`tidy`] rewrites the text in its buffer as a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Money;

impl Money {
    pub(crate) fn plan() -> ColumnBinding<Self> {
        let column_type = ColumnType::Decimal {
            precision: 19,
            scale: 2,
        };
        (Money, Spec::digits(64), column_type)
    }

    #[inline]
    pub(crate) fn cell<'b>(&self, raw: Raw<'b>) -> Cell<'b> {
        Cell::Decimal(raw.bytes())
    }
}

/// Rewrites an amount of money in its buffer as a decimal: sign, digits and decimal point. `len` is
/// the length of the text in bytes; returns the new length.
///
/// The last `.` or `,` is the decimal separator if one or two digits follow it, if the other of the
/// two characters precedes it, or if all digits before it are zero. Otherwise it separates
/// thousands. In a locale with three decimals, an amount such as `1.500` is therefore misread as
/// 1500.
pub(crate) fn tidy(slot: &mut [u8], len: usize) -> usize {
    let text = &slot[..len];
    let negative = text.contains(&b'-') || text.contains(&b'(');
    let digits_after = |at: usize| text[at + 1..].iter().filter(|b| b.is_ascii_digit()).count();
    let separates_decimals = |at: &usize| {
        let before = &text[..*at];
        let has_other = before
            .iter()
            .any(|b| matches!(b, b'.' | b',') && *b != text[*at]);
        let is_below_one =
            before.contains(&b'0') && !before.iter().any(|b| matches!(b, b'1'..=b'9'));
        matches!(digits_after(*at), 1 | 2) || has_other || is_below_one
    };
    let separator = text
        .iter()
        .rposition(|b| matches!(b, b'.' | b','))
        .filter(separates_decimals);
    let mut out = [0u8; 64];
    let mut n = 0;
    if negative {
        out[0] = b'-';
        n = 1;
    }
    for (at, b) in text.iter().enumerate() {
        let keep = if Some(at) == separator { b'.' } else { *b };
        if (b.is_ascii_digit() || Some(at) == separator) && n < out.len() {
            out[n] = keep;
            n += 1;
        }
    }
    let n = n.min(slot.len());
    slot[..n].copy_from_slice(&out[..n]);
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_of_several_locales_becomes_digits() {
        for (given, expected) in [
            ("$12.34", "12.34"),
            ("-$1,234,567.50", "-1234567.50"),
            ("($3.00)", "-3.00"),
            ("1.234,50 €", "1234.50"),
            ("¥1,234", "1234"),
            ("$0.00", "0.00"),
            ("1,234.500 BD", "1234.500"),
            ("-0.250 BD", "-0.250"),
        ] {
            let mut slot = [0u8; 64];
            slot[..given.len()].copy_from_slice(given.as_bytes());
            let len = tidy(&mut slot, given.len());
            assert_eq!(std::str::from_utf8(&slot[..len]).unwrap(), expected);
        }
    }
}
