//! Validation of field names, field values and authorities (RFC 9110, section 5; RFC 3986, section
//! 3.2).

const TOKEN: u8 = 1;
const VALUE: u8 = 2;
const HOST: u8 = 4;

/// For each byte, the character classes to which it belongs: a combination of the bits [`TOKEN`],
/// [`VALUE`] and [`HOST`].
const CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        if c.is_ascii_alphanumeric() || is_in(c, b"!#$%&'*+-.^_`|~") {
            table[b] |= TOKEN;
        }
        if c == b'\t' || (c >= b' ' && c != 0x7F) {
            table[b] |= VALUE;
        }
        if c.is_ascii_alphanumeric() || is_in(c, b"-._~!$&'()*+,;=%") {
            table[b] |= HOST;
        }
        b += 1;
    }
    table
};

const fn is_in(c: u8, set: &[u8]) -> bool {
    let mut i = 0;
    while i < set.len() {
        if set[i] == c {
            return true;
        }
        i += 1;
    }
    false
}

fn all(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|b| CLASS[usize::from(*b)] & class != 0)
}

/// Returns `true` if `bytes` is a token, which is the syntax of methods and field names (RFC 9110,
/// section 5.6.2).
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, TOKEN)
}

/// Returns `true` if a field value may contain all of `bytes`: visible ASCII, space, tab and bytes
/// from 0x80 on (RFC 9110, section 5.5).
#[must_use]
pub fn is_value(bytes: &[u8]) -> bool {
    all(bytes, VALUE)
}

/// Returns `true` if a line of a request head, apart from its CR LF, may contain `byte`.
#[inline]
#[must_use]
pub(crate) fn is_value_byte(byte: u8) -> bool {
    CLASS[usize::from(byte)] & VALUE != 0
}

/// Returns `bytes` without leading and trailing spaces and tabs (RFC 9110, section 5.6.3).
#[must_use]
pub fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Returns `true` if `bytes` is `host[:port]`, with a non-empty host and without user information.
#[must_use]
pub fn is_authority(bytes: &[u8]) -> bool {
    let (host, port) = match bytes {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|b| *b == b']') else {
                return false;
            };
            let (address, after) = (&rest[..end], &rest[end + 1..]);
            let port = match after {
                [] => &after[..0],
                [b':', port @ ..] => port,
                _ => return false,
            };
            let address = std::str::from_utf8(address).unwrap_or_default();
            return address.parse::<std::net::Ipv6Addr>().is_ok() && is_port(port);
        }
        _ => match bytes.iter().position(|b| *b == b':') {
            Some(at) => (&bytes[..at], &bytes[at + 1..]),
            None => (bytes, &bytes[..0]),
        },
    };
    !host.is_empty() && all(host, HOST) && is_port(port)
}

/// Returns `true` if `digits` is the number of a port (below 65536) or empty. RFC 3986 permits an
/// empty port.
fn is_port(digits: &[u8]) -> bool {
    digits.len() <= 5
        && digits.iter().all(u8::is_ascii_digit)
        && digits
            .iter()
            .fold(0_u32, |n, d| n * 10 + u32::from(d - b'0'))
            < 65536
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_have_a_host_and_a_numeric_port() {
        for good in [
            "a",
            "a.b:80",
            "127.0.0.1:8000",
            "[::1]",
            "[::1]:80",
            "a:",
            "x_y",
            "a%20b",
        ] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "", ":80", "a b", "a@b", "a:8x", "a:80:90", "[::1", "[::1]x", "[g]", "a/b", "a:65536",
            "a,\tb", "é", "[]", "a?b", "a#b", "a\\b",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn tokens_hold_no_separator() {
        assert!(is_token(b"X-a_b.c!#$%&'*+^`|~"));
        for bad in [
            &b""[..],
            b"a b",
            b"a:",
            b"a\x00",
            b"\xE9",
            b"a[]",
            b"a\"",
            b"(a)",
            b"a/b",
            b"a@b",
            b"a,",
            b"\x7F",
        ] {
            assert!(!is_token(bad), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn trim_takes_spaces_and_tabs_off_both_ends() {
        assert_eq!(trim(b" \ta b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
        assert_eq!(trim(b"\x0Ba"), b"\x0Ba");
    }
}
