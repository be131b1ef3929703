//! Reads objects of CPython's built-in types directly from memory.
//!
//! All functions require live objects and the GIL. They store no pointers.

use std::slice;

use onecopy_text::Units;
use pyo3::ffi;

use crate::raw::str_header;

/// The kind of an object by its exact type. A subclass is `Other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Str,
    Int,
    Float,
    Bool,
    None,
    List,
    Tuple,
    Dict,
    /// An instance of a dataclass. Only [`super::standard_types`] returns this variant.
    Fields,
    /// A NumPy array. Only [`super::standard_types`] returns this variant.
    Array,
    Other,
}

impl ObjectKind {
    /// Returns `true` for a string, a number, a boolean and `None`.
    pub(super) fn is_scalar(self) -> bool {
        matches!(
            self,
            ObjectKind::Str
                | ObjectKind::Int
                | ObjectKind::Float
                | ObjectKind::Bool
                | ObjectKind::None
        )
    }
}

/// Returns the kind of an object.
///
/// # Safety
/// `object` must be alive.
#[inline(always)]
pub(super) unsafe fn kind(object: *mut ffi::PyObject) -> ObjectKind {
    // SAFETY: any object has a type, and these types are never freed.
    unsafe {
        let of = ffi::Py_TYPE(object);
        if of == &raw mut ffi::PyUnicode_Type {
            ObjectKind::Str
        } else if of == &raw mut ffi::PyLong_Type {
            ObjectKind::Int
        } else if of == &raw mut ffi::PyFloat_Type {
            ObjectKind::Float
        } else if of == &raw mut ffi::PyDict_Type {
            ObjectKind::Dict
        } else if of == &raw mut ffi::PyList_Type {
            ObjectKind::List
        } else if object == ffi::Py_None() {
            ObjectKind::None
        } else if of == &raw mut ffi::PyBool_Type {
            ObjectKind::Bool
        } else if of == &raw mut ffi::PyTuple_Type {
            ObjectKind::Tuple
        } else {
            ObjectKind::Other
        }
    }
}

/// Returns the characters of a `str`. The second item is its ASCII flag. `None` for the legacy
/// representation, which exists up to Python 3.11.
///
/// # Safety
/// The object must be a `str`.
#[inline(always)]
pub(super) unsafe fn text<'a>(object: *mut ffi::PyObject) -> Option<(Units<'a>, bool)> {
    // SAFETY: a `str`. The data of a compact `str` follows its header; another ready `str` contains
    // the address of its data.
    unsafe {
        let n = ffi::PyUnicode_GET_LENGTH(object).unsigned_abs();
        #[cfg(not(Py_GIL_DISABLED))]
        {
            if str_header::is_compact_ascii(object) {
                let data = object.byte_add(str_header::ASCII_HEADER_BYTES).cast();
                return Some((Units::Latin1(slice::from_raw_parts(data, n)), true));
            }
            if !str_header::is_compact(object) {
                return apart(object, n);
            }
        }
        Some((compact_text(object, n), false))
    }
}

/// Returns the characters of a compact `str`.
///
/// # Safety
/// The object must be a compact `str` of `n` units.
#[cfg(not(Py_GIL_DISABLED))]
#[inline(always)]
unsafe fn compact_text<'a>(object: *mut ffi::PyObject, n: usize) -> Units<'a> {
    // SAFETY: its data follows its header.
    unsafe {
        if let Some(utf8) = str_header::cached_utf8(object) {
            return Units::Utf8(utf8);
        }
        let data = object.byte_add(str_header::COMPACT_HEADER_BYTES);
        units_at(data.cast(), str_header::kind(object), n)
    }
}

/// Returns the characters of a `str` in a free-threaded interpreter.
///
/// # Safety
/// The object must be a `str` of `n` units.
#[cfg(Py_GIL_DISABLED)]
unsafe fn compact_text<'a>(object: *mut ffi::PyObject, n: usize) -> Units<'a> {
    // SAFETY: a `str`.
    unsafe {
        units_at(
            ffi::PyUnicode_DATA(object).cast(),
            ffi::PyUnicode_KIND(object),
            n,
        )
    }
}

/// Returns `n` code units of a `str`. `kind` determines their size.
///
/// # Safety
/// `data` must point to `n` units. They must not change while the result is used.
#[inline(always)]
unsafe fn units_at<'a>(data: *const u8, kind: std::ffi::c_uint, n: usize) -> Units<'a> {
    // SAFETY: as the caller guarantees. The data of a `str` is aligned for its units.
    unsafe {
        match kind {
            ffi::PyUnicode_1BYTE_KIND => Units::Latin1(slice::from_raw_parts(data, n)),
            ffi::PyUnicode_2BYTE_KIND => Units::Ucs2(slice::from_raw_parts(data.cast(), n)),
            _ => Units::Utf32(slice::from_raw_parts(data.cast(), n)),
        }
    }
}

/// Implements [`text`] for a subclass of `str`. Its characters are in another allocation.
///
/// # Safety
/// The object must be a `str` of `n` units.
#[cfg(not(Py_GIL_DISABLED))]
unsafe fn apart<'a>(object: *mut ffi::PyObject, n: usize) -> Option<(Units<'a>, bool)> {
    // SAFETY: a `str`. A ready `str` has data of its kind.
    unsafe {
        #[cfg(not(Py_3_12))]
        #[allow(deprecated)]
        if ffi::PyUnicode_IS_READY(object) == 0 {
            return None;
        }
        let units = units_at(
            ffi::PyUnicode_DATA(object).cast(),
            str_header::kind(object),
            n,
        );
        let is_ascii = matches!(units, Units::Latin1(_)) && str_header::is_ascii(object);
        Some((units, is_ascii))
    }
}

/// Returns the characters of a compact ASCII `str`. `None` in a free-threaded interpreter.
///
/// # Safety
/// The object must be a `str`.
#[inline(always)]
pub(super) unsafe fn ascii<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `str`. The data of a compact ASCII `str` follows its header.
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

/// Implements [`ascii`] for a subclass of `str`. Its characters are in another allocation.
///
/// # Safety
/// The object must be a `str`.
#[inline(always)]
pub(super) unsafe fn ascii_apart<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `str`. If it is ready and not compact, a pointer to its data follows its header.
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

/// Returns the number of digits of an `int`, its sign, and its digits in base 2^30.
///
/// # Safety
/// The object must be an `int`.
#[cfg(not(Py_GIL_DISABLED))]
#[inline(always)]
unsafe fn digits(object: *mut ffi::PyObject) -> (usize, bool, *const u32) {
    // SAFETY: the header is followed by the number of digits with the sign, and then the digits.
    // `reads_ints` checks this layout at import.
    let (tag, digits) = unsafe {
        let tag = object.byte_add(size_of::<ffi::PyObject>());
        (tag.cast::<isize>().read(), tag.cast::<isize>().add(1))
    };
    #[cfg(Py_3_12)]
    let (n, is_negative) = (tag.cast_unsigned() >> 3, tag & 3 == 2);
    #[cfg(not(Py_3_12))]
    let (n, is_negative) = (tag.unsigned_abs(), tag < 0);
    (n, is_negative, digits.cast())
}

/// Returns an `int` of up to 60 bits. `None` for a longer one, and in a free-threaded interpreter.
///
/// # Safety
/// The object must be an `int`.
#[inline(always)]
pub(super) unsafe fn small_int(object: *mut ffi::PyObject) -> Option<i64> {
    #[cfg(not(Py_GIL_DISABLED))]
    {
        // SAFETY: an `int` with this number of digits.
        let (is_negative, magnitude) = unsafe {
            let (n, is_negative, digits) = digits(object);
            let magnitude = match n {
                0 => 0,
                1 => i64::from(digits.read()),
                2 => i64::from(digits.read()) | i64::from(digits.add(1).read()) << 30,
                _ => return None,
            };
            (is_negative, magnitude)
        };
        Some(if is_negative { -magnitude } else { magnitude })
    }
    #[cfg(Py_GIL_DISABLED)]
    {
        let _ = object;
        None
    }
}

/// Returns a non-negative `int` of up to 128 bits. `None` for any other object, and in a
/// free-threaded interpreter.
///
/// # Safety
/// `object` must be alive.
#[inline(always)]
pub(super) unsafe fn u128(object: *mut ffi::PyObject) -> Option<u128> {
    #[cfg(not(Py_GIL_DISABLED))]
    {
        // SAFETY: an `int`, by its type, with this number of digits.
        let digits = unsafe {
            if ffi::Py_TYPE(object) != &raw mut ffi::PyLong_Type {
                return None;
            }
            match digits(object) {
                (n @ 0..=5, false, digits) => slice::from_raw_parts(digits, n),
                _ => return None,
            }
        };
        if digits.get(4).is_some_and(|&digit| digit >= 1 << 8) {
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

/// Returns an `int`, or an instance of a subclass, that fits into `i64` or `u64`.
///
/// # Safety
/// `object` must be alive.
pub(super) unsafe fn int_or_derived(object: *mut ffi::PyObject) -> Option<i128> {
    // SAFETY: alive, as the caller guarantees, and an `int`, by its type.
    unsafe {
        if ffi::PyLong_Check(object) == 0 {
            return None;
        }
        match small_int(object) {
            Some(value) => Some(i128::from(value)),
            None => int(object),
        }
    }
}

/// Returns an `int` that fits into `i64` or `u64`.
///
/// # Safety
/// The object must be an `int`.
#[cold]
pub(super) unsafe fn int(object: *mut ffi::PyObject) -> Option<i128> {
    // SAFETY: an `int`. The code clears the error of an `int` that does not fit.
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

/// Returns the data of a `bytes`. `None` for any other type.
///
/// # Safety
/// `object` must be alive while the data is used.
#[inline(always)]
pub(super) unsafe fn bytes<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    // SAFETY: alive, as the caller guarantees, with this number of bytes.
    unsafe {
        if ffi::Py_TYPE(object) != &raw mut ffi::PyBytes_Type {
            return None;
        }
        Some(bytes_of_derived(object))
    }
}

/// Returns the data of a `bytes` or of a subclass.
///
/// # Safety
/// The object must be a `bytes` or of a subclass, and alive while the data is used.
#[inline(always)]
pub(super) unsafe fn bytes_of_derived<'a>(object: *mut ffi::PyObject) -> &'a [u8] {
    // SAFETY: a `bytes`, as the caller guarantees, with this number of bytes.
    unsafe {
        let n = ffi::Py_SIZE(object).unsigned_abs();
        slice::from_raw_parts(ffi::PyBytes_AsString(object).cast(), n)
    }
}

/// # Safety
/// The object must be a `float`.
#[inline(always)]
pub(super) unsafe fn float(object: *mut ffi::PyObject) -> f64 {
    // SAFETY: a `float`.
    unsafe { ffi::PyFloat_AS_DOUBLE(object) }
}

/// Returns the items of a list or tuple.
///
/// # Safety
/// The object must be a list if `is_list` is `true`, otherwise a tuple. No code may change it
/// during the use of the slice.
#[inline(always)]
pub(super) unsafe fn items<'a>(
    object: *mut ffi::PyObject,
    is_list: bool,
) -> &'a [*mut ffi::PyObject] {
    // SAFETY: the items are contiguous. An empty list may have a null pointer.
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

/// Returns `true` if integers have the layout that [`small_int`] expects.
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
        // SAFETY: attached. We release the `int`, or null.
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
