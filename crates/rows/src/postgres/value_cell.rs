//! Converts a value of PostgreSQL, in binary or text format, to a [`Cell`]. The kind of the value's
//! column determines the format and the type of the cell.

use onecopy_text::Units;

use super::date_time;
use super::row_check::{eight, four};
use super::types::Kind;
use crate::array;
use crate::cell::{ArrayText, Cell, Date, ElementType, RangeText};
use crate::date_text::time_with_offset;
use crate::interval;
use crate::money_text;

/// Creates a cell of text.
pub(super) fn as_text(text: &str) -> Cell<'_> {
    Cell::Text(Units::Utf8(text.as_bytes()))
}

/// Converts a value that PostgreSQL has sent to a cell. `kind` is the kind of the value's column.
/// The caller must have checked that the length of the value is valid for this kind.
#[inline]
pub(super) fn cell(value: &[u8], kind: Kind) -> Cell<'_> {
    let infinity = |is_positive| match is_positive {
        true => Date::INFINITY,
        false => Date::MINUS_INFINITY,
    };
    match kind {
        Kind::Text => Cell::Text(Units::Utf8(value)),
        Kind::Bool => Cell::Bool(value[0] != 0),
        Kind::I16 => Cell::I64(i64::from(i16::from_be_bytes([value[0], value[1]]))),
        Kind::I32 => Cell::I64(i64::from(i32::from_be_bytes(four(value, 0)))),
        Kind::U32 => Cell::I64(i64::from(u32::from_be_bytes(four(value, 0)))),
        Kind::I64 => Cell::I64(i64::from_be_bytes(eight(value))),
        Kind::F32 => Cell::F32(f32::from_be_bytes(four(value, 0))),
        Kind::F64 => Cell::F64(f64::from_be_bytes(eight(value))),
        Kind::Bytes => Cell::Bytes(value),
        Kind::Uuid => {
            let mut uuid = [0; 16];
            uuid.copy_from_slice(value);
            Cell::Uuid(uuid)
        }
        Kind::Date => match i32::from_be_bytes(four(value, 0)) {
            days @ (i32::MAX | i32::MIN) => Cell::Date(infinity(days > 0)),
            days => Cell::Date(date_time::date_of_days(days)),
        },
        Kind::Time(digits) => Cell::Time(
            date_time::time_of_micros(i64::from_be_bytes(eight(value))),
            digits,
        ),
        Kind::Timestamp(digits) | Kind::TimestampUtc(digits) => {
            let offset = matches!(kind, Kind::TimestampUtc(_)).then_some(0);
            match i64::from_be_bytes(eight(value)) {
                micros @ (i64::MAX | i64::MIN) => {
                    Cell::Timestamp(infinity(micros > 0).midnight(offset), digits)
                }
                micros => Cell::Timestamp(date_time::timestamp_of_micros(micros, offset), digits),
            }
        }
        Kind::TimestampText(digits) => {
            let element = ElementType::TimestampTz(digits);
            array::cell(element, value).unwrap_or(Cell::Text(Units::Utf8(value)))
        }
        Kind::Json => Cell::Json(Units::Utf8(value)),
        Kind::Array(element) => Cell::Array(ArrayText {
            text: value,
            element,
            far_dates_as_text: false,
        }),
        Kind::Range(bound, is_multi) => Cell::Range(RangeText {
            text: value,
            bound,
            is_multi,
        }),
        Kind::Decimal => Cell::Decimal(value),
        Kind::Money => money_text::cell(value),
        Kind::Interval => interval::cell(value),
        Kind::TimeTz => time_with_offset(value).unwrap_or(Cell::Text(Units::Utf8(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cells_of_their_kind() {
        let date = crate::cell::Date {
            year: 2000,
            month: 1,
            day: 2,
        };
        let text = |t| Cell::Text(Units::Utf8(t));
        for (kind, value, expected) in [
            (Kind::Bool, &[1][..], Cell::Bool(true)),
            (Kind::I16, &[0xff, 0xfe], Cell::I64(-2)),
            (Kind::U32, &[0xff, 0xff, 0xff, 0xff], Cell::I64(0xffff_ffff)),
            (Kind::F64, &1.5f64.to_be_bytes(), Cell::F64(1.5)),
            (Kind::Date, &[0, 0, 0, 1], Cell::Date(date)),
            (
                Kind::Date,
                &[0x7f, 0xff, 0xff, 0xff],
                Cell::Date(Date::INFINITY),
            ),
            (
                Kind::Timestamp(6),
                &i64::MIN.to_be_bytes(),
                Cell::Timestamp(Date::MINUS_INFINITY.midnight(None), 6),
            ),
            (
                Kind::TimestampText(6),
                b"infinity",
                Cell::Timestamp(Date::INFINITY.midnight(Some(0)), 6),
            ),
            (Kind::Decimal, b"-1.50", Cell::Decimal(b"-1.50")),
            (Kind::Decimal, b"Infinity", Cell::Decimal(b"Infinity")),
            (Kind::Text, b"{1,2}", text(b"{1,2}")),
        ] {
            assert_eq!(cell(value, kind), expected, "{kind:?}");
        }
    }
}
