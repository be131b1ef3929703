//! Bytes in an encoding to UTF-8, part by part.

use crate::arch::bytes::{Unit, as_units, copy_units};
use crate::convert::{ConvertError, to_utf8};
use crate::encoding::{Encoding, Order};
use crate::legacy::LegacyDecoder;
use crate::transcode::error::{
    MalformedBytes, OnMalformed, Reason, TranscodeError, put_malformed, utf8_of_surrogate,
};
use crate::transcode::naive;
use crate::{ByteSink, MalformedKind, Policy, SinkFull, Units, find_malformed};

/// Units that are looked at in one go: with what they become they stay in the second cache.
const PIECE_UNITS: usize = 16 * 1024;

/// What a byte order mark at the start becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Dropped where the encoding's name promises one, text elsewhere.
    ByName,
    /// Dropped in any case.
    Drop,
}

/// A decoder with all that it remembers between two parts.
#[derive(Debug)]
pub(super) struct Decode {
    units: UnitDecode,
    /// Where encoding_rs decodes.
    legacy: Option<LegacyDecoder>,
}

impl Decode {
    pub(super) fn new(encoding: Encoding, policy: OnMalformed, marks: Marks) -> Decode {
        let legacy = match encoding {
            Encoding::Legacy(legacy) => Some(LegacyDecoder::new(legacy)),
            _ => None,
        };
        Decode {
            units: UnitDecode {
                form: Form::of(encoding),
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

    /// The same decoder once more; `None` where encoding_rs decodes, whose state cannot be copied.
    pub(super) fn copied(&self) -> Option<Decode> {
        match self.legacy {
            None => Some(Decode {
                units: self.units,
                legacy: None,
            }),
            Some(_) => None,
        }
    }

    /// Bytes of the stream that have become text, or were told as malformed: where the next character starts.
    pub(super) fn settled_bytes(&self) -> u64 {
        match &self.legacy {
            Some(legacy) => legacy.settled_bytes(),
            None => self.units.at_bytes,
        }
    }

    /// The characters of a part with the place each starts at: slow, to find one. The decoder is of no more use.
    pub(super) fn chars(&mut self, part: &[u8], last: bool) -> Vec<(u32, u64)> {
        match &mut self.legacy {
            Some(legacy) => legacy.chars(part, last, self.units.policy),
            None => self.units.chars(part),
        }
    }

    /// The bytes of an incomplete character, where encoding_rs decodes, if the last four of the stream
    /// came one by one.
    pub(super) fn pending(&self) -> Option<&[u8]> {
        self.legacy.as_ref().map(LegacyDecoder::pending)
    }

    /// Bytes that encoding_rs has taken in, where it decodes.
    pub(super) fn taken_bytes(&self) -> Option<u64> {
        self.legacy.as_ref().map(LegacyDecoder::taken_bytes)
    }

    /// Whether a mark stood at the start, or why that is not known yet.
    pub(super) fn had_mark(&self) -> Option<bool> {
        match (&self.legacy, self.units.start) {
            (None, Some(_)) => None,
            _ => Some(self.units.had_mark),
        }
    }

    /// Appends the next part as UTF-8 (lone surrogates in its manner, where they pass); `last` ends the text.
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

/// What the bytes are units of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Utf8,
    Utf16 { big: bool },
    Utf32 { big: bool },
    Latin1,
    Ascii,
}

impl Form {
    fn of(encoding: Encoding) -> Form {
        match encoding {
            Encoding::Utf8 | Encoding::Utf8Marked => Form::Utf8,
            Encoding::Utf16(order) => Form::Utf16 {
                big: order == Order::Big,
            },
            Encoding::Utf32(order) => Form::Utf32 {
                big: order == Order::Big,
            },
            Encoding::Latin1 | Encoding::Legacy(_) => Form::Latin1,
            Encoding::Ascii => Form::Ascii,
        }
    }
}

/// The decoder of our own encodings. Up to 4 bytes are held: a mark that may be coming, or a character that was begun.
#[derive(Clone, Copy, Debug)]
struct UnitDecode {
    form: Form,
    policy: OnMalformed,
    /// Where the held bytes start in the stream.
    at_bytes: u64,
    held: [u8; 4],
    n_held: usize,
    /// Until it is known whether the stream starts with a mark.
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
            // What is no mark is text: first what was held, then the part.
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
                // That was all, and still it may go on: at most 3 bytes.
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
            Form::Utf8 => Encoding::Utf8,
            Form::Utf16 { big } => Encoding::Utf16(order(big)),
            Form::Utf32 { big } => Encoding::Utf32(order(big)),
            Form::Latin1 => Encoding::Latin1,
            Form::Ascii => Encoding::Ascii,
        };
        let (mut chars, _) = naive::decode(&bytes, n_mark, encoding, self.policy);
        chars.iter_mut().for_each(|(_, at)| *at += self.at_bytes);
        chars
    }

    fn hold(&mut self, rest: &[u8]) {
        self.held[..rest.len()].copy_from_slice(rest);
        self.n_held = rest.len();
    }

    /// Decodes bytes at `at_bytes`; returns how many were used: all but up to 3 of a character that is begun, and all of
    /// the last.
    fn bytes<S: ByteSink>(
        &self,
        bytes: &[u8],
        last: bool,
        out: &mut S,
    ) -> Result<usize, TranscodeError> {
        match self.form {
            Form::Utf8 => self.utf8(bytes, last, out),
            Form::Utf16 { big } => self.utf16(bytes, big, last, out),
            Form::Utf32 { big } => self.utf32(bytes, big, last, out),
            Form::Latin1 => {
                for piece in bytes.chunks(PIECE_UNITS) {
                    well_formed(to_utf8(Units::Latin1(piece), Policy::Strict, out))?;
                }
                Ok(bytes.len())
            }
            Form::Ascii => self.ascii(bytes, out),
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
            let passes = self.policy == OnMalformed::SurrogatePass;
            match surrogate_in_utf8(rest) {
                Some(3) if passes => {
                    out.put(&rest[..3])?;
                    at += 3;
                    continue;
                }
                // It may be one yet.
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
                continue; // the next piece begins where the character does
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
            // A first half at the end of a piece waits for what comes.
            let is_open = units.last().is_some_and(|&u| is_high(u));
            let at_end = last && end == whole.len();
            let n_units = units.len() - usize::from(is_open && !at_end);
            if n_units == 0 {
                // One first half: at the end of the bytes, since pieces have more.
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
                        // CPython takes the odd byte behind it as a part of it, but where the half passes.
                        true if is_last && self.policy != OnMalformed::SurrogatePass => {
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

    /// Does with malformed bytes, at `at` behind the held ones, what the policy says.
    fn malformed<S: ByteSink>(
        &self,
        at: usize,
        bytes: &[u8],
        reason: Reason,
        half: Option<u16>,
        out: &mut S,
    ) -> Result<(), TranscodeError> {
        if let (OnMalformed::SurrogatePass, Some(half)) = (self.policy, half) {
            return Ok(out.put(&utf8_of_surrogate(half))?);
        }
        let error = MalformedBytes::new(self.at_bytes + at as u64, bytes, reason);
        put_malformed(error, self.policy, out)
    }
}

/// Bytes of a surrogate in the manner of UTF-8 at the start, 3 where it is whole.
fn surrogate_in_utf8(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => Some(3),
        [0xED, 0xA0..=0xBF] => Some(2),
        [0xED] => Some(1),
        _ => None,
    }
}

/// The bytes as units in the machine's order: as they stand, or copied aside.
fn units_of<'a, U: Unit>(bytes: &'a [u8], big: bool, aside: &'a mut Vec<U>) -> &'a [U] {
    let swap = big != cfg!(target_endian = "big");
    match as_units(bytes) {
        Some(units) if !swap => units,
        _ => {
            copy_units(bytes, swap, aside);
            aside
        }
    }
}

/// The form of the text behind the mark, and how long the mark is; `None` where too few bytes came to tell.
fn look_for_mark(
    encoding: Encoding,
    marks: Marks,
    begun: &[u8],
    last: bool,
) -> Option<(Form, usize)> {
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
            return Some((Form::of(candidate), mark.len()));
        }
    }
    let may_come = candidates
        .iter()
        .any(|c| begun.len() < c.mark().len() && c.mark().starts_with(begun));
    (last || !may_come).then_some((Form::of(encoding), 0))
}

/// What was looked at before is well-formed: only room can be wanting.
fn well_formed(result: Result<usize, ConvertError>) -> Result<(), SinkFull> {
    match result {
        Err(ConvertError::SinkFull(e)) => Err(e),
        _ => Ok(()),
    }
}
