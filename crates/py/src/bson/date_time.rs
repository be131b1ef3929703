//! Converts dates and datetimes to BSON datetimes (milliseconds since 1970 in UTC).

use onecopy_wire::datetime::Date;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{
    PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyTimeAccess, PyTzInfoAccess,
};

use crate::raw::temporal;

/// Converts a date, at midnight UTC, to milliseconds since 1970.
fn midnight_ms(day: &impl PyDateAccess) -> PyResult<i64> {
    let day = Date {
        year: day.get_year(),
        month: day.get_month(),
        day: day.get_day(),
    };
    day.to_unix_ms()
        .map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Converts a `datetime` to milliseconds since 1970, rounded down. A naive `datetime` is treated as
/// UTC. For an aware `datetime`, `utcoffset` may run Python code.
pub(crate) fn unix_ms(at: &Bound<'_, PyDateTime>) -> PyResult<i64> {
    let seconds = (i64::from(at.get_hour()) * 60 + i64::from(at.get_minute())) * 60;
    let seconds = seconds + i64::from(at.get_second());
    let mut us = midnight_ms(at)? * 1000 + seconds * 1_000_000 + i64::from(at.get_microsecond());
    if let Some(zone) = at.get_tzinfo() {
        temporal::learn_zone(&zone);
        let offset = at.call_method0(pyo3::intern!(at.py(), "utcoffset"))?;
        if let Ok(offset) = offset.cast::<PyDelta>() {
            us -= temporal::microseconds(
                offset.get_days(),
                offset.get_seconds(),
                offset.get_microseconds(),
            );
        }
    }
    Ok(us.div_euclid(1000))
}

pub(crate) fn unix_ms_of_date(day: &Bound<'_, PyDate>) -> PyResult<i64> {
    midnight_ms(day)
}
