//! Creates and reads `date`, `time` and `datetime` objects through their C API.

use onecopy_wire::datetime::{Date, Time, Timestamp};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDateTime, PyDelta, PyDeltaAccess, PyType, PyTzInfo};
use std::ffi::c_int;

/// Imports the C API of `datetime`. The import of this module calls this function.
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

/// The UTC offset of a time zone at a given time.
pub(crate) struct Offset {
    /// The offset in microseconds, positive to the east.
    pub(crate) us: Option<i64>,
    /// `true` if the zone always has this offset.
    pub(crate) is_constant: bool,
}

/// Returns `true` for pandas' `NaT` (not a time). Its class derives from `datetime`, and it is not
/// equal to itself.
pub(crate) fn is_nat(at: &Bound<'_, PyDateTime>) -> PyResult<bool> {
    Ok(!at.is_exact_instance_of::<PyDateTime>() && at.ne(at)?)
}

/// The method `utcoffset` of `datetime.timezone`.
static TIMEZONE_OFFSET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The class `zoneinfo.ZoneInfo` and its method `utcoffset`, if implemented in C.
static ZONE_INFO: PyOnceLock<(Py<PyType>, Py<PyAny>)> = PyOnceLock::new();

/// Stores the class of `zone` in [`ZONE_INFO`] if it is the C implementation. Python code may run.
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
        // SAFETY: an owned class. Python code cannot change it if it is static or has the flag.
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

/// Returns the UTC offset of `zone` at the time `at`. `None` if Python code would have to run.
///
/// # Safety
/// The GIL must be held; `zone` must be a live `tzinfo`, and `at` a live exact `datetime`.
pub(crate) unsafe fn offset_without_code(
    zone: *mut ffi::PyObject,
    at: *mut ffi::PyObject,
) -> Option<Offset> {
    let utc = api().TimeZone_UTC;
    if zone == utc {
        return Some(Offset {
            us: Some(0),
            is_constant: true,
        });
    }
    // SAFETY: attached, and alive, as the caller guarantees.
    let (py, class, fixed) = unsafe {
        let py = Python::assume_attached();
        (py, ffi::Py_TYPE(zone), ffi::Py_TYPE(utc))
    };
    let is_constant = class == fixed;
    let function = if is_constant {
        TIMEZONE_OFFSET.get(py)?
    } else {
        let (known, function) = ZONE_INFO.get(py)?;
        if known.as_ptr() != class.cast() {
            return None;
        }
        function
    };
    let (arguments, keywords) = ([zone, at], std::ptr::null_mut());
    let n = arguments.len();
    // SAFETY: C functions that read only their live arguments.
    let made = unsafe {
        let made = ffi::PyObject_Vectorcall(function.as_ptr(), arguments.as_ptr(), n, keywords);
        Bound::from_owned_ptr_or_opt(py, made)
    };
    let Some(made) = made else {
        drop(PyErr::take(py));
        return None;
    };
    let delta = made.cast::<PyDelta>().ok();
    let us = delta.map(|delta| {
        microseconds(
            delta.get_days(),
            delta.get_seconds(),
            delta.get_microseconds(),
        )
    });
    Some(Offset { us, is_constant })
}

/// Converts the fields of a `timedelta` to microseconds.
pub(crate) fn microseconds(days: i32, seconds: i32, microseconds: i32) -> i64 {
    (i64::from(days) * 86_400 + i64::from(seconds)) * 1_000_000 + i64::from(microseconds)
}

const MINUTE_US: i64 = 60_000_000;

/// Converts a UTC offset from microseconds to minutes. `None` for a fraction of a minute.
pub(crate) fn whole_minutes(us: i64) -> Option<i16> {
    let is_whole = us % MINUTE_US == 0;
    i16::try_from(us / MINUTE_US).ok().filter(|_| is_whole)
}

/// Converts a UTC offset from microseconds to the closest minute of RFC 3339, at most 23 h 59 min.
pub(crate) fn closest_minutes(us: i64) -> i16 {
    let minutes = (us.abs() + MINUTE_US / 2) / MINUTE_US;
    let minutes = minutes.min(24 * 60 - 1) as i16;
    if us < 0 { -minutes } else { minutes }
}

/// Returns the C API of the module `datetime`.
fn api() -> &'static ffi::PyDateTime_CAPI {
    // SAFETY: `import` ran before this call, or the module could not be loaded. CPython never frees
    // the table.
    unsafe { &*ffi::PyDateTimeAPI() }
}

/// Creates a `date`. Returns a `ValueError` for a year outside of 1 to 9999.
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

/// Creates a `time`, truncated to microseconds. Returns a `ValueError` for 24:00 and for leap
/// seconds.
pub(crate) fn time<'py>(
    py: Python<'py>,
    t: Time,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    let api = api();
    // SAFETY: attached; the function checks its numbers; the zone is an owned tzinfo or None.
    unsafe {
        let zone = zone.map_or_else(|| ffi::Py_None(), Bound::as_ptr);
        let made = (api.Time_FromTime)(
            c_int::from(t.hour),
            c_int::from(t.minute),
            c_int::from(t.second),
            microsecond(t),
            zone,
            api.TimeType,
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Creates a `datetime`, truncated to microseconds. It is aware if `zone` is not `None`.
#[inline]
pub(crate) fn datetime<'py>(
    py: Python<'py>,
    t: &Timestamp,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    let api = api();
    // SAFETY: attached; the function checks its numbers; the zone is an owned tzinfo or None.
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

/// Creates a `datetime` from the milliseconds since 1970. Returns `None` for years outside of 1 to
/// 9999.
#[inline]
pub(crate) fn of_unix_ms<'py>(
    py: Python<'py>,
    ms: i64,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let stamp = Timestamp::of_unix_ms(ms).filter(|stamp| stamp.date.year > 0)?;
    Some(datetime(py, &stamp, zone))
}

/// Creates a `timedelta` of `days` plus `microseconds`, less than a day.
///
/// # Errors
/// If the magnitude of `days` exceeds 999,999,999.
pub(crate) fn delta(py: Python<'_>, days: i32, microseconds: i64) -> PyResult<Bound<'_, PyAny>> {
    // A day has 86,400 seconds, which fit into 32 bits.
    let seconds = (microseconds / 1_000_000) as i32;
    let delta = PyDelta::new(py, days, seconds, (microseconds % 1_000_000) as i32, false)?;
    Ok(delta.into_any())
}

/// Returns a `datetime.timezone` for an offset in minutes, positive to the east.
pub(crate) fn zone(py: Python<'_>, offset_minutes: i16) -> PyResult<Bound<'_, PyTzInfo>> {
    zone_of_seconds(py, i32::from(offset_minutes) * 60)
}

/// Returns a `datetime.timezone` for an offset in seconds, positive to the east.
pub(crate) fn zone_of_seconds(py: Python<'_>, seconds: i32) -> PyResult<Bound<'_, PyTzInfo>> {
    PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, seconds, 0, true)?)
}

/// Returns the truncated microseconds of `t`.
fn microsecond(t: Time) -> c_int {
    c_int::try_from(t.nanosecond / 1000).unwrap_or(c_int::MAX)
}
