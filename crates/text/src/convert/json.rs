//! Text to the body of a JSON string: escaping and UTF-8 in one go.

use super::utf8::{put_latin1, put_utf16};
use super::{ConvertError, Form, SHORT_UNITS, Stop, window_for, write};
use crate::arch::{self, bulk, scalar};
use crate::validate::is_utf8;
use crate::{ByteSink, Policy, SinkFull, Units};

/// Appends the text as the body of a JSON string (RFC 8259, section 7), without its quotes: UTF-8, with `"`, `\` and
/// controls escaped, in one go. Returns the bytes written.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// [`ConvertError`]; the sink is then as it was.
#[inline]
pub fn to_json_body<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    match units {
        Units::Utf8(u) if u.len() <= SHORT_UNITS => {
            let mark = sink.mark();
            let (n, high) = sink.window(u.len())?.put_to_escape(u);
            if n == u.len() && (!high || bulk::as_str(u).is_some()) {
                return Ok(n);
            }
            sink.rewind(mark);
        }
        Units::Latin1(u) if u.len() <= SHORT_UNITS => {
            let mark = sink.mark();
            let (n, high) = sink.window(u.len())?.put_to_escape(u);
            if n == u.len() && !high {
                return Ok(n);
            }
            sink.rewind(mark);
        }
        Units::Utf16(u) | Units::Ucs2(u) if u.len() <= SHORT_UNITS => {
            let mark = sink.mark();
            let n = sink.window(u.len())?.put_plain_u16::<true>(u);
            if n == u.len() {
                return Ok(n);
            }
            sink.rewind(mark);
        }
        _ => {}
    }
    write::<JsonBody, S>(units, policy, sink)
}

struct JsonBody;

impl Form for JsonBody {
    fn block<S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), Stop> {
        let well_formed = match units {
            Units::Utf8(u) => put_escaped_utf8(u, sink)?,
            Units::Latin1(u) => put_escaped_latin1(u, sink)?,
            Units::Utf16(u) => put_escaped_utf16(u, sink)?,
            Units::Ucs2(u) => !arch::scan_u16(u).surrogate && put_escaped_utf16(u, sink)?,
            Units::Utf32(u) => put_escaped_utf32(u, sink)?,
        };
        if well_formed {
            Ok(())
        } else {
            Err(Stop::Malformed)
        }
    }
}

/// Copies from escape to escape, and validates at the end, while the block is still in the first cache.
fn put_escaped_utf8<S: ByteSink>(u: &[u8], sink: &mut S) -> Result<bool, Stop> {
    let mut rest = u;
    let mut any_high = false;
    loop {
        let (n, high) = sink.window(rest.len())?.put_to_escape(rest);
        any_high |= high;
        let Some(&c) = rest.get(n) else { break };
        put_escape(c, sink)?;
        rest = &rest[n + 1..];
    }
    Ok(!any_high || is_utf8(u))
}

fn put_escaped_latin1<S: ByteSink>(u: &[u8], sink: &mut S) -> Result<bool, Stop> {
    let mut rest = u;
    loop {
        let n = arch::find_escape_u8(rest);
        let run = &rest[..n];
        if arch::is_ascii(run) {
            sink.put(run)?;
        } else {
            put_latin1(run, sink)?;
        }
        let Some(&c) = rest.get(n) else { break };
        put_escape(c, sink)?;
        rest = &rest[n + 1..];
    }
    Ok(true)
}

fn put_escaped_utf16<S: ByteSink>(u: &[u16], sink: &mut S) -> Result<bool, Stop> {
    let mut rest = u;
    while !rest.is_empty() {
        let n = sink.window(rest.len())?.put_plain_u16::<true>(rest);
        rest = &rest[n..];
        // What stands here now is an escape, or starts a run of other scripts up to the next one. An escape is never
        // inside a pair.
        let n = arch::find_escape_u16(rest);
        let (run, after) = rest.split_at(n);
        if n > 0 && !put_utf16(run, sink)? {
            return Ok(false);
        }
        let Some((&c, after)) = after.split_first() else {
            break;
        };
        put_escape(c as u8, sink)?;
        rest = after;
    }
    Ok(true)
}

fn put_escaped_utf32<S: ByteSink>(u: &[u32], sink: &mut S) -> Result<bool, Stop> {
    if scalar::scan_u32(u).1 {
        return Ok(false);
    }
    for run in u.split_inclusive(|&c| scalar::is_escape(c)) {
        let (escape, run) = match run.split_last() {
            Some((&c, before)) if scalar::is_escape(c) => (Some(c as u8), before),
            _ => (None, run),
        };
        let exact = || bulk::utf8_len_from_utf32(run);
        window_for(sink, 4 * run.len(), exact)?.put_utf32(run);
        if let Some(c) = escape {
            put_escape(c, sink)?;
        }
    }
    Ok(true)
}

/// Appends the escape of `"`, `\` or a control: by its short form where there is one.
#[inline]
fn put_escape<S: ByteSink>(c: u8, sink: &mut S) -> Result<(), SinkFull> {
    let short = match c {
        b'"' => b'"',
        b'\\' => b'\\',
        0x08 => b'b',
        0x09 => b't',
        0x0A => b'n',
        0x0C => b'f',
        0x0D => b'r',
        _ => {
            let hex = b"0123456789abcdef";
            let (high, low) = (hex[usize::from(c >> 4)], hex[usize::from(c & 0xF)]);
            return sink.put(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    sink.put(&[b'\\', short])
}
