//! Converts streams in WHATWG encodings with the library encoding_rs, and adds the crate's policies
//! and positions of errors.

use std::collections::TryReserveError;
use std::fmt;
use std::sync::OnceLock;

use encoding_rs::{DecoderResult, EncoderResult};

use crate::arch::rust_str;
use crate::encoding::Legacy;
use crate::transcode::error::{MalformedBytes, Reason, TranscodeError, put_malformed};
use crate::transcode::naive;
use crate::{ByteSink, Policy, Units};

/// The size in bytes of the buffer for the output of encoding_rs.
const SCRATCH_BYTES: usize = 16 * 1024;

/// The number of input bytes to keep. encoding_rs may report malformed bytes late.
const RECENT_BYTES: usize = 8;

/// The conversion table of a single-byte encoding.
pub struct ByteTable {
    /// The character of each byte; [`NONE`] if there is none.
    chars: [u16; 256],
    /// The byte of each character below U+10000; 0 if there is none, and for U+0000.
    bytes: Box<[u8]>,
}

impl fmt::Debug for ByteTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByteTable")
    }
}

/// The entry of a byte without a character: U+FFFF.
const NONE: u16 = 0xFFFF;

impl ByteTable {
    fn of(encoding: Legacy) -> ByteTable {
        let mut table = ByteTable {
            chars: [NONE; 256],
            bytes: vec![0; 1 << 16].into_boxed_slice(),
        };
        for byte in 0..=255_u8 {
            let mut buffer = [0; 8];
            let mut decoder = encoding.0.new_decoder_without_bom_handling();
            let (result, _, n) =
                decoder.decode_to_utf8_without_replacement(&[byte], &mut buffer, true);
            let char = std::str::from_utf8(&buffer[..n])
                .ok()
                .and_then(|c| c.chars().next());
            if let (DecoderResult::InputEmpty, Some(c)) = (result, char) {
                table.chars[usize::from(byte)] = c as u16;
                table.bytes[c as usize] = byte;
            }
        }
        table
    }

    /// Appends the characters of the bytes to `out`, as UCS-2. Returns `false` if a byte has no
    /// character. The appended units are then unspecified.
    pub fn decode(&self, bytes: &[u8], out: &mut Vec<u16>) -> bool {
        let from = out.len();
        out.extend(bytes.iter().map(|b| self.chars[usize::from(*b)]));
        !out[from..].contains(&NONE)
    }

    /// Encodes `text` and appends the bytes to `out`. Returns `false` if the encoding lacks a
    /// character. The appended bytes are then unspecified.
    pub fn encode(&self, text: Units<'_>, out: &mut Vec<u8>) -> bool {
        let mut all = true;
        let mut byte_of = |c: u32| {
            let byte = self.bytes.get(c as usize).copied().unwrap_or(0);
            all &= byte != 0 || c == 0;
            byte
        };
        match text {
            Units::Latin1(u) => out.extend(u.iter().map(|c| byte_of((*c).into()))),
            Units::Ucs2(u) => out.extend(u.iter().map(|c| byte_of((*c).into()))),
            Units::Utf32(u) => out.extend(u.iter().map(|c| byte_of(*c))),
            Units::Utf8(_) | Units::Utf16(_) => return false,
        }
        all
    }
}

/// The table of an encoding with characters of one or two bytes, without shift states.
pub struct PairTable {
    /// The code of each character below U+10000, as a big-endian number; 0 if there is none.
    codes: Box<[u16]>,
}

impl fmt::Debug for PairTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairTable")
    }
}

impl PairTable {
    fn of(encoding: Legacy) -> PairTable {
        let mut encoder = encoding.0.new_encoder();
        let mut code = |c: u32| {
            let (mut utf8, mut buffer) = ([0; 4], [0; 8]);
            let text = char::from_u32(c)?.encode_utf8(&mut utf8);
            let (result, _, n) =
                encoder.encode_from_utf8_without_replacement(text, &mut buffer, false);
            match (result, &buffer[..n]) {
                (EncoderResult::InputEmpty, [one]) => Some(u16::from(*one)),
                (EncoderResult::InputEmpty, [first, second]) => {
                    Some(u16::from_be_bytes([*first, *second]))
                }
                _ => None,
            }
        };
        let codes = (0..0x1_0000).map(|c| code(c).unwrap_or(0)).collect();
        PairTable { codes }
    }

    /// Encodes `text` and appends the bytes to `out`. Returns `false` if a character has no code in
    /// this table. The appended bytes are then unspecified.
    pub fn encode(&self, text: Units<'_>, out: &mut Vec<u8>) -> bool {
        let mut put = |c: u32| {
            let code = self.codes.get(c as usize).copied().unwrap_or(0);
            match code.to_be_bytes() {
                [0, 0] if c != 0 => return false,
                [0, one] => out.push(one),
                two => out.extend_from_slice(&two),
            }
            true
        };
        match text {
            Units::Latin1(u) => u.iter().all(|c| put((*c).into())),
            Units::Ucs2(u) => u.iter().all(|c| put((*c).into())),
            Units::Utf32(u) => u.iter().all(|c| put(*c)),
            Units::Utf8(_) | Units::Utf16(_) => false,
        }
    }
}

/// The [`PairTable`]s built so far, indexed as `LEGACY`.
static PAIR_TABLES: [OnceLock<PairTable>; 40] = [const { OnceLock::new() }; 40];

/// The [`ByteTable`]s built so far, indexed as `LEGACY`.
static TABLES: [OnceLock<ByteTable>; 40] = [const { OnceLock::new() }; 40];

impl Legacy {
    /// Returns the table of a single-byte encoding, otherwise `None`.
    #[must_use]
    pub fn byte_table(self) -> Option<&'static ByteTable> {
        if !self.is_single_byte() {
            return None;
        }
        let at = TABLES.get(self.number())?;
        Some(at.get_or_init(|| ByteTable::of(self)))
    }

    /// Returns the table of one-byte and two-byte codes. `None` if the encoding has shift states or
    /// longer codes. The first call builds the table.
    #[must_use]
    pub fn pair_table(self) -> Option<&'static PairTable> {
        if self.is_single_byte() || !self.is_ascii_compatible() {
            return None;
        }
        let at = PAIR_TABLES.get(self.number())?;
        Some(at.get_or_init(|| PairTable::of(self)))
    }

    /// Returns `true` if ASCII bytes are ASCII in this encoding.
    #[must_use]
    pub fn is_ascii_compatible(self) -> bool {
        self.0.is_ascii_compatible()
    }

    /// Decodes a whole text to UTF-8. Returns `None` for malformed text.
    ///
    /// # Errors
    ///
    /// Returns an error if memory is exhausted.
    pub fn decode_whole(self, bytes: &[u8]) -> Result<Option<Vec<u8>>, TryReserveError> {
        let mut decoder = self.0.new_decoder_without_bom_handling();
        let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
        let mut out = zeros(most.unwrap_or(usize::MAX))?;
        let (result, _, n) = decoder.decode_to_utf8_without_replacement(bytes, &mut out, true);
        out.truncate(n);
        Ok((result == DecoderResult::InputEmpty).then_some(out))
    }

    /// Encodes a whole text. Returns `None` if the encoding lacks a character, or if the text is
    /// not UTF-8.
    ///
    /// # Errors
    ///
    /// Returns an error if memory is exhausted.
    pub fn encode_whole(self, utf8: &[u8]) -> Result<Option<Vec<u8>>, TryReserveError> {
        let Some(text) = rust_str::as_str(utf8) else {
            return Ok(None);
        };
        let mut encoder = self.0.new_encoder();
        let most = encoder.max_buffer_length_from_utf8_without_replacement(text.len());
        let mut out = zeros(most.unwrap_or(usize::MAX))?;
        let (result, _, n) = encoder.encode_from_utf8_without_replacement(text, &mut out, true);
        out.truncate(n);
        Ok((result == EncoderResult::InputEmpty).then_some(out))
    }
}

/// Returns `n` zero bytes, or an error if memory is exhausted.
fn zeros(n: usize) -> Result<Vec<u8>, TryReserveError> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(n)?;
    zeros.resize(n, 0);
    Ok(zeros)
}

/// Decodes a stream to UTF-8 with encoding_rs.
pub(crate) struct LegacyDecoder {
    decoder: encoding_rs::Decoder,
    is_single_byte: bool,
    fed_bytes: u64,
    settled_bytes: u64,
    /// The last input bytes, the most recent one last.
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

    /// Returns the number of input bytes decoded or reported as malformed. The number is exact only
    /// if each push had one byte.
    pub(crate) fn settled_bytes(&self) -> u64 {
        self.settled_bytes
    }

    /// Returns the incomplete character at the end of the input. Each of the last four pushes must
    /// have had one byte.
    pub(crate) fn pending(&self) -> &[u8] {
        let n = (self.fed_bytes - self.settled_bytes) as usize;
        &self.recent[RECENT_BYTES - n.min(RECENT_BYTES)..]
    }

    /// Returns the number of input bytes read.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.fed_bytes
    }

    /// Decodes a part and returns each character with its start in the stream. This slow method
    /// only locates errors. The decoder cannot be used afterwards.
    pub(crate) fn chars(&mut self, part: &[u8], last: bool, policy: Policy) -> Vec<(u32, u64)> {
        let places = (self.fed_bytes, self.settled_bytes);
        naive::decode_legacy(part, &mut self.decoder, places, last, policy).0
    }

    pub(crate) fn push<S: ByteSink>(
        &mut self,
        mut part: &[u8],
        last: bool,
        policy: Policy,
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
                DecoderResult::Malformed(len, n_after) => {
                    let end = RECENT_BYTES - usize::from(n_after);
                    let bytes = &self.recent[end - usize::from(len)..end];
                    self.settled_bytes = self.fed_bytes - u64::from(n_after);
                    let at_bytes = self.settled_bytes - u64::from(len);
                    let reason = match self.is_single_byte {
                        true => Reason::Undefined,
                        false if last && part.is_empty() && n_after == 0 && self.is_cut(bytes) => {
                            Reason::IncompleteSequence
                        }
                        false => Reason::IllegalSequence,
                    };
                    put_malformed(MalformedBytes::new(at_bytes, bytes, reason), policy, out)?;
                }
            }
        }
    }

    /// Returns `true` if `bytes`, the end of the stream, are an incomplete character.
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

/// Encodes a text in parts. Each part must end at a character boundary.
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

    /// Encodes text up to the first character that the encoding lacks. Returns the character and
    /// the number of bytes up to its end. `None` if the whole text was encoded.
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
                // Read from the text: encoding_rs reports U+FFFD for the escape characters of
                // ISO-2022-JP.
                EncoderResult::Unmappable(reported) => {
                    let c = text[..at].chars().next_back().unwrap_or(reported);
                    return Ok(Some((at, c)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoding;

    fn legacy() -> impl Iterator<Item = Legacy> {
        Encoding::all().filter_map(|(encoding, _)| match encoding {
            Encoding::Legacy(legacy) => Some(legacy),
            _ => None,
        })
    }

    #[test]
    fn tables_encode_every_character_as_encoding_rs_does() {
        let mut n_tables = 0;
        for encoding in legacy() {
            // Single-byte encodings have no characters between these two code points.
            let skipped = if encoding.is_single_byte() {
                0x2600..0xF000
            } else {
                0..0
            };
            let chars = (0..0x1_0000).filter(|c| !skipped.contains(c));
            for c in chars.filter_map(char::from_u32) {
                let units = [c as u16];
                let (mut narrow, mut out) = (Vec::new(), Vec::new());
                let wide = Units::Ucs2(&units);
                let expected = encoding
                    .encode_whole(c.encode_utf8(&mut [0; 4]).as_bytes())
                    .unwrap();
                if let Some(table) = encoding.byte_table() {
                    let made = table.encode(wide, &mut narrow).then_some(narrow);
                    assert_eq!(made, expected, "{encoding:?} {c:?}");
                }
                if let Some(table) = encoding.pair_table() {
                    let made = table.encode(wide, &mut out).then_some(out);
                    // The table has no codes of four bytes.
                    let expected = expected.filter(|bytes| bytes.len() <= 2);
                    assert_eq!(made, expected, "{encoding:?} {c:?}");
                }
            }
            n_tables += usize::from(encoding.byte_table().is_some());
            n_tables += usize::from(encoding.pair_table().is_some());
        }
        // All encodings except ISO-2022-JP have a table.
        assert_eq!(n_tables, 35);
    }

    #[test]
    fn tables_decode_every_byte_as_encoding_rs_does() {
        for encoding in legacy() {
            let Some(table) = encoding.byte_table() else {
                continue;
            };
            for byte in 0..=255_u8 {
                let mut wide = Vec::new();
                let good = table.decode(&[byte], &mut wide);
                let expected = encoding.decode_whole(&[byte]).unwrap();
                let made = String::from_utf16(&wide).ok().map(String::into_bytes);
                assert_eq!(made.filter(|_| good), expected, "{encoding:?} {byte:02x}");
            }
        }
    }
}
