//! Numbers, decimals, dates, times, UUIDs and binary values in JSON and CSV, compared with
//! reference implementations that only format and split strings.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use onecopy_text::{ByteSink, Window};
use onecopy_wire::datetime::{Date, Time, Timestamp};
use onecopy_wire::{NonFinite, WriteError, base64, csv, json};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    signed: i64,
    unsigned: u64,
    single: f32,
    double: f64,
    decimal: &'a [u8],
    date: (i32, u8, u8),
    time: (u8, u8, u8, u32, u8),
    offset_minutes: Option<i16>,
    uuid: [u8; 16],
    bytes: &'a [u8],
    cuts: [u8; 3],
}

const POLICIES: [NonFinite; 4] = [
    NonFinite::Error,
    NonFinite::Null,
    NonFinite::Text,
    NonFinite::Literal,
];

fuzz_target!(|input: Input<'_>| {
    let (signed, unsigned) = (input.signed, input.unsigned);
    same(|w| json::put_i64(signed, w), |w| csv::put_i64(signed, w), &signed.to_string());
    same(|w| json::put_u64(unsigned, w), |w| csv::put_u64(unsigned, w), &unsigned.to_string());
    floats(&input);
    // Any bytes, and the same bytes mapped to characters of decimals, which are valid more often.
    decimal(input.decimal);
    let letters = b"00123456789....++--eEnaifty";
    let likely: Vec<u8> = input.decimal.iter().map(|b| letters[usize::from(*b) % letters.len()]).collect();
    decimal(&likely);
    dates(&input);
    let hex: Vec<String> = input.uuid.iter().map(|b| format!("{b:02x}")).collect();
    let uuid = [&hex[..4], &hex[4..6], &hex[6..8], &hex[8..10], &hex[10..]].map(|p| p.concat()).join("-");
    let quoted = written(|w| json::put_uuid(&input.uuid, w));
    assert_eq!(quoted, format!("\"{uuid}\""));
    assert_eq!(written(|w| csv::put_uuid(&input.uuid, w)), uuid);
    binary(&input);
});

fn written(put: impl FnOnce(&mut Window<'_, Vec<u8>>)) -> String {
    let mut out = Vec::new();
    put(&mut out.window(json::SCALAR_BYTES).expect("memory"));
    String::from_utf8(out).expect("ASCII")
}

fn same(
    json: impl FnOnce(&mut Window<'_, Vec<u8>>),
    csv: impl FnOnce(&mut Window<'_, Vec<u8>>),
    expected: &str,
) {
    assert_eq!(written(json), expected);
    assert_eq!(written(csv), expected);
}

/// Returns the expected text of NaN or an infinity, in JSON and in CSV.
fn no_number(name: &str, policy: NonFinite) -> Result<(String, String), WriteError> {
    match policy {
        NonFinite::Null => Ok(("null".to_owned(), String::new())),
        NonFinite::Text => Ok((format!("\"{name}\""), name.to_owned())),
        NonFinite::Literal => Ok((name.to_owned(), name.to_owned())),
        _ => Err(WriteError::NonFinite),
    }
}

fn name(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "NaN",
        v if v.is_sign_negative() => "-Infinity",
        _ => "Infinity",
    }
}

fn floats(input: &Input<'_>) {
    for policy in POLICIES {
        let (mut a, mut b) = (Ok(()), Ok(()));
        let single = written(|w| a = json::put_f32(input.single, policy, w));
        let bare = written(|w| b = csv::put_f32(input.single, policy, w));
        if input.single.is_finite() {
            assert_eq!((a, b), (Ok(()), Ok(())));
            assert_eq!(single, bare);
            assert_eq!(single.parse::<f32>().map(f32::to_bits), Ok(input.single.to_bits()));
            shortest(&single, &format!("{:e}", input.single));
        } else {
            let expected = no_number(name(f64::from(input.single)), policy);
            assert_eq!(a.and(b).map(|()| (single, bare)), expected);
        }
        let (mut a, mut b) = (Ok(()), Ok(()));
        let double = written(|w| a = json::put_f64(input.double, policy, w));
        let bare = written(|w| b = csv::put_f64(input.double, policy, w));
        if input.double.is_finite() {
            assert_eq!((a, b), (Ok(()), Ok(())));
            assert_eq!(double, bare);
            assert_eq!(double.parse::<f64>().map(f64::to_bits), Ok(input.double.to_bits()));
            shortest(&double, &format!("{:e}", input.double));
        } else {
            assert_eq!(a.and(b).map(|()| (double, bare)), no_number(name(input.double), policy));
        }
    }
}

/// Asserts that a text is a JSON number with as many digits as the standard library's shortest
/// form.
fn shortest(text: &str, scientific: &str) {
    let _: serde_json::Number = serde_json::from_str(text).expect("a JSON number");
    let n_digits = |s: &str| {
        let mantissa: String = s.split('e').next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
        mantissa.trim_matches('0').len()
    };
    assert_eq!(n_digits(text), n_digits(scientific), "{text} {scientific}");
}

fn decimal(bytes: &[u8]) {
    for policy in POLICIES {
        let (mut out, mut bare) = (Vec::new(), Vec::new());
        let result = json::write_decimal(bytes, policy, &mut out);
        assert_eq!(csv::write_decimal(bytes, policy, &mut bare), result);
        let got = result.map(|()| (text(out), text(bare)));
        let expected = match std::str::from_utf8(bytes).ok().and_then(plain_decimal) {
            Some(number) => Ok((number.clone(), number)),
            None => match bytes.to_ascii_lowercase().as_slice() {
                b"nan" => no_number("NaN", policy),
                b"inf" | b"infinity" | b"+infinity" => no_number("Infinity", policy),
                b"-inf" | b"-infinity" => no_number("-Infinity", policy),
                _ => Err(WriteError::NotADecimal),
            },
        };
        assert_eq!(got, expected, "{}", bytes.escape_ascii());
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

/// Converts a decimal to JSON's form by splitting strings; `None` if it is not a decimal.
fn plain_decimal(text: &str) -> Option<String> {
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
    if !exponent.is_empty() {
        let digits = exponent[1..].strip_prefix(['+', '-']).unwrap_or(&exponent[1..]);
        if digits.is_empty() || !is_digits(digits) {
            return None;
        }
    }
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}{exponent}"))
}

fn dates(input: &Input<'_>) {
    // The fields unchanged, and reduced to values near their valid ranges.
    let (y, m, d) = input.date;
    let (h, min, s, ns, digits) = input.time;
    for near in [false, true] {
        let date = match near {
            false => Date { year: y, month: m, day: d },
            true => Date { year: y.rem_euclid(10_010) - 5, month: m % 14, day: d % 33 },
        };
        let time = match near {
            false => Time { hour: h, minute: min, second: s, nanosecond: ns },
            true => Time {
                hour: h % 26,
                minute: min % 61,
                second: s % 62,
                // Often the last digits are zeros.
                nanosecond: ns % 1_000_000_001 / 10_u32.pow(u32::from(d % 10)) * 10_u32.pow(u32::from(d % 10)),
            },
        };
        let digits = if near { digits % 11 } else { digits };
        let offset_minutes = input.offset_minutes.map(|o| if near { o % 1500 } else { o });
        let stamp = Timestamp { date, time, offset_minutes };
        let short = |r: Result<onecopy_wire::inline_text::InlineText, WriteError>| r.map(|s| text(s.as_bytes().to_vec()));
        assert_eq!(short(date.to_short()), plain_date(date), "{date:?}");
        assert_eq!(short(time.to_short(digits)), plain_time(time, digits), "{time:?} {digits}");
        let expected = plain_date(date).and_then(|d| {
            let offset = match offset_minutes.map(i32::from) {
                None => String::new(),
                Some(o) if o.abs() < 1440 => {
                    format!("{}{:02}:{:02}", if o < 0 { '-' } else { '+' }, o.abs() / 60, o.abs() % 60)
                }
                Some(_) => return plain_time(time, digits).and(Err(WriteError::NotADate)),
            };
            Ok(format!("{d}T{}{offset}", plain_time(time, digits)?))
        });
        assert_eq!(short(stamp.to_short(digits)), expected, "{stamp:?} {digits}");
    }
}

fn plain_date(date: Date) -> Result<String, WriteError> {
    let Date { year, month, day } = date;
    if !(0..=9999).contains(&year) {
        return Err(WriteError::YearOutOfRange(year));
    }
    let leap = (year % 4 == 0) ^ (year % 100 == 0) ^ (year % 400 == 0);
    let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    match days.get(usize::from(month).wrapping_sub(1)) {
        Some(last) if (1..=*last).contains(&day) => Ok(format!("{year:04}-{month:02}-{day:02}")),
        _ => Err(WriteError::NotADate),
    }
}

fn plain_time(t: Time, digits: u8) -> Result<String, WriteError> {
    let midnight = (t.hour, t.minute, t.second, t.nanosecond) == (24, 0, 0, 0);
    let fits = t.minute < 60 && t.second < 61 && t.nanosecond < 1_000_000_000 && digits < 10;
    if !fits || (t.hour > 23 && !midnight) {
        return Err(WriteError::NotADate);
    }
    let mut fraction = format!("{:09}", t.nanosecond);
    while fraction.ends_with('0') && fraction.len() > usize::from(digits) {
        fraction.pop();
    }
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{:02}:{:02}:{:02}{point}{fraction}", t.hour, t.minute, t.second))
}

fn binary(input: &Input<'_>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut expected = String::new();
    for group in input.bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            expected.push(if i <= group.len() { char::from(letter) } else { '=' });
        }
    }
    let mut out = Vec::new();
    json::write_base64(input.bytes, &mut out).expect("memory");
    assert_eq!(text(out), format!("\"{expected}\""));
    let mut cuts: Vec<usize> = input.cuts.iter().map(|c| usize::from(*c) % (input.bytes.len() + 1)).collect();
    cuts.extend([0, input.bytes.len()]);
    cuts.sort_unstable();
    let (mut out, mut carry) = (Vec::new(), base64::Carry::default());
    for cut in cuts.windows(2) {
        carry.part(&input.bytes[cut[0]..cut[1]], &mut out).expect("memory");
    }
    carry.end(&mut out).expect("memory");
    assert_eq!(text(out), expected);
}
