//! Converts the text of PostgreSQL's `money`, which the setting `lc_monetary` formats, to a decimal.

use onecopy_text::Units;

use crate::cell::Cell;

/// Rewrites an amount of money such as `-$1,234.50` to its digits (`-1234.50`), in place. The
/// removed characters become leading spaces, so the length stays the same. An amount in any other
/// format, such as that of another `lc_monetary`, is not changed.
pub(crate) fn to_digits(amount: &mut [u8]) {
    let is_expected = |b: &u8| b.is_ascii_digit() || matches!(b, b'-' | b'$' | b',' | b'.');
    let n_points = amount.iter().filter(|b| **b == b'.').count();
    let has_cents = amount.len() > 3 && amount[amount.len() - 3] == b'.';
    if !amount.iter().all(is_expected) || n_points != 1 || !has_cents {
        return;
    }
    let mut to = amount.len();
    for from in (0..amount.len()).rev() {
        let b = amount[from];
        if !matches!(b, b'$' | b',') {
            to -= 1;
            amount[to] = b;
        }
    }
    amount[..to].fill(b' ');
}

/// Converts an amount that [`to_digits`] has rewritten to a cell: a decimal, or the server's text if
/// its format is unknown.
#[inline]
pub(crate) fn cell(amount: &[u8]) -> Cell<'_> {
    let is_decimal = |b: &u8| b.is_ascii_digit() || matches!(b, b'-' | b'.');
    match amount.iter().position(|b| *b != b' ') {
        Some(at) if amount[at..].iter().all(is_decimal) => Cell::Decimal(&amount[at..]),
        _ => Cell::Text(Units::Utf8(amount)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_its_digits_where_its_form_is_known() {
        for (amount, expected) in [
            ("$1,234.50", Some("1234.50")),
            ("-$0.05", Some("-0.05")),
            ("$92,233,720,368,547,758.07", Some("92233720368547758.07")),
            ("1.234,50 €", None),
            ("¥5", None),
        ] {
            let mut bytes = amount.as_bytes().to_vec();
            to_digits(&mut bytes);
            match (cell(&bytes), expected) {
                (Cell::Decimal(digits), Some(expected)) => assert_eq!(digits, expected.as_bytes()),
                (Cell::Text(Units::Utf8(text)), None) => assert_eq!(text, amount.as_bytes()),
                (cell, _) => panic!("{amount} is {cell:?}"),
            }
        }
    }
}
