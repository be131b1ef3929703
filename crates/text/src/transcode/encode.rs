//! [`StreamEncoder`]: converts UTF-8 to any other encoding, part by part. Each part must end at a
//! character boundary.

use crate::arch::bytes::{append_latin1, append_utf16, as_bytes};
use crate::arch::rust_str;
use crate::encoding::{Encoding, Order};
use crate::legacy::LegacyEncoder;
use crate::transcode::error::TranscodeError;
use crate::{ByteSink, Policy, Units, measure};

/// The approximate number of bytes of UTF-8 per step.
const PIECE_BYTES: usize = 16 * 1024;

/// An encoder for a text in parts.
#[derive(Debug)]
pub(super) struct StreamEncoder {
    form: TargetForm,
    policy: Policy,
    narrow: Vec<u8>,
    wide: Vec<u16>,
    wider: Vec<u32>,
}

#[derive(Debug)]
enum TargetForm {
    Utf8,
    Utf16 { big: bool },
    Utf32 { big: bool },
    Latin1,
    Ascii,
    Legacy(LegacyEncoder),
}

/// The reason why the encoder stopped.
pub(super) enum EncodeStop {
    /// The position of a character that the encoding does not have, and its code point.
    Unencodable(usize, u32),
    /// Another error, such as a full sink.
    Other(TranscodeError),
}

impl<E: Into<TranscodeError>> From<E> for EncodeStop {
    fn from(e: E) -> EncodeStop {
        EncodeStop::Other(e.into())
    }
}

impl StreamEncoder {
    pub(super) fn new(encoding: Encoding, policy: Policy) -> StreamEncoder {
        let form = match encoding {
            Encoding::Utf8 | Encoding::Utf8Marked => TargetForm::Utf8,
            Encoding::Utf16(order) => TargetForm::Utf16 {
                big: order == Order::Big,
            },
            Encoding::Utf32(order) => TargetForm::Utf32 {
                big: order == Order::Big,
            },
            Encoding::Latin1 => TargetForm::Latin1,
            Encoding::Ascii => TargetForm::Ascii,
            Encoding::Legacy(legacy) => TargetForm::Legacy(LegacyEncoder::new(legacy)),
        };
        StreamEncoder {
            form,
            policy,
            narrow: Vec::new(),
            wide: Vec::new(),
            wider: Vec::new(),
        }
    }

    /// Returns `true` if the output is UTF-8. The input is then copied.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.form, TargetForm::Utf8)
    }

    /// Encodes `text` and appends the bytes. `text` is UTF-8, but may contain surrogates.
    pub(super) fn push<S: ByteSink>(&mut self, text: &[u8], out: &mut S) -> Result<(), EncodeStop> {
        let mut at = 0;
        while at < text.len() {
            let mut end = text.len().min(at + PIECE_BYTES);
            while end < text.len() && text[end] & 0xC0 == 0x80 {
                end += 1;
            }
            let piece = &text[at..end];
            let good = match rust_str::as_str(piece) {
                Some(piece) => piece,
                None => longest_str(piece),
            };
            self.str(good, at, out)?;
            at += good.len();
            if at < end {
                let half = surrogate_of_utf8(&text[at..]);
                self.unencodable(at, half, out)?;
                at += 3;
            }
        }
        Ok(())
    }

    /// Ends the text. Appends the escape sequence for ASCII, if the encoding requires one.
    pub(super) fn finish<S: ByteSink>(&mut self, out: &mut S) -> Result<(), TranscodeError> {
        if let TargetForm::Legacy(encoder) = &mut self.form {
            encoder.push("", true, out)?;
        }
        Ok(())
    }

    /// Encodes valid UTF-8. `from` is the offset of `text` in its part.
    fn str<S: ByteSink>(
        &mut self,
        mut text: &str,
        from: usize,
        out: &mut S,
    ) -> Result<(), EncodeStop> {
        let mut at = from;
        while !text.is_empty() {
            let (used, c) = match &mut self.form {
                TargetForm::Utf8 => return Ok(out.put(text.as_bytes())?),
                TargetForm::Utf16 { big } => {
                    self.wide.clear();
                    append_utf16(text, &mut self.wide);
                    if *big != cfg!(target_endian = "big") {
                        self.wide.iter_mut().for_each(|u| *u = u.swap_bytes());
                    }
                    return Ok(out.put(as_bytes(&self.wide))?);
                }
                TargetForm::Utf32 { big } => {
                    self.wider.clear();
                    self.wider.extend(text.chars().map(u32::from));
                    if *big != cfg!(target_endian = "big") {
                        self.wider.iter_mut().for_each(|u| *u = u.swap_bytes());
                    }
                    return Ok(out.put(as_bytes(&self.wider))?);
                }
                TargetForm::Latin1 => match put_latin1(text, &mut self.narrow, out)? {
                    None => return Ok(()),
                    Some(stopped) => stopped,
                },
                TargetForm::Ascii => match put_ascii(text, out)? {
                    None => return Ok(()),
                    Some(stopped) => stopped,
                },
                TargetForm::Legacy(encoder) => match encoder.push(text, false, out)? {
                    None => return Ok(()),
                    Some(stopped) => stopped,
                },
            };
            at += used;
            text = &text[used..];
            self.unencodable(at - c.len_utf8(), c.into(), out)?;
        }
        Ok(())
    }

    /// Handles a character that the encoding does not have, by the policy.
    fn unencodable<S: ByteSink>(
        &mut self,
        at: usize,
        c: u32,
        out: &mut S,
    ) -> Result<(), EncodeStop> {
        let instead = match self.policy {
            Policy::Strict => return Err(EncodeStop::Unencodable(at, c)),
            Policy::SurrogatePass => {
                return match &self.form {
                    TargetForm::Utf8 => {
                        let c = c as u16;
                        let bytes = [0xED, 0x80 | (c >> 6 & 0x3F) as u8, 0x80 | (c & 0x3F) as u8];
                        Ok(out.put(&bytes)?)
                    }
                    TargetForm::Utf16 { big: false } => Ok(out.put(&(c as u16).to_le_bytes())?),
                    TargetForm::Utf16 { big: true } => Ok(out.put(&(c as u16).to_be_bytes())?),
                    TargetForm::Utf32 { big: false } => Ok(out.put(&c.to_le_bytes())?),
                    TargetForm::Utf32 { big: true } => Ok(out.put(&c.to_be_bytes())?),
                    _ => Err(EncodeStop::Unencodable(at, c)),
                };
            }
            Policy::Ignore => return Ok(()),
            Policy::Replace => "?".to_owned(),
            Policy::BackslashReplace => match c {
                0..0x100 => format!("\\x{c:02x}"),
                0x100..0x1_0000 => format!("\\u{c:04x}"),
                _ => format!("\\U{c:08x}"),
            },
            Policy::XmlCharRefReplace => format!("&#{c};"),
        };
        // Every encoding contains ASCII.
        self.str(&instead, at, out)
    }
}

/// Appends the characters up to the first one above U+00FF as Latin-1. Returns the position after
/// this character, and the character.
fn put_latin1<S: ByteSink>(
    text: &str,
    narrow: &mut Vec<u8>,
    out: &mut S,
) -> Result<Option<(usize, char)>, TranscodeError> {
    narrow.clear();
    let whole = measure(Units::Utf8(text.as_bytes()), Policy::Strict);
    if whole.is_ok_and(|text| append_latin1(&text, narrow)) {
        out.put(narrow)?;
        return Ok(None);
    }
    for (at, c) in text.char_indices() {
        match u8::try_from(u32::from(c)) {
            Ok(byte) => narrow.push(byte),
            Err(_) => {
                out.put(narrow)?;
                return Ok(Some((at + c.len_utf8(), c)));
            }
        }
    }
    out.put(narrow)?;
    Ok(None)
}

/// Appends the ASCII characters up to the first other character. Returns the position after this
/// character, and the character.
fn put_ascii<S: ByteSink>(
    text: &str,
    out: &mut S,
) -> Result<Option<(usize, char)>, TranscodeError> {
    if text.is_ascii() {
        out.put(text.as_bytes())?;
        return Ok(None);
    }
    let good = text.bytes().take_while(u8::is_ascii).count();
    out.put(&text.as_bytes()[..good])?;
    let next = text[good..].chars().next();
    Ok(next.map(|c| (good + c.len_utf8(), c)))
}

/// Returns the longest valid prefix of `text`, which may contain surrogates.
fn longest_str(text: &[u8]) -> &str {
    let good = match std::str::from_utf8(text) {
        Ok(text) => return text,
        Err(e) => &text[..e.valid_up_to()],
    };
    std::str::from_utf8(good).unwrap_or_default()
}

/// Returns the surrogate in the first three bytes of `text`.
fn surrogate_of_utf8(text: &[u8]) -> u32 {
    let bits = |i: usize| u32::from(text[i] & 0x3F);
    0xD000 | bits(1) << 6 | bits(2)
}
