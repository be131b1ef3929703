//! Converts values to plain text: dates, times and UUIDs in the form of SQL. Parses UUIDs from text,
//! for databases that have no type for UUIDs.

use onecopy_text::{Policy, Units, convert};

use crate::cell::{Cell, Date, Time, Timestamp};

/// Returns a value as text. Returns `None` for NULL, for a binary value (it has no text encoding),
/// for malformed text, and for [`Date::OTHER_STYLE`]. The fields of dates and times are not
/// validated.
#[must_use]
pub fn plain_text(cell: Cell<'_>) -> Option<String> {
    if let Cell::Date(date) | Cell::Timestamp(Timestamp { date, .. }, _) = cell {
        match date.infinity() {
            Some(name) => return Some(name.to_owned()),
            None if date == Date::OTHER_STYLE => return None,
            None => {}
        }
    }
    Some(match cell.or_text() {
        Cell::Null | Cell::Bytes(_) => return None,
        Cell::Bool(b) => b.to_string(),
        Cell::I64(n) => n.to_string(),
        Cell::U64(n) => n.to_string(),
        Cell::F32(n) => n.to_string(),
        Cell::F64(n) => n.to_string(),
        Cell::Decimal(digits) => String::from_utf8_lossy(digits).into_owned(),
        Cell::Text(units) => text(units)?,
        Cell::Date(d) => date_text(d),
        Cell::Time(t, digits) => time_text(t, digits),
        Cell::Timestamp(t, digits) => timestamp_text(t, digits),
        Cell::Uuid(uuid) => uuid_text(&uuid),
        Cell::Json(_)
        | Cell::Array(_)
        | Cell::Range(_)
        | Cell::Interval { .. }
        | Cell::TimeTz { .. } => unreachable!("`or_text` made them text"),
    })
}

fn text(units: Units<'_>) -> Option<String> {
    let mut bytes = Vec::new();
    convert::to_utf8(units, Policy::Strict, &mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns a date as `YYYY-MM-DD`, with a minus sign for a year before 0.
pub(crate) fn date_text(d: Date) -> String {
    let sign = if d.year < 0 { "-" } else { "" };
    let year = d.year.unsigned_abs();
    format!("{sign}{year:04}-{:02}-{:02}", d.month, d.day)
}

/// Returns a time as `HH:MM:SS[.fraction]`, with exactly `digits` digits of the fraction.
pub(crate) fn time_text(t: Time, digits: u8) -> String {
    let mut made = format!("{:02}:{:02}:{:02}", t.hour, t.minute, t.second);
    if digits > 0 {
        let fraction = format!("{:09}", t.nanosecond);
        made.push('.');
        made.push_str(&fraction[..usize::from(digits.min(9))]);
    }
    made
}

/// Returns the smallest number of decimal digits that represents the time's fraction of a second
/// exactly.
pub(crate) fn n_digits(t: Time) -> u8 {
    let fits = |n: &u8| t.nanosecond.is_multiple_of(10_u32.pow(9 - u32::from(*n)));
    (0..9).find(fits).unwrap_or(9)
}

/// Returns an offset in minutes as `±HH:MM`; an empty string for a timestamp without an offset.
pub(crate) fn offset_text(offset_minutes: Option<i16>) -> String {
    offset_minutes.map_or_else(String::new, |offset| {
        let sign = if offset < 0 { '-' } else { '+' };
        let minutes = offset.unsigned_abs();
        format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    })
}

/// Returns a timestamp as `YYYY-MM-DD HH:MM:SS[.fraction][±HH:MM]`, with exactly `digits` digits of
/// the fraction.
pub(crate) fn timestamp_text(t: Timestamp, digits: u8) -> String {
    let (date, time) = (date_text(t.date), time_text(t.time, digits));
    format!("{date} {time}{}", offset_text(t.offset_minutes))
}

/// Returns a UUID in lower-case hexadecimal with hyphens.
pub(crate) fn uuid_text(uuid: &[u8; 16]) -> String {
    let n = u128::from_be_bytes(*uuid);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        n >> 96,
        n >> 80 & 0xFFFF,
        n >> 64 & 0xFFFF,
        n >> 48 & 0xFFFF,
        n & 0xFFFF_FFFF_FFFF
    )
}

/// Parses a UUID from 32 hexadecimal digits, with or without hyphens; `None` for text in another
/// form.
pub(crate) fn parse_uuid(text: &[u8]) -> Option<[u8; 16]> {
    let (mut uuid, mut n_digits) = ([0_u8; 16], 0);
    for b in text {
        if *b == b'-' {
            continue;
        }
        let digit = char::from(*b).to_digit(16)? as u8;
        let byte = uuid.get_mut(n_digits / 2)?;
        *byte = *byte << 4 | digit;
        n_digits += 1;
    }
    (n_digits == 32).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_plain_text() {
        let uuid: [u8; 16] = std::array::from_fn(|i| i as u8 * 17);
        let text = plain_text(Cell::Uuid(uuid)).unwrap();
        assert_eq!(text, "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(parse_uuid(text.as_bytes()), Some(uuid));
        for wrong in [
            "",
            "0",
            "00112233-4455-6677-8899-aabbccddeefg",
            &text.repeat(2),
        ] {
            assert_eq!(parse_uuid(wrong.as_bytes()), None);
        }
        assert_eq!(plain_text(Cell::F64(0.1)).as_deref(), Some("0.1"));
        assert_eq!(plain_text(Cell::Bytes(b"x")), None);
        let t = Time {
            hour: 1,
            minute: 2,
            second: 3,
            nanosecond: 40_000_000,
        };
        assert_eq!(
            plain_text(Cell::Time(t, 3)).as_deref(),
            Some("01:02:03.040")
        );
        let stamp = Timestamp {
            date: Date {
                year: -44,
                month: 3,
                day: 15,
            },
            time: t,
            offset_minutes: Some(-210),
        };
        assert_eq!(timestamp_text(stamp, 0), "-0044-03-15 01:02:03-03:30");
        for (nanosecond, digits) in [(0, 0), (40_000_000, 2), (1000, 6), (1, 9)] {
            assert_eq!(n_digits(Time { nanosecond, ..t }), digits);
        }
    }
}
