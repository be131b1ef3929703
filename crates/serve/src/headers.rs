//! [`Headers`]: the header fields of a response, stored as the bytes that will be sent.

use std::fmt;

/// The header fields of a response in one buffer, in the format in which they are sent. Each field
/// is validated when it is added. The buffer is copied once, into the head of the response.
#[derive(Clone, Default)]
pub struct Headers {
    /// The fields, each as `Name: value\r\n`.
    wire: Vec<u8>,
    has_date: bool,
}

/// The names of hop-by-hop fields, which describe one connection (RFC 9110, section 7.6.1). Only
/// the server may send them. `trailers` is in the list in addition to `trailer`, because PEP 3333
/// and RFC 2616 use this name.
const HOP_BY_HOP: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];

impl Headers {
    /// Appends a field. Its bytes are copied once, into the buffer of the fields.
    ///
    /// # Errors
    /// [`HeaderError`]. After an error, no field was appended.
    pub fn push(&mut self, name: &str, value: &[u8]) -> Result<(), HeaderError> {
        check_name(name)?;
        if is_reserved(name) {
            return Err(HeaderError::Reserved(name.to_owned()));
        }
        self.push_checked(name, value)
    }

    /// Appends a header field, which may be `Date`. The server then does not send its own `Date`.
    /// The caller must have checked that applications may set the field.
    pub(crate) fn push_with_date(&mut self, name: &str, value: &[u8]) -> Result<(), HeaderError> {
        check_name(name)?;
        if name.eq_ignore_ascii_case("date") && std::mem::replace(&mut self.has_date, true) {
            return Err(HeaderError::Reserved(name.to_owned()));
        }
        self.push_checked(name, value)
    }

    /// Returns `true` if one of the fields is `Date`.
    pub(crate) fn has_date(&self) -> bool {
        self.has_date
    }

    /// Returns an error if `value` is not a valid field value (RFC 9110, section 5.5). A valid
    /// value consists of visible characters, obs-text (bytes from 0x80 on), space and tab. A CR or
    /// LF would end the field and could start another one.
    pub(crate) fn check_value(name: &str, value: &[u8]) -> Result<(), HeaderError> {
        let is_bad = |b: &u8| (*b < b' ' && *b != b'\t') || *b == 0x7f;
        // All bytes are validated together, which is fast. The position of an invalid byte is
        // determined only if there is one.
        if !value.iter().fold(false, |bad, b| bad | is_bad(b)) {
            return Ok(());
        }
        Err(HeaderError::Value {
            name: name.to_owned(),
            at: value.iter().position(is_bad).unwrap_or(0),
        })
    }

    /// Returns `true` if the field `name` is a hop-by-hop field, which describes the connection.
    /// Only the server may send such a field.
    pub(crate) fn is_hop_by_hop(name: &str) -> bool {
        is_one_of(name, &HOP_BY_HOP)
    }

    /// Appends a field that was validated when `line` was created.
    pub(crate) fn push_line(&mut self, line: &FieldLine) {
        self.reserve(line.0.len());
        self.wire.extend_from_slice(&line.0);
    }

    /// Reserves space for `n_bytes` more bytes. The first call reserves 192 additional bytes, so
    /// that later fields need no new allocation.
    fn reserve(&mut self, n_bytes: usize) {
        self.wire.reserve(match self.wire.capacity() {
            0 => n_bytes + 192,
            _ => n_bytes,
        });
    }

    fn push_checked(&mut self, name: &str, value: &[u8]) -> Result<(), HeaderError> {
        Headers::check_value(name, value)?;
        self.reserve(name.len() + value.len() + 4);
        self.wire.extend_from_slice(name.as_bytes());
        self.wire.extend_from_slice(b": ");
        self.wire.extend_from_slice(value.trim_ascii());
        self.wire.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Returns the value of the first field with the name `name`; letter case is ignored.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Removes all fields whose name is in `names`; letter case is ignored.
    pub(crate) fn remove(&mut self, names: &[&str]) {
        let mut kept = Headers::default();
        for (name, value) in self.iter() {
            let is = |other: &&str| other.as_bytes().eq_ignore_ascii_case(name);
            if !names.iter().any(is) {
                for part in [name, b": ", value, b"\r\n"] {
                    kept.wire.extend_from_slice(part);
                }
                kept.has_date |= name.eq_ignore_ascii_case(b"date");
            }
        }
        *self = kept;
    }

    /// Returns the names and values of the fields, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.wire.split(|b| *b == b'\n').filter_map(|line| {
            let colon = line.iter().position(|b| *b == b':')?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        })
    }

    /// Returns the buffer of the fields, each with its CR LF, as they are sent. The bytes are not
    /// copied.
    pub(crate) fn into_wire(self) -> Vec<u8> {
        self.wire
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only names are printed: a value may be a cookie or a token.
        f.debug_list()
            .entries(self.iter().map(|(n, _)| String::from_utf8_lossy(n)))
            .finish()
    }
}

/// A header field in the format in which it is sent. It is validated once, when it is created, and
/// then used for many responses.
#[derive(Clone)]
pub struct FieldLine(Box<[u8]>);

impl FieldLine {
    /// Creates a field from a copy of `name` and `value`. The field must not be one that only the
    /// server may send.
    ///
    /// # Errors
    /// The errors of [`Headers::push`].
    pub fn new(name: &str, value: &[u8]) -> Result<FieldLine, HeaderError> {
        let mut headers = Headers::default();
        headers.push(name, value)?;
        Ok(FieldLine(headers.wire.into_boxed_slice()))
    }

    /// Returns the length of the field in bytes, including its line end.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for FieldLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is not printed: it may be a cookie or a token.
        write!(f, "a field of {} bytes", self.0.len())
    }
}

/// The reason why a response cannot have a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The name of a field is not a token (RFC 9110). The string is the name, with unprintable
    /// characters escaped. Choose another name.
    Name(String),
    /// The value of the field `name` contains a control character at byte `at`. Encode or remove
    /// the character.
    Value {
        /// The name of the invalid field.
        name: String,
        /// The index (from 0) of the byte of the control character in the value.
        at: usize,
    },
    /// The value of `Content-Length`, which this string contains, is not a number, or differs from
    /// that of an earlier `Content-Length`. Set the field once, in digits.
    Length(String),
    /// Only the server may send the field with this name, because the field depends on the body and
    /// on the connection. Omit the field.
    Reserved(String),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Name(name) => write!(
                f,
                "`{name}` is not a header field name\nuse letters, digits and `-`"
            ),
            HeaderError::Value { name, at } => write!(
                f,
                "the value of `{name}` contains a control character at byte {at}\nremove it or encode the value"
            ),
            HeaderError::Length(value) => write!(
                f,
                "`Content-Length: {}` is not a number of bytes, or contradicts an earlier one\nset it once, in digits",
                value.escape_debug()
            ),
            HeaderError::Reserved(name) => {
                write!(
                    f,
                    "`{name}` is written by the server\nleave it out of the answer"
                )
            }
        }
    }
}

impl std::error::Error for HeaderError {}

fn check_name(name: &str) -> Result<(), HeaderError> {
    if !name.is_empty() && name.bytes().all(|b| TOKEN[usize::from(b)]) {
        return Ok(());
    }
    Err(HeaderError::Name(name.escape_default().to_string()))
}

fn is_reserved(name: &str) -> bool {
    is_one_of(name, &["date", "content-length"]) || Headers::is_hop_by_hop(name)
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    // Comparing the lengths first excludes nearly all names.
    names
        .iter()
        .any(|n| n.len() == name.len() && n.eq_ignore_ascii_case(name))
}

/// `true` for each byte that is a `tchar` of RFC 9110, section 5.6.2.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 128 {
        table[b] = (b as u8).is_ascii_alphanumeric();
        b += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    let mut i = 0;
    while i < others.len() {
        table[others[i] as usize] = true;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_would_end_its_line_is_refused() {
        let mut h = Headers::default();
        for (value, at) in [
            ("a\r\nX: y", 1),
            ("a\n", 1),
            ("\rb", 0),
            ("ab\0", 2),
            ("\x7f", 0),
        ] {
            let error = h.push("X-A", value.as_bytes()).unwrap_err();
            assert_eq!(
                error,
                HeaderError::Value {
                    name: "X-A".into(),
                    at
                }
            );
        }
        for name in ["", "a b", "a:", "a\r\n", "é", "a\0"] {
            assert!(
                matches!(h.push(name, b"v"), Err(HeaderError::Name(_))),
                "{name:?}"
            );
        }
        assert!(matches!(
            h.push("content-LENGTH", b"3"),
            Err(HeaderError::Reserved(_))
        ));
        assert!(h.into_wire().is_empty());
    }

    #[test]
    fn fields_are_found_whatever_their_case() {
        let mut h = Headers::default();
        h.push("Content-Type", b"text/csv").unwrap();
        h.push("X-Caf", b"caf\xe9: a").unwrap();
        assert_eq!(h.get("content-type"), Some(&b"text/csv"[..]));
        assert_eq!(h.get("x-caf"), Some(&b"caf\xe9: a"[..]));
        assert_eq!(h.get("x"), None);
        assert_eq!(h.iter().count(), 2);
    }
}
