//! The reference implementation for tests, which converts a whole text by the standards and
//! CPython.

use crate::Policy;
use crate::encoding::{Encoding, Order};
use crate::transcode::error::{MalformedBytes, Reason, TranscodeError};
use crate::transcode::{Bom, Eol, TranscodeOptions};

/// The decoded characters with their start positions, and the final error, if any.
pub(crate) type Decoded = (Vec<(u32, u64)>, Result<(), TranscodeError>);

/// Converts the whole text `bytes`. Returns the output and result of a correct
/// [`Transcoder`](crate::Transcoder).
#[must_use = "it does nothing else"]
pub fn transcode(
    bytes: &[u8],
    from: Encoding,
    to: Encoding,
    options: TranscodeOptions,
) -> (Vec<u8>, Result<(), TranscodeError>) {
    let (from, mark_bytes) = without_mark(bytes, from, options.bom != Bom::ByName);
    let (chars, ended) = decode(bytes, mark_bytes, from, options.on_malformed);
    let mut chars = ends(chars, options.eol);
    let mut result = ended;
    let mut text = Vec::new();
    for (c, at_bytes) in chars.drain(..) {
        if encodes(c, to) || surrogate(c) && passes(to, options.on_unencodable) {
            text.push(c);
            continue;
        }
        if matches!(to, Encoding::Legacy(_)) {
            text.push(c);
        }
        match options.on_unencodable {
            Policy::Strict | Policy::SurrogatePass => {
                result = Err(TranscodeError::Unencodable {
                    at_bytes,
                    code_point: c,
                });
                break;
            }
            Policy::Ignore => {}
            Policy::Replace => text.push('?'.into()),
            Policy::BackslashReplace if c < 0x100 => put(&mut text, &format!("\\x{c:02x}")),
            Policy::BackslashReplace if c < 0x1_0000 => {
                put(&mut text, &format!("\\u{c:04x}"));
            }
            Policy::BackslashReplace => put(&mut text, &format!("\\U{c:08x}")),
            Policy::XmlCharRefReplace => put(&mut text, &format!("&#{c};")),
        }
    }
    let marked = match options.bom {
        Bom::ByName => to.is_marked(),
        Bom::Add => true,
        Bom::Keep => mark_bytes > 0,
        Bom::Strip => false,
    };
    let mut out = if marked { to.mark().to_vec() } else { vec![] };
    encode(&text, to, result.is_ok(), &mut out);
    (out, result)
}

fn put(text: &mut Vec<u32>, more: &str) {
    text.extend(more.chars().map(u32::from));
}

fn surrogate(c: u32) -> bool {
    (0xD800..0xE000).contains(&c)
}

fn passes(to: Encoding, on: Policy) -> bool {
    to.is_unicode() && on == Policy::SurrogatePass
}

fn without_mark(bytes: &[u8], from: Encoding, drop: bool) -> (Encoding, usize) {
    let little = |e| match e {
        Encoding::Utf16(_) => Encoding::Utf16(Order::Little),
        _ => Encoding::Utf32(Order::Little),
    };
    let big = |e| match e {
        Encoding::Utf16(_) => Encoding::Utf16(Order::Big),
        _ => Encoding::Utf32(Order::Big),
    };
    match from {
        Encoding::Utf16(Order::Marked) | Encoding::Utf32(Order::Marked) => {
            for order in [little(from), big(from)] {
                if bytes.starts_with(order.mark()) {
                    return (order, order.mark().len());
                }
            }
            (little(from), 0)
        }
        Encoding::Utf8Marked if bytes.starts_with(from.mark()) => (Encoding::Utf8, 3),
        Encoding::Utf8Marked => (Encoding::Utf8, 0),
        _ if drop && !from.mark().is_empty() && bytes.starts_with(from.mark()) => {
            (from, from.mark().len())
        }
        _ => (from, 0),
    }
}

pub(super) fn decode(bytes: &[u8], start: usize, from: Encoding, policy: Policy) -> Decoded {
    if let Encoding::Legacy(legacy) = from {
        let mut decoder = legacy.0.new_decoder_without_bom_handling();
        return decode_legacy(bytes, &mut decoder, (0, 0), true, policy);
    }
    let mut chars = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        let (item, used) = one(&bytes[at..], from, policy == Policy::SurrogatePass);
        match item {
            Ok(c) => chars.push((c, at as u64)),
            Err(reason) => {
                let error = MalformedBytes::new(at as u64, &bytes[at..at + used], reason);
                if let Err(e) = malformed(&mut chars, error, policy) {
                    return (chars, Err(e));
                }
            }
        }
        at += used;
    }
    (chars, Ok(()))
}

fn malformed(
    chars: &mut Vec<(u32, u64)>,
    error: MalformedBytes,
    policy: Policy,
) -> Result<(), TranscodeError> {
    match policy {
        Policy::Strict | Policy::SurrogatePass | Policy::XmlCharRefReplace => {
            return Err(TranscodeError::Malformed(error));
        }
        Policy::Replace => chars.push((0xFFFD, error.at_bytes)),
        Policy::Ignore => {}
        Policy::BackslashReplace => {
            for byte in error.bytes() {
                let shown = format!("\\x{byte:02x}");
                chars.extend(shown.chars().map(|c| (c.into(), error.at_bytes)));
            }
        }
    }
    Ok(())
}

/// Decodes the first character of `b`. Returns the character or the error, and the number of
/// decoded bytes. If `pass` is `true`, a lone surrogate is decoded too.
fn one(b: &[u8], from: Encoding, pass: bool) -> (Result<u32, Reason>, usize) {
    let u16_at = |i: usize| {
        let pair = [*b.get(i)?, *b.get(i + 1)?];
        Some(u32::from(match from {
            Encoding::Utf16(Order::Big) => u16::from_be_bytes(pair),
            _ => u16::from_le_bytes(pair),
        }))
    };
    match from {
        Encoding::Latin1 => (Ok(b[0].into()), 1),
        Encoding::Ascii if b[0] < 0x80 => (Ok(b[0].into()), 1),
        Encoding::Ascii => (Err(Reason::NotAscii), 1),
        Encoding::Utf16(_) => match (u16_at(0), u16_at(2)) {
            (None, _) => (Err(Reason::TruncatedData), 1),
            (Some(high @ 0xD800..0xDC00), Some(low @ 0xDC00..0xE000)) => {
                (Ok(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)), 4)
            }
            (Some(half @ 0xD800..0xE000), _) if pass => (Ok(half), 2),
            (Some(0xD800..0xDC00), None) => (Err(Reason::UnexpectedEnd), b.len()),
            (Some(0xD800..0xDC00), Some(_)) => (Err(Reason::IllegalSurrogate), 2),
            (Some(0xDC00..0xE000), _) => (Err(Reason::IllegalEncoding), 2),
            (Some(c), _) => (Ok(c), 2),
        },
        Encoding::Utf32(_) if b.len() < 4 => (Err(Reason::TruncatedData), b.len()),
        Encoding::Utf32(order) => {
            let unit = [b[0], b[1], b[2], b[3]];
            let c = match order {
                Order::Big => u32::from_be_bytes(unit),
                _ => u32::from_le_bytes(unit),
            };
            match c {
                0xD800..0xE000 if !pass => (Err(Reason::SurrogateCodePoint), 4),
                0x11_0000.. => (Err(Reason::OutOfRange), 4),
                _ => (Ok(c), 4),
            }
        }
        _ => utf8(b, pass),
    }
}

fn utf8(b: &[u8], pass: bool) -> (Result<u32, Reason>, usize) {
    if let (true, [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, ..]) = (pass, b) {
        let c = 0xD000 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F);
        return (Ok(c), 3);
    }
    match crate::naive::code_points(crate::Units::Utf8(b)).next() {
        Some(Ok(c)) => (Ok(c), char::from_u32(c).map_or(1, char::len_utf8)),
        Some(Err(e)) => {
            let reason = match e.kind {
                crate::MalformedKind::InvalidStartByte => Reason::InvalidStartByte,
                crate::MalformedKind::UnexpectedEnd => Reason::UnexpectedEnd,
                _ => Reason::InvalidContinuation,
            };
            (Err(reason), e.len_units)
        }
        None => (Err(Reason::UnexpectedEnd), 1),
    }
}

/// Decodes `bytes` with encoding_rs, byte by byte. `places` are the stream positions of `bytes` and
/// of the incomplete character before `bytes`.
pub(crate) fn decode_legacy(
    bytes: &[u8],
    decoder: &mut encoding_rs::Decoder,
    places: (u64, u64),
    ends: bool,
    policy: Policy,
) -> Decoded {
    let (first, mut start) = places;
    let (mut chars, mut place) = (Vec::new(), [0; 32]);
    for at in 0..bytes.len() + usize::from(ends) {
        let last = at == bytes.len();
        let mut byte = &bytes[at..bytes.len().min(at + 1)];
        loop {
            let (result, read, n) =
                decoder.decode_to_utf8_without_replacement(byte, &mut place, last);
            let text = std::str::from_utf8(&place[..n]).unwrap_or_default();
            chars.extend(text.chars().map(|c| (c.into(), start)));
            byte = &byte[read..];
            let end = first + at as u64 + u64::from(!last) - byte.len() as u64;
            if n > 0 {
                start = end;
            }
            let encoding_rs::DecoderResult::Malformed(len, n_after) = result else {
                break;
            };
            start = end - u64::from(n_after);
            let at_bytes = start - u64::from(len);
            // The error may start before `bytes`.
            let here = |at: u64| at.saturating_sub(first) as usize;
            let mut bad = vec![0; usize::from(len) - (here(start) - here(at_bytes))];
            bad.extend_from_slice(&bytes[here(at_bytes)..here(start)]);
            let reason = legacy_reason(decoder.encoding(), &bad, last && n_after == 0);
            let error = MalformedBytes::new(at_bytes, &bad, reason);
            if let Err(e) = malformed(&mut chars, error, policy) {
                return (chars, Err(e));
            }
        }
    }
    (chars, Ok(()))
}

fn legacy_reason(encoding: &'static encoding_rs::Encoding, bytes: &[u8], at_end: bool) -> Reason {
    if encoding.is_single_byte() {
        return Reason::Undefined;
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let (result, ..) = decoder.decode_to_utf8_without_replacement(bytes, &mut [0; 64], false);
    match result {
        encoding_rs::DecoderResult::InputEmpty if at_end => Reason::IncompleteSequence,
        _ => Reason::IllegalSequence,
    }
}

fn ends(chars: Vec<(u32, u64)>, eol: Eol) -> Vec<(u32, u64)> {
    let mut out: Vec<(u32, u64)> = Vec::new();
    for (i, &(c, at)) in chars.iter().enumerate() {
        let next = chars.get(i + 1).map(|(c, _)| *c);
        match (eol, c) {
            (Eol::Lf, 0x0D) if next == Some(0x0A) => {}
            (Eol::Crlf, 0x0A) if i == 0 || chars[i - 1].0 != 0x0D => {
                out.extend([(0x0D, at), (c, at)]);
            }
            _ => out.push((c, at)),
        }
    }
    out
}

fn encodes(c: u32, to: Encoding) -> bool {
    match (char::from_u32(c), to) {
        (None, _) => false,
        (Some(c), Encoding::Legacy(legacy)) => {
            let mut encoder = legacy.0.new_encoder();
            let mut single = [0; 4];
            let text = c.encode_utf8(&mut single);
            let (result, ..) =
                encoder.encode_from_utf8_without_replacement(text, &mut [0; 64], true);
            result == encoding_rs::EncoderResult::InputEmpty
        }
        (Some(c), Encoding::Latin1) => u32::from(c) < 0x100,
        (Some(c), Encoding::Ascii) => c.is_ascii(),
        _ => true,
    }
}

fn encode(text: &[u32], to: Encoding, ends: bool, out: &mut Vec<u8>) {
    if let Encoding::Legacy(legacy) = to {
        // The encoder also gets characters that the encoding does not have. ISO-2022-JP returns to
        // ASCII before them.
        let mut encoder = legacy.0.new_encoder();
        let mut put = |text: &str, last| {
            let mut place = [0; 64];
            let (.., n) = encoder.encode_from_utf8_without_replacement(text, &mut place, last);
            out.extend_from_slice(&place[..n]);
        };
        for c in text.iter().filter_map(|&c| char::from_u32(c)) {
            put(c.encode_utf8(&mut [0; 4]), false);
        }
        if ends {
            put("", true);
        }
        return;
    }
    for &c in text {
        match to {
            Encoding::Latin1 | Encoding::Ascii => out.push(c as u8),
            Encoding::Utf32(Order::Big) => out.extend(c.to_be_bytes()),
            Encoding::Utf32(_) => out.extend(c.to_le_bytes()),
            Encoding::Utf16(order) => {
                let mut pair = [0; 2];
                let single = [c as u16];
                let units = match char::from_u32(c) {
                    Some(c) => &*c.encode_utf16(&mut pair),
                    None => &single,
                };
                for unit in units {
                    out.extend(match order {
                        Order::Big => unit.to_be_bytes(),
                        _ => unit.to_le_bytes(),
                    });
                }
            }
            _ => match char::from_u32(c) {
                Some(c) => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
                None => out.extend([0xED, 0x80 | (c >> 6 & 0x3F) as u8, 0x80 | (c & 0x3F) as u8]),
            },
        }
    }
}
