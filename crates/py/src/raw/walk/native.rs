//! Values of the standard library's types, and of classes that derive from CPython's own, read in place: no code runs.
//!
//! All loops share this: [`read`] finds the value of an object, and each format puts it.

use onecopy_text::{Pen, Put};
use onecopy_wire::datetime::{Date, Time, Timestamp};
use onecopy_wire::json;
use pyo3::ffi;

use super::classes::{Class, Form, RecentClasses};
use super::decimal::{self, ShortDecimal};
use super::marked::ShortValue;
use super::object::{self, Kind};
use super::{Style, scalar};
use crate::raw::ndarray::{Choice, Scalar};
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
    pub(crate) numpy: Choice,
    /// Whether BSON's own types are written as any others; else as [`Native::Short`] or by code.
    pub(crate) marked: bool,
    /// Whether the fields of a dataclass are written whose names begin with an underscore.
    pub(crate) private_fields: bool,
    /// Whether a `datetime` without a zone is one in UTC.
    pub(crate) naive_utc: bool,
    pub(crate) utc_z: bool,
    pub(crate) omit_microseconds: bool,
    pub(crate) decimals: bool,
    /// An `int` of any size is written as a number.
    pub(crate) exact_ints: bool,
    /// Only the classes that orjson writes have a form, and it is orjson's.
    pub(crate) orjson: bool,
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
        numpy: Choice::Any,
        marked: true,
        private_fields: true,
        naive_utc: false,
        utc_z: false,
        omit_microseconds: false,
        decimals: true,
        exact_ints: true,
        orjson: false,
    };
}

/// The value of an object.
pub(super) enum Native {
    Uuid([u8; 16]),
    Decimal(ShortDecimal),
    /// One of BSON's own types.
    Short(ShortValue),
    /// That of a member of an enumeration: another object, which the member has.
    Instead(*mut ffi::PyObject),
    /// The contents that it has of one of CPython's own types.
    Contents(Kind),
    /// Fields of a dataclass, at least one of which is written; valid until code runs.
    Fields(*const Class),
    /// A dataclass without any field that is written.
    NoFields,
    /// A value of one of NumPy's scalars.
    Scalar(Scalar),
    /// The memory of an array of NumPy's, if [`ndarray::view_of`] finds it.
    Array,
    /// Code has to run for it.
    Other,
}

/// Classes and zones of the objects that were met since code last ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    pub(super) zone: Zone,
    pub(super) classes: RecentClasses,
}

impl Recent {
    pub(super) const NONE: Recent = Recent {
        zone: Zone::NONE,
        classes: RecentClasses::NONE,
    };
}

/// The offset of the zone that was met last: its address stands for it as long as no code runs that might free it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    zone: *mut ffi::PyObject,
    us: Option<i64>,
    /// The same in minutes, if it has no seconds.
    minutes: Option<i16>,
}

impl Zone {
    const NONE: Zone = Zone {
        zone: std::ptr::null_mut(),
        us: None,
        minutes: None,
    };

    /// The offset of a `datetime` in microseconds, if no code has to run for it.
    ///
    /// # Safety
    /// `zone` is that of `at`, a `datetime` of that class itself, and no `None`; both are alive.
    #[inline(always)]
    pub(super) unsafe fn offset(
        &mut self,
        zone: *mut ffi::PyObject,
        at: *mut ffi::PyObject,
    ) -> Option<Option<i64>> {
        // SAFETY: the duty of the caller.
        unsafe { self.found(zone, at).map(|zone| zone.us) }
    }

    /// As [`Zone::offset`], in minutes; `None` also of an offset with seconds, which [`Others`](super::Others) rounds.
    ///
    /// # Safety
    /// As [`Zone::offset`].
    #[inline(always)]
    unsafe fn offset_minutes(
        &mut self,
        zone: *mut ffi::PyObject,
        at: *mut ffi::PyObject,
    ) -> Option<Option<i16>> {
        // SAFETY: the duty of the caller.
        let found = unsafe { self.found(zone, at)? };
        match found.us {
            Some(_) => found.minutes.map(Some),
            None => Some(None),
        }
    }

    /// The offset of a zone at one moment.
    ///
    /// # Safety
    /// As [`Zone::offset`].
    #[inline(always)]
    unsafe fn found(&mut self, zone: *mut ffi::PyObject, at: *mut ffi::PyObject) -> Option<Zone> {
        if zone == self.zone {
            return Some(*self);
        }
        // SAFETY: the duty of the caller.
        let offset = unsafe { temporal::offset_without_code(zone, at)? };
        let found = Zone {
            zone,
            us: offset.us,
            minutes: offset.us.and_then(temporal::whole_minutes),
        };
        if offset.is_constant {
            *self = found;
        }
        Some(found)
    }
}

/// Reads the value of an object that is of none of CPython's own types, nor one that [`put_temporal`] puts.
///
/// # Safety
/// `object` is alive, attached. What is borrowed of it is alive as long as it is and no code runs; none has run since `recent`
/// was [`Recent::NONE`].
#[inline(always)]
pub(super) unsafe fn read(
    object: *mut ffi::PyObject,
    natives: &Natives,
    recent: &mut Recent,
) -> Native {
    // SAFETY: the duty of the caller; an attribute is read of an instance of its class.
    unsafe {
        let known = recent.classes.of(object);
        let Some(class) = known.as_ref() else {
            return Native::Other;
        };
        if natives.orjson && !class.is_orjson {
            return Native::Other;
        }
        if class.is_marked && !natives.marked {
            let value = class.marked.as_ref().and_then(|marked| marked.read(object));
            return value.map_or(Native::Other, Native::Short);
        }
        match &class.form {
            Form::EnumContents(Kind::Int) if !is_short(object, natives.exact_ints) => Native::Other,
            Form::EnumContents(kind) if natives.enums => Native::Contents(*kind),
            Form::Contents(kind) if natives.subclasses => match kind {
                Kind::Float if !natives.floats => Native::Other,
                Kind::Tuple if !natives.tuples => Native::Other,
                // Of a large one, `Others` makes an `int`, or decides what is written.
                Kind::Int if !is_short(object, natives.exact_ints) => Native::Other,
                kind => Native::Contents(*kind),
            },
            Form::Scalar(scalar) if natives.numpy != Choice::Left => {
                Native::Scalar(scalar.read(object))
            }
            // It is a `float` too.
            Form::Scalar(scalar) if scalar.is_float() && natives.subclasses && natives.floats => {
                Native::Contents(Kind::Float)
            }
            Form::Array { is_ndarray } if *is_ndarray || natives.numpy != Choice::Orjson => {
                Native::Array
            }
            Form::Enum(value) if natives.enums => {
                value.read(object).map_or(Native::Other, Native::Instead)
            }
            Form::Fields(fields)
                if natives.orjson && natives.dataclasses && !fields.are_those_of_orjson(object) =>
            {
                Native::Other
            }
            Form::Fields(fields) if natives.dataclasses => {
                match fields.count(natives.private_fields) {
                    0 => Native::NoFields,
                    _ => Native::Fields(known),
                }
            }
            Form::Uuid(number) if natives.uuid => {
                let number = number.read(object).and_then(|number| object::u128(number));
                number.map_or(Native::Other, |number| Native::Uuid(number.to_be_bytes()))
            }
            Form::Decimal if natives.decimals => {
                decimal::read(object).map_or(Native::Other, Native::Decimal)
            }
            _ => Native::Other,
        }
    }
}

/// Returns true if an `int` is written as a number in this style: below 2**53, or, if all are, of two digits of its own (below 2**60).
///
/// # Safety
/// `object` is an `int`, or of a class derived from it.
unsafe fn is_short(object: *mut ffi::PyObject, exact: bool) -> bool {
    // SAFETY: the duty of the caller.
    let value = unsafe { object::small_int(object) };
    value.is_some_and(|value| exact || value.unsigned_abs() < 1 << 53)
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

/// # Safety
/// `time` is a `time`.
#[inline(always)]
unsafe fn time(time: *mut ffi::PyObject, natives: &Natives) -> Time {
    // SAFETY: a `time`, by the caller's word.
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

/// A `datetime` without a zone, or in one whose offset is found without code and has no seconds:
/// [`Others`](super::Others) rounds those.
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

/// Puts a date, a time or a `datetime` as JSON; whether the object was one and could be read in place.
///
/// # Safety
/// As [`read`]; the pen has space for a scalar.
#[inline(always)]
pub(super) unsafe fn put_temporal(
    object: *mut ffi::PyObject,
    natives: &Natives,
    recent: &mut Recent,
    pen: &mut Pen<'_>,
) -> bool {
    debug_assert!(pen.room() >= json::SCALAR_BYTES);
    // SAFETY: alive, by the caller's word; read as what it is by its type. The C API of `datetime` was imported with the module.
    unsafe {
        let class = ffi::Py_TYPE(object);
        let api = &*ffi::PyDateTimeAPI();
        if class == api.DateTimeType {
            if !natives.temporal {
                return false;
            }
            let Some(at) = timestamp(object, natives, &mut recent.zone) else {
                return false;
            };
            json::put_valid_timestamp(&at, natives.utc_z, pen);
            return true;
        }
        if class == api.DateType {
            if natives.temporal {
                json::put_valid_date(date(object), pen);
            }
            return natives.temporal;
        }
        let is_time = class == api.TimeType
            && natives.temporal
            && ffi::PyDateTime_TIME_GET_TZINFO(object) == ffi::Py_None();
        if is_time {
            json::put_valid_time(time(object, natives), pen);
        }
        is_time
    }
}

/// The date of a `date` of that class itself.
///
/// # Safety
/// As [`read`].
pub(super) unsafe fn date_of(object: *mut ffi::PyObject, natives: &Natives) -> Option<Date> {
    // SAFETY: alive, by the caller's word; a `date`, by its type.
    unsafe {
        let is_date = ffi::Py_TYPE(object) == (*ffi::PyDateTimeAPI()).DateType;
        (is_date && natives.temporal).then(|| date(object))
    }
}

/// Puts a scalar as JSON; whether it was one.
#[inline(always)]
pub(super) fn put_scalar(native: &Native, style: &Style, pen: &mut Pen<'_>) -> bool {
    match native {
        Native::Scalar(value) => return scalar::put(*value, style, pen).is_ok(),
        Native::Uuid(bytes) => json::put_uuid(bytes, pen),
        Native::Decimal(value) => {
            json::put_decimal(value.negative, value.coefficient, value.scale, pen);
        }
        _ => return false,
    }
    true
}
