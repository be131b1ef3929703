//! Reads values of standard types and of derived classes from memory. No Python code runs.
//!
//! The encoders of all formats use this module: [`read`] returns the value of an object.

use onecopy_wire::datetime::Date;
use pyo3::ffi;

use super::builtin_types::{self, ObjectKind};
use super::classes::{Class, ClassForm, RecentClasses};
use super::decimal::{self, ShortDecimal};
use super::ordered_dict;
use crate::raw::ndarray::{Choice, Scalar};
use crate::raw::temporal;

/// Options for the types that the encoder writes without Python code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Natives {
    pub(crate) temporal: bool,
    pub(crate) uuid: bool,
    pub(crate) enums: bool,
    pub(crate) dataclasses: bool,
    /// `true` if instances of classes derived from built-in types are written like the built-in
    /// type. For `float` and `tuple`, see `floats` and `tuples`.
    pub(crate) subclasses: bool,
    pub(crate) floats: bool,
    pub(crate) tuples: bool,
    pub(crate) numpy: Choice,
    /// `true` if instances of BSON classes are written like other instances. `false` if they are
    /// [`Native::Marked`], or if `ObjectForms` writes them.
    pub(crate) marked: bool,
    /// `true` to write dataclass fields whose names begin with an underscore.
    pub(crate) private_fields: bool,
    /// `true` to write a `datetime` without a time zone as UTC.
    pub(crate) naive_utc: bool,
    pub(crate) utc_z: bool,
    pub(crate) omit_microseconds: bool,
    pub(crate) decimals: bool,
    /// `true` to write integers of any size as JSON numbers.
    pub(crate) exact_ints: bool,
    /// `true` to write only the types of orjson, and in the same way.
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

/// The value of an object, or the way to write the object.
pub(super) enum Native {
    Uuid([u8; 16]),
    Decimal(ShortDecimal),
    /// An instance of this BSON class. The pointer is valid until Python code runs.
    Marked(*const Class),
    /// The value of an enumeration member, which is written instead of the member.
    Instead(*mut ffi::PyObject),
    /// The class is derived from this built-in type. The object is written like the built-in type.
    Contents(ObjectKind),
    /// A dataclass instance. The pointer is valid until Python code runs.
    Fields(*const Class),
    /// The value of a NumPy scalar.
    Scalar(Scalar),
    /// A NumPy array. [`ndarray::view_of`] returns a view of its memory.
    Array,
    /// The value requires Python code.
    Other,
}

/// The time zone and classes of the last written objects. Valid until Python code runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentObjects {
    pub(super) zone: Zone,
    pub(super) classes: RecentClasses,
}

impl RecentObjects {
    pub(super) const NONE: RecentObjects = RecentObjects {
        zone: Zone::NONE,
        classes: RecentClasses::NONE,
    };
}

/// A cache of the UTC offset of one time zone, keyed by its address. It is cleared when Python code
/// runs, because such code might free the zone object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    zone: *mut ffi::PyObject,
    us: Option<i64>,
    /// The offset in minutes; `None` if it has seconds.
    minutes: Option<i16>,
}

impl Zone {
    const NONE: Zone = Zone {
        zone: std::ptr::null_mut(),
        us: None,
        minutes: None,
    };

    /// Returns the UTC offset of a `datetime` in microseconds, if it has one. The outer `Option` is
    /// `None` if Python code must run.
    ///
    /// # Safety
    /// `zone` must be the zone of `at`, and not `None`. `at` must be exactly a `datetime`. Both
    /// must be alive.
    #[inline(always)]
    pub(super) unsafe fn offset(
        &mut self,
        zone: *mut ffi::PyObject,
        at: *mut ffi::PyObject,
    ) -> Option<Option<i64>> {
        // SAFETY: the caller guarantees the requirements.
        unsafe { self.found(zone, at).map(|zone| zone.us) }
    }

    /// Returns the UTC offset of a `datetime` in minutes, if it has one. The outer `Option` is
    /// `None` if Python code must run, or the offset has seconds.
    ///
    /// # Safety
    /// The same requirements as for [`Zone::offset`].
    #[inline(always)]
    pub(super) unsafe fn offset_minutes(
        &mut self,
        zone: *mut ffi::PyObject,
        at: *mut ffi::PyObject,
    ) -> Option<Option<i16>> {
        // SAFETY: the caller guarantees the requirements.
        let found = unsafe { self.found(zone, at)? };
        match found.us {
            Some(_) => found.minutes.map(Some),
            None => Some(None),
        }
    }

    /// Finds the UTC offset of the time zone `zone` at the time `at`. Returns `None` if this
    /// requires Python code.
    ///
    /// # Safety
    /// The same requirements as for [`Zone::offset`].
    #[inline(always)]
    unsafe fn found(&mut self, zone: *mut ffi::PyObject, at: *mut ffi::PyObject) -> Option<Zone> {
        if zone == self.zone {
            return Some(*self);
        }
        // SAFETY: the caller guarantees the requirements.
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

/// Reads the value of an object from its memory. Built-in types, `date`, `time` and `datetime` are
/// handled by the caller.
///
/// # Safety
/// `object` must be alive, and the GIL must be held. The borrowed parts of the result are valid
/// while the object is alive and no Python code runs. No Python code may have run since `recent`
/// was [`RecentObjects::NONE`].
#[inline(always)]
pub(super) unsafe fn read(
    object: *mut ffi::PyObject,
    natives: &Natives,
    recent: &mut RecentObjects,
) -> Native {
    // SAFETY: the caller guarantees the requirements.
    let known = unsafe { recent.classes.of(object) };
    // SAFETY: null, or valid until code runs.
    let Some(class) = (unsafe { known.as_ref() }) else {
        return Native::Other;
    };
    if natives.orjson && !class.is_orjson {
        return Native::Other;
    }
    if class.is_marked && !natives.marked {
        return match class.marked {
            Some(_) => Native::Marked(known),
            None => Native::Other,
        };
    }
    // SAFETY: an `int`, where it is called.
    let is_long = || unsafe { !is_short(object, natives.exact_ints) };
    match &class.form {
        ClassForm::EnumContents(ObjectKind::Int) if is_long() => Native::Other,
        ClassForm::EnumContents(kind) if natives.enums => Native::Contents(*kind),
        ClassForm::Contents(kind) if natives.subclasses => match kind {
            ObjectKind::Float if !natives.floats => Native::Other,
            ObjectKind::Tuple if !natives.tuples => Native::Other,
            // `ObjectForms` creates an `int` or another form for a larger value.
            ObjectKind::Int if is_long() => Native::Other,
            kind => Native::Contents(*kind),
        },
        ClassForm::OrderedDict if natives.subclasses => {
            // SAFETY: of a class whose layout was compared.
            match unsafe { ordered_dict::has_order_of_dict(object) } {
                true => Native::Contents(ObjectKind::Dict),
                false => Native::Other,
            }
        }
        ClassForm::Scalar(scalar) if natives.numpy != Choice::Left => {
            // SAFETY: an instance of this class of NumPy's.
            Native::Scalar(unsafe { scalar.read(object) })
        }
        // A NumPy `float64` is also an instance of `float`.
        ClassForm::Scalar(scalar) if scalar.is_float() && natives.subclasses && natives.floats => {
            Native::Contents(ObjectKind::Float)
        }
        ClassForm::Array { is_ndarray } if *is_ndarray || natives.numpy != Choice::Orjson => {
            Native::Array
        }
        ClassForm::Enum(value) if natives.enums => {
            // SAFETY: an instance of the class that has this attribute.
            let value = unsafe { value.read(object) };
            value.map_or(Native::Other, Native::Instead)
        }
        ClassForm::Fields(fields) if natives.dataclasses => {
            // SAFETY: an instance of the class that has these fields.
            let is_written = || unsafe { fields.are_those_of_orjson(object) };
            match natives.orjson && !is_written() {
                true => Native::Other,
                false => Native::Fields(known),
            }
        }
        ClassForm::Uuid(number) if natives.uuid => {
            // SAFETY: an instance of the class that has this attribute.
            let number = unsafe { number.read(object) }.and_then(|number| {
                // SAFETY: an attribute is alive as long as its object is.
                unsafe { builtin_types::u128(number) }
            });
            number.map_or(Native::Other, |number| Native::Uuid(number.to_be_bytes()))
        }
        ClassForm::Decimal if natives.decimals => {
            // SAFETY: of the class whose layout was compared.
            let value = unsafe { decimal::read(object) };
            value.map_or(Native::Other, Native::Decimal)
        }
        _ => Native::Other,
    }
}

/// Returns `true` if an `int` can be written as a number without Python code. Its magnitude must be
/// below 2**53, or below 2**60 if `exact` is `true`.
///
/// # Safety
/// `object` must be an `int`, or of a class derived from it.
unsafe fn is_short(object: *mut ffi::PyObject, exact: bool) -> bool {
    // SAFETY: the caller guarantees the requirements.
    let value = unsafe { builtin_types::small_int(object) };
    value.is_some_and(|value| exact || value.unsigned_abs() < 1 << 53)
}

/// Reads the year, month and day of a `date`.
///
/// # Safety
/// `date` must be a live `date`.
#[inline(always)]
pub(super) unsafe fn date(date: *mut ffi::PyObject) -> Date {
    // SAFETY: a `date`, as the caller guarantees.
    unsafe {
        Date {
            year: ffi::PyDateTime_GET_YEAR(date),
            month: ffi::PyDateTime_GET_MONTH(date) as u8,
            day: ffi::PyDateTime_GET_DAY(date) as u8,
        }
    }
}

/// Returns the date of an object of exactly the class `date`.
///
/// # Safety
/// The same requirements as for [`read`].
pub(super) unsafe fn date_of(object: *mut ffi::PyObject, natives: &Natives) -> Option<Date> {
    // SAFETY: alive, as the caller guarantees; a `date`, by its type.
    unsafe {
        let is_date = ffi::Py_TYPE(object) == (*ffi::PyDateTimeAPI()).DateType;
        (is_date && natives.temporal).then(|| date(object))
    }
}
