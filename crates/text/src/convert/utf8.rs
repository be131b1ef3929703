//! Text to UTF-8.

use super::{ConvertError, Form, SHORT_UNITS, Stop, window_for, write};
use crate::arch::{self, encode, validity};
use crate::validate::is_utf8;
use crate::{ByteSink, Policy, Units};

/// Appends the text as UTF-8 and returns the bytes written.
///
/// Copies: none besides the conversion (for UTF-8 input one validated copy).
///
/// # Errors
/// [`ConvertError`]; the sink is then as it was.
#[inline]
pub fn to_utf8<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    match units {
        Units::Utf8(u) | Units::Latin1(u) if u.len() <= SHORT_UNITS && arch::is_ascii(u) => {
            sink.put(u)?;
            return Ok(u.len());
        }
        Units::Utf16(u) | Units::Ucs2(u) if u.len() <= SHORT_UNITS => {
            let mark = sink.mark();
            let n = sink.window(u.len())?.put_plain_u16::<false>(u);
            if n == u.len() {
                return Ok(n);
            }
            sink.rewind(mark);
        }
        _ => {}
    }
    write::<Utf8, S>(units, policy, sink)
}

/// UTF-8 and nothing else.
struct Utf8;

impl Form for Utf8 {
    fn block<S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), Stop> {
        let well_formed = match units {
            Units::Utf8(u) => {
                let good = is_utf8(u);
                if good {
                    sink.put(u)?;
                }
                good
            }
            Units::Latin1(u) => {
                if arch::is_ascii(u) {
                    sink.put(u)?;
                    true
                } else {
                    put_latin1(u, sink)?
                }
            }
            Units::Utf16(u) => put_utf16(u, sink)?,
            // No surrogate at all: then it is UTF-16 as well.
            Units::Ucs2(u) => !arch::scan_u16(u).surrogate && put_utf16(u, sink)?,
            Units::Utf32(u) => {
                let exact = || encode::utf8_len_from_utf32(u);
                window_for(sink, 4 * u.len(), exact)?.put_utf32(u)
            }
        };
        if well_formed {
            Ok(())
        } else {
            Err(Stop::Malformed)
        }
    }
}

/// Appends Latin-1 as UTF-8; `false` if it has changed meanwhile.
pub(super) fn put_latin1<S: ByteSink>(u: &[u8], sink: &mut S) -> Result<bool, Stop> {
    let exact = || encode::utf8_len_from_latin1(u);
    Ok(window_for(sink, 2 * u.len(), exact)?.put_latin1(u))
}

/// Appends UTF-16 as UTF-8; `false` where it is malformed.
pub(super) fn put_utf16<S: ByteSink>(u: &[u16], sink: &mut S) -> Result<bool, Stop> {
    // Measured only where the worst case is not at hand; malformed text has no length, but needs room for nothing.
    let exact = || match validity::utf16_error_near(u) {
        None => encode::utf8_len_from_utf16(u),
        Some(_) => 0,
    };
    Ok(window_for(sink, 3 * u.len(), exact)?.put_utf16(u))
}
