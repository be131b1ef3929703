//! Writes values of the standard library's types as JSON, without Python code.

use onecopy_text::{Pen, Put};
use onecopy_wire::datetime::{Time, Timestamp};
use onecopy_wire::json;
use pyo3::ffi;

use super::{Style, numpy_scalar};
use crate::raw::encode::standard_types::{Native, Natives, RecentObjects, Zone, date};

/// Writes a `date`, `time` or `datetime`. Returns `false` for other or excluded types, and if
/// Python code must compute the UTC offset.
///
/// # Safety
/// The requirements of [`standard_types::read`](crate::raw::encode::standard_types::read); the pen
/// must have space for a scalar.
#[inline(always)]
pub(super) unsafe fn put_temporal(
    object: *mut ffi::PyObject,
    natives: &Natives,
    recent: &mut RecentObjects,
    pen: &mut Pen<'_>,
) -> bool {
    debug_assert!(pen.remaining() >= json::SCALAR_BYTES);
    // SAFETY: alive, as the caller guarantees. The module import loads the C API of `datetime`.
    let (class, api) = unsafe { (ffi::Py_TYPE(object), &*ffi::PyDateTimeAPI()) };
    if class == api.DateTimeType {
        if !natives.temporal {
            return false;
        }
        // SAFETY: a `datetime`, by its type.
        let Some(at) = (unsafe { timestamp(object, natives, &mut recent.zone) }) else {
            return false;
        };
        json::put_valid_timestamp(&at, digits(at.time), natives.utc_z, pen);
        return true;
    }
    if class == api.DateType {
        if natives.temporal {
            // SAFETY: a `date`, by its type.
            json::put_valid_date(unsafe { date(object) }, pen);
        }
        return natives.temporal;
    }
    if class != api.TimeType || !natives.temporal {
        return false;
    }
    // SAFETY: a `time`, by its type.
    unsafe {
        let is_naive = ffi::PyDateTime_TIME_GET_TZINFO(object) == ffi::Py_None();
        if is_naive {
            let time = time(object, natives);
            json::put_valid_time(time, digits(time), pen);
        }
        is_naive
    }
}

/// Reads the fields of a `time`.
///
/// # Safety
/// The object must be a live `time`.
#[inline(always)]
unsafe fn time(time: *mut ffi::PyObject, natives: &Natives) -> Time {
    // SAFETY: a `time`, as the caller guarantees.
    unsafe {
        clock(
            ffi::PyDateTime_TIME_GET_HOUR(time),
            ffi::PyDateTime_TIME_GET_MINUTE(time),
            ffi::PyDateTime_TIME_GET_SECOND(time),
            ffi::PyDateTime_TIME_GET_MICROSECOND(time),
            natives,
        )
    }
}

#[inline(always)]
fn clock(hour: i32, minute: i32, second: i32, microsecond: i32, natives: &Natives) -> Time {
    // The mask rules out an overflow, so the compiler divides only once.
    let microsecond = if natives.omit_microseconds {
        0
    } else {
        microsecond as u32 & 0xF_FFFF
    };
    Time {
        hour: hour as u8,
        minute: minute as u8,
        second: second as u8,
        nanosecond: microsecond * 1000,
    }
}

/// Returns the number of digits of the fraction of a second: 0 for no fraction, otherwise 6.
#[inline(always)]
fn digits(time: Time) -> u8 {
    if time.nanosecond == 0 { 0 } else { 6 }
}

/// Returns the timestamp of a `datetime`. `None` if Python code must compute the UTC offset, or if
/// the offset has seconds.
///
/// # Safety
/// `at` must be exactly of the class `datetime`.
#[inline(always)]
unsafe fn timestamp(
    at: *mut ffi::PyObject,
    natives: &Natives,
    zone: &mut Zone,
) -> Option<Timestamp> {
    // SAFETY: a `datetime`, as the caller guarantees.
    unsafe {
        let tzinfo = ffi::PyDateTime_DATE_GET_TZINFO(at);
        let offset_minutes = if tzinfo == ffi::Py_None() {
            natives.naive_utc.then_some(0)
        } else {
            zone.offset_minutes(tzinfo, at)?
        };
        Some(Timestamp {
            date: date(at),
            time: clock(
                ffi::PyDateTime_DATE_GET_HOUR(at),
                ffi::PyDateTime_DATE_GET_MINUTE(at),
                ffi::PyDateTime_DATE_GET_SECOND(at),
                ffi::PyDateTime_DATE_GET_MICROSECOND(at),
                natives,
            ),
            offset_minutes,
        })
    }
}

/// Writes a UUID, a decimal or a NumPy scalar. Returns `false` if it wrote nothing.
#[inline(always)]
pub(super) fn put_scalar(native: &Native, style: &Style, pen: &mut Pen<'_>) -> bool {
    match native {
        Native::Scalar(value) => return numpy_scalar::put(*value, style, pen).is_ok(),
        Native::Uuid(bytes) => json::put_uuid(bytes, pen),
        Native::Decimal(value) => {
            json::put_decimal(value.negative, value.coefficient, value.scale, pen);
        }
        _ => return false,
    }
    true
}
