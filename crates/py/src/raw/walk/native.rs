//! Values of the standard library's types, and of classes that derive from CPython's own, read in place: no code runs.
//!
//! All loops share this: [`read`] finds the value of an object, and each format puts it.

use std::rc::Rc;

use onecopy_text::{Pen, Put};
use onecopy_wire::datetime::{Date, Time, Timestamp};
use onecopy_wire::json;
use pyo3::ffi;

use super::classes::{self, Class, Form};
use super::marked::ShortValue;
use super::object::{self, Kind};
use crate::raw::temporal;

/// Types that are written without code, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Natives {
    pub(crate) temporal: bool,
    pub(crate) uuid: bool,
    pub(crate) enums: bool,
    pub(crate) dataclasses: bool,
    /// Classes derived from CPython's own types; of those, the ones derived from `float`, and from `tuple`.
    pub(crate) subclasses: bool,
    pub(crate) floats: bool,
    pub(crate) tuples: bool,
    /// Whether BSON's own types are written as any others; else as [`Native::Short`] or by code.
    pub(crate) marked: bool,
    /// Whether the fields of a dataclass are written whose names begin with an underscore.
    pub(crate) private_fields: bool,
    /// Whether a `datetime` without a zone is one in UTC.
    pub(crate) naive_utc: bool,
    pub(crate) utc_z: bool,
    pub(crate) omit_microseconds: bool,
}

impl Natives {
    pub(crate) const ALL: Natives = Natives {
        temporal: true,
        uuid: true,
        enums: true,
        dataclasses: true,
        subclasses: true,
        floats: true,
        tuples: true,
        marked: true,
        private_fields: true,
        naive_utc: false,
        utc_z: false,
        omit_microseconds: false,
    };
}

/// The value of an object.
pub(super) enum Native {
    Timestamp(Timestamp),
    Date(Date),
    Time(Time),
    Uuid([u8; 16]),
    /// One of BSON's own types.
    Short(ShortValue),
    /// That of a member of an enumeration: another object, which the member has.
    Instead(*mut ffi::PyObject),
    /// The contents that it has of one of CPython's own types.
    Contents(Kind),
    /// Fields of a dataclass, and how many of them are written.
    Fields(Rc<Class>, isize),
    /// Code has to run for it.
    Other,
}

/// The offset of the zone that was met last: its address stands for it as long as no code runs that might free it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    zone: *mut ffi::PyObject,
    us: Option<i64>,
}

impl Zone {
    pub(super) const NONE: Zone = Zone {
        zone: std::ptr::null_mut(),
        us: None,
    };

    /// The offset of a `datetime` in microseconds, where no code has to run for it.
    ///
    /// # Safety
    /// `zone` is that of `at`, a `datetime` of that class itself, and no `None`; both are alive.
    #[inline(always)]
    pub(super) unsafe fn offset(
        &mut self,
        zone: *mut ffi::PyObject,
        at: *mut ffi::PyObject,
    ) -> Option<Option<i64>> {
        if zone == self.zone {
            return Some(self.us);
        }
        // SAFETY: the duty of the caller.
        let offset = unsafe { temporal::offset_without_code(zone, at)? };
        if offset.is_constant {
            *self = Zone {
                zone,
                us: offset.us,
            };
        }
        Some(offset.us)
    }
}

/// Reads the value of an object that is of none of CPython's own types.
///
/// # Safety
/// `object` is alive, attached. What is borrowed of it is alive as long as it is and no code runs.
#[inline]
pub(super) unsafe fn read(
    object: *mut ffi::PyObject,
    natives: &Natives,
    zone: &mut Zone,
) -> Native {
    // SAFETY: alive, by the caller's word; read as what it is by its type. The C API of `datetime` was imported with the module.
    unsafe {
        let class = ffi::Py_TYPE(object);
        let api = &*ffi::PyDateTimeAPI();
        if class == api.DateTimeType {
            return match natives.temporal {
                true => timestamp(object, natives, zone).map_or(Native::Other, Native::Timestamp),
                false => Native::Other,
            };
        }
        if class == api.DateType && natives.temporal {
            return Native::Date(date(object));
        }
        if class == api.TimeType && natives.temporal {
            return match ffi::PyDateTime_TIME_GET_TZINFO(object) == ffi::Py_None() {
                true => Native::Time(clock(
                    ffi::PyDateTime_TIME_GET_HOUR(object),
                    ffi::PyDateTime_TIME_GET_MINUTE(object),
                    ffi::PyDateTime_TIME_GET_SECOND(object),
                    ffi::PyDateTime_TIME_GET_MICROSECOND(object),
                    natives,
                )),
                false => Native::Other,
            };
        }
        of_class(object, natives).unwrap_or(Native::Other)
    }
}

/// As [`read`], by what is known of the class.
///
/// # Safety
/// As [`read`].
unsafe fn of_class(object: *mut ffi::PyObject, natives: &Natives) -> Option<Native> {
    // SAFETY: the duty of the caller; an attribute is read of an instance of its class.
    unsafe {
        let class = classes::of(object)?;
        if class.is_marked && !natives.marked {
            return Some(Native::Short(class.marked.as_ref()?.read(object)?));
        }
        match &class.form {
            Form::Uuid(number) if natives.uuid => {
                let number = object::u128(number.read(object)?)?;
                Some(Native::Uuid(number.to_be_bytes()))
            }
            Form::Enum(value) if natives.enums => Some(Native::Instead(value.read(object)?)),
            Form::Contents(kind) if natives.subclasses => match kind {
                Kind::Float if !natives.floats => None,
                Kind::Tuple if !natives.tuples => None,
                // Of a large one, `Others` makes an `int`, or decides what is written.
                Kind::Int if !is_short(object) => None,
                kind => Some(Native::Contents(*kind)),
            },
            Form::Fields(fields) if natives.dataclasses => {
                let n = fields.count(object, natives.private_fields)?;
                Some(Native::Fields(class.clone(), n))
            }
            _ => None,
        }
    }
}

/// Whether an `int` is below 2**53, and so a number in every style.
///
/// # Safety
/// `object` is an `int`, or of a class derived from it.
unsafe fn is_short(object: *mut ffi::PyObject) -> bool {
    // SAFETY: the duty of the caller.
    unsafe { object::small_int(object).is_some_and(|value| value.unsigned_abs() < 1 << 53) }
}

/// # Safety
/// `date` is a `date`.
#[inline(always)]
unsafe fn date(date: *mut ffi::PyObject) -> Date {
    // SAFETY: a `date`, by the caller's word.
    unsafe {
        Date {
            year: ffi::PyDateTime_GET_YEAR(date),
            month: ffi::PyDateTime_GET_MONTH(date) as u8,
            day: ffi::PyDateTime_GET_DAY(date) as u8,
        }
    }
}

#[inline(always)]
fn clock(hour: i32, minute: i32, second: i32, microsecond: i32, natives: &Natives) -> Time {
    let microsecond = if natives.omit_microseconds {
        0
    } else {
        microsecond.unsigned_abs()
    };
    Time {
        hour: hour as u8,
        minute: minute as u8,
        second: second as u8,
        nanosecond: microsecond * 1000,
        digits: if microsecond == 0 { 0 } else { 6 },
    }
}

/// A `datetime` without a zone, or in one whose offset is found without code.
///
/// # Safety
/// `at` is a `datetime` of that class itself.
#[inline(always)]
unsafe fn timestamp(
    at: *mut ffi::PyObject,
    natives: &Natives,
    zone: &mut Zone,
) -> Option<Timestamp> {
    // SAFETY: a `datetime`, by the caller's word.
    unsafe {
        let tzinfo = ffi::PyDateTime_DATE_GET_TZINFO(at);
        let offset_minutes = if tzinfo == ffi::Py_None() {
            natives.naive_utc.then_some(0)
        } else {
            zone.offset(tzinfo, at)?.and_then(temporal::minutes)
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

/// Puts a value as JSON, where it is one that has a form there by itself; whether it did.
#[inline(always)]
pub(super) fn put_json(native: &Native, natives: &Natives, pen: &mut Pen<'_>) -> bool {
    debug_assert!(pen.room() >= json::SCALAR_BYTES);
    match native {
        Native::Timestamp(at) => json::put_timestamp(at, natives.utc_z, pen).is_ok(),
        Native::Date(day) => json::put_date(*day, pen).is_ok(),
        Native::Time(at) => json::put_time(*at, pen).is_ok(),
        Native::Uuid(bytes) => {
            json::put_uuid(bytes, pen);
            true
        }
        _ => false,
    }
}
