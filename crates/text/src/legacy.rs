//! The encodings of the WHATWG Encoding Standard by encoding_rs, in parts, with our policies and positions.

use std::fmt;

use encoding_rs::{DecoderResult, EncoderResult};

use crate::ByteSink;
use crate::encoding::Legacy;
use crate::transcode::decode::put_malformed;
use crate::transcode::error::{MalformedBytes, OnMalformed, Reason, TranscodeError};
use crate::transcode::naive;

/// Bytes of UTF-8 that are made at a time.
const SCRATCH_BYTES: usize = 16 * 1024;

/// Bytes that may be told as malformed after they were taken in.
const RECENT_BYTES: usize = 8;

/// Decodes a stream to UTF-8.
pub(crate) struct LegacyDecoder {
    decoder: encoding_rs::Decoder,
    is_single_byte: bool,
    fed_bytes: u64,
    settled_bytes: u64,
    /// The last bytes that were taken in, the newest last.
    recent: [u8; RECENT_BYTES],
    scratch: Box<[u8]>,
}

impl fmt::Debug for LegacyDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} from byte {}",
            self.decoder.encoding().name(),
            self.fed_bytes
        )
    }
}

impl LegacyDecoder {
    pub(crate) fn new(encoding: Legacy) -> LegacyDecoder {
        LegacyDecoder {
            decoder: encoding.0.new_decoder_without_bom_handling(),
            is_single_byte: encoding.is_single_byte(),
            fed_bytes: 0,
            settled_bytes: 0,
            recent: [0; RECENT_BYTES],
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
        }
    }

    /// Bytes that have become text or were told as malformed; exact where the stream came byte by byte.
    pub(crate) fn settled_bytes(&self) -> u64 {
        self.settled_bytes
    }

    /// Bytes that were taken in.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.fed_bytes
    }

    /// The characters of a part with the place each starts at: slow, to find one. The decoder is of no more use.
    pub(crate) fn chars(
        &mut self,
        part: &[u8],
        last: bool,
        policy: OnMalformed,
    ) -> Vec<(u32, u64)> {
        let places = (self.fed_bytes, self.settled_bytes);
        naive::decode_legacy(part, &mut self.decoder, places, last, policy).0
    }

    pub(crate) fn push<S: ByteSink>(
        &mut self,
        mut part: &[u8],
        last: bool,
        policy: OnMalformed,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        loop {
            let (result, read, written) =
                self.decoder
                    .decode_to_utf8_without_replacement(part, &mut self.scratch, last);
            out.put(&self.scratch[..written])?;
            self.remember(&part[..read]);
            part = &part[read..];
            if written > 0 {
                self.settled_bytes = self.fed_bytes;
            }
            match result {
                DecoderResult::InputEmpty => return Ok(()),
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(len, behind) => {
                    let end = RECENT_BYTES - usize::from(behind);
                    let bytes = &self.recent[end - usize::from(len)..end];
                    self.settled_bytes = self.fed_bytes - u64::from(behind);
                    let at_bytes = self.settled_bytes - u64::from(len);
                    let reason = match self.is_single_byte {
                        true => Reason::Undefined,
                        false if last && part.is_empty() && behind == 0 && self.is_cut(bytes) => {
                            Reason::IncompleteSequence
                        }
                        false => Reason::IllegalSequence,
                    };
                    put_malformed(MalformedBytes::new(at_bytes, bytes, reason), policy, out)?;
                }
            }
        }
    }

    /// Whether bytes at the end of the stream are the start of a sequence: more of them would have been waited for.
    fn is_cut(&self, bytes: &[u8]) -> bool {
        let mut again = self.decoder.encoding().new_decoder_without_bom_handling();
        let (result, ..) = again.decode_to_utf8_without_replacement(bytes, &mut [0; 64], false);
        result == DecoderResult::InputEmpty
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.fed_bytes += bytes.len() as u64;
        let n = bytes.len().min(RECENT_BYTES);
        self.recent.copy_within(n.., 0);
        self.recent[RECENT_BYTES - n..].copy_from_slice(&bytes[bytes.len() - n..]);
    }
}

/// Encodes a text that comes in parts of whole characters.
pub(crate) struct LegacyEncoder {
    encoder: encoding_rs::Encoder,
    scratch: Box<[u8]>,
}

impl fmt::Debug for LegacyEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.encoder.encoding().name())
    }
}

impl LegacyEncoder {
    pub(crate) fn new(encoding: Legacy) -> LegacyEncoder {
        LegacyEncoder {
            encoder: encoding.0.new_encoder(),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
        }
    }

    /// Appends the text up to a character that cannot be encoded, which comes back with the bytes behind which it stands.
    pub(crate) fn push<S: ByteSink>(
        &mut self,
        text: &str,
        last: bool,
        out: &mut S,
    ) -> Result<Option<(usize, char)>, TranscodeError> {
        let mut at = 0;
        loop {
            let (result, read, written) = self.encoder.encode_from_utf8_without_replacement(
                &text[at..],
                &mut self.scratch,
                last,
            );
            out.put(&self.scratch[..written])?;
            at += read;
            match result {
                EncoderResult::InputEmpty => return Ok(None),
                EncoderResult::OutputFull => {}
                // Not the one that it tells: for the escapes of ISO-2022-JP that is U+FFFD.
                EncoderResult::Unmappable(told) => {
                    let c = text[..at].chars().next_back().unwrap_or(told);
                    return Ok(Some((at, c)));
                }
            }
        }
    }
}
