//! Conversion of the path of a request to a file path. The path is percent-decoded once. A path
//! that another parser could interpret differently is rejected.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

/// The characters of a decoded path that are percent-encoded when the path becomes a header field
/// value.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// The reason why the path of a request cannot denote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The path has a `%` without two hexadecimal digits, or contains NUL.
    Malformed,
    /// The path contains `%2F`, a percent-encoded `/`. No file name can contain a `/`.
    Slash,
}

/// Percent-decodes `path` once. Copies: the bytes are copied only if the path contains a
/// percent-encoded byte.
///
/// # Errors
/// [`PathError`].
pub fn decoded(path: &[u8]) -> Result<Cow<'_, [u8]>, PathError> {
    for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'%') {
        match path.get(at + 1..at + 3) {
            Some([b'2', b'f' | b'F']) => return Err(PathError::Slash),
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => {}
            _ => return Err(PathError::Malformed),
        }
    }
    let decoded: Cow<'_, [u8]> = percent_decode(path).into();
    match decoded.contains(&0) {
        true => Err(PathError::Malformed),
        false => Ok(decoded),
    }
}

/// Percent-encodes a decoded path, so that it can be the value of a header field.
#[must_use]
pub fn encoded(path: &[u8]) -> String {
    percent_encode(path, PATH).to_string()
}

/// Returns a decoded path without its first `/`, or `None` if the path cannot denote a file below a
/// folder. Only the last name of the path may be empty. No name may be `.` or `..`, or contain a
/// NUL or a backslash. Unless `hidden` is `true`, no name may begin with a dot.
pub(super) fn relative(path: &[u8], hidden: bool) -> Option<&[u8]> {
    let path = path.strip_prefix(b"/")?;
    let mut names = path.split(|b| *b == b'/').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let is_wrong = match name {
            b"" => !is_last,
            b"." | b".." => true,
            [b'.', ..] if !hidden => true,
            name => name.iter().any(|b| matches!(b, b'\\' | 0)),
        };
        if is_wrong {
            return None;
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once() {
        let is = |path: &str, expected: &[u8]| {
            assert_eq!(decoded(path.as_bytes()).unwrap(), expected, "{path}")
        };
        is("/a%20b/%C3%A9%ff", b"/a b/\xC3\xA9\xFF");
        is("/%252e%252e/a", b"/%2e%2e/a");
        is("/%252fa", b"/%2fa");
        is("/%2E%2e/a", b"/../a");
        is("/%5c", b"/\\");
        for path in ["/%", "/a%2", "/%zz", "/%+1", "/%00", "/a%00.html", "/% 1"] {
            assert_eq!(
                decoded(path.as_bytes()),
                Err(PathError::Malformed),
                "{path}"
            );
        }
        for path in ["/%2f", "/a%2Fb", "/..%2f..%2fetc"] {
            assert_eq!(decoded(path.as_bytes()), Err(PathError::Slash), "{path}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for path in [
            "/", "/a", "/a/b.c", "/a/", "/a..b", "/a.", "/ ", "/%2e%2e", "/a:b", "/\u{e9}",
        ] {
            assert_eq!(
                relative(path.as_bytes(), false),
                Some(&path.as_bytes()[1..]),
                "{path}"
            );
        }
        for path in [
            "",
            "a",
            "//",
            "//a",
            "/a//b",
            "/.",
            "/..",
            "/../a",
            "/a/../b",
            "/a/..",
            "/a/./b",
            "/a\\b",
            "/..\\a",
            "\\a",
            "/a\0",
            "/.git/config",
            "/a/.b",
            "/...",
            "*",
            "http://a/",
        ] {
            assert_eq!(relative(path.as_bytes(), false), None, "{path}");
        }
        for path in ["/.git/config", "/.b", "/..."] {
            assert_eq!(
                relative(path.as_bytes(), true),
                Some(&path.as_bytes()[1..]),
                "{path}"
            );
        }
        assert_eq!(
            (relative(b"/..", true), relative(b"/.", true)),
            (None, None)
        );
    }
}
