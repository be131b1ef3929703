//! [`TranscodeError`], and the replacements of malformed bytes.

use std::fmt;

use crate::{ByteSink, Policy, SinkFull};

/// The reason why bytes are invalid. `Display` uses the words of CPython's codecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// UTF-8: a byte that cannot start a sequence, such as 0x80 or 0xFF.
    InvalidStartByte,
    /// UTF-8: a byte that cannot follow the previous bytes: no continuation byte, an overlong form
    /// or a surrogate.
    InvalidContinuation,
    /// UTF-8, UTF-16: the text ends inside a character.
    UnexpectedEnd,
    /// UTF-16, UTF-32: the text ends inside a unit.
    TruncatedData,
    /// UTF-16: a high surrogate without a low one after it.
    IllegalSurrogate,
    /// UTF-16: a low surrogate without a high one before it.
    IllegalEncoding,
    /// UTF-32: a unit that is a surrogate.
    SurrogateCodePoint,
    /// UTF-32: a unit above U+10FFFF.
    OutOfRange,
    /// ASCII: a byte above 0x7F.
    NotAscii,
    /// A single-byte encoding has no character for this byte.
    Undefined,
    /// A multi-byte encoding has no character for this sequence.
    IllegalSequence,
    /// The text ends inside a sequence of a multi-byte encoding.
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

/// Bytes that are invalid in their encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MalformedBytes {
    /// The position of the first invalid byte in the stream.
    pub at_bytes: u64,
    /// The reason for the error.
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

    /// Returns the 1 to 6 bytes of the malformed sequence.
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

/// The error of a transcoder. The sink contains the output before the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscodeError {
    /// Bytes are invalid in the input encoding, and the policy requires an error.
    Malformed(MalformedBytes),
    /// The output encoding does not have a character, and the policy requires an error.
    Unencodable {
        /// The position of the character in the input stream, in bytes.
        at_bytes: u64,
        /// The code point, which may be a surrogate.
        code_point: u32,
    },
    /// The sink is full.
    SinkFull(SinkFull),
}

impl TranscodeError {
    /// Returns the position of the error in the input stream, in bytes.
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
            } => write!(f, "U+{code_point:04X} at byte {at_bytes} cannot be encoded"),
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

/// Appends the replacement for malformed bytes. Returns the error if the policy has no replacement.
pub(crate) fn put_malformed<S: ByteSink>(
    error: MalformedBytes,
    policy: Policy,
    out: &mut S,
) -> Result<(), TranscodeError> {
    match policy {
        Policy::Strict | Policy::SurrogatePass | Policy::XmlCharRefReplace => {
            return Err(TranscodeError::Malformed(error));
        }
        Policy::Replace => out.put("\u{FFFD}".as_bytes())?,
        Policy::Ignore => {}
        Policy::BackslashReplace => {
            for byte in error.bytes() {
                out.put(format!("\\x{byte:02x}").as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Returns a surrogate as three bytes, like a character in UTF-8.
pub(super) fn utf8_of_surrogate(half: u16) -> [u8; 3] {
    [
        0xED,
        0x80 | (half >> 6 & 0x3F) as u8,
        0x80 | (half & 0x3F) as u8,
    ]
}
