//! [`FramingFields`]: the request fields that determine the length of the body, the host, and the
//! persistence of the connection (RFC 9112, sections 3.2, 6 and 9.3).

use std::ops::Range;

use super::error::HeadError;
use super::field;
use super::index::HeadIndex;
use super::request::{BodyFraming, Connection, Version};

/// The header fields read so far that determine the length of the body, the host, and whether the
/// connection stays open.
#[derive(Clone, Debug, Default)]
pub(super) struct FramingFields {
    host: Option<Range<usize>>,
    content_length: Option<u64>,
    /// `true` if `chunked` is the last transfer coding that was read.
    chunked: bool,
    /// `true` if the `Transfer-Encoding` fields read so far contain a coding other than `chunked`.
    unknown_coding: bool,
    /// A mask with one bit for each entry of [`SINGLETONS`]. The bit is set if a field with this
    /// name was read.
    singletons: u16,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
}

impl FramingFields {
    /// Records the value of a field if it determines the length of the body, the host, or the
    /// persistence of the connection. All other fields are only checked for repetition.
    ///
    /// # Errors
    /// Returns the variants of [`HeadError`] for an invalid or repeated field of these kinds.
    pub(super) fn note(
        &mut self,
        name: &[u8],
        value: &[u8],
        at: &Range<usize>,
    ) -> Result<(), HeadError> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            4 if is("host") => {
                if self.host.replace(at.clone()).is_some() {
                    return Err(HeadError::Host);
                }
                if !field::is_authority(value) {
                    return Err(HeadError::Authority);
                }
            }
            6 if is("expect") => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(HeadError::Expectation);
                }
                self.expects_continue = true;
            }
            10 if is("connection") => {
                for option in value.split(|b| *b == b',').map(field::trim) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if is("content-length") => {
                let length = content_length(value).ok_or(HeadError::ContentLength)?;
                if self.content_length.replace(length).is_some() {
                    return Err(HeadError::ContentLength);
                }
            }
            17 if is("transfer-encoding") => {
                for coding in value.split(|b| *b == b',').map(field::trim) {
                    self.transfer_coding(coding)?;
                }
            }
            _ => {
                if let Some(bit) = singleton(name) {
                    if self.singletons & bit != 0 {
                        return Err(HeadError::Repeated);
                    }
                    self.singletons |= bit;
                }
            }
        }
        Ok(())
    }

    /// Records the next transfer coding. The codings of all `Transfer-Encoding` fields of a request
    /// form one list. `chunked` must be the last of them, because otherwise the end of the body is
    /// unknown (RFC 9112, section 6.3).
    fn transfer_coding(&mut self, coding: &[u8]) -> Result<(), HeadError> {
        if self.chunked || !field::is_token(coding) {
            return Err(HeadError::TransferEncoding);
        }
        self.chunked = coding.eq_ignore_ascii_case(b"chunked");
        self.unknown_coding |= !self.chunked;
        Ok(())
    }

    /// Determines the length of the body, the host, and the persistence of the connection, and
    /// stores them in `index`. It is called when the head is complete.
    ///
    /// # Errors
    /// Returns [`HeadError::Host`], [`HeadError::CodingAndLength`], [`HeadError::CodingInHttp10`]
    /// or [`HeadError::UnknownCoding`].
    pub(super) fn settle(self, index: &mut HeadIndex) -> Result<(), HeadError> {
        let is_11 = index.version == Version::Http11;
        if is_11 && self.host.is_none() {
            return Err(HeadError::Host);
        }
        // RFC 9112, section 3.2.2: the host in a target in absolute form takes precedence over the
        // `Host` field.
        index.authority = index.authority.take().or(self.host);
        // RFC 9112, section 6.1: a request with both `Transfer-Encoding` and `Content-Length`, or
        // with `Transfer-Encoding` in HTTP/1.0, may be an attempt at request smuggling.
        let is_coded = self.chunked || self.unknown_coding;
        if is_coded && self.content_length.is_some() {
            return Err(HeadError::CodingAndLength);
        }
        if is_coded && !is_11 {
            return Err(HeadError::CodingInHttp10);
        }
        if self.unknown_coding {
            return Err(HeadError::UnknownCoding);
        }
        index.framing = match self.content_length {
            _ if self.chunked => BodyFraming::Chunked,
            Some(length) => BodyFraming::Length(length),
            None => BodyFraming::None,
        };
        index.connection = if self.close || !(is_11 || self.keep_alive) {
            Connection::Close
        } else {
            Connection::KeepAlive
        };
        // RFC 9110, section 10.1.1: a server ignores an expectation in an HTTP/1.0 request.
        index.expects_continue = self.expects_continue && is_11;
        Ok(())
    }
}

/// Parses the value of `Content-Length`, which must consist of digits and be below 2^64. Returns
/// `None` for any other text, such as a list or a number with a sign.
fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |n, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// The request fields that may occur only once according to RFC 9110 (for `Origin`, RFC 6454).
/// [`FramingFields::note`] checks some further fields itself. CGI (RFC 3875, section 4.1.18) joins
/// repeated fields with a comma, which would produce a value that the client did not send in any
/// field.
const SINGLETONS: [&str; 15] = [
    "authorization",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "from",
    "if-modified-since",
    "if-range",
    "if-unmodified-since",
    "max-forwards",
    "origin",
    "proxy-authorization",
    "range",
    "referer",
    "user-agent",
];

/// Returns the bit of the field `name` in the mask `singletons`; `None` if [`SINGLETONS`] does not
/// contain the field.
fn singleton(name: &[u8]) -> Option<u16> {
    // The length and the first letter are compared first, which excludes most fields at low cost.
    let at = match (name.len(), name.first()? | 0x20) {
        (13, b'a') => 0,
        (16, b'c') => 1,
        (13, b'c') => 2,
        (12, b'c') => 3,
        (4, b'd') => 4,
        (4, b'f') => 5,
        (17, b'i') => 6,
        (8, b'i') => 7,
        (19, b'i') => 8,
        (12, b'm') => 9,
        (6, b'o') => 10,
        (19, b'p') => 11,
        (5, b'r') => 12,
        (7, b'r') => 13,
        (10, b'u') => 14,
        _ => return None,
    };
    let is_it = name.eq_ignore_ascii_case(SINGLETONS[at].as_bytes());
    is_it.then_some(1 << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_singleton_is_known_by_its_name_in_any_case() {
        let mut bits = 0;
        for name in SINGLETONS {
            let bit = singleton(name.to_uppercase().as_bytes()).expect(name);
            assert_eq!(bits & bit, 0, "{name}");
            bits |= bit;
        }
        assert_eq!(singleton(b"x-agent"), None);
        assert_eq!(singleton(b""), None);
    }
}
