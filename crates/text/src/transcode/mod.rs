//! [`Transcoder`] converts a stream between any encodings, in constant memory.
//!
//! | module | contents |
//! |---|---|
//! | `decode` | decodes bytes to UTF-8 |
//! | `encode` | encodes UTF-8 to bytes |
//! | `eol` | converts line ends, and counts lines |
//! | `error` | the policies, and [`TranscodeError`] with its reason and position |
//! | `options` | [`TranscodeOptions`] |
//! | [`naive`] | the reference implementation, which converts a whole text one character at a time |
//!
//! UTF-8 output is written directly to its destination. For other output, a portion of the input is
//! decoded to UTF-8 and then encoded. The portion fits into the L1 and L2 caches.

pub(crate) mod decode;
mod encode;
mod eol;
pub(crate) mod error;
pub mod naive;
mod options;

pub use self::eol::{Eol, LineCount, Place};
pub use self::error::{MalformedBytes, Reason, TranscodeError};
pub use self::options::{Bom, TranscodeOptions};

use self::decode::{Marks, StreamDecoder};
use self::encode::{EncodeStop, StreamEncoder};
use self::eol::LineEnds;
use self::error::utf8_of_surrogate;
use crate::{ByteSink, Encoding, Policy};

/// The number of input bytes in a portion, if the output is not UTF-8.
const PIECE_BYTES: usize = 16 * 1024;

/// Converts a stream from one encoding to another, part by part.
///
/// A part may end anywhere, even inside a character. Memory use is constant: some tens of KiB, and
/// the output of one part. After an error, the sink contains the output before the error. The
/// transcoder then cannot be used any more, except as [`Transcoder::taken_bytes`] describes.
///
/// ```
/// use onecopy_text::{Encoding, TranscodeOptions, Transcoder};
///
/// let from = Encoding::by_name("utf-16").expect("known");
/// let mut transcoder = Transcoder::new(from, Encoding::Utf8, TranscodeOptions::default());
/// let mut out = Vec::new();
/// for part in [&b"\xff"[..], b"\xfea\0\x3d", b"\xd8\0\xde"] {
///     transcoder.push(part, &mut out)?;
/// }
/// transcoder.finish(&mut out)?;
/// assert_eq!(out, "a\u{1f600}".as_bytes());
/// # Ok::<(), onecopy_text::TranscodeError>(())
/// ```
#[derive(Debug)]
pub struct Transcoder {
    decode: StreamDecoder,
    encode: StreamEncoder,
    ends: LineEnds,
    to: Encoding,
    bom: Bom,
    /// `true` after the start of the output was written.
    begun: bool,
    /// `true` if the output is UTF-8, and the decoder writes to the sink.
    is_direct: bool,
    /// A second decoder, with the state before the current portion, to locate encoding errors.
    /// `None` if `decode` itself can be copied.
    lagging: Option<StreamDecoder>,
    lines: Option<LineCount>,
    decoded: Vec<u8>,
    ended: Vec<u8>,
}

impl Transcoder {
    /// Creates a transcoder for a new stream.
    #[must_use]
    pub fn new(from: Encoding, to: Encoding, options: TranscodeOptions) -> Transcoder {
        let marks = match options.bom {
            Bom::ByName => Marks::ByName,
            Bom::Add | Bom::Strip | Bom::Keep => Marks::Drop,
        };
        let decode = || StreamDecoder::new(from, options.on_malformed, marks);
        let encode = StreamEncoder::new(to, options.on_unencodable);
        let passes = |o: &TranscodeOptions| o.on_malformed == Policy::SurrogatePass;
        let surrogates_stop = passes(&options) && options.on_unencodable != Policy::SurrogatePass;
        Transcoder {
            decode: decode(),
            is_direct: encode.is_plain() && options.eol == Eol::Keep && !surrogates_stop,
            lagging: match from {
                Encoding::Legacy(_) if !to.is_unicode() => Some(decode()),
                _ => None,
            },
            encode,
            ends: LineEnds::new(options.eol),
            to,
            bom: options.bom,
            begun: false,
            lines: options.counts_lines.then(LineCount::default),
            decoded: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Converts the next part and appends the result to `out`. An incomplete last character is kept
    /// for the next part (at most 4 bytes). A final `\r` is also kept if line ends are converted.
    ///
    /// Each byte is converted to UTF-8 once, or copied once if the input is UTF-8. For other output
    /// than UTF-8, a second conversion follows.
    ///
    /// # Errors
    /// Returns a [`TranscodeError`].
    pub fn push<S: ByteSink>(&mut self, part: &[u8], out: &mut S) -> Result<(), TranscodeError> {
        self.part(part, false, out)
    }

    /// Ends the stream. A kept incomplete character is malformed.
    ///
    /// # Errors
    /// Returns the errors of [`Transcoder::push`].
    pub fn finish<S: ByteSink>(&mut self, out: &mut S) -> Result<(), TranscodeError> {
        self.part(b"", true, out)
    }

    /// Returns the number of input bytes that encoding_rs has read. Returns `None` without
    /// encoding_rs, or if the output is not UTF-8. After [`TranscodeError::Malformed`], the caller
    /// may push the input after these bytes.
    #[must_use]
    pub fn taken_bytes(&self) -> Option<u64> {
        self.decode.taken_bytes().filter(|_| self.is_direct)
    }

    /// Returns the bytes of an incomplete character at the end of the input. Returns `None` without
    /// encoding_rs, or if the output is not UTF-8. The caller must have pushed the last four bytes
    /// of the stream one by one. For ISO-2022-JP, use [`Iso2022JpState`](crate::Iso2022JpState).
    #[must_use]
    pub fn pending_bytes(&self) -> Option<&[u8]> {
        self.decode.pending().filter(|_| self.is_direct)
    }

    /// Returns the line and the column of the next or malformed character. Returns `None` without
    /// the option `counts_lines`.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.lines.map(|lines| lines.place())
    }

    fn part<S: ByteSink>(
        &mut self,
        part: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        if !self.is_direct || !self.begun {
            return self.pieces(part, last, out);
        }
        let before = out.committed().len();
        let decoded = self.decode.push(part, last, out);
        if let Some(lines) = &mut self.lines {
            lines.push(&out.committed()[before..]);
        }
        decoded
    }

    /// Decodes and encodes a part of the input in portions. The start of every stream is converted
    /// here, until it is clear if there is a byte order mark.
    fn pieces<S: ByteSink>(
        &mut self,
        part: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        let mut rest = part;
        loop {
            // The first portion has 4 bytes, enough for a byte order mark.
            let most = if self.begun { PIECE_BYTES } else { 4 };
            let (piece, remaining) = rest.split_at(rest.len().min(most));
            rest = remaining;
            self.piece(piece, last && rest.is_empty(), out)?;
            if rest.is_empty() {
                return Ok(());
            }
            if self.is_direct && self.begun {
                return self.part(rest, last, out);
            }
        }
    }

    fn piece<S: ByteSink>(
        &mut self,
        piece: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        let (copied, ends) = (self.decode.copied(), self.ends);
        self.decoded.clear();
        let decoded = self.decode.push(piece, last, &mut self.decoded);
        if !self.begun
            && let Some(had_mark) = self.decode.had_mark()
        {
            self.begun = true;
            let marked = match self.bom {
                Bom::ByName => self.to.is_marked(),
                Bom::Add => true,
                Bom::Keep => had_mark,
                Bom::Strip => false,
            };
            if marked {
                out.put(self.to.mark())?;
            }
        }
        let text = match self.ends.keeps() {
            true => &self.decoded,
            false => {
                self.ended.clear();
                self.ends.push(&self.decoded, &mut self.ended);
                if last || decoded.is_err() {
                    self.ends.finish(&mut self.ended);
                }
                &self.ended
            }
        };
        match self.encode.push(text, out) {
            Ok(()) => {
                if let Some(lines) = &mut self.lines {
                    lines.push(&self.decoded);
                }
            }
            Err(EncodeStop::Other(e)) => return Err(e),
            Err(EncodeStop::Unencodable(at, code_point)) => {
                if let Some(lines) = &mut self.lines {
                    lines.push(&text[..at]);
                }
                let decode = copied.or_else(|| self.lagging.take());
                let at_bytes = decode.map_or(0, |d| start_of(d, ends, piece, last, at));
                return Err(TranscodeError::Unencodable {
                    at_bytes,
                    code_point,
                });
            }
        }
        if let Some(lagging) = &mut self.lagging
            && decoded.is_ok()
        {
            self.decoded.clear();
            // The end of the portion is decoded byte by byte, to find an incomplete character.
            let (most, end) = piece.split_at(piece.len().saturating_sub(64));
            for part in [most].into_iter().chain(end.chunks(1)) {
                let _ = lagging.push(part, false, &mut self.decoded);
            }
        }
        decoded?;
        if last {
            self.encode.finish(out)?;
        }
        Ok(())
    }
}

/// Returns the position of a character in the input stream. `piece` is the last decoded portion,
/// and `n_bytes` the length of its UTF-8 before the character. The portion is decoded again, one
/// character at a time.
fn start_of(
    mut decode: StreamDecoder,
    mut ends: LineEnds,
    piece: &[u8],
    last: bool,
    n_bytes: usize,
) -> u64 {
    let mut ended = Vec::new();
    for (c, at_bytes) in decode.chars(piece, last) {
        let (mut place, surrogate) = ([0; 4], utf8_of_surrogate(c as u16));
        let utf8 = match char::from_u32(c) {
            Some(c) => c.encode_utf8(&mut place).as_bytes(),
            None => &surrogate,
        };
        match ends.keeps() {
            true => ended.extend_from_slice(utf8),
            false => ends.push(utf8, &mut ended),
        }
        if ended.len() > n_bytes {
            return at_bytes;
        }
    }
    decode.settled_bytes()
}
