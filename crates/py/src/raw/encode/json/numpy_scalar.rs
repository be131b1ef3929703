//! Writes NumPy scalars as JSON.

use onecopy_text::Put;
use onecopy_wire::datetime64::Step;
use onecopy_wire::float16::Half;
use onecopy_wire::json;

use super::{JsonStop, Style};
use crate::raw::ndarray::{Choice, NOT_A_TIME, Scalar};

/// Writes a NumPy scalar as JSON. Writes nothing on failure.
#[inline]
pub(crate) fn put<P: Put>(scalar: Scalar, style: &Style, pen: &mut P) -> Result<(), JsonStop> {
    debug_assert!(pen.remaining() >= json::SCALAR_BYTES);
    match scalar {
        Scalar::Bool(value) => json::put_bool(value, pen),
        Scalar::Int32(value) => json::put_i64(value.into(), pen),
        Scalar::Int64(value) if is_exact(style) => json::put_i64(value, pen),
        Scalar::Uint64(value) if is_exact(style) => json::put_u64(value, pen),
        Scalar::Int64(value) => put_limited(value.into(), style, pen)?,
        Scalar::Uint64(value) => put_limited(value.into(), style, pen)?,
        Scalar::Half(bits) => put_half(bits, style, pen)?,
        Scalar::Float(value) => json::put_f32(value, style.nan, pen)?,
        Scalar::Double(value) => json::put_f64(value, style.nan, pen)?,
        Scalar::Moment(count, step) => put_moment(count, step, style, pen)?,
    }
    Ok(())
}

/// Returns `true` if NumPy integers of any size are numbers. `compat="orjson"` limits only `int`
/// objects.
#[inline(always)]
pub(super) fn is_exact(style: &Style) -> bool {
    style.exact_ints || style.natives.numpy == Choice::Orjson
}

/// Writes an integer. The option `big_ints` applies to more than 53 bits.
#[inline(never)]
pub(super) fn put_limited<P: Put>(value: i128, style: &Style, pen: &mut P) -> Result<(), JsonStop> {
    let is_past_double = value.unsigned_abs() >= 1 << 53;
    if is_past_double && !style.text_ints {
        return Err(JsonStop::BigInt);
    }
    if is_past_double {
        pen.put_byte(b'"');
    }
    match i64::try_from(value) {
        Ok(value) => json::put_i64(value, pen),
        Err(_) => json::put_u64(value as u64, pen),
    }
    if is_past_double {
        pen.put_byte(b'"');
    }
    Ok(())
}

/// Writes a 16-bit float as the shortest decimal for the same 16-bit float. `compat="orjson"` uses
/// 32 bits instead.
#[inline]
fn put_half<P: Put>(bits: u16, style: &Style, pen: &mut P) -> Result<(), JsonStop> {
    let half = Half(bits);
    match style.natives.numpy {
        Choice::Orjson => json::put_f32(half.to_f64() as f32, style.nan, pen)?,
        _ => json::put_f64(half.widen(), style.nan, pen)?,
    }
    Ok(())
}

/// Writes a `datetime64` as a date if its unit is a day or longer, otherwise as a date and time.
/// `NaT` becomes null. With `compat="orjson"`, every value has a time, and `NaT` is an error.
#[inline]
pub(super) fn put_moment<P: Put>(
    count: i64,
    step: Option<Step>,
    style: &Style,
    pen: &mut P,
) -> Result<(), JsonStop> {
    let natives = &style.natives;
    let is_orjson = natives.numpy == Choice::Orjson;
    if count == NOT_A_TIME && !is_orjson {
        json::put_null(pen);
        return Ok(());
    }
    let step = step.filter(|step| !is_orjson || !step.unit.is_below_nano());
    let (Some(step), true) = (step, count != NOT_A_TIME) else {
        return Err(JsonStop::Moment);
    };
    let mut at = step.timestamp(count).ok_or(JsonStop::Moment)?;
    if step.unit.is_of_days() && !is_orjson {
        json::put_date(at.date, pen)?;
        return Ok(());
    }
    if is_orjson {
        at.time.nanosecond -= at.time.nanosecond % 1000;
    }
    if natives.omit_microseconds {
        at.time.nanosecond = 0;
    }
    let digits = match at.time.nanosecond {
        0 => 0,
        n if n.is_multiple_of(1000) => 6,
        _ => 9,
    };
    at.offset_minutes = natives.naive_utc.then_some(0);
    json::put_timestamp(&at, digits, natives.utc_z, pen)?;
    Ok(())
}
