//! Encodes values in PostgreSQL's binary COPY format. In this format, each value consists of its
//! length and its bytes.

use bytes::{BufMut, BytesMut};

use super::message::violation;
use super::parameters::{encode, is_binary, own};
use super::type_table::oid;
use crate::error::Error;
use crate::value::Value;

/// The header of the binary COPY format: its signature, no flags, no extension.
pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end of the data in the binary COPY format: the number -1, instead of the number of columns
/// of a further row.
pub(super) const TRAILER: i16 = -1;

/// The largest number of data bytes in a CopyData message of [`put_data`].
const PART_BYTES: usize = 64 << 10;

/// Encodes `rows` in the binary COPY format, and appends them to `data`. `types` has the object
/// identifiers of the columns' types. Returns `false` if a value has no binary encoding for the
/// type of its column.
pub(super) fn encode_rows(rows: &[Vec<Value>], types: &[u32], data: &mut BytesMut) -> bool {
    rows.iter().all(|values| {
        data.put_u16(u16::try_from(values.len()).unwrap_or_default());
        values.len() == types.len()
            && (values.iter().zip(types)).all(|(value, oid)| put(value, *oid, data))
    })
}

/// Appends CopyData messages with `data` to `out`. The server processes each message when it has
/// received it completely.
pub(super) fn put_data(data: &[u8], out: &mut BytesMut) -> Result<(), Error> {
    data.chunks(PART_BYTES)
        .try_for_each(|part| put_message(part, out))
}

/// Appends a CopyData message with `data` to `out`.
pub(super) fn put_message(data: &[u8], out: &mut BytesMut) -> Result<(), Error> {
    let len = i32::try_from(data.len() + 4).map_err(|_| violation("too long a message"))?;
    out.put_u8(b'd');
    out.put_i32(len);
    out.put_slice(data);
    Ok(())
}

/// Writes the length and the bytes of a value for a column of the type `column` (an object
/// identifier). Returns `false` if this module has no binary encoding for the value and the type;
/// `out` then contains an incomplete encoding.
pub(super) fn put(value: &Value, column: u32, out: &mut BytesMut) -> bool {
    let value = own(value);
    let at = out.len();
    out.put_i32(-1);
    match (value, column) {
        (Value::Null, _) => return true,
        (Value::Text(text), oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::JSON) => {
            out.put_slice(text.as_bytes());
        }
        (Value::Text(text), oid::JSONB) => {
            // The version number of the binary format of `jsonb`.
            out.put_u8(1);
            out.put_slice(text.as_bytes());
        }
        (Value::I64(n), oid::INT2) => match i16::try_from(*n) {
            Ok(n) => out.put_i16(n),
            Err(_) => return false,
        },
        // Every 32-bit integer is exact as a 64-bit float.
        (Value::I64(n), oid::FLOAT8) => match i32::try_from(*n) {
            Ok(n) => out.put_f64(n.into()),
            Err(_) => return false,
        },
        (Value::F64(f), oid::FLOAT4) => {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "the nearest one, as by the server"
            )]
            let nearest = *f as f32;
            if nearest.is_finite() != f.is_finite() || (nearest == 0.0 && *f != 0.0) {
                return false;
            }
            out.put_f32(nearest);
        }
        (Value::I64(n), oid::NUMERIC) => return put_numeric(&n.to_string(), at, out),
        (Value::Decimal(digits), oid::NUMERIC) => return put_numeric(digits, at, out),
        _ if is_binary(value, column) => {
            encode(value, column, out);
        }
        _ => return false,
    }
    set_len(at, out)
}

/// Writes the length of a value into the four bytes at offset `at` of `out`; the value consists of
/// all bytes after these four. Returns `false` if the length exceeds a signed 32-bit integer.
fn set_len(at: usize, out: &mut BytesMut) -> bool {
    match i32::try_from(out.len() - at - 4) {
        Ok(len) => {
            out[at..at + 4].copy_from_slice(&len.to_be_bytes());
            true
        }
        Err(_) => false,
    }
}

/// Writes a decimal in the binary format of `numeric`, as the server's function `numeric_recv`
/// reads it. The digits are divided into groups of four. The fields are the number of groups, the
/// exponent of the first group, the sign, the number of digits after the point, and the groups. The
/// length of the value is written at offset `at` of `out`. Returns `false` if `digits` is not a
/// decimal that this format can represent.
fn put_numeric(digits: &str, at: usize, out: &mut BytesMut) -> bool {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => (0x4000, rest),
        None => (0, digits),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 {
        return false;
    }
    let (Ok(scale), Ok(n_whole)) = (
        i16::try_from(fraction.len()),
        i16::try_from(whole.len().div_ceil(4)),
    ) else {
        return false;
    };
    let zeros = |n: usize| std::iter::repeat_n(b'0', n);
    let mut aligned = zeros(usize::from(n_whole.unsigned_abs()) * 4 - whole.len())
        .chain(whole.bytes())
        .chain(fraction.bytes())
        .chain(zeros(fraction.len().next_multiple_of(4) - fraction.len()));
    let mut groups = Vec::with_capacity((whole.len() + fraction.len()) / 4 + 2);
    while let Some(first) = aligned.next() {
        let group = aligned.by_ref().take(3);
        groups.push(group.fold(u16::from(first - b'0'), |n, b| n * 10 + u16::from(b - b'0')));
    }
    let (Ok(n_groups), false) = (u16::try_from(groups.len()), groups.len() > 0x7fff) else {
        return false;
    };
    out.put_u16(n_groups);
    out.put_i16(n_whole - 1);
    out.put_u16(sign);
    out.put_i16(scale);
    for group in groups {
        out.put_u16(group);
    }
    set_len(at, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numeric_is_groups_of_four_digits() {
        for (digits, groups, weight, scale) in [
            ("0", &[0][..], 0, 0),
            ("1", &[1], 0, 0),
            ("12345.678", &[1, 2345, 6780], 1, 3),
            ("0.0001", &[0, 1], 0, 4),
            (".5", &[5000], -1, 1),
        ] {
            for sign in ["", "-"] {
                let mut out = BytesMut::new();
                let value = Value::Decimal(format!("{sign}{digits}"));
                assert!(put(&value, oid::NUMERIC, &mut out));
                let words: Vec<i16> = out[4..]
                    .chunks_exact(2)
                    .map(|word| i16::from_be_bytes([word[0], word[1]]))
                    .collect();
                let n_groups = i16::try_from(groups.len()).unwrap();
                let sign = if sign.is_empty() { 0 } else { 0x4000 };
                assert_eq!(words[..4], [n_groups, weight, sign, scale], "{digits}");
                assert_eq!(words[4..], *groups, "{digits}");
                assert_eq!(out[..4], (8 + 2 * i32::from(n_groups)).to_be_bytes());
            }
        }
        for digits in ["", "-", "NaN", "1e5", "1.2.3", "+1"] {
            let value = Value::Decimal(digits.to_owned());
            assert!(!put(&value, oid::NUMERIC, &mut BytesMut::new()), "{digits}");
        }
    }
}
