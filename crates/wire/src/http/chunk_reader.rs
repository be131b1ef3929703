//! [`ChunkedReader`]: a strict, incremental decoder of the chunked coding (RFC 9112, section 7.1).

use super::error::ChunkedError;
use super::field;

/// The largest number of hexadecimal digits of a chunk size. This number of digits fits into 64
/// bits. More digits are an error, even if the first ones are zeros.
const MAX_SIZE_DIGITS: u8 = 16;

/// The limits on a request body in the chunked coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkedLimits {
    /// The largest size of a body in bytes, without its chunk framing: 1 MiB by default.
    pub max_body_bytes: u64,
    /// The largest total size in bytes of the chunk extensions of a body: 4 KiB by default. The
    /// server ignores the extensions.
    pub max_extension_bytes: usize,
    /// The largest size of the trailer in bytes: 8 KiB by default.
    pub max_trailer_bytes: usize,
}

impl Default for ChunkedLimits {
    fn default() -> Self {
        ChunkedLimits {
            max_body_bytes: 1 << 20,
            max_extension_bytes: 4 << 10,
            max_trailer_bytes: 8 << 10,
        }
    }
}

/// The result of [`ChunkedReader::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyChunk<'a> {
    /// Bytes of the body, borrowed from the input. The slice has at least one byte.
    Data(&'a [u8]),
    /// The complete input was processed, and the body is not complete yet.
    NeedMore,
    /// The body and its trailer are complete. The input after the processed bytes belongs to the
    /// next request.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    Size {
        digits: u8,
    },
    /// White space was read between a chunk size and the `;` of its first extension.
    SizeBlanks,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    End,
    Refused(ChunkedError),
}

/// An incremental decoder of a request body in the chunked coding. The data of the body is not
/// copied.
///
/// Trailer fields are validated and discarded. If the decoder added them to the fields of the head,
/// they could change decisions that the server has already made. A trailer with a field of framing,
/// routing or authentication is an error, because RFC 9110, section 6.5.1, forbids such fields in a
/// trailer.
#[derive(Clone, Debug)]
pub struct ChunkedReader {
    limits: ChunkedLimits,
    state: ChunkState,
    /// While data is read, the number of bytes of the current chunk that have not arrived yet.
    /// While a size line is read, the value of its digits so far.
    left: u64,
    body_bytes: u64,
    extension_bytes: usize,
    trailer_bytes: usize,
    /// The first bytes of the name of the trailer field that is being read, for the comparison with
    /// [`NOT_IN_TRAILERS`].
    name: [u8; MOST_NAME_BYTES],
    name_bytes: usize,
}

/// The length in bytes of the longest name in [`NOT_IN_TRAILERS`].
const MOST_NAME_BYTES: usize = 19;

/// The names of fields that a trailer must not contain, because they are valid only in the head of
/// a request.
const NOT_IN_TRAILERS: [&str; 15] = [
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "host",
    "max-forwards",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl ChunkedReader {
    /// Creates a decoder for one request body.
    #[must_use]
    pub fn new(limits: ChunkedLimits) -> ChunkedReader {
        ChunkedReader {
            limits,
            state: ChunkState::Size { digits: 0 },
            left: 0,
            body_bytes: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            name: [0; MOST_NAME_BYTES],
            name_bytes: 0,
        }
    }

    /// Returns `true` if the body and its trailer are complete.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.state == ChunkState::End
    }

    /// Processes bytes at the start of `input`. Returns the number of processed bytes and the
    /// result. The caller must call this method again with the remaining bytes until it returns
    /// [`BodyChunk::NeedMore`] or [`BodyChunk::End`].
    ///
    /// # Errors
    /// Returns a [`ChunkedError`]. All later calls return the same error.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<(usize, BodyChunk<'a>), ChunkedError> {
        let mut used = 0;
        loop {
            match self.state {
                ChunkState::Refused(error) => return Err(error),
                ChunkState::End => return Ok((used, BodyChunk::End)),
                ChunkState::Data if used < input.len() => {
                    let rest = &input[used..];
                    let len = usize::try_from(self.left).map_or(rest.len(), |n| n.min(rest.len()));
                    self.left -= len as u64;
                    if self.left == 0 {
                        self.state = ChunkState::DataCr;
                    }
                    return Ok((used + len, BodyChunk::Data(&rest[..len])));
                }
                _ => {}
            }
            let Some(&byte) = input.get(used) else {
                return Ok((used, BodyChunk::NeedMore));
            };
            used += 1;
            match self.step(byte) {
                Ok(state) => self.state = state,
                Err(error) => self.state = ChunkState::Refused(error),
            }
        }
    }

    /// Processes one byte of a size line, of a line end or of the trailer, and returns the next
    /// state.
    fn step(&mut self, byte: u8) -> Result<ChunkState, ChunkedError> {
        Ok(match (self.state, byte) {
            (ChunkState::Size { digits: 1.. }, b'\r') => ChunkState::SizeLf,
            (ChunkState::Size { digits: 1.. } | ChunkState::SizeBlanks, b';') => {
                ChunkState::Extension
            }
            // RFC 9112, section 7.1.1, permits white space here only before `;`.
            (ChunkState::Size { digits: 1.. } | ChunkState::SizeBlanks, b' ' | b'\t') => {
                self.count_extension_byte()?;
                ChunkState::SizeBlanks
            }
            (ChunkState::SizeBlanks, _) => return Err(ChunkedError::Size),
            (ChunkState::Size { digits }, _) => {
                let value = char::from(byte).to_digit(16).ok_or(ChunkedError::Size)?;
                if digits == MAX_SIZE_DIGITS {
                    return Err(ChunkedError::Size);
                }
                self.left = self.left << 4 | u64::from(value);
                ChunkState::Size { digits: digits + 1 }
            }
            (ChunkState::Extension, b'\r') => ChunkState::SizeLf,
            (ChunkState::Extension, _) => {
                self.count_extension_byte()?;
                if !field::is_value_byte(byte) {
                    return Err(ChunkedError::Extension);
                }
                ChunkState::Extension
            }
            (ChunkState::SizeLf, b'\n') if self.left == 0 => ChunkState::TrailerStart,
            (ChunkState::SizeLf, b'\n') => {
                self.body_bytes = self.body_bytes.saturating_add(self.left);
                if self.body_bytes > self.limits.max_body_bytes {
                    return Err(ChunkedError::BodyTooLarge);
                }
                ChunkState::Data
            }
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::Size { digits: 0 },
            (ChunkState::DataCr | ChunkState::DataLf, _) => return Err(ChunkedError::DataEnd),
            (ChunkState::TrailerStart, b'\r') => ChunkState::EndLf,
            (ChunkState::TrailerStart | ChunkState::TrailerName | ChunkState::TrailerValue, _) => {
                self.trailer_bytes += 1;
                if self.trailer_bytes > self.limits.max_trailer_bytes {
                    return Err(ChunkedError::Trailer);
                }
                self.trailer_byte(byte)?
            }
            (ChunkState::TrailerLf, b'\n') => ChunkState::TrailerStart,
            (ChunkState::EndLf, b'\n') => ChunkState::End,
            (ChunkState::SizeLf | ChunkState::TrailerLf | ChunkState::EndLf, _) => {
                return Err(ChunkedError::LineEnd);
            }
            (ChunkState::Data | ChunkState::End | ChunkState::Refused(_), _) => {
                unreachable!("`next` handles these before it takes a byte")
            }
        })
    }

    fn count_extension_byte(&mut self) -> Result<(), ChunkedError> {
        self.extension_bytes += 1;
        match self.extension_bytes > self.limits.max_extension_bytes {
            true => Err(ChunkedError::Extension),
            false => Ok(()),
        }
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<ChunkState, ChunkedError> {
        if self.state == ChunkState::TrailerStart {
            self.name_bytes = 0;
        }
        match (self.state, byte) {
            (ChunkState::TrailerName, b':') => {
                let name = self.name.get(..self.name_bytes).unwrap_or(&[]);
                let is_refused = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name);
                match NOT_IN_TRAILERS.iter().any(is_refused) {
                    true => Err(ChunkedError::Trailer),
                    false => Ok(ChunkState::TrailerValue),
                }
            }
            (ChunkState::TrailerValue, b'\r') => Ok(ChunkState::TrailerLf),
            (ChunkState::TrailerValue, _) if field::is_value_byte(byte) => {
                Ok(ChunkState::TrailerValue)
            }
            (ChunkState::TrailerStart | ChunkState::TrailerName, _) if field::is_token(&[byte]) => {
                if let Some(place) = self.name.get_mut(self.name_bytes) {
                    *place = byte;
                }
                self.name_bytes += 1;
                Ok(ChunkState::TrailerName)
            }
            _ => Err(ChunkedError::Trailer),
        }
    }
}

impl Default for ChunkedReader {
    fn default() -> Self {
        ChunkedReader::new(ChunkedLimits::default())
    }
}
