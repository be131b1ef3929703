//! Reads decimals of CPython's C implementation from memory. `str()` would take twice as long as
//! all other work.
//!
//! The object contains a struct `mpd_t` of `libmpdec` (see CPython's `libmpdec/mpdecimal.h`). Its
//! layout is the same from CPython 3.3 to 3.14, and [`is_known`] checks it once per process. Other
//! decimals are written with `str()`.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The layout of `mpd_t` in `libmpdec`.
#[repr(C)]
struct Mpd {
    flags: u8,
    exp: isize,
    digits: isize,
    len: isize,
    alloc: isize,
    data: *const u64,
}

#[repr(C)]
struct Object {
    header: ffi::PyObject,
    hash: isize,
    number: Mpd,
    words: [u64; 4],
}

const NEGATIVE: u8 = 1;
/// The flags for infinity, NaN and signaling NaN.
const SPECIAL: u8 = 2 | 4 | 8;

/// A decimal of at most 19 digits without an exponent. Its value is `coefficient` divided by 10 to
/// the power of `scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShortDecimal {
    pub(super) negative: bool,
    pub(super) coefficient: u64,
    pub(super) scale: u32,
}

/// Returns the value of a decimal. `None` if it is not a [`ShortDecimal`].
///
/// # Safety
/// `object` must be alive. [`is_known`] must have returned `true` for its class.
#[inline(always)]
pub(super) unsafe fn read(object: *mut ffi::PyObject) -> Option<ShortDecimal> {
    // SAFETY: `is_known` has checked the layout. A number of one word has that word.
    unsafe {
        let number = &(*object.cast::<Object>()).number;
        if number.flags & SPECIAL != 0 || number.len != 1 {
            return None;
        }
        let scale = u32::try_from(-number.exp).ok()?;
        // For such numbers `str()` writes an exponent (General Decimal Arithmetic,
        // to-scientific-string).
        if scale > 19 || number.digits + number.exp < -5 {
            return None;
        }
        Some(ShortDecimal {
            negative: number.flags & NEGATIVE != 0,
            coefficient: *number.data,
            scale,
        })
    }
}

/// Returns `true` if instances have the layout that [`read`] expects.
pub(super) fn is_known(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let py = class.py();
    if cfg!(Py_GIL_DISABLED) || !class.module()?.eq("decimal") {
        return Ok(false);
    }
    // Decimals of the Python implementation have slots too, but no methods in C.
    let method = super::attributes::of_class(class, pyo3::intern!(py, "as_tuple"))?;
    let is_of_c = match method {
        Some(method) => method.get_type().name()?.eq("method_descriptor"),
        None => false,
    };
    let n_bytes = class.getattr(pyo3::intern!(py, "__basicsize__"))?;
    if !is_of_c || n_bytes.extract::<usize>()? != size_of::<Object>() {
        return Ok(false);
    }
    let samples = [
        ("0", Some((false, 0, 0))),
        ("-0.00", Some((true, 0, 2))),
        ("12.50", Some((false, 1250, 2))),
        (
            "-9999999999999999999",
            Some((true, 9_999_999_999_999_999_999, 0)),
        ),
        ("0.000001", Some((false, 1, 6))),
        ("0.0000001", None),
        ("1E+3", None),
        ("99999999999999999999", None),
        ("NaN", None),
        ("-Infinity", None),
        ("sNaN123", None),
    ];
    for (text, expected) in samples {
        let sample = class.call1((text,))?;
        // SAFETY: an instance that we hold, with the size of these fields. In another layout,
        // `read` reads other words of it, and a pointer only if there is one word of digits.
        let found = unsafe { read(sample.as_ptr()) };
        let expected = expected.map(|(negative, coefficient, scale)| ShortDecimal {
            negative,
            coefficient,
            scale,
        });
        if found != expected {
            return Ok(false);
        }
    }
    Ok(true)
}
