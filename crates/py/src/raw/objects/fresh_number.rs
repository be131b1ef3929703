//! Creates `int` and `float` objects without calling CPython for each of them.
//!
//! A new object is an allocation into which a header is copied, like the `str` objects of
//! `raw/fresh.rs`. At import, objects with copied headers are compared with objects that CPython
//! has created. If they differ, CPython creates all numbers.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyType};

use crate::raw::number;

/// The number of bits in one internal digit of an `int`.
const DIGIT_BITS: u32 = 30;
/// The maximum number of internal digits (of 30 bits) of an `int` that fits into 64 bits.
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
    /// CPython's `lv_tag`: the number of digits in `digits`, and the sign of the `int`.
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

/// Creates `int` and `float` objects by copying prebuilt object headers. The struct contains the
/// address of the headers, which is thus loaded only once for many objects.
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
            // writes, by the comparison in `take`.
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
        // CPython shares the small integers. Integers of three internal digits are rare.
        if let Some(heads) = self.1
            && !(-5..=256).contains(&value)
            && value.unsigned_abs() < 1 << (2 * DIGIT_BITS)
        {
            let made = composed(heads.int, value);
            let two = usize::from(made.digits[1] != 0);
            let size = std::mem::offset_of!(Int, digits) + 4 * (1 + two);
            // SAFETY: as for `float`. Memory comes in blocks of at least 16 bytes, but the
            // requested size is CPython's: the second digit is written only if there is space for
            // it.
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

/// A class that derives from `int` and does not define a constructor, such as `Int64`.
#[derive(Debug)]
pub(crate) struct Integers {
    class: Py<PyType>,
    /// `true` if the instances of the class have the memory layout of `int`.
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

    /// Creates an instance with the value `value`, like `int.__new__`. No Python code of the class
    /// runs.
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
        // SAFETY: attached; a class with the layout of `int`, as checked in `new`: a new instance
        // with space for as many digits as are written. (A zero has one digit, all zeros.)
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

/// The value of the field `tag` in the `int` 0. The field contains the number of digits, which is 0
/// here. From 3.12 on, it also contains the sign, which is encoded as 1 for the number zero.
const ZERO_TAG: usize = if cfg!(Py_3_12) { 1 } else { 0 };

/// Returns the bytes of an `int` object with the header `head`, in CPython's memory layout. From
/// 3.12 on, the field `tag` has separate bits for the number of digits and the sign.
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

/// Reads the headers of numbers that CPython has created. Creates numbers with copies of these
/// headers, and stores the headers only if these numbers are equal to CPython's. The function is
/// called when the module is imported.
pub(crate) fn take(py: Python<'_>) -> PyResult<()> {
    if cfg!(any(Py_3_14, Py_GIL_DISABLED)) || cfg!(not(target_pointer_width = "64")) {
        return Ok(());
    }
    // A build that counts all references counts new objects where it creates them.
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
    // A second import in the same process reads the same headers.
    let _ = HEADS.set(Heads { float, int });
    Ok(())
}
