//! Converts text to UTF-8 in a sink.

use super::{ConvertError, OutputForm, SHORT_UNITS, WriteStop, window_for, write};
use crate::arch::dispatch::{
    is_ascii, is_short_ascii, scan_u16, utf8_len_from_latin1, utf8_len_from_units, utf16_error_near,
};
use crate::arch::encode;
use crate::validate::is_utf8;
use crate::{ByteSink, Policy, Units};

/// Appends the text as UTF-8. Returns the number of written bytes.
///
/// Copies: none besides the conversion. UTF-8 is validated and copied.
///
/// # Errors
/// Returns a [`ConvertError`] if the text is malformed or the sink is full. The sink is then
/// unchanged.
#[inline]
pub fn to_utf8<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<usize, ConvertError> {
    match units {
        Units::Utf8(u) | Units::Latin1(u) if u.len() <= SHORT_UNITS && is_short_ascii(u) => {
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

/// The output format UTF-8 without escapes.
struct Utf8;

impl OutputForm for Utf8 {
    fn block<S: ByteSink>(units: Units<'_>, sink: &mut S) -> Result<(), WriteStop> {
        let well_formed = match units {
            Units::Utf8(u) => {
                let good = is_utf8(u);
                if good {
                    sink.put(u)?;
                }
                good
            }
            Units::Latin1(u) => {
                if is_ascii(u) {
                    sink.put(u)?;
                    true
                } else {
                    put_latin1(u, sink)?
                }
            }
            Units::Utf16(u) => put_utf16(u, sink)?,
            // UCS-2 without a surrogate is also UTF-16.
            Units::Ucs2(u) => !scan_u16(u).surrogate && put_utf16(u, sink)?,
            Units::Utf32(u) => {
                let exact = || encode::utf8_len_from_utf32(u);
                window_for(sink, 4 * u.len(), exact)?.put_utf32(u)
            }
        };
        if well_formed {
            Ok(())
        } else {
            Err(WriteStop::Malformed)
        }
    }
}

/// Appends Latin-1 as UTF-8. Returns `false` if another thread changed the text.
pub(super) fn put_latin1<S: ByteSink>(u: &[u8], sink: &mut S) -> Result<bool, WriteStop> {
    let exact = || utf8_len_from_latin1(u);
    Ok(window_for(sink, 2 * u.len(), exact)?.put_latin1(u))
}

/// Appends UTF-16 as UTF-8. Returns `false` if the text is malformed.
pub(super) fn put_utf16<S: ByteSink>(u: &[u16], sink: &mut S) -> Result<bool, WriteStop> {
    // The text is measured only if the longest result does not fit. Malformed text needs no space.
    let exact = || match utf16_error_near(u) {
        None => utf8_len_from_units(u).0,
        Some(_) => 0,
    };
    Ok(window_for(sink, 3 * u.len(), exact)?.put_utf16(u))
}
