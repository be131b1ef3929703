//! Any encoding to any other, in parts cut anywhere and in constant memory.
//!
//! | module | what it holds |
//! |---|---|
//! | `decode` | bytes to UTF-8 |
//! | `encode` | UTF-8 to bytes |
//! | `eol` | line ends changed, lines counted |
//! | `error` | policies, and [`TranscodeError`]: what, where, why |
//! | `options` | [`TranscodeOptions`] |
//! | [`naive`] | the slow twin: the whole text at once, a character at a time |
//!
//! What ends in UTF-8 is decoded straight into its place. Other ways go through UTF-8, a piece that fits the first caches at
//! a time.

pub(crate) mod decode;
mod encode;
mod eol;
pub(crate) mod error;
pub mod naive;
mod options;

pub use self::eol::{Eol, LineCount, Place};
pub use self::error::{MalformedBytes, OnMalformed, OnUnencodable, Reason, TranscodeError};
pub use self::options::{Bom, TranscodeOptions};

use self::decode::{Decode, Marks};
use self::encode::{Encode, Stop};
use self::eol::LineEnds;
use self::error::utf8_of_surrogate;
use crate::{ByteSink, Encoding};

/// Bytes that are decoded at a time where they do not end in UTF-8.
const PIECE_BYTES: usize = 16 * 1024;

/// Converts a stream from one encoding to another, part by part.
///
/// Parts may be cut anywhere: what comes out is the same as from the whole. Memory is constant: some tens of KiB, and
/// the output of a part, which the caller takes. After an error it is of no more use; what came before the error was
/// written.
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
    decode: Decode,
    encode: Encode,
    ends: LineEnds,
    to: Encoding,
    bom: Bom,
    /// Whether the start of the output was written.
    begun: bool,
    /// Whether what is decoded is what is written.
    is_direct: bool,
    /// As [`Transcoder::decode`] was before the piece under way, where its state cannot be copied: to find a character.
    lagging: Option<Decode>,
    lines: Option<LineCount>,
    decoded: Vec<u8>,
    ended: Vec<u8>,
}

impl Transcoder {
    /// A transcoder for a new stream.
    #[must_use]
    pub fn new(from: Encoding, to: Encoding, options: TranscodeOptions) -> Transcoder {
        let marks = match options.bom {
            Bom::ByName => Marks::ByName,
            Bom::Add | Bom::Strip | Bom::Keep => Marks::Drop,
        };
        let decode = || Decode::new(from, options.on_malformed, marks);
        let encode = Encode::new(to, options.on_unencodable);
        let passes = |o: &TranscodeOptions| o.on_malformed == OnMalformed::SurrogatePass;
        let surrogates_stop =
            passes(&options) && options.on_unencodable != OnUnencodable::SurrogatePass;
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

    /// Converts the next part; what it becomes is appended to `out`, but for the end of it that belongs to a character that
    /// is not yet whole (at most 4 bytes, and a `\r` where line ends change).
    ///
    /// Copies: none besides the conversion to UTF-8 (from UTF-8 one copy); one conversion more to other encodings.
    ///
    /// # Errors
    /// [`TranscodeError`]; what came before is written.
    pub fn push<S: ByteSink>(&mut self, part: &[u8], out: &mut S) -> Result<(), TranscodeError> {
        self.part(part, false, out)
    }

    /// Ends the stream: a character that was begun is malformed now.
    ///
    /// # Errors
    /// As [`Transcoder::push`].
    pub fn finish<S: ByteSink>(&mut self, out: &mut S) -> Result<(), TranscodeError> {
        self.part(b"", true, out)
    }

    /// Bytes taken in where encoding_rs decodes straight to UTF-8; `None` elsewhere. There, after
    /// [`TranscodeError::Malformed`], the caller may put in what it likes and go on with the byte of this number.
    #[must_use]
    pub fn taken_bytes(&self) -> Option<u64> {
        self.decode.taken_bytes().filter(|_| self.is_direct)
    }

    /// The bytes of an incomplete character, where encoding_rs decodes straight to UTF-8, if the last
    /// four bytes of the stream came in parts of one; `None` elsewhere. For ISO-2022-JP see
    /// [`Iso2022JpState`](crate::Iso2022JpState).
    #[must_use]
    pub fn pending_bytes(&self) -> Option<&[u8]> {
        self.decode.pending().filter(|_| self.is_direct)
    }

    /// Where the next character stands, or what was malformed, if lines are counted.
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

    /// Decodes and encodes in pieces; and the start of the text in any case, until it is known what its mark becomes.
    fn pieces<S: ByteSink>(
        &mut self,
        part: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        let mut rest = part;
        loop {
            // A first piece of 4 bytes has a mark whole or none.
            let most = if self.begun { PIECE_BYTES } else { 4 };
            let (piece, behind) = rest.split_at(rest.len().min(most));
            rest = behind;
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
            Err(Stop::Other(e)) => return Err(e),
            Err(Stop::Unencodable(at, code_point)) => {
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
            // The end byte by byte: then it knows where the character starts that is begun there.
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

/// Where the character starts that stands behind `n_bytes` of the piece's text: found by decoding it a character at a time.
fn start_of(
    mut decode: Decode,
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
