//! Converts values to plain text, for a caller that requests text. Parses UUIDs from text, for
//! databases that have no type for UUIDs.

use onecopy_text::{Policy, Units, convert};

use crate::cell::{Cell, Date, Time};

/// Returns a value as text; `None` for NULL, and for binary values, which have no encoding.
pub(crate) fn plain_text(cell: Cell<'_>) -> Option<String> {
    Some(match cell.or_text() {
        Cell::Null | Cell::Bytes(_) => return None,
        Cell::Bool(b) => b.to_string(),
        Cell::I64(n) => n.to_string(),
        Cell::U64(n) => n.to_string(),
        Cell::F32(n) => n.to_string(),
        Cell::F64(n) => n.to_string(),
        Cell::Decimal(digits) => String::from_utf8_lossy(digits).into_owned(),
        Cell::Text(units) => text(units)?,
        Cell::Date(d) => date(d),
        Cell::Time(t, digits) => time(t, digits),
        Cell::Timestamp(t, digits) => {
            let mut made = format!("{} {}", date(t.date), time(t.time, digits));
            if let Some(offset) = t.offset_minutes {
                let sign = if offset < 0 { '-' } else { '+' };
                let minutes = offset.unsigned_abs();
                made.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
            }
            made
        }
        Cell::Uuid(uuid) => {
            let hex =
                |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
            let parts = [
                &uuid[..4],
                &uuid[4..6],
                &uuid[6..8],
                &uuid[8..10],
                &uuid[10..],
            ];
            parts.map(hex).join("-")
        }
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

fn date(d: Date) -> String {
    let sign = if d.year < 0 { "-" } else { "" };
    let year = d.year.unsigned_abs();
    format!("{sign}{year:04}-{:02}-{:02}", d.month, d.day)
}

fn time(t: Time, digits: u8) -> String {
    let mut made = format!("{:02}:{:02}:{:02}", t.hour, t.minute, t.second);
    if digits > 0 {
        let fraction = format!("{:09}", t.nanosecond);
        made.push('.');
        made.push_str(&fraction[..usize::from(digits.min(9))]);
    }
    made
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
    }
}
