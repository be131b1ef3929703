//! The chunked coding, in (RFC 9112, section 7.1): strict and incremental.

use super::error::ChunkedError;
use super::field;

/// Digits of a size: 64 bits. More are refused even where they are leading zeros.
const MAX_SIZE_DIGITS: u8 = 16;

/// What a chunked body may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkedLimits {
    /// Longest body in bytes, without its framing: 1 MiB unless told.
    pub max_body_bytes: u64,
    /// Bytes of chunk extensions in the whole body, which nobody uses: 4 KiB unless told.
    pub max_extension_bytes: usize,
    /// Bytes of the trailer: 8 KiB unless told.
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

/// What a call of [`ChunkedReader::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes of the body, borrowed from the input; at least one.
    Data(&'a [u8]),
    /// All input is used up; the body goes on.
    NeedMore,
    /// The body and its trailer are complete; what follows in the input is the next request's.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size { digits: u8 },
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

/// Takes a chunked body apart as it comes; the data stays where it was read.
///
/// Trailer fields are checked and dropped: merged into the head they could change what was decided by it. Those that measure, route
/// or authenticate a request stand in no trailer (RFC 9110, section 6.5.1), and one that has them is refused.
#[derive(Clone, Debug)]
pub struct ChunkedReader {
    limits: ChunkedLimits,
    state: State,
    /// Data of the chunk that is still to come, or its size as far as it was read.
    left: u64,
    body_bytes: u64,
    extension_bytes: usize,
    trailer_bytes: usize,
    /// The name of the trailer field under way, as far as it is kept.
    name: [u8; MOST_NAME_BYTES],
    name_bytes: usize,
}

/// Bytes of the longest name in [`NOT_IN_TRAILERS`].
const MOST_NAME_BYTES: usize = 19;

/// Fields of a request's head alone.
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
    /// A reader for a body that begins.
    #[must_use]
    pub fn new(limits: ChunkedLimits) -> ChunkedReader {
        ChunkedReader {
            limits,
            state: State::Size { digits: 0 },
            left: 0,
            body_bytes: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            name: [0; MOST_NAME_BYTES],
            name_bytes: 0,
        }
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.state == State::End
    }

    /// Reads on in `input` and returns how many bytes of it are used and what they were. To be called again with the
    /// rest until it says [`Piece::NeedMore`] or [`Piece::End`].
    ///
    /// # Errors
    /// [`ChunkedError`], the same on each later call.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<(usize, Piece<'a>), ChunkedError> {
        let mut used = 0;
        loop {
            match self.state {
                State::Refused(error) => return Err(error),
                State::End => return Ok((used, Piece::End)),
                State::Data if used < input.len() => {
                    let rest = &input[used..];
                    let len = usize::try_from(self.left).map_or(rest.len(), |n| n.min(rest.len()));
                    self.left -= len as u64;
                    if self.left == 0 {
                        self.state = State::DataCr;
                    }
                    return Ok((used + len, Piece::Data(&rest[..len])));
                }
                _ => {}
            }
            let Some(&byte) = input.get(used) else {
                return Ok((used, Piece::NeedMore));
            };
            used += 1;
            match self.step(byte) {
                Ok(state) => self.state = state,
                Err(error) => self.state = State::Refused(error),
            }
        }
    }

    /// One byte of framing.
    fn step(&mut self, byte: u8) -> Result<State, ChunkedError> {
        Ok(match (self.state, byte) {
            (State::Size { digits: 1.. }, b'\r') => State::SizeLf,
            (State::Size { digits: 1.. }, b';') => State::Extension,
            (State::Size { digits }, _) => {
                let value = char::from(byte).to_digit(16).ok_or(ChunkedError::Size)?;
                if digits == MAX_SIZE_DIGITS {
                    return Err(ChunkedError::Size);
                }
                self.left = self.left << 4 | u64::from(value);
                State::Size { digits: digits + 1 }
            }
            (State::Extension, b'\r') => State::SizeLf,
            (State::Extension, _) => {
                self.extension_bytes += 1;
                if !field::is_value_byte(byte)
                    || self.extension_bytes > self.limits.max_extension_bytes
                {
                    return Err(ChunkedError::Extension);
                }
                State::Extension
            }
            (State::SizeLf, b'\n') if self.left == 0 => State::TrailerStart,
            (State::SizeLf, b'\n') => {
                self.body_bytes = self.body_bytes.saturating_add(self.left);
                if self.body_bytes > self.limits.max_body_bytes {
                    return Err(ChunkedError::BodyTooLarge);
                }
                State::Data
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { digits: 0 },
            (State::DataCr | State::DataLf, _) => return Err(ChunkedError::DataEnd),
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::TrailerName | State::TrailerValue, _) => {
                self.trailer_bytes += 1;
                if self.trailer_bytes > self.limits.max_trailer_bytes {
                    return Err(ChunkedError::Trailer);
                }
                self.trailer_byte(byte)?
            }
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::EndLf, b'\n') => State::End,
            (State::SizeLf | State::TrailerLf | State::EndLf, _) => {
                return Err(ChunkedError::LineEnd);
            }
            (State::Data | State::End | State::Refused(_), _) => {
                unreachable!("`next` handles these before it takes a byte")
            }
        })
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<State, ChunkedError> {
        if self.state == State::TrailerStart {
            self.name_bytes = 0;
        }
        match (self.state, byte) {
            (State::TrailerName, b':') => {
                let name = self.name.get(..self.name_bytes).unwrap_or(&[]);
                let is_refused = |known: &&str| known.as_bytes().eq_ignore_ascii_case(name);
                match NOT_IN_TRAILERS.iter().any(is_refused) {
                    true => Err(ChunkedError::Trailer),
                    false => Ok(State::TrailerValue),
                }
            }
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerValue, _) if field::is_value_byte(byte) => Ok(State::TrailerValue),
            (State::TrailerStart | State::TrailerName, _) if field::is_token(&[byte]) => {
                if let Some(place) = self.name.get_mut(self.name_bytes) {
                    *place = byte;
                }
                self.name_bytes += 1;
                Ok(State::TrailerName)
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
