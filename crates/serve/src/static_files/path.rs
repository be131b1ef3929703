//! The path of a request as that of a file: decoded once, and refused where another reader could take it for another one.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

/// What of a decoded path is encoded again.
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

/// A path that names no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// A `%` without two digits, or a NUL.
    Malformed,
    /// A `/` that was encoded: it may be part of no name.
    Slash,
}

/// `path` with its `%41` as `A`, once. Copies: one, where there is such.
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

/// A decoded path as it stands in a field.
#[must_use]
pub fn encoded(path: &[u8]) -> String {
    percent_encode(path, PATH).to_string()
}

/// A decoded path without its first `/`, if it may name something below a folder: no name is empty but the last one, none is `.` or
/// `..`, holds a NUL or a backslash, or begins with a dot, but where `hidden` ones are served.
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
