//! The fields that framing and routing depend on (RFC 9112, sections 3.2, 6 and 9.3).

use std::ops::Range;

use super::error::HeadError;
use super::field;
use super::index::HeadIndex;
use super::request::{BodyFraming, Connection, Version};

/// Fields that matter for framing, as they came by.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    host: Option<Range<usize>>,
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
}

impl Seen {
    /// Looks at a field: most are of no matter here.
    ///
    /// # Errors
    /// The kinds of [`HeadError`] that name these fields.
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
                if self.chunked {
                    return Err(HeadError::TransferEncoding);
                }
                transfer_encoding(value)?;
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Decides what only the whole head can tell.
    ///
    /// # Errors
    /// [`HeadError::Host`], [`HeadError::TransferEncoding`].
    pub(super) fn settle(self, index: &mut HeadIndex) -> Result<(), HeadError> {
        let is_11 = index.version == Version::Http11;
        if is_11 && self.host.is_none() {
            return Err(HeadError::Host);
        }
        // RFC 9112, section 3.2.2: the host of an absolute form counts, not the header's.
        index.authority = index.authority.take().or(self.host);
        // RFC 9112, section 6.1: both together, or chunked in HTTP/1.0, is how requests are smuggled.
        if self.chunked && (self.content_length.is_some() || !is_11) {
            return Err(HeadError::TransferEncoding);
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
        // RFC 9110, section 10.1.1: an expectation in HTTP/1.0 is to be ignored.
        index.expects_continue = self.expects_continue && is_11;
        Ok(())
    }
}

/// `1*DIGIT` within 64 bits; no sign, no list, no blank.
fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |n, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// `chunked` and nothing else. A list, or `chunked` in any other place, could be read two ways.
fn transfer_encoding(value: &[u8]) -> Result<(), HeadError> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    // `gzip` or `identity` alone is a coding that is not spoken; all else is malformed.
    if field::is_token(value) {
        return Err(HeadError::UnknownCoding);
    }
    Err(HeadError::TransferEncoding)
}
