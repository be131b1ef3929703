//! Text to the body of a JSON string: escaping and UTF-8 in one go.

use super::utf8::{put_latin1, put_utf16};
use super::{ConvertError, Form, SHORT_UNITS, Stop, window_for, write};
use crate::arch::{self, encode, scalar, validity};
use crate::sink::Mark;
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
    let start = sink.mark();
    let before = sink.committed().len();
    // The rest of a short text goes on from where plain ASCII ends; malformed text starts anew below.
    let done = match units {
        Units::Utf8(u) if u.len() <= SHORT_UNITS => {
            let (n, high) = sink.window(u.len())?.put_to_escape(u);
            if n == u.len() && (!high || validity::is_utf8(u)) {
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

/// Whether a short text was written; takes back what was put where the sink is full.
fn undone<S: ByteSink>(
    result: Result<bool, Stop>,
    sink: &mut S,
    start: Mark,
) -> Result<bool, ConvertError> {
    match result {
        Ok(well_formed) => Ok(well_formed),
        Err(Stop::Malformed) => Ok(false),
        Err(Stop::SinkFull(e)) => {
            sink.rewind(start);
            Err(e.into())
        }
    }
}

/// Copies from escape to escape, and validates at the end, while the block is still in the first cache.
fn put_escaped_utf8<S: ByteSink>(u: &[u8], sink: &mut S) -> Result<bool, Stop> {
    let (n, high) = sink.window(u.len())?.put_to_escape(u);
    put_escapes_utf8(u, n, high, sink)
}

/// The rest of [`put_escaped_utf8`], where the first `n` bytes are put, with a byte past ASCII among them if `high`.
fn put_escapes_utf8<S: ByteSink>(
    u: &[u8],
    n: usize,
    high: bool,
    sink: &mut S,
) -> Result<bool, Stop> {
    let mut rest = &u[n..];
    let mut any_high = high;
    while let Some((&c, after)) = rest.split_first() {
        put_escape(c, sink)?;
        let (n, high) = sink.window(after.len())?.put_to_escape(after);
        any_high |= high;
        rest = &after[n..];
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
        } else if !put_latin1(run, sink)? {
            return Ok(false);
        }
        let Some(&c) = rest.get(n) else { break };
        put_escape(c, sink)?;
        rest = &rest[n + 1..];
    }
    Ok(true)
}

fn put_escaped_utf16<S: ByteSink>(u: &[u16], sink: &mut S) -> Result<bool, Stop> {
    let n = sink.window(u.len())?.put_plain_u16::<true>(u);
    put_runs_utf16(&u[n..], sink)
}

/// Puts text that starts with an escape, or with a run of other scripts up to the next one. An escape is never inside a
/// pair.
fn put_runs_utf16<S: ByteSink>(u: &[u16], sink: &mut S) -> Result<bool, Stop> {
    let mut rest = u;
    while !rest.is_empty() {
        let n = arch::find_escape_u16(rest);
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

fn put_escaped_utf32<S: ByteSink>(u: &[u32], sink: &mut S) -> Result<bool, Stop> {
    let exact = || encode::json_len_from_utf32(u);
    Ok(window_for(sink, 6 * u.len(), exact)?.put_json_utf32(u))
}

/// Appends the escape of `"`, `\` or a control.
#[inline]
fn put_escape<S: ByteSink>(c: u8, sink: &mut S) -> Result<(), SinkFull> {
    sink.put(scalar::escape(c).as_slice())
}
