//! [`coding_quality`]: the weight that a client gives to a content coding (RFC 9110, section
//! 12.5.3).

use super::field::trim;

/// Returns the weight, in thousandths, that a client gives to the content coding `name`. `fields`
/// are the values of the `Accept-Encoding` fields of the request. The weight is 0 if the client
/// does not accept the coding. List elements with invalid syntax are ignored.
pub fn coding_quality<'a>(fields: impl IntoIterator<Item = &'a [u8]>, name: &str) -> u16 {
    let (mut named, mut any) = (None, None);
    for element in fields
        .into_iter()
        .flat_map(|value| value.split(|b| *b == b','))
    {
        let mut parts = element.split(|b| *b == b';').map(trim);
        let coding = match parts.next().unwrap_or_default() {
            // RFC 9110, section 8.4.1.3: `x-gzip` is equivalent to `gzip`.
            alias if alias.eq_ignore_ascii_case(b"x-gzip") => b"gzip",
            coding => coding,
        };
        let quality = match (parts.next(), parts.next()) {
            (None, _) => Some(1000),
            (Some(weight), None) => self::quality(weight),
            _ => None,
        };
        let Some(quality) = quality else {
            continue;
        };
        if coding.eq_ignore_ascii_case(name.as_bytes()) {
            named.get_or_insert(quality);
        } else if coding == b"*" {
            any.get_or_insert(quality);
        }
    }
    named.or(any).unwrap_or(0)
}

/// Parses a weight such as `q=0.25` (RFC 9110, section 12.4.2) and returns it in thousandths, 250
/// in this example. Returns `None` if the syntax is invalid.
fn quality(weight: &[u8]) -> Option<u16> {
    let (b'q' | b'Q', value) = (*weight.first()?, weight.get(1..)?.strip_prefix(b"=")?) else {
        return None;
    };
    let (whole, digits) = match value {
        [whole] => (whole, &value[..0]),
        [whole, b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return None,
    };
    let thousandths = [100, 10, 1]
        .iter()
        .zip(digits)
        .map(|(unit, digit)| unit * u16::from(digit.wrapping_sub(b'0')))
        .sum();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    match (whole, thousandths) {
        (b'0', n) => Some(n),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_coding_or_of_all_others() {
        for (value, expected) in [
            ("gzip", 1000),
            ("br, GZIP;q=0.5", 500),
            ("br;q=1.0, gzip ; q=0.001", 1),
            ("*", 1000),
            ("gzip;q=0, *", 0),
            ("*;q=0", 0),
            ("br, *;q=0.25", 250),
            ("", 0),
            ("identity", 0),
            ("x-gzip", 1000),
            ("br, X-GZip;q=0.5, *", 500),
            ("x-gzip2", 0),
            ("gzip;q=2", 0),
            ("gzip;q=1.001", 0),
            ("gzip;q=0.1234", 0),
            ("gzip;q=", 0),
            ("gzip;level=3", 0),
            ("gzip;q=0.5;q=1", 0),
            ("gzip;q=0.x, gzip;q=0.2", 200),
            ("gzip;q=1.", 1000),
        ] {
            assert_eq!(
                coding_quality([value.as_bytes()], "gzip"),
                expected,
                "{value}"
            );
        }
        assert_eq!(coding_quality([&b"br"[..], b"gzip;q=0.3"], "gzip"), 300);
    }
}
