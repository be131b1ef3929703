//! Creates `int` and `float` objects without calling CPython for each of them.
//!
//! A new object is an allocation into which a header is copied. At import, such objects are
//! compared with CPython's. If they differ, CPython creates all numbers.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyType};

use crate::raw::number;

/// The number of bits per internal digit of an `int`.
const DIGIT_BITS: u32 = 30;
/// The maximum number of internal digits of a 64-bit `int`.
const MOST_DIGITS: usize = 3;

/// The memory layout of a `float`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Float {
    head: [usize; 2],
    value: f64,
}

/// The memory layout of an `int`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Int {
    head: [usize; 2],
    /// CPython's `lv_tag`: the number of digits, and the sign.
    tag: usize,
    digits: [u32; MOST_DIGITS],
}

/// The headers (reference count and type) of new objects.
#[derive(Clone, Copy)]
struct Heads {
    float: [usize; 2],
    int: [usize; 2],
}

static HEADS: OnceLock<Heads> = OnceLock::new();

/// Creates `int` and `float` objects from copied headers. It contains the address of the headers.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<'py>(Python<'py>, Option<&'static Heads>);

impl<'py> Numbers<'py> {
    #[inline(always)]
    pub(crate) fn new(py: Python<'py>) -> Numbers<'py> {
        Numbers(py, HEADS.get())
    }

    /// Creates a `float`.
    #[inline(always)]
    pub(crate) fn float(self, value: f64) -> PyResult<Bound<'py, PyAny>> {
        if let Some(heads) = self.1 {
            // SAFETY: attached. Memory of the size of a `float`, with the contents that CPython
            // writes (compared in `take`).
            unsafe {
                let at = ffi::PyObject_Malloc(size_of::<Float>()).cast::<Float>();
                if !at.is_null() {
                    at.write(Float {
                        head: heads.float,
                        value,
                    });
                    return Ok(Bound::from_owned_ptr(self.0, at.cast()));
                }
            }
        }
        number::float(self.0, value)
    }

    /// Creates an `int`.
    #[inline(always)]
    pub(crate) fn int(self, value: i64) -> PyResult<Bound<'py, PyAny>> {
        // CPython shares the small integers. Three internal digits are rare.
        if let Some(heads) = self.1
            && !(-5..=256).contains(&value)
            && value.unsigned_abs() < 1 << (2 * DIGIT_BITS)
        {
            let made = composed(heads.int, value);
            let two = usize::from(made.digits[1] != 0);
            let size = std::mem::offset_of!(Int, digits) + 4 * (1 + two);
            // SAFETY: as for `float`. The memory has the size that CPython requests; the second
            // digit is written only if there is space for it.
            unsafe {
                let at = ffi::PyObject_Malloc(size).cast::<u8>();
                if !at.is_null() {
                    let from = (&raw const made).cast::<u8>();
                    std::ptr::copy_nonoverlapping(from, at, 28);
                    if two != 0 {
                        at.add(28).cast::<u32>().write_unaligned(made.digits[1]);
                    }
                    return Ok(Bound::from_owned_ptr(self.0, at.cast()));
                }
            }
        }
        number::int(self.0, value)
    }
}

/// A class such as `Int64`: derived from `int`, without a constructor.
#[derive(Debug)]
pub(crate) struct Integers {
    class: Py<PyType>,
    /// `true` if instances have the memory layout of `int`.
    is_known: bool,
}

impl Integers {
    pub(crate) fn new(class: Bound<'_, PyType>) -> Integers {
        // SAFETY: two types, which are alive.
        let is_known = unsafe {
            let (own, int) = (class.as_type_ptr(), &raw mut ffi::PyLong_Type);
            ffi::PyType_IsSubtype(own, int) != 0
                && (*own).tp_basicsize == (*int).tp_basicsize
                && (*own).tp_itemsize == (*int).tp_itemsize
                && HEADS.get().is_some()
        };
        Integers {
            class: class.unbind(),
            is_known,
        }
    }

    /// Creates an instance like `int.__new__`, without Python code of the class.
    #[inline]
    pub(crate) fn make<'py>(&self, py: Python<'py>, value: i64) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py);
        if !self.is_known || value.unsigned_abs() >= 1 << (2 * DIGIT_BITS) {
            let value = number::int(py, value)?;
            let new = py
                .get_type::<PyInt>()
                .getattr(pyo3::intern!(py, "__new__"))?;
            return new.call1((class, value));
        }
        let composed = composed([0; 2], value);
        let two = composed.digits[1] != 0;
        // SAFETY: attached; a class with the layout of `int`, as checked in `new`. A new instance
        // with space for all written digits. (A zero has one digit, 0.)
        unsafe {
            let made = ffi::PyType_GenericAlloc(class.as_type_ptr(), 1 + isize::from(two));
            let made = Bound::from_owned_ptr_or_err(py, made)?;
            let at = made.as_ptr().cast::<Int>();
            (&raw mut (*at).tag).write(if value == 0 { ZERO_TAG } else { composed.tag });
            let digits = (&raw mut (*at).digits).cast::<u32>();
            digits.write(composed.digits[0]);
            if two {
                digits.add(1).write(composed.digits[1]);
            }
            Ok(made)
        }
    }
}

/// The field `tag` of the `int` 0. It contains the number of digits (0), and from 3.12 on the sign
/// (1 for zero).
const ZERO_TAG: usize = if cfg!(Py_3_12) { 1 } else { 0 };

/// Returns the bytes of an `int` with the header `head`. From 3.12 on, `tag` contains the number of
/// digits and the sign.
#[inline(always)]
fn composed(head: [usize; 2], value: i64) -> Int {
    let rest = value.unsigned_abs();
    let mask = (1 << DIGIT_BITS) - 1;
    let digits = [
        (rest & mask) as u32,
        (rest >> DIGIT_BITS & mask) as u32,
        (rest >> (2 * DIGIT_BITS)) as u32,
    ];
    let n = 1 + usize::from(rest >> DIGIT_BITS != 0) + usize::from(rest >> (2 * DIGIT_BITS) != 0);
    let tag = if cfg!(Py_3_12) {
        n << 3 | if value < 0 { 2 } else { 0 }
    } else {
        let sign = (value >> 63) as usize;
        (n ^ sign).wrapping_sub(sign)
    };
    Int { head, tag, digits }
}

/// Reads the headers of CPython's numbers, at import. Stores the headers only if numbers made from
/// them equal CPython's.
pub(crate) fn take(py: Python<'_>) -> PyResult<()> {
    if cfg!(any(Py_3_14, Py_GIL_DISABLED)) || cfg!(not(target_pointer_width = "64")) {
        return Ok(());
    }
    // A build with `gettotalrefcount` counts new objects where CPython creates them.
    if py.import("sys")?.hasattr("gettotalrefcount")? {
        return Ok(());
    }
    let is_digit_known = py
        .import("sys")?
        .getattr("int_info")?
        .getattr("bits_per_digit")?
        .extract::<u32>()?
        == DIGIT_BITS;
    if !is_digit_known {
        return Ok(());
    }
    let mut heads = None;
    for value in [1.5, -0.0, 1e300] {
        let made = number::float(py, value)?;
        // SAFETY: a `float` is at least as large.
        let found = unsafe { made.as_ptr().cast::<Float>().read() };
        if found.value.to_bits() != value.to_bits() {
            return Ok(());
        }
        heads = Some(found.head);
    }
    let Some(float) = heads else { return Ok(()) };
    let mut int = None;
    for value in [
        257,
        -6,
        1000,
        1 << 29,
        (1 << 30) - 1,
        1 << 30,
        -(1 << 30),
        1 << 59,
        -(1 << 59),
    ] {
        let made = number::int(py, value)?;
        let n = 1 + usize::from(value.unsigned_abs() >> DIGIT_BITS != 0);
        // SAFETY: an `int` has its head, its tag and as many digits.
        let (head, tag, digits) = unsafe {
            let at = made.as_ptr().cast::<usize>();
            let digits = std::slice::from_raw_parts(at.add(3).cast::<u32>(), n);
            ([at.read(), at.add(1).read()], at.add(2).read(), digits)
        };
        let known = composed(head, value);
        if tag != known.tag || digits != &known.digits[..n] || int.is_some_and(|int| int != head) {
            return Ok(());
        }
        int = Some(head);
    }
    let Some(int) = int else { return Ok(()) };
    // A second import reads the same headers.
    let _ = HEADS.set(Heads { float, int });
    Ok(())
}
