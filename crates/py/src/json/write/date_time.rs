//! Writes dates and times. Some time zones run Python code.

use onecopy_wire::datetime::{Date, Time, Timestamp};
use onecopy_wire::{WriteError, json};
use pyo3::prelude::*;
use pyo3::types::{
    PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyTime, PyTimeAccess, PyTzInfoAccess,
};

use super::options::JsonWriteOptions;
use super::other_types::written;
use crate::raw::encode::json::JsonStop;
use crate::raw::temporal;

impl JsonWriteOptions {
    /// Returns the JSON string of a date, time or datetime. Returns `None` for other objects. With
    /// `compat="orjson"`, these include classes derived from `date` and `datetime`.
    pub(super) fn temporal(&self, object: &Bound<'_, PyAny>) -> Result<Option<Vec<u8>>, JsonStop> {
        let is_left = |is_exact: bool| self.style.natives.orjson && !is_exact;
        let text = if let Ok(at) = object.cast::<PyDateTime>() {
            if is_left(object.is_exact_instance_of::<PyDateTime>()) {
                return Ok(None);
            }
            if temporal::is_nat(at)? {
                return Ok(Some(b"null".to_vec()));
            }
            self.datetime(at)?
        } else if let Ok(day) = object.cast::<PyDate>() {
            if is_left(object.is_exact_instance_of::<PyDate>()) {
                return Ok(None);
            }
            written(|w| json::put_date(date(day), w))?
        } else if let Ok(at) = object.cast::<PyTime>() {
            if is_left(object.is_exact_instance_of::<PyTime>()) {
                return Ok(None);
            }
            if at.get_tzinfo().is_some() {
                return Err(JsonStop::Value(WriteError::NotADate));
            }
            let (time, digits) = self.time(at);
            written(|w| json::put_time(time, digits, w))?
        } else {
            return Ok(None);
        };
        Ok(Some(text))
    }

    /// Returns the time of day, and the number of decimals of its seconds.
    fn time(&self, at: &impl PyTimeAccess) -> (Time, u8) {
        let micros = if self.style.natives.omit_microseconds {
            0
        } else {
            at.get_microsecond()
        };
        let time = Time {
            hour: at.get_hour(),
            minute: at.get_minute(),
            second: at.get_second(),
            nanosecond: micros * 1000,
        };
        (time, if micros == 0 { 0 } else { 6 })
    }

    /// Formats a datetime by RFC 3339, with its UTC offset in whole minutes.
    fn datetime(&self, at: &Bound<'_, PyDateTime>) -> Result<Vec<u8>, JsonStop> {
        let natives = &self.style.natives;
        let offset_us = self.offset_us(at)?;
        let (time, digits) = self.time(at);
        let stamp = Timestamp {
            date: date(at),
            time,
            offset_minutes: offset_us.map(temporal::closest_minutes),
        };
        // For an offset of a few seconds, orjson writes `+00:00` or `-00:00`, not `Z`.
        let is_near_utc = natives.orjson && offset_us != Some(0) && stamp.offset_minutes == Some(0);
        let utc_z = natives.utc_z && !is_near_utc;
        let mut text = written(|w| json::put_timestamp(&stamp, digits, utc_z, w))?;
        if is_near_utc
            && offset_us < Some(0)
            && let Some([sign, ..]) = text.last_chunk_mut::<{ b"+00:00\"".len() }>()
        {
            *sign = b'-';
        }
        Ok(text)
    }

    /// Returns the UTC offset of a datetime in microseconds; `None` if it is naive. With
    /// `compat="orjson"`, first calls `normalize` of a pytz zone.
    fn offset_us(&self, at: &Bound<'_, PyDateTime>) -> PyResult<Option<i64>> {
        let py = at.py();
        let natives = &self.style.natives;
        let Some(zone) = at.get_tzinfo() else {
            return Ok(natives.naive_utc.then_some(0));
        };
        temporal::learn_zone(&zone);
        // Without `normalize`, a datetime with a pytz zone has the offset of local mean time. Zones
        // of pendulum do not need it; they have the method `convert`.
        let is_unset = natives.orjson
            && zone.hasattr(pyo3::intern!(py, "normalize"))?
            && !zone.hasattr(pyo3::intern!(py, "convert"))?;
        let at = match is_unset {
            true => zone.call_method1(pyo3::intern!(py, "normalize"), (at,))?,
            false => at.clone().into_any(),
        };
        let offset = at.call_method0(pyo3::intern!(py, "utcoffset"))?;
        let Ok(offset) = offset.cast::<PyDelta>() else {
            return Ok(None);
        };
        let micros = match natives.orjson {
            true => 0, // orjson reads days and seconds only
            false => offset.get_microseconds(),
        };
        let (days, seconds) = (offset.get_days(), offset.get_seconds());
        Ok(Some(temporal::microseconds(days, seconds, micros)))
    }
}

fn date(day: &impl PyDateAccess) -> Date {
    Date {
        year: day.get_year(),
        month: day.get_month(),
        day: day.get_day(),
    }
}
