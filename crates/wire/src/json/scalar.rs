//! One JSON value at a time.

use onecopy_text::{ByteSink, Policy, Put, Units, convert};

use crate::base64;
use crate::datetime::{Date, Time, Timestamp};
use crate::decimal::{self, Decimal};
use crate::error::{NonFinite, WriteError, non_finite};
pub use crate::number::{put_bool, put_i64, put_i64_comma, put_u64, put_u64_comma};
use crate::number::{put_float, put_hundredths};
use crate::short::{SHORT_BYTES, write_uuid};

/// Bytes that a window needs for any value that a `put_` function writes: a [`Short`] between quotes.
pub const SCALAR_BYTES: usize = SHORT_BYTES + 2;

/// Puts `null`.
#[inline]
pub fn put_null<P: Put>(window: &mut P) {
    window.put_short(b"null", 4);
}

/// Puts the shortest decimal that reads back as the same 64-bit float.
///
/// # Errors
/// [`WriteError::NonFinite`] where `policy` says so.
#[inline]
pub fn put_f64<P: Put>(value: f64, policy: NonFinite, window: &mut P) -> Result<(), WriteError> {
    if put_hundredths(value, window) {
        return Ok(());
    }
    put_float(value, window, |name, w| put_non_finite(name, policy, w))
}

/// Puts the shortest decimal that reads back as the same 32-bit float: `0.1`, not `0.10000000149011612`.
///
/// # Errors
/// As [`put_f64`].
#[inline]
pub fn put_f32<P: Put>(value: f32, policy: NonFinite, window: &mut P) -> Result<(), WriteError> {
    put_float(value, window, |name, w| put_non_finite(name, policy, w))
}

#[cold]
fn put_non_finite<P: Put>(
    name: &'static str,
    policy: NonFinite,
    window: &mut P,
) -> Result<(), WriteError> {
    match non_finite(name, policy)? {
        Some(name) => {
            window.put_byte(b'"');
            window.put(name.as_bytes());
            window.put_byte(b'"');
        }
        None => put_null(window),
    }
    Ok(())
}

/// Puts a string whose characters `write` writes from the byte it is given on; it returns their end.
#[inline(always)]
fn put_quoted<P: Put>(
    window: &mut P,
    write: impl FnOnce(&mut [u8; SCALAR_BYTES], usize) -> Result<usize, WriteError>,
) -> Result<(), WriteError> {
    let mut done = Ok(());
    window.put_made([b'"'; SCALAR_BYTES], |text| match write(text, 1) {
        Ok(end) => {
            text[end] = b'"';
            &text[..=end]
        }
        Err(error) => {
            done = Err(error);
            &[]
        }
    });
    done
}

/// Puts a date as a string.
///
/// # Errors
/// As [`Date::to_short`].
#[inline]
pub fn put_date<P: Put>(date: Date, window: &mut P) -> Result<(), WriteError> {
    put_quoted(window, |text, at| date.write(text, at))
}

/// Puts a time of day as a string.
///
/// # Errors
/// As [`Time::to_short`].
#[inline]
pub fn put_time<P: Put>(time: Time, window: &mut P) -> Result<(), WriteError> {
    put_quoted(window, |text, at| time.write(text, at))
}

/// Puts a date and time as a string; the offset of UTC is `Z` if `utc_z`, else `+00:00`.
///
/// # Errors
/// As [`Timestamp::to_short`].
#[inline]
pub fn put_timestamp<P: Put>(
    timestamp: &Timestamp,
    utc_z: bool,
    window: &mut P,
) -> Result<(), WriteError> {
    put_quoted(window, |text, at| timestamp.write(text, at, utc_z))
}

/// Puts a UUID as a string, lower-case with hyphens.
#[inline]
pub fn put_uuid<P: Put>(uuid: &[u8; 16], window: &mut P) {
    window.put_made([b'"'; SCALAR_BYTES], |text| {
        let end = write_uuid(text, 1, uuid);
        &text[..=end]
    });
}

/// Appends a decimal as a number with all its digits: trailing zeros stay, and `.5`, `+1`, `1.`, `007` take the form
/// that JSON knows.
///
/// # Errors
/// [`WriteError::NotADecimal`]; [`WriteError::NonFinite`] where `policy` says so (PostgreSQL's `numeric` knows `NaN`);
/// [`WriteError::SinkFull`].
pub fn write_decimal<S: ByteSink>(
    digits: &[u8],
    policy: NonFinite,
    sink: &mut S,
) -> Result<(), WriteError> {
    if decimal::is_plain(digits) {
        return Ok(sink.put(digits)?);
    }
    match decimal::read(digits)? {
        Decimal::NonFinite(name) => put_non_finite(name, policy, &mut sink.window(SCALAR_BYTES)?),
        Decimal::Number {
            negative,
            whole,
            fraction,
            exponent,
        } => {
            // A sign, a leading zero and a point at most come on top of what was there.
            let mut window = sink.window(digits.len() + 3)?;
            if negative {
                window.put_byte(b'-');
            }
            window.put(if whole.is_empty() { b"0" } else { whole });
            if !fraction.is_empty() {
                window.put_byte(b'.');
                window.put(fraction);
            }
            window.put(exponent);
            Ok(())
        }
    }
}

/// Appends binary as a base64 string.
///
/// # Errors
/// [`WriteError::SinkFull`].
pub fn write_base64<S: ByteSink>(bytes: &[u8], sink: &mut S) -> Result<(), WriteError> {
    sink.put_byte(b'"')?;
    base64::write(bytes, sink)?;
    sink.put_byte(b'"')?;
    Ok(())
}

/// Appends text as a string: converted to UTF-8 and escaped in one go.
///
/// Copies: none besides the conversion.
///
/// # Errors
/// [`WriteError::Malformed`], [`WriteError::SinkFull`].
#[inline]
pub fn write_text<S: ByteSink>(
    units: Units<'_>,
    policy: Policy,
    sink: &mut S,
) -> Result<(), WriteError> {
    sink.put_byte(b'"')?;
    convert::to_json_body(units, policy, sink)?;
    sink.put_byte(b'"')?;
    Ok(())
}
