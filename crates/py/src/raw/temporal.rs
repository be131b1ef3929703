//! `date`, `time` and `datetime` through the C API of the module `datetime`.

use onecopy_rows::{Date, Time, Timestamp};
use onecopy_wire::datetime::Timestamp as Moment;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyTzInfo};
use std::ffi::c_int;

/// Imports the C API once; to be called when the module is loaded.
pub(crate) fn import(py: Python<'_>) -> PyResult<()> {
    // SAFETY: attached. On failure the pointer stays null and an error is set.
    unsafe {
        ffi::PyDateTime_IMPORT();
        if ffi::PyDateTimeAPI().is_null() {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(())
}

/// The C API.
fn api() -> &'static ffi::PyDateTime_CAPI {
    // SAFETY: `import` has run when the module was loaded, or the module could not be; CPython never frees the table.
    unsafe { &*ffi::PyDateTimeAPI() }
}

/// A `date`. Fails with `ValueError` where Python has no such date (years outside 1 to 9999).
pub(crate) fn date(py: Python<'_>, d: Date) -> PyResult<Bound<'_, PyAny>> {
    let api = api();
    // SAFETY: attached; the function checks its numbers and takes DateType as class.
    unsafe {
        let made = (api.Date_FromDate)(
            d.year,
            c_int::from(d.month),
            c_int::from(d.day),
            api.DateType,
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// A `time`; the fraction is cut to microseconds. Fails with `ValueError` for 24:00 and leap seconds.
pub(crate) fn time(py: Python<'_>, t: Time) -> PyResult<Bound<'_, PyAny>> {
    let api = api();
    // SAFETY: attached; the function checks its numbers; None stands for no tzinfo.
    unsafe {
        let made = (api.Time_FromTime)(
            c_int::from(t.hour),
            c_int::from(t.minute),
            c_int::from(t.second),
            microsecond(t),
            ffi::Py_None(),
            api.TimeType,
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// A `datetime`, aware with `zone`; the fraction is cut to microseconds.
#[inline]
pub(crate) fn datetime<'py>(
    py: Python<'py>,
    t: &Timestamp,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    let api = api();
    // SAFETY: attached; the function checks its numbers; the zone is a tzinfo that we hold, or None.
    unsafe {
        let zone = zone.map_or_else(|| ffi::Py_None(), Bound::as_ptr);
        let made = (api.DateTime_FromDateAndTime)(
            t.date.year,
            c_int::from(t.date.month),
            c_int::from(t.date.day),
            c_int::from(t.time.hour),
            c_int::from(t.time.minute),
            c_int::from(t.time.second),
            microsecond(t.time),
            zone,
            api.DateTimeType,
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// A `datetime` of so many milliseconds after 1970 in UTC, aware with `zone`; `None` where Python has none: outside of the years
/// 1 to 9999.
#[inline]
pub(crate) fn of_unix_ms<'py>(
    py: Python<'py>,
    ms: i64,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let moment = Moment::of_unix_ms(ms).filter(|moment| moment.date.year > 0)?;
    let api = api();
    // SAFETY: attached; the function checks its numbers; the zone is a tzinfo that we hold, or None.
    Some(unsafe {
        let zone = zone.map_or_else(|| ffi::Py_None(), Bound::as_ptr);
        let made = (api.DateTime_FromDateAndTime)(
            moment.date.year,
            c_int::from(moment.date.month),
            c_int::from(moment.date.day),
            c_int::from(moment.time.hour),
            c_int::from(moment.time.minute),
            c_int::from(moment.time.second),
            (moment.time.nanosecond / 1000) as c_int,
            zone,
            api.DateTimeType,
        );
        Bound::from_owned_ptr_or_err(py, made)
    })
}

/// A `timedelta`: it holds more than 64 bits of microseconds.
pub(crate) fn delta(py: Python<'_>, microseconds: i64) -> PyResult<Bound<'_, PyAny>> {
    const DAY: i64 = 86_400_000_000;
    let (days, rest) = (microseconds.div_euclid(DAY), microseconds.rem_euclid(DAY));
    // The days of 2^63 microseconds have 9 digits, the seconds of a day 5.
    let (days, seconds) = (days as i32, (rest / 1_000_000) as i32);
    let delta = PyDelta::new(py, days, seconds, (rest % 1_000_000) as i32, false)?;
    Ok(delta.into_any())
}

/// `datetime.timezone` of an offset in minutes, east positive (`timezone.utc` for 0).
pub(crate) fn zone(py: Python<'_>, offset_minutes: i16) -> PyResult<Bound<'_, PyTzInfo>> {
    let delta = PyDelta::new(py, 0, i32::from(offset_minutes) * 60, 0, true)?;
    PyTzInfo::fixed_offset(py, delta)
}

/// 0 to 999,999.
fn microsecond(t: Time) -> c_int {
    c_int::try_from(t.nanosecond / 1000).unwrap_or(c_int::MAX)
}
