//! Parses the texts of parameters as values. Each type accepts only the formats that its
//! documentation lists.

use onecopy_rows::{Date, Time, Timestamp};

pub(super) fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    digits(whole) && digits(fraction)
}

/// Parses a text of exactly `n` ASCII digits as a number; returns `None` for other text.
fn digits(text: &str, n: usize) -> Option<u32> {
    (text.len() == n && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

pub(super) fn date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    let date = Date {
        year: year as i32,
        month: month as u8,
        day: day as u8,
    };
    (year >= 1 && date.is_in_calendar()).then_some(date)
}

pub(super) fn time(text: &str) -> Option<Time> {
    let mut parts = text.splitn(3, ':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let (second, fraction) = match parts.next() {
        None => (0, None),
        Some(s) => match s.split_once('.') {
            None => (digits(s, 2)?, None),
            Some((s, fraction)) => (digits(s, 2)?, Some(fraction)),
        },
    };
    let nanosecond = match fraction {
        None => 0,
        Some(f) if (1..=9).contains(&f.len()) => {
            digits(f, f.len())? * 10_u32.pow(9 - f.len() as u32)
        }
        Some(_) => return None,
    };
    (hour <= 23 && minute <= 59 && second <= 59).then_some(Time {
        hour: hour as u8,
        minute: minute as u8,
        second: second as u8,
        nanosecond,
    })
}

pub(super) fn timestamp(text: &str) -> Option<Timestamp> {
    let (day, rest) = text.split_once(['T', 't', ' '])?;
    let (clock, offset_minutes) = if let Some(clock) = rest.strip_suffix(['Z', 'z']) {
        (clock, Some(0))
    } else if let Some(i) = rest.rfind(['+', '-']) {
        let (hours, minutes) = rest[i + 1..].split_once(':')?;
        let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
        if hours > 23 || minutes > 59 {
            return None;
        }
        let offset = (hours * 60 + minutes) as i16;
        (
            &rest[..i],
            Some(if rest[i..].starts_with('-') {
                -offset
            } else {
                offset
            }),
        )
    } else {
        (rest, None)
    };
    Some(Timestamp {
        date: date(day)?,
        time: time(clock)?,
        offset_minutes,
    })
}

pub(super) fn uuid(text: &str) -> Option<[u8; 16]> {
    let hyphens: Vec<usize> = text.match_indices('-').map(|(i, _)| i).collect();
    if !hyphens.is_empty() && hyphens != [8, 13, 18, 23] {
        return None;
    }
    let hex: Vec<u8> = text
        .chars()
        .filter(|&c| c != '-')
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    let mut bytes = [0; 16];
    if hex.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(bytes)
}
