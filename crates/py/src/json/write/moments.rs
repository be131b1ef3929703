//! Dates and times as text, where Python code may have to run for the zone.

use onecopy_wire::datetime::{Date, Time, Timestamp};
use onecopy_wire::{WriteError, json};
use pyo3::prelude::*;
use pyo3::types::{
    PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyTime, PyTimeAccess, PyTzInfoAccess,
};

use super::options::Options;
use super::other::written;
use crate::raw::temporal;
use crate::raw::walk::Stop;

impl Options {
    /// A date, time or datetime as a string of JSON; `None` for any other object.
    pub(super) fn temporal(&self, object: &Bound<'_, PyAny>) -> Result<Option<Vec<u8>>, Stop> {
        let is_left = |is_exact: bool| self.style.natives.orjson && !is_exact;
        let text = if let Ok(at) = object.cast::<PyDateTime>() {
            if is_left(object.is_exact_instance_of::<PyDateTime>()) {
                return Ok(None);
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
                return Err(Stop::Value(WriteError::NotADate));
            }
            written(|w| json::put_time(self.time(at), w))?
        } else {
            return Ok(None);
        };
        Ok(Some(text))
    }

    fn time(&self, at: &impl PyTimeAccess) -> Time {
        let micros = if self.style.natives.omit_microseconds {
            0
        } else {
            at.get_microsecond()
        };
        Time {
            hour: at.get_hour(),
            minute: at.get_minute(),
            second: at.get_second(),
            nanosecond: micros * 1000,
            digits: if micros == 0 { 0 } else { 6 },
        }
    }

    /// RFC 3339, with the closest offset of whole minutes.
    fn datetime(&self, at: &Bound<'_, PyDateTime>) -> Result<Vec<u8>, Stop> {
        let natives = &self.style.natives;
        let offset_us = self.offset_us(at)?;
        let moment = Timestamp {
            date: date(at),
            time: self.time(at),
            offset_minutes: offset_us.map(temporal::closest_minutes),
        };
        // To orjson an offset of a few seconds is not UTC, and has a sign.
        let is_near_utc =
            natives.orjson && offset_us != Some(0) && moment.offset_minutes == Some(0);
        let utc_z = natives.utc_z && !is_near_utc;
        let mut text = written(|w| json::put_timestamp(&moment, utc_z, w))?;
        if is_near_utc
            && offset_us < Some(0)
            && let Some([sign, ..]) = text.last_chunk_mut::<{ b"+00:00\"".len() }>()
        {
            *sign = b'-';
        }
        Ok(text)
    }

    /// The offset from UTC in microseconds, by the method that orjson calls if that is wanted.
    fn offset_us(&self, at: &Bound<'_, PyDateTime>) -> PyResult<Option<i64>> {
        let py = at.py();
        let natives = &self.style.natives;
        let Some(zone) = at.get_tzinfo() else {
            return Ok(natives.naive_utc.then_some(0));
        };
        temporal::learn_zone(&zone);
        // A zone of pytz has the offset of local mean time before `normalize`. Those of pendulum have
        // `convert` too.
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
