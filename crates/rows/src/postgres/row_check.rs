//! Checks the lengths and the values of a row once, so that the code that later reads the values
//! needs no checks.

use super::date_time;
use super::message::violation;
use super::types::Kind;
use crate::error::Error;
use crate::money_text;

/// The size in bytes of the field at the start of a row that contains the number of columns.
pub(super) const COUNT_BYTES: usize = 2;

/// Returns the four bytes at offset `at`, such as a length or a 32-bit number. Panics if `bytes` is
/// too short.
#[inline]
pub(super) fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    four
}

pub(super) fn eight(value: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.copy_from_slice(value);
    eight
}

/// The reason why a row violates the protocol, as the text that follows "a row" in the error
/// message. Unlike an [`Error`], it fits into registers, so the checks of values can be inlined.
pub(super) type Fault = &'static str;

/// Creates the error for a row with the given fault.
#[cold]
pub(super) fn wrong(fault: Fault) -> Error {
    violation(format_args!("a row {fault}"))
}

/// Returns an error unless `n_columns` is the number of columns at the start of `body`, the body of
/// a DataRow message.
#[inline(always)]
pub(super) fn check_count(body: &[u8], n_columns: usize) -> Result<(), Fault> {
    match body.len() >= COUNT_BYTES
        && usize::from(u16::from_be_bytes([body[0], body[1]])) == n_columns
    {
        true => Ok(()),
        false => Err("has not as many columns as were described"),
    }
}

/// Returns the length of the value whose length field is at offset `at` of a row; `None` for NULL.
/// `n_left` is the number of bytes of the row from `at` on.
#[inline(always)]
pub(super) fn value_len(
    bytes: &[u8],
    at: usize,
    n_left: usize,
    kind: Kind,
) -> Result<Option<usize>, Fault> {
    let len = i32::from_be_bytes(four(bytes, at));
    if len == -1 {
        return Ok(None);
    }
    let len = usize::try_from(len).map_err(|_| "has a negative length")?;
    if len > n_left - 4 {
        return Err("is shorter than its values");
    }
    let width = usize::from(kind.width());
    if width != 0 && width != len {
        return Err("has a value of the wrong size for its type");
    }
    Ok(Some(len))
}

/// Checks the contents of a value. Returns an error for a time of day that is not within a day.
/// Replaces the text of an amount of `money` in place by a plain decimal number. For values of
/// other kinds, the check of their length is sufficient.
#[inline(always)]
pub(super) fn check_value(kind: Kind, value: &mut [u8]) -> Result<(), Fault> {
    match kind {
        Kind::Time(_) => {
            let micros = i64::from_be_bytes(eight(value));
            if !(0..=date_time::DAY).contains(&micros) {
                return Err("has a time that is not within a day");
            }
        }
        Kind::Money => money_text::to_digits(value),
        _ => {}
    }
    Ok(())
}

/// Checks the body of a row. It must contain one value for each column, and each value must have a
/// size that the type of its column permits. Amounts of money are rewritten in place.
#[inline]
pub(super) fn check(body: &mut [u8], kinds: &[Kind]) -> Result<(), Fault> {
    check_count(body, kinds.len())?;
    let mut at = COUNT_BYTES;
    for kind in kinds {
        let n_left = body.len() - at;
        if n_left < 4 {
            return Err("is shorter than its values");
        }
        let len = value_len(body, at, n_left, *kind)?;
        at += 4;
        if let Some(len) = len {
            check_value(*kind, &mut body[at..at + len])?;
            at += len;
        }
    }
    match at == body.len() {
        true => Ok(()),
        false => Err("is longer than its values"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in values {
            let len = value.map_or(-1, |v| i32::try_from(v.len()).unwrap());
            body.extend_from_slice(&len.to_be_bytes());
            body.extend_from_slice(value.unwrap_or_default());
        }
        body
    }

    #[test]
    fn rows_that_lie_are_errors() {
        let kinds = [Kind::I32, Kind::Text];
        let right = row(&[Some(&[0, 0, 0, 1]), None]);
        assert!(check(&mut right.clone(), &kinds).is_ok());
        for n in 0..right.len() {
            assert!(
                check(&mut right[..n].to_vec(), &kinds).is_err(),
                "{n} bytes"
            );
        }
        for wrong in [
            row(&[Some(&[0, 0, 0, 1])]),
            row(&[Some(&[0, 0, 1]), None]),
            [&right[..], &[0]].concat(),
            [&[0, 2][..], &[0xff, 0xff, 0xff, 0xfe], &[0, 0, 0, 0]].concat(),
            [&[0, 2][..], &[0x7f, 0xff, 0xff, 0xff], &[0, 0, 0, 0]].concat(),
        ] {
            assert!(check(&mut wrong.clone(), &kinds).is_err(), "{wrong:x?}");
        }
        let late = row(&[Some(&(date_time::DAY + 1).to_be_bytes())]);
        assert!(check(&mut late.clone(), &[Kind::Time(6)]).is_err());
    }
}
