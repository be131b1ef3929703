//! What cannot be transcoded, where it stands and why.

use std::fmt;

use crate::{ByteSink, SinkFull};

/// What is done with bytes that are no text in the encoding they come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMalformed {
    /// Stop with [`TranscodeError::Malformed`].
    #[default]
    Strict,
    /// U+FFFD for each maximal subpart of an ill-formed sequence (Unicode 16, section 3.9).
    Replace,
    /// Leave them out.
    Ignore,
    /// UTF-8, UTF-16, UTF-32: take lone surrogates as they are; else as `Strict`.
    SurrogatePass,
    /// `\xNN` for each byte.
    BackslashReplace,
}

/// What is done with a character that the encoding to be written does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUnencodable {
    /// Stop with [`TranscodeError::Unencodable`].
    #[default]
    Strict,
    /// A question mark.
    Replace,
    /// Leave it out.
    Ignore,
    /// UTF-8, UTF-16, UTF-32: write lone surrogates as they are; else as `Strict`.
    SurrogatePass,
    /// `\xNN`, `\uNNNN` or `\UNNNNNNNN`.
    BackslashReplace,
    /// `&#N;`.
    XmlCharRefReplace,
}

/// Why bytes are no text in their encoding. Displays as CPython's codecs say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// UTF-8: a byte that cannot start a sequence.
    InvalidStartByte,
    /// UTF-8: a byte that cannot continue the sequence before it (also overlong forms and surrogates).
    InvalidContinuation,
    /// UTF-8, UTF-16: the text ends inside a character.
    UnexpectedEnd,
    /// UTF-16, UTF-32: the text ends inside a unit.
    TruncatedData,
    /// UTF-16: a first half of a pair with no second half behind it.
    IllegalSurrogate,
    /// UTF-16: a second half of a pair with no first half before it.
    IllegalEncoding,
    /// UTF-32: a surrogate.
    SurrogateCodePoint,
    /// UTF-32: a unit above U+10FFFF.
    OutOfRange,
    /// ASCII: a byte above 0x7F.
    NotAscii,
    /// An encoding of one byte a character has none for this byte.
    Undefined,
    /// An encoding of several bytes a character has none for this sequence.
    IllegalSequence,
    /// The text ends inside such a sequence.
    IncompleteSequence,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::InvalidStartByte => "invalid start byte",
            Reason::InvalidContinuation => "invalid continuation byte",
            Reason::UnexpectedEnd => "unexpected end of data",
            Reason::TruncatedData => "truncated data",
            Reason::IllegalSurrogate => "illegal UTF-16 surrogate",
            Reason::IllegalEncoding => "illegal encoding",
            Reason::SurrogateCodePoint => {
                "code point in surrogate code point range(0xd800, 0xe000)"
            }
            Reason::OutOfRange => "code point not in range(0x110000)",
            Reason::NotAscii => "ordinal not in range(128)",
            Reason::Undefined => "character maps to <undefined>",
            Reason::IllegalSequence => "illegal multibyte sequence",
            Reason::IncompleteSequence => "incomplete multibyte sequence",
        })
    }
}

/// Bytes that are no text in their encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MalformedBytes {
    /// Where the first of them stands, in bytes from the start of the stream.
    pub at_bytes: u64,
    /// Why.
    pub reason: Reason,
    bytes: [u8; 8],
    len_bytes: u8,
}

impl MalformedBytes {
    pub(crate) fn new(at_bytes: u64, bytes: &[u8], reason: Reason) -> MalformedBytes {
        let mut kept = [0; 8];
        kept[..bytes.len()].copy_from_slice(bytes);
        MalformedBytes {
            at_bytes,
            reason,
            bytes: kept,
            len_bytes: bytes.len() as u8,
        }
    }

    /// The bytes, 1 to 6 of them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len_bytes)]
    }
}

impl fmt::Debug for MalformedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:02x?} at {}: {}",
            self.bytes(),
            self.at_bytes,
            self.reason
        )
    }
}

/// Why transcoding stopped. What came before is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscodeError {
    /// Bytes are no text in the encoding they come in, and the policy stops there.
    Malformed(MalformedBytes),
    /// The encoding to be written does not have a character, and the policy stops there.
    Unencodable {
        /// Where the character starts, in bytes from the start of the stream that is read.
        at_bytes: u64,
        /// The code point, which may be a surrogate.
        code_point: u32,
    },
    /// The sink has no room.
    SinkFull(SinkFull),
}

impl TranscodeError {
    /// Where it stands, in bytes from the start of the stream that is read.
    #[must_use]
    pub fn at_bytes(&self) -> u64 {
        match self {
            TranscodeError::Malformed(e) => e.at_bytes,
            TranscodeError::Unencodable { at_bytes, .. } => *at_bytes,
            TranscodeError::SinkFull(_) => 0,
        }
    }
}

impl fmt::Display for TranscodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TranscodeError::Malformed(e) => {
                for byte in e.bytes() {
                    write!(f, "0x{byte:02x} ")?;
                }
                write!(f, "at byte {}: {}", e.at_bytes, e.reason)
            }
            TranscodeError::Unencodable {
                at_bytes,
                code_point,
            } => write!(
                f,
                "U+{code_point:04X} at byte {at_bytes} has no place in the encoding"
            ),
            TranscodeError::SinkFull(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for TranscodeError {}

impl From<SinkFull> for TranscodeError {
    fn from(e: SinkFull) -> Self {
        TranscodeError::SinkFull(e)
    }
}

/// Does with malformed bytes what the policy says.
pub(crate) fn put_malformed<S: ByteSink>(
    error: MalformedBytes,
    policy: OnMalformed,
    out: &mut S,
) -> Result<(), TranscodeError> {
    match policy {
        OnMalformed::Strict | OnMalformed::SurrogatePass => {
            return Err(TranscodeError::Malformed(error));
        }
        OnMalformed::Replace => out.put("\u{FFFD}".as_bytes())?,
        OnMalformed::Ignore => {}
        OnMalformed::BackslashReplace => {
            for byte in error.bytes() {
                out.put(format!("\\x{byte:02x}").as_bytes())?;
            }
        }
    }
    Ok(())
}

/// A surrogate in the manner of UTF-8.
pub(super) fn utf8_of_surrogate(half: u16) -> [u8; 3] {
    [
        0xED,
        0x80 | (half >> 6 & 0x3F) as u8,
        0x80 | (half & 0x3F) as u8,
    ]
}
