//! Functions that write the JSON values other than arrays and objects. Each call writes one value.

use onecopy_text::{ByteSink, Policy, Put, Units, convert};

use crate::base64;
use crate::datetime::{Date, Time, Timestamp};
use crate::decimal::{self, Decimal};
use crate::error::{NonFinite, WriteError, non_finite};
use crate::inline_text::{SHORT_BYTES, write_uuid};
pub use crate::number::{put_bool, put_i64, put_i64_comma, put_u64, put_u64_comma};
use crate::number::{put_float, put_hundredths};

/// The number of free bytes that a sink must provide before a `put_` function writes a value to it.
/// The longest value is an [`InlineText`](crate::inline_text::InlineText) in quotes.
pub const SCALAR_BYTES: usize = SHORT_BYTES + 2;

/// Writes `null`.
#[inline]
pub fn put_null<P: Put>(window: &mut P) {
    window.put_short(b"null", 4);
}

/// Writes the shortest decimal text that is parsed as the same 64-bit float. `policy` determines
/// the text for NaN and the infinities.
///
/// # Errors
/// Returns [`WriteError::NonFinite`] for NaN or an infinity under [`NonFinite::Error`].
#[inline]
pub fn put_f64<P: Put>(value: f64, policy: NonFinite, window: &mut P) -> Result<(), WriteError> {
    if put_hundredths(value, window) {
        return Ok(());
    }
    put_float(value, window, |name, w| put_non_finite(name, policy, w))
}

/// Writes the shortest decimal text that is parsed as the same 32-bit float, such as `0.1` and not
/// `0.10000000149011612`. `policy` determines the text for NaN and the infinities.
///
/// # Errors
/// Returns the errors of [`put_f64`].
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
        Some(name) if policy == NonFinite::Literal => window.put(name.as_bytes()),
        Some(name) => {
            window.put_byte(b'"');
            window.put(name.as_bytes());
            window.put_byte(b'"');
        }
        None => put_null(window),
    }
    Ok(())
}

/// Writes a date as a JSON string.
///
/// # Errors
/// Returns the errors of [`Date::to_short`]. Nothing is written in this case.
#[inline]
pub fn put_date<P: Put>(date: Date, window: &mut P) -> Result<(), WriteError> {
    date.check()?;
    put_valid_date(date, window);
    Ok(())
}

/// Writes a date as a JSON string without validating it. If the date is invalid, the text is wrong.
#[inline(always)]
pub fn put_valid_date<P: Put>(date: Date, window: &mut P) {
    window.put_byte(b'"');
    date.put_checked(window);
    window.put_byte(b'"');
}

/// Writes a time of day as a JSON string.
///
/// # Errors
/// Returns the errors of [`Time::to_short`]. Nothing is written in this case.
#[inline]
pub fn put_time<P: Put>(time: Time, digits: u8, window: &mut P) -> Result<(), WriteError> {
    time.check(digits)?;
    put_valid_time(time, digits, window);
    Ok(())
}

/// Writes a time of day as a JSON string without validating it. If the time is invalid, the text is
/// wrong.
#[inline(always)]
pub fn put_valid_time<P: Put>(time: Time, digits: u8, window: &mut P) {
    window.put_byte(b'"');
    time.put_checked(digits, window);
    window.put_byte(b'"');
}

/// Writes a date and time as a JSON string. If `utc_z` is `true`, the offset of UTC is written as
/// `Z`, and otherwise as `+00:00`.
///
/// # Errors
/// Returns the errors of [`Timestamp::to_short`]. Nothing is written in this case.
#[inline]
pub fn put_timestamp<P: Put>(
    timestamp: &Timestamp,
    digits: u8,
    utc_z: bool,
    window: &mut P,
) -> Result<(), WriteError> {
    timestamp.check(digits)?;
    put_valid_timestamp(timestamp, digits, utc_z, window);
    Ok(())
}

/// Writes a timestamp as [`put_timestamp`] does, but without validating it. If the timestamp is
/// invalid, the text is wrong.
#[inline(always)]
pub fn put_valid_timestamp<P: Put>(timestamp: &Timestamp, digits: u8, utc_z: bool, window: &mut P) {
    window.put_byte(b'"');
    timestamp.put_checked(digits, utc_z, window);
    window.put_byte(b'"');
}

/// Writes a UUID as a JSON string, in lower-case hexadecimal with hyphens.
#[inline]
pub fn put_uuid<P: Put>(uuid: &[u8; 16], window: &mut P) {
    window.put_made([b'"'; SCALAR_BYTES], |text| {
        let end = write_uuid(text, 1, uuid);
        &text[..=end]
    });
}

/// Writes a decimal as a JSON number. Its digits are those of `coefficient`, the last `scale` of
/// which follow the decimal point.
///
/// # Panics
/// Panics if `scale` is above 19.
#[inline]
pub fn put_decimal<P: Put>(negative: bool, coefficient: u64, scale: u32, window: &mut P) {
    if negative {
        window.put_byte(b'-');
    }
    if scale == 0 {
        return put_u64(coefficient, window);
    }
    let unit = 10_u64.pow(scale);
    put_u64(coefficient / unit, window);
    let mut fraction = coefficient % unit;
    if scale < 8 {
        let mut text = u64::from(b'.');
        for digit in (1..=scale).rev() {
            text |= (u64::from(b'0') + fraction % 10) << (8 * digit);
            fraction /= 10;
        }
        return window.put_short(&text.to_le_bytes(), scale as usize + 1);
    }
    let mut digits = [b'.'; 20];
    for digit in digits[1..=scale as usize].iter_mut().rev() {
        *digit = b'0' + (fraction % 10) as u8;
        fraction /= 10;
    }
    window.put(&digits[..=scale as usize]);
}

/// Appends a decimal that is given as text, as a JSON number. All its digits are kept, including
/// trailing zeros. Notation that JSON does not permit, such as `.5`, `+1`, `1.` and `007`, is
/// changed.
///
/// # Errors
/// Returns [`WriteError::NotADecimal`] if the text is not a decimal. Returns
/// [`WriteError::NonFinite`] for NaN or an infinity (such as `NaN` in PostgreSQL's `numeric`) under
/// [`NonFinite::Error`]. Returns [`WriteError::SinkFull`] if the sink has no space.
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
            // The output is longer than the given digits by at most a sign, a leading zero and a
            // decimal point.
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

/// Appends binary data as a JSON string that contains base64.
///
/// # Errors
/// Returns [`WriteError::SinkFull`] if the sink has no space.
pub fn write_base64<S: ByteSink>(bytes: &[u8], sink: &mut S) -> Result<(), WriteError> {
    sink.put_byte(b'"')?;
    base64::write(bytes, sink)?;
    sink.put_byte(b'"')?;
    Ok(())
}

/// Appends text as a JSON string. The text is converted to UTF-8 and escaped in one pass.
///
/// The conversion is the only copy of the text.
///
/// # Errors
/// Returns [`WriteError::Malformed`] or [`WriteError::SinkFull`].
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
