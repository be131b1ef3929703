//! UTF-8 to bytes in an encoding, part by part. Parts end where characters do.

use crate::arch::bytes::{append_latin1, append_utf16, as_bytes};
use crate::arch::validity;
use crate::encoding::{Encoding, Order};
use crate::legacy::LegacyEncoder;
use crate::transcode::error::{OnUnencodable, TranscodeError};
use crate::{ByteSink, Policy, Units, measure};

/// Bytes of UTF-8 that are encoded in one go, about.
const PIECE_BYTES: usize = 16 * 1024;

/// An encoder with all that it remembers between two parts.
#[derive(Debug)]
pub(super) struct Encode {
    form: Form,
    policy: OnUnencodable,
    narrow: Vec<u8>,
    wide: Vec<u16>,
    wider: Vec<u32>,
}

#[derive(Debug)]
enum Form {
    Utf8,
    Utf16 { big: bool },
    Utf32 { big: bool },
    Latin1,
    Ascii,
    Legacy(LegacyEncoder),
}

/// Why a part was not encoded whole.
pub(super) enum Stop {
    /// At so many bytes of the part stands a character that the encoding does not have.
    Unencodable(usize, u32),
    /// The sink.
    Other(TranscodeError),
}

impl<E: Into<TranscodeError>> From<E> for Stop {
    fn from(e: E) -> Stop {
        Stop::Other(e.into())
    }
}

impl Encode {
    pub(super) fn new(encoding: Encoding, policy: OnUnencodable) -> Encode {
        let form = match encoding {
            Encoding::Utf8 | Encoding::Utf8Marked => Form::Utf8,
            Encoding::Utf16(order) => Form::Utf16 {
                big: order == Order::Big,
            },
            Encoding::Utf32(order) => Form::Utf32 {
                big: order == Order::Big,
            },
            Encoding::Latin1 => Form::Latin1,
            Encoding::Ascii => Form::Ascii,
            Encoding::Legacy(legacy) => Form::Legacy(LegacyEncoder::new(legacy)),
        };
        Encode {
            form,
            policy,
            narrow: Vec::new(),
            wide: Vec::new(),
            wider: Vec::new(),
        }
    }

    /// Whether it writes the UTF-8 that it is given as it is.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.form, Form::Utf8)
    }

    /// Appends UTF-8 (with lone surrogates in its manner) in the encoding.
    pub(super) fn push<S: ByteSink>(&mut self, text: &[u8], out: &mut S) -> Result<(), Stop> {
        let mut at = 0;
        while at < text.len() {
            let mut end = text.len().min(at + PIECE_BYTES);
            while end < text.len() && text[end] & 0xC0 == 0x80 {
                end += 1;
            }
            let piece = &text[at..end];
            let good = match validity::as_str(piece) {
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

    /// Ends the text: back to ASCII where the encoding has states.
    pub(super) fn finish<S: ByteSink>(&mut self, out: &mut S) -> Result<(), TranscodeError> {
        if let Form::Legacy(encoder) = &mut self.form {
            encoder.push("", true, out)?;
        }
        Ok(())
    }

    /// Appends well-formed text, which stands at `from` of the part.
    fn str<S: ByteSink>(&mut self, mut text: &str, from: usize, out: &mut S) -> Result<(), Stop> {
        let mut at = from;
        while !text.is_empty() {
            let (used, c) = match &mut self.form {
                Form::Utf8 => return Ok(out.put(text.as_bytes())?),
                Form::Utf16 { big } => {
                    self.wide.clear();
                    append_utf16(text, &mut self.wide);
                    if *big != cfg!(target_endian = "big") {
                        self.wide.iter_mut().for_each(|u| *u = u.swap_bytes());
                    }
                    return Ok(out.put(as_bytes(&self.wide))?);
                }
                Form::Utf32 { big } => {
                    self.wider.clear();
                    self.wider.extend(text.chars().map(u32::from));
                    if *big != cfg!(target_endian = "big") {
                        self.wider.iter_mut().for_each(|u| *u = u.swap_bytes());
                    }
                    return Ok(out.put(as_bytes(&self.wider))?);
                }
                Form::Latin1 => match put_latin1(text, &mut self.narrow, out)? {
                    None => return Ok(()),
                    Some(stopped) => stopped,
                },
                Form::Ascii => match put_ascii(text, out)? {
                    None => return Ok(()),
                    Some(stopped) => stopped,
                },
                Form::Legacy(encoder) => match encoder.push(text, false, out)? {
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

    /// Does with a character that cannot be encoded what the policy says.
    fn unencodable<S: ByteSink>(&mut self, at: usize, c: u32, out: &mut S) -> Result<(), Stop> {
        let instead = match self.policy {
            OnUnencodable::Strict => return Err(Stop::Unencodable(at, c)),
            OnUnencodable::SurrogatePass => {
                return match &self.form {
                    Form::Utf8 => {
                        let c = c as u16;
                        let bytes = [0xED, 0x80 | (c >> 6 & 0x3F) as u8, 0x80 | (c & 0x3F) as u8];
                        Ok(out.put(&bytes)?)
                    }
                    Form::Utf16 { big: false } => Ok(out.put(&(c as u16).to_le_bytes())?),
                    Form::Utf16 { big: true } => Ok(out.put(&(c as u16).to_be_bytes())?),
                    Form::Utf32 { big: false } => Ok(out.put(&c.to_le_bytes())?),
                    Form::Utf32 { big: true } => Ok(out.put(&c.to_be_bytes())?),
                    _ => Err(Stop::Unencodable(at, c)),
                };
            }
            OnUnencodable::Ignore => return Ok(()),
            OnUnencodable::Replace => "?".to_owned(),
            OnUnencodable::BackslashReplace => match c {
                0..0x100 => format!("\\x{c:02x}"),
                0x100..0x1_0000 => format!("\\u{c:04x}"),
                _ => format!("\\U{c:08x}"),
            },
            OnUnencodable::XmlCharRefReplace => format!("&#{c};"),
        };
        // Every encoding has ASCII.
        self.str(&instead, at, out)
    }
}

/// Appends text as Latin-1 up to a character that it does not have; comes back with the bytes up to its end.
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

/// As [`put_latin1`], as ASCII.
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

/// The well-formed start of text with surrogates in it.
fn longest_str(text: &[u8]) -> &str {
    let good = match std::str::from_utf8(text) {
        Ok(text) => return text,
        Err(e) => &text[..e.valid_up_to()],
    };
    std::str::from_utf8(good).unwrap_or_default()
}

/// The surrogate that stands at the start in the manner of UTF-8.
fn surrogate_of_utf8(text: &[u8]) -> u32 {
    let bits = |i: usize| u32::from(text[i] & 0x3F);
    0xD000 | bits(1) << 6 | bits(2)
}
