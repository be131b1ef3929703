//! Converts text to the body of a JSON string.

use super::utf8::{put_latin1, put_utf16};
use super::{ConvertError, OutputForm, SHORT_UNITS, WriteStop, json_capacity, window_for, write};
use crate::arch::dispatch::{find_escape_u8, find_escape_u16, is_ascii, scan_u16};
use crate::arch::{encode, scalar};
use crate::sink::Mark;
use crate::validate::is_utf8;
use crate::{ByteSink, Policy, SinkFull, Units};

/// Appends the text to the sink as the body of a JSON string, without quotes. `"`, `\` and control
/// characters are escaped (RFC 8259, section 7). Returns the number of bytes.
///
/// Copies: none besides the conversion itself.
///
/// # Errors
/// Returns a [`ConvertError`] if the text is malformed or the sink is full. The sink is then
/// unchanged.
#[inline]
pub fn to_json_body<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    let start = sink.mark();
    let before = sink.committed().len();
    // Writes the leading ASCII of a short text up to the first escape. Malformed text is converted
    // again below.
    let done = match units {
        Units::Utf8(u) if u.len() <= SHORT_UNITS => {
            let (n, high) = sink.window(u.len())?.put_to_escape(u);
            if n == u.len() && (!high || is_utf8(u)) {
                return Ok(n);
            }
            n < u.len() && undone(put_escapes_utf8(u, n, high, sink), sink, start)?
        }
        Units::Latin1(u) if u.len() <= SHORT_UNITS => {
            let (n, high) = sink.window(u.len())?.put_to_escape(u);
            if n == u.len() && !high {
                return Ok(n);
            }
            false
        }
        Units::Utf16(u) if u.len() <= SHORT_UNITS => {
            let n = sink.window(u.len())?.put_plain_u16::<true>(u);
            if n == u.len() {
                return Ok(n);
            }
            undone(put_runs_utf16(&u[n..], sink), sink, start)?
        }
        _ => false,
    };
    if done {
        return Ok(sink.committed().len() - before);
    }
    sink.rewind(start);
    write::<JsonBody, S>(units, policy, sink)
}

struct JsonBody;

impl OutputForm for JsonBody {
    fn block<S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), WriteStop> {
        let well_formed = match units {
            Units::Utf8(u) => put_escaped_utf8(u, sink)?,
            Units::Latin1(u) => put_escaped_latin1(u, sink)?,
            Units::Utf16(u) => put_escaped_utf16(u, sink)?,
            Units::Ucs2(u) => !scan_u16(u).surrogate && put_escaped_utf16(u, sink)?,
            Units::Utf32(u) => put_escaped_utf32(u, sink)?,
        };
        if well_formed {
            Ok(())
        } else {
            Err(WriteStop::Malformed)
        }
    }
}

/// Returns `true` for a written text, `false` for a malformed one. If the sink was full, removes
/// the output from `start` on.
fn undone<S: ByteSink>(
    result: Result<bool, WriteStop>,
    sink: &mut S,
    start: Mark,
) -> Result<bool, ConvertError> {
    match result {
        Ok(well_formed) => Ok(well_formed),
        Err(WriteStop::Malformed) => Ok(false),
        Err(WriteStop::SinkFull(e)) => {
            sink.rewind(start);
            Err(e.into())
        }
    }
}

/// Writes UTF-8 as the body of a JSON string. Returns `false` if the text is malformed.
fn put_escaped_utf8<S: ByteSink>(u: &[u8], sink: &mut S) -> Result<bool, WriteStop> {
    let (n, high) = sink.window(u.len())?.put_to_escape(u);
    put_escapes_utf8(u, n, high, sink)
}

/// Continues [`put_escaped_utf8`] after the first `n` bytes. `high` is `true` if one of them is not
/// ASCII.
fn put_escapes_utf8<S: ByteSink>(
    u: &[u8],
    n: usize,
    high: bool,
    sink: &mut S,
) -> Result<bool, WriteStop> {
    let mut rest = &u[n..];
    let n_bytes = json_capacity(rest.len());
    if !rest.is_empty() && sink.spare(0)?.len() >= n_bytes {
        sink.window(n_bytes)?.put_json_utf8(rest);
        return Ok(is_utf8(u));
    }
    let mut any_high = high;
    while let Some((&c, after)) = rest.split_first() {
        put_escape(c, sink)?;
        let (n, high) = sink.window(after.len())?.put_to_escape(after);
        any_high |= high;
        rest = &after[n..];
    }
    Ok(!any_high || is_utf8(u))
}

fn put_escaped_latin1<S: ByteSink>(u: &[u8], sink: &mut S) -> Result<bool, WriteStop> {
    let mut rest = u;
    loop {
        let n = find_escape_u8(rest);
        let run = &rest[..n];
        if is_ascii(run) {
            sink.put(run)?;
        } else if !put_latin1(run, sink)? {
            return Ok(false);
        }
        let Some(&c) = rest.get(n) else { break };
        put_escape(c, sink)?;
        rest = &rest[n + 1..];
    }
    Ok(true)
}

fn put_escaped_utf16<S: ByteSink>(u: &[u16], sink: &mut S) -> Result<bool, WriteStop> {
    let n = sink.window(u.len())?.put_plain_u16::<true>(u);
    put_runs_utf16(&u[n..], sink)
}

/// Writes UTF-16 as the body of a JSON string. One call converts all units up to the next escape.
fn put_runs_utf16<S: ByteSink>(u: &[u16], sink: &mut S) -> Result<bool, WriteStop> {
    let mut rest = u;
    while !rest.is_empty() {
        let n = find_escape_u16(rest);
        let (run, after) = rest.split_at(n);
        if n > 0 && !put_utf16(run, sink)? {
            return Ok(false);
        }
        let Some((&c, after)) = after.split_first() else {
            break;
        };
        put_escape(c as u8, sink)?;
        let n = sink.window(after.len())?.put_plain_u16::<true>(after);
        rest = &after[n..];
    }
    Ok(true)
}

fn put_escaped_utf32<S: ByteSink>(u: &[u32], sink: &mut S) -> Result<bool, WriteStop> {
    let exact = || encode::json_len_from_utf32(u);
    Ok(window_for(sink, 6 * u.len(), exact)?.put_json_utf32(u))
}

/// Appends the JSON escape of `c`.
#[inline]
fn put_escape<S: ByteSink>(c: u8, sink: &mut S) -> Result<(), SinkFull> {
    sink.put(scalar::escape(c).as_slice())
}
