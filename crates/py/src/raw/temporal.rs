//! `date`, `time` and `datetime` through the C API of the module `datetime`.

use onecopy_rows::{Date, Time, Timestamp};
use onecopy_wire::datetime::Timestamp as Moment;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDelta, PyType, PyTzInfo};
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
    let class = zone(py, 0)?.get_type();
    let function = class.getattr("__dict__")?.get_item("utcoffset")?;
    TIMEZONE_OFFSET.get_or_init(py, || function.unbind());
    Ok(())
}

/// The offset of a zone.
pub(crate) struct Offset {
    /// Microseconds, east positive; `None` if the zone has none.
    pub(crate) us: Option<i64>,
    /// Whether it is the same at any time.
    pub(crate) is_constant: bool,
}

/// The function `utcoffset` of `datetime.timezone`.
static TIMEZONE_OFFSET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A class of zones whose `utcoffset` is a function of C that runs no code: the class, and the function.
static ZONE_INFO: PyOnceLock<(Py<PyType>, Py<PyAny>)> = PyOnceLock::new();

/// Looks whether the class of a zone is `zoneinfo.ZoneInfo` in its form of C. Any Python code may run.
pub(crate) fn learn_zone(zone: &Bound<'_, PyTzInfo>) {
    let py = zone.py();
    let class = zone.get_type();
    if ZONE_INFO.get(py).is_some() {
        return;
    }
    let learned = || -> PyResult<Option<_>> {
        let modules = py.import("sys")?.getattr("modules")?;
        let module = modules.call_method1("get", ("zoneinfo",))?;
        if module.is_none() || !module.getattr("ZoneInfo")?.is(&class) {
            return Ok(None);
        }
        let function = class.getattr("__dict__")?.get_item("utcoffset")?;
        // SAFETY: a class that we hold. It cannot be changed if it is none of Python code, or says so.
        let is_fixed = unsafe {
            let class = class.as_type_ptr();
            let is_fixed = ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_HEAPTYPE) == 0
                || ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_IMMUTABLETYPE) != 0;
            is_fixed && ffi::Py_TYPE(function.as_ptr()) == &raw mut ffi::PyMethodDescr_Type
        };
        Ok(is_fixed.then(|| (class.clone().unbind(), function.unbind())))
    };
    if let Ok(Some(learned)) = learned() {
        let _ = ZONE_INFO.set(py, learned);
    }
}

/// The offset of a zone at a time, where no Python code has to run for it: of `datetime.timezone` and of `zoneinfo.ZoneInfo` themselves.
///
/// # Safety
/// Attached; `zone` is a `tzinfo` and `at` a `datetime` of that class itself, both alive.
pub(crate) unsafe fn offset_without_code(
    zone: *mut ffi::PyObject,
    at: *mut ffi::PyObject,
) -> Option<Offset> {
    let api = api();
    // SAFETY: alive, by the caller's word. These functions are of C, and look at nothing but their arguments.
    unsafe {
        if zone == api.TimeZone_UTC {
            return Some(Offset {
                us: Some(0),
                is_constant: true,
            });
        }
        let py = Python::assume_attached();
        let class = ffi::Py_TYPE(zone);
        let is_constant = class == ffi::Py_TYPE(api.TimeZone_UTC);
        let function = if is_constant {
            TIMEZONE_OFFSET.get(py)?
        } else {
            let (known, function) = ZONE_INFO.get(py)?;
            if known.as_ptr() != class.cast() {
                return None;
            }
            function
        };
        let arguments = [zone, at];
        let made = ffi::PyObject_Vectorcall(
            function.as_ptr(),
            arguments.as_ptr(),
            arguments.len(),
            std::ptr::null_mut(),
        );
        if made.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        let us = (made != ffi::Py_None()).then(|| {
            microseconds(
                ffi::PyDateTime_DELTA_GET_DAYS(made),
                ffi::PyDateTime_DELTA_GET_SECONDS(made),
                ffi::PyDateTime_DELTA_GET_MICROSECONDS(made),
            )
        });
        ffi::Py_DECREF(made);
        Some(Offset { us, is_constant })
    }
}

/// A `timedelta` in microseconds; an offset has less than a day.
pub(crate) fn microseconds(days: i32, seconds: i32, microseconds: i32) -> i64 {
    (i64::from(days) * 86_400 + i64::from(seconds)) * 1_000_000 + i64::from(microseconds)
}

const MINUTE_US: i64 = 60_000_000;

/// An offset of whole minutes, as RFC 3339 has them; `None` of one with seconds.
pub(crate) fn whole_minutes(us: i64) -> Option<i16> {
    let is_whole = us % MINUTE_US == 0;
    i16::try_from(us / MINUTE_US).ok().filter(|_| is_whole)
}

/// The closest offset that RFC 3339 has: whole minutes, halves away from zero, at most 23:59.
pub(crate) fn closest_minutes(us: i64) -> i16 {
    let minutes = (us.abs() + MINUTE_US / 2) / MINUTE_US;
    let minutes = minutes.min(24 * 60 - 1) as i16;
    if us < 0 { -minutes } else { minutes }
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
