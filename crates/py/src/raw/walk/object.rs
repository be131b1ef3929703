//! Objects of CPython's own types, read in place.
//!
//! Everything here takes pointers to objects that are alive, attached, and keeps none.

use std::slice;

use onecopy_text::Units;
use pyo3::ffi;

use crate::raw::str_header;

/// What an object is, by its exact type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Str,
    Int,
    Float,
    Bool,
    None,
    List,
    Tuple,
    Dict,
    /// An instance of a dataclass whose fields are read in place. Found by [`super::native`] only.
    Fields,
    /// An array of NumPy's. Found by [`super::native`] only.
    Array,
    Other,
}

/// The kind of an object: by its type itself, no subclass.
///
/// # Safety
/// `object` is alive (so for all below).
#[inline(always)]
pub(super) unsafe fn kind(object: *mut ffi::PyObject) -> Kind {
    // SAFETY: any object has a type; these types are never freed.
    unsafe {
        let of = ffi::Py_TYPE(object);
        if of == &raw mut ffi::PyUnicode_Type {
            Kind::Str
        } else if of == &raw mut ffi::PyLong_Type {
            Kind::Int
        } else if of == &raw mut ffi::PyFloat_Type {
            Kind::Float
        } else if of == &raw mut ffi::PyDict_Type {
            Kind::Dict
        } else if of == &raw mut ffi::PyList_Type {
            Kind::List
        } else if object == ffi::Py_None() {
            Kind::None
        } else if of == &raw mut ffi::PyBool_Type {
            Kind::Bool
        } else if of == &raw mut ffi::PyTuple_Type {
            Kind::Tuple
        } else {
            Kind::Other
        }
    }
}

/// The text of a `str` in its own units, or its UTF-8 where that stands; with whether it is known to be ASCII. `None` of one
/// in the form of before PEP 393 (possible until Python 3.11).
///
/// # Safety
/// It is a `str`.
#[inline(always)]
pub(super) unsafe fn text<'a>(object: *mut ffi::PyObject) -> Option<(Units<'a>, bool)> {
    // SAFETY: a `str`; its state tells whether it is compact, so that its data follows its header, and in which units.
    unsafe {
        #[cfg(not(Py_GIL_DISABLED))]
        {
            let n = ffi::PyUnicode_GET_LENGTH(object).unsigned_abs();
            if str_header::is_compact_ascii(object) {
                let data = object.byte_add(str_header::ASCII_HEADER_BYTES).cast();
                return Some((Units::Latin1(slice::from_raw_parts(data, n)), true));
            }
            if !str_header::is_compact(object) {
                return apart(object, n);
            }
            if let Some(utf8) = str_header::cached_utf8(object) {
                return Some((Units::Utf8(utf8), false));
            }
            let data = object.byte_add(str_header::COMPACT_HEADER_BYTES);
            Some((
                match str_header::kind(object) {
                    ffi::PyUnicode_1BYTE_KIND => {
                        Units::Latin1(slice::from_raw_parts(data.cast(), n))
                    }
                    ffi::PyUnicode_2BYTE_KIND => Units::Ucs2(slice::from_raw_parts(data.cast(), n)),
                    _ => Units::Utf32(slice::from_raw_parts(data.cast(), n)),
                },
                false,
            ))
        }
        #[cfg(Py_GIL_DISABLED)]
        {
            let n = ffi::PyUnicode_GET_LENGTH(object).unsigned_abs();
            let data = ffi::PyUnicode_DATA(object);
            Some((
                match ffi::PyUnicode_KIND(object) {
                    ffi::PyUnicode_1BYTE_KIND => {
                        Units::Latin1(slice::from_raw_parts(data.cast(), n))
                    }
                    ffi::PyUnicode_2BYTE_KIND => Units::Ucs2(slice::from_raw_parts(data.cast(), n)),
                    _ => Units::Utf32(slice::from_raw_parts(data.cast(), n)),
                },
                false,
            ))
        }
    }
}

/// As [`text`], of a `str` whose data is not next to its header: one of a class of its own.
///
/// # Safety
/// It is a `str` of so many units.
#[cfg(not(Py_GIL_DISABLED))]
unsafe fn apart<'a>(object: *mut ffi::PyObject, n: usize) -> Option<(Units<'a>, bool)> {
    // SAFETY: a `str`; once it is ready it has data of its kind.
    unsafe {
        #[cfg(not(Py_3_12))]
        #[allow(deprecated)]
        if ffi::PyUnicode_IS_READY(object) == 0 {
            return None;
        }
        let data = ffi::PyUnicode_DATA(object);
        let is_ascii = str_header::is_ascii(object);
        Some(match str_header::kind(object) {
            ffi::PyUnicode_1BYTE_KIND => (
                Units::Latin1(slice::from_raw_parts(data.cast(), n)),
                is_ascii,
            ),
            ffi::PyUnicode_2BYTE_KIND => {
                (Units::Ucs2(slice::from_raw_parts(data.cast(), n)), false)
            }
            _ => (Units::Utf32(slice::from_raw_parts(data.cast(), n)), false),
        })
    }
}

/// The characters of a `str` that knows that it is ASCII.
///
/// # Safety
/// It is a `str`.
#[inline(always)]
pub(super) unsafe fn ascii<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `str`; where it is compact and ASCII its data follows its header.
    unsafe {
        if !str_header::is_compact_ascii(object) {
            return None;
        }
        let n = ffi::PyUnicode_GET_LENGTH(object).unsigned_abs();
        let data = object.byte_add(str_header::ASCII_HEADER_BYTES).cast();
        Some(slice::from_raw_parts(data, n))
    }
    #[cfg(Py_GIL_DISABLED)]
    {
        let _ = object;
        None
    }
}

/// As [`ascii`], of a `str` whose data is not next to its header: one of a derived class.
///
/// # Safety
/// It is a `str`.
#[inline(always)]
pub(super) unsafe fn ascii_apart<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `str`; where it is ready and not compact, a pointer to its data follows its header.
    unsafe {
        #[cfg(not(Py_3_12))]
        #[allow(deprecated)]
        let is_ready = ffi::PyUnicode_IS_READY(object) != 0;
        #[cfg(Py_3_12)]
        let is_ready = true;
        let is_ascii = str_header::is_ascii(object);
        if !is_ready || !is_ascii || str_header::is_compact(object) {
            return None;
        }
        let n = ffi::PyUnicode_GET_LENGTH(object).unsigned_abs();
        let data = str_header::separate_data(object);
        Some(slice::from_raw_parts(data.cast(), n))
    }
    #[cfg(Py_GIL_DISABLED)]
    {
        let _ = object;
        None
    }
}

/// The value of an `int` of at most two digits of its own (60 bits); `None` of a longer one.
///
/// # Safety
/// It is an `int`.
#[inline(always)]
pub(super) unsafe fn small_int(object: *mut ffi::PyObject) -> Option<i64> {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: an `int`: behind the header of any object stands the number of its digits with its sign, and behind that the
    // digits, of 30 bits (`check_layout` has looked when the module was imported).
    unsafe {
        let tag = object.byte_add(size_of::<ffi::PyObject>()).cast::<isize>();
        let digits = tag.add(1).cast::<u32>();
        #[cfg(Py_3_12)]
        let (n, negative) = {
            let tag = tag.cast::<usize>().read();
            (tag >> 3, tag & 3 == 2)
        };
        #[cfg(not(Py_3_12))]
        let (n, negative) = {
            let size = tag.read();
            (size.unsigned_abs(), size < 0)
        };
        let magnitude = match n {
            0 => 0,
            1 => i64::from(digits.read()),
            2 => i64::from(digits.read()) | i64::from(digits.add(1).read()) << 30,
            _ => return None,
        };
        Some(if negative { -magnitude } else { magnitude })
    }
    #[cfg(Py_GIL_DISABLED)]
    {
        let _ = object;
        None
    }
}

/// The value of an `int` of up to 128 bits without a sign; `None` of any other object, and of an interpreter that stores them in
/// another way.
///
/// # Safety
/// `object` is alive.
#[inline(always)]
pub(super) unsafe fn u128(object: *mut ffi::PyObject) -> Option<u128> {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: an `int`, by its type, in the layout of `small_int`.
    unsafe {
        if ffi::Py_TYPE(object) != &raw mut ffi::PyLong_Type {
            return None;
        }
        let tag = object.byte_add(size_of::<ffi::PyObject>()).cast::<isize>();
        #[cfg(Py_3_12)]
        let n = {
            let tag = tag.cast::<usize>().read();
            if tag & 3 == 2 {
                return None;
            }
            tag >> 3
        };
        #[cfg(not(Py_3_12))]
        let n = usize::try_from(tag.read()).ok()?;
        if n > 5 {
            return None;
        }
        let digits = slice::from_raw_parts(tag.add(1).cast::<u32>(), n);
        if n == 5 && digits[4] >= 1 << 8 {
            return None;
        }
        let shifted = |value: u128, digit: &u32| value << 30 | u128::from(*digit);
        Some(digits.iter().rev().fold(0, shifted))
    }
    #[cfg(Py_GIL_DISABLED)]
    {
        let _ = object;
        None
    }
}

/// An `int` of 64 bits with or without a sign; `None` of a longer one.
///
/// # Safety
/// It is an `int`.
#[cold]
pub(super) unsafe fn int(object: *mut ffi::PyObject) -> Option<i128> {
    // SAFETY: an `int`; the calls leave an error behind where it does not fit, which is cleared.
    unsafe {
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(object, &raw mut overflow);
        if overflow == 0 {
            return Some(i128::from(value));
        }
        if overflow < 0 {
            return None;
        }
        let value = ffi::PyLong_AsUnsignedLongLong(object);
        if value == u64::MAX && !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(i128::from(value))
    }
}

/// The value of a `float`.
///
/// # Safety
/// It is a `float`.
#[inline(always)]
pub(super) unsafe fn float(object: *mut ffi::PyObject) -> f64 {
    // SAFETY: a `float`.
    unsafe { ffi::PyFloat_AS_DOUBLE(object) }
}

/// The items of a list or tuple.
///
/// # Safety
/// It is one (`is_list` tells which), and nobody changes it while the slice lives.
#[inline(always)]
pub(super) unsafe fn items<'a>(
    object: *mut ffi::PyObject,
    is_list: bool,
) -> &'a [*mut ffi::PyObject] {
    // SAFETY: as many items follow each other; an empty list may have none, and a null pointer.
    unsafe {
        let n = ffi::Py_SIZE(object).unsigned_abs();
        if n == 0 {
            return &[];
        }
        let first = if is_list {
            (*object.cast::<ffi::PyListObject>()).ob_item
        } else {
            (&raw mut (*object.cast::<ffi::PyTupleObject>()).ob_item).cast()
        };
        slice::from_raw_parts(first, n)
    }
}

/// Whether numbers are laid out as [`small_int`] reads them.
pub(super) fn reads_ints(py: pyo3::Python<'_>) -> bool {
    let samples = [
        0,
        1,
        -1,
        255,
        -300,
        (1 << 30) - 1,
        1 << 30,
        -(1 << 30) - 7,
        (1 << 60) - 1,
        -(1 << 60) + 1,
    ];
    samples.iter().all(|&value: &i64| {
        // SAFETY: attached; an `int` or null, which we give back.
        unsafe {
            let _ = py;
            let made = ffi::PyLong_FromLongLong(value);
            if made.is_null() {
                ffi::PyErr_Clear();
                return false;
            }
            let read = small_int(made);
            ffi::Py_DECREF(made);
            read == Some(value) || cfg!(Py_GIL_DISABLED)
        }
    })
}
