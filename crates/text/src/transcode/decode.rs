//! [`StreamDecoder`]: decodes bytes in any encoding to UTF-8, part by part.

use crate::arch::bytes::{CodeUnit, as_units, copy_units};
use crate::convert::{ConvertError, to_utf8};
use crate::encoding::{Encoding, Order};
use crate::legacy::LegacyDecoder;
use crate::transcode::error::{
    MalformedBytes, Reason, TranscodeError, put_malformed, utf8_of_surrogate,
};
use crate::transcode::naive;
use crate::{ByteSink, MalformedKind, Policy, SinkFull, Units, find_malformed};

/// The number of units per step. The data of a step fits into the L2 cache.
const PIECE_UNITS: usize = 16 * 1024;

/// The handling of a byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// The mark is dropped if the name of the encoding implies one, otherwise decoded.
    ByName,
    /// The mark is always dropped.
    Drop,
}

/// A decoder with its state between two parts.
#[derive(Debug)]
pub(super) struct StreamDecoder {
    units: UnitDecode,
    /// The decoder of encoding_rs, if it is used.
    legacy: Option<LegacyDecoder>,
}

impl StreamDecoder {
    pub(super) fn new(encoding: Encoding, policy: Policy, marks: Marks) -> StreamDecoder {
        let legacy = match encoding {
            Encoding::Legacy(legacy) => Some(LegacyDecoder::new(legacy)),
            _ => None,
        };
        StreamDecoder {
            units: UnitDecode {
                form: UnitForm::of(encoding),
                policy,
                at_bytes: 0,
                held: [0; 4],
                n_held: 0,
                start: Some((encoding, marks)),
                had_mark: false,
            },
            legacy,
        }
    }

    /// Returns a copy of the decoder. `None` if encoding_rs is used.
    pub(super) fn copied(&self) -> Option<StreamDecoder> {
        match self.legacy {
            None => Some(StreamDecoder {
                units: self.units,
                legacy: None,
            }),
            Some(_) => None,
        }
    }

    /// Returns the number of bytes decoded or found malformed.
    pub(super) fn settled_bytes(&self) -> u64 {
        match &self.legacy {
            Some(legacy) => legacy.settled_bytes(),
            None => self.units.at_bytes,
        }
    }

    /// Decodes a part and returns each character with its start in the stream. This slow method
    /// only locates errors. The decoder cannot be used afterwards.
    pub(super) fn chars(&mut self, part: &[u8], last: bool) -> Vec<(u32, u64)> {
        match &mut self.legacy {
            Some(legacy) => legacy.chars(part, last, self.units.policy),
            None => self.units.chars(part),
        }
    }

    /// Returns the incomplete character at the end. `None` if encoding_rs is not used.
    pub(super) fn pending(&self) -> Option<&[u8]> {
        self.legacy.as_ref().map(LegacyDecoder::pending)
    }

    /// Returns the number of bytes read. `None` if encoding_rs is not used.
    pub(super) fn taken_bytes(&self) -> Option<u64> {
        self.legacy.as_ref().map(LegacyDecoder::taken_bytes)
    }

    /// Returns `true` after a byte order mark. `None` until this is known.
    pub(super) fn had_mark(&self) -> Option<bool> {
        match (&self.legacy, self.units.start) {
            (None, Some(_)) => None,
            _ => Some(self.units.had_mark),
        }
    }

    /// Decodes the next part and appends it as UTF-8. `SurrogatePass` encodes lone surrogates too.
    /// `last` is `true` for the last part.
    pub(super) fn push<S: ByteSink>(
        &mut self,
        part: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        match &mut self.legacy {
            Some(legacy) => legacy.push(part, last, self.units.policy, out),
            None => self.units.push(part, last, out),
        }
    }
}

/// The encoding and byte order of the code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitForm {
    Utf8,
    Utf16 { big: bool },
    Utf32 { big: bool },
    Latin1,
    Ascii,
}

impl UnitForm {
    fn of(encoding: Encoding) -> UnitForm {
        match encoding {
            Encoding::Utf8 | Encoding::Utf8Marked => UnitForm::Utf8,
            Encoding::Utf16(order) => UnitForm::Utf16 {
                big: order == Order::Big,
            },
            Encoding::Utf32(order) => UnitForm::Utf32 {
                big: order == Order::Big,
            },
            Encoding::Latin1 | Encoding::Legacy(_) => UnitForm::Latin1,
            Encoding::Ascii => UnitForm::Ascii,
        }
    }
}

/// A decoder without encoding_rs. It keeps an incomplete byte order mark or character.
#[derive(Clone, Copy, Debug)]
struct UnitDecode {
    form: UnitForm,
    policy: Policy,
    /// The position in the stream of the first byte in `held`.
    at_bytes: u64,
    held: [u8; 4],
    n_held: usize,
    /// The encoding and the handling of a mark; `None` after the check for a mark.
    start: Option<(Encoding, Marks)>,
    had_mark: bool,
}

impl UnitDecode {
    fn push<S: ByteSink>(
        &mut self,
        mut part: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        if let Some((encoding, marks)) = self.start {
            let wanted = part.len().min(4 - self.n_held);
            let mut begun = [0; 4];
            begun[..self.n_held].copy_from_slice(&self.held[..self.n_held]);
            begun[self.n_held..][..wanted].copy_from_slice(&part[..wanted]);
            let n_begun = self.n_held + wanted;
            let Some((form, n_mark)) = look_for_mark(encoding, marks, &begun[..n_begun], last)
            else {
                (self.held, self.n_held) = (begun, n_begun);
                return Ok(());
            };
            self.start = None;
            self.form = form;
            self.had_mark = n_mark > 0;
            self.at_bytes = n_mark as u64;
            // Without a mark, the kept bytes are text.
            let n_held = self.n_held.saturating_sub(n_mark);
            part = &part[n_mark.saturating_sub(self.n_held)..];
            self.held.copy_within(self.n_held - n_held..self.n_held, 0);
            self.n_held = n_held;
        }
        if self.n_held > 0 {
            let mut joined = [0; 12];
            let more = part.len().min(8);
            joined[..self.n_held].copy_from_slice(&self.held[..self.n_held]);
            joined[self.n_held..][..more].copy_from_slice(&part[..more]);
            let joined = &joined[..self.n_held + more];
            let used = self.bytes(joined, last && more == part.len(), out)?;
            self.at_bytes += used as u64;
            match used.checked_sub(self.n_held) {
                Some(of_part) if more < part.len() => part = &part[of_part..],
                // `joined` has all of the part, and at most 3 bytes remain.
                _ => {
                    self.hold(&joined[used..]);
                    return Ok(());
                }
            }
            self.n_held = 0;
        }
        let used = self.bytes(part, last, out)?;
        self.at_bytes += used as u64;
        self.hold(&part[used..]);
        Ok(())
    }

    fn chars(&self, part: &[u8]) -> Vec<(u32, u64)> {
        let bytes = [&self.held[..self.n_held], part].concat();
        let found = self
            .start
            .and_then(|(encoding, marks)| look_for_mark(encoding, marks, &bytes, true));
        let (form, n_mark) = found.unwrap_or((self.form, 0));
        let order = |big| if big { Order::Big } else { Order::Little };
        let encoding = match form {
            UnitForm::Utf8 => Encoding::Utf8,
            UnitForm::Utf16 { big } => Encoding::Utf16(order(big)),
            UnitForm::Utf32 { big } => Encoding::Utf32(order(big)),
            UnitForm::Latin1 => Encoding::Latin1,
            UnitForm::Ascii => Encoding::Ascii,
        };
        let (mut chars, _) = naive::decode(&bytes, n_mark, encoding, self.policy);
        chars.iter_mut().for_each(|(_, at)| *at += self.at_bytes);
        chars
    }

    fn hold(&mut self, rest: &[u8]) {
        self.held[..rest.len()].copy_from_slice(rest);
        self.n_held = rest.len();
    }

    /// Decodes bytes at position `at_bytes` of the stream and returns the number of bytes used. An
    /// incomplete character at the end is not used, except in the last part.
    fn bytes<S: ByteSink>(
        &self,
        bytes: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<usize, TranscodeError> {
        match self.form {
            UnitForm::Utf8 => self.utf8(bytes, last, out),
            UnitForm::Utf16 { big } => self.utf16(bytes, big, last, out),
            UnitForm::Utf32 { big } => self.utf32(bytes, big, last, out),
            UnitForm::Latin1 => {
                for piece in bytes.chunks(PIECE_UNITS) {
                    well_formed(to_utf8(Units::Latin1(piece), Policy::Strict, out))?;
                }
                Ok(bytes.len())
            }
            UnitForm::Ascii => self.ascii(bytes, out),
        }
    }

    fn ascii<S: ByteSink>(&self, bytes: &[u8], out: &mut S) -> Result<usize, TranscodeError> {
        let mut at = 0;
        for piece in bytes.chunks(PIECE_UNITS) {
            let end = at + piece.len();
            while at < end {
                let good = match bytes[at..end].is_ascii() {
                    true => end - at,
                    false => bytes[at..end].iter().take_while(|b| b.is_ascii()).count(),
                };
                out.put(&bytes[at..at + good])?;
                at += good;
                if at < end {
                    self.malformed(at, &bytes[at..=at], Reason::NotAscii, None, out)?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    fn utf8<S: ByteSink>(
        &self,
        bytes: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<usize, TranscodeError> {
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes.len().min(at + PIECE_UNITS);
            let at_end = last && end == bytes.len();
            let piece = &bytes[at..end];
            let Some(found) = find_malformed(Units::Utf8(piece)) else {
                out.put(piece)?;
                at = end;
                continue;
            };
            out.put(&piece[..found.at_units])?;
            at += found.at_units;
            let rest = &bytes[at..end];
            let cut = found.kind == MalformedKind::UnexpectedEnd;
            let passes = self.policy == Policy::SurrogatePass;
            match surrogate_in_utf8(rest) {
                Some(3) if passes => {
                    out.put(&rest[..3])?;
                    at += 3;
                    continue;
                }
                // The bytes may start a surrogate, which the policy passes.
                Some(1 | 2) if passes && !at_end => {
                    if end == bytes.len() {
                        break;
                    }
                    continue;
                }
                _ => {}
            }
            if cut && !at_end {
                if end == bytes.len() {
                    break;
                }
                continue; // the next bytes are searched from this character on
            }
            let reason = match found.kind {
                MalformedKind::InvalidStartByte => Reason::InvalidStartByte,
                MalformedKind::UnexpectedEnd => Reason::UnexpectedEnd,
                _ => Reason::InvalidContinuation,
            };
            self.malformed(at, &rest[..found.len_units], reason, None, out)?;
            at += found.len_units;
        }
        Ok(at)
    }

    fn utf16<S: ByteSink>(
        &self,
        bytes: &[u8],
        big: bool,
        last: bool,
        out: &mut S,
    ) -> Result<usize, TranscodeError> {
        let (whole, odd) = bytes.split_at(bytes.len() & !1);
        let mut aside = Vec::new();
        let mut at = 0;
        while at < whole.len() {
            let end = whole.len().min(at + 2 * PIECE_UNITS);
            let units = units_of(&whole[at..end], big, &mut aside);
            let is_high = |u: u16| (0xD800..0xDC00).contains(&u);
            // A high surrogate at the end is decoded with the next units.
            let is_open = units.last().is_some_and(|&u| is_high(u));
            let at_end = last && end == whole.len();
            let n_units = units.len() - usize::from(is_open && !at_end);
            if n_units == 0 {
                // Only the high surrogate is left.
                break;
            }
            match to_utf8(Units::Utf16(&units[..n_units]), Policy::Strict, out) {
                Ok(_) => at += 2 * n_units,
                Err(ConvertError::SinkFull(e)) => return Err(e.into()),
                Err(ConvertError::Malformed(e)) => {
                    well_formed(to_utf8(
                        Units::Utf16(&units[..e.at_units]),
                        Policy::Strict,
                        out,
                    ))?;
                    at += 2 * e.at_units;
                    let unit = units[e.at_units];
                    let is_last = e.at_units + 1 == units.len() && at_end;
                    let (len, reason) = match is_high(unit) {
                        false => (2, Reason::IllegalEncoding),
                        // CPython includes a following odd byte in the error, unless the policy
                        // passes the surrogate.
                        true if is_last && self.policy != Policy::SurrogatePass => {
                            (2 + odd.len(), Reason::UnexpectedEnd)
                        }
                        true => (2, Reason::IllegalSurrogate),
                    };
                    self.malformed(at, &bytes[at..at + len], reason, Some(unit), out)?;
                    at += len;
                }
            }
        }
        if last && at < bytes.len() {
            self.malformed(at, &bytes[at..], Reason::TruncatedData, None, out)?;
            at = bytes.len();
        }
        Ok(at)
    }

    fn utf32<S: ByteSink>(
        &self,
        bytes: &[u8],
        big: bool,
        last: bool,
        out: &mut S,
    ) -> Result<usize, TranscodeError> {
        let (whole, odd) = bytes.split_at(bytes.len() & !3);
        let mut aside = Vec::new();
        let mut at = 0;
        while at < whole.len() {
            let end = whole.len().min(at + 4 * PIECE_UNITS);
            let units: &[u32] = units_of(&whole[at..end], big, &mut aside);
            match to_utf8(Units::Utf32(units), Policy::Strict, out) {
                Ok(_) => at = end,
                Err(ConvertError::SinkFull(e)) => return Err(e.into()),
                Err(ConvertError::Malformed(e)) => {
                    well_formed(to_utf8(
                        Units::Utf32(&units[..e.at_units]),
                        Policy::Strict,
                        out,
                    ))?;
                    at += 4 * e.at_units;
                    let unit = units[e.at_units];
                    let (reason, half) = match unit {
                        0xD800..0xE000 => (Reason::SurrogateCodePoint, Some(unit as u16)),
                        _ => (Reason::OutOfRange, None),
                    };
                    self.malformed(at, &bytes[at..at + 4], reason, half, out)?;
                    at += 4;
                }
            }
        }
        if last && !odd.is_empty() {
            self.malformed(at, odd, Reason::TruncatedData, None, out)?;
            at = bytes.len();
        }
        Ok(at)
    }

    /// Handles malformed bytes by the policy, at position `at_bytes + at` of the stream.
    fn malformed<S: ByteSink>(
        &self,
        at: usize,
        bytes: &[u8],
        reason: Reason,
        half: Option<u16>,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        if let (Policy::SurrogatePass, Some(half)) = (self.policy, half) {
            return Ok(out.put(&utf8_of_surrogate(half))?);
        }
        let error = MalformedBytes::new(self.at_bytes + at as u64, bytes, reason);
        put_malformed(error, self.policy, out)
    }
}

/// Returns 3 if `bytes` starts with a surrogate of three bytes. Returns 1 or 2 if `bytes` is only
/// its start.
fn surrogate_in_utf8(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => Some(3),
        [0xED, 0xA0..=0xBF] => Some(2),
        [0xED] => Some(1),
        _ => None,
    }
}

/// Returns the bytes as units in native byte order. Copies them to `aside` if they are reversed or
/// not aligned.
fn units_of<'a, U: CodeUnit>(bytes: &'a [u8], big: bool, aside: &'a mut Vec<U>) -> &'a [U] {
    let swap = big != cfg!(target_endian = "big");
    match as_units(bytes) {
        Some(units) if !swap => units,
        _ => {
            copy_units(bytes, swap, aside);
            aside
        }
    }
}

/// Returns the encoding of a text that begins with `begun`, and the length of the byte order mark
/// to drop. `None` if more bytes are needed.
fn look_for_mark(
    encoding: Encoding,
    marks: Marks,
    begun: &[u8],
    last: bool,
) -> Option<(UnitForm, usize)> {
    let order = |order| match encoding {
        Encoding::Utf16(_) => Encoding::Utf16(order),
        _ => Encoding::Utf32(order),
    };
    let candidates: &[Encoding] = match encoding {
        Encoding::Utf16(Order::Marked) | Encoding::Utf32(Order::Marked) => {
            &[order(Order::Little), order(Order::Big)]
        }
        Encoding::Utf8Marked => &[encoding],
        _ if marks == Marks::Drop => &[encoding],
        _ => &[],
    };
    for &candidate in candidates {
        let mark = candidate.mark();
        if !mark.is_empty() && begun.starts_with(mark) {
            return Some((UnitForm::of(candidate), mark.len()));
        }
    }
    let may_come = candidates
        .iter()
        .any(|c| begun.len() < c.mark().len() && c.mark().starts_with(begun));
    (last || !may_come).then_some((UnitForm::of(encoding), 0))
}

/// Returns the error of converting well-formed text, always [`SinkFull`].
fn well_formed(result: Result<usize, ConvertError>) -> Result<(), SinkFull> {
    match result {
        Err(ConvertError::SinkFull(e)) => Err(e),
        _ => Ok(()),
    }
}
