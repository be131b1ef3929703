//! Creates `str` objects and long `int` objects for JSON and BSON.

use std::mem::MaybeUninit;

use onecopy_text::convert::{self, Ascii, CellBytes, CellUtf16, Kernels, Measured, StrData};
use onecopy_text::{Kind, Policy, Shape, Tally, Units, planted};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::raw::fresh::{Blanks, blank};
use crate::raw::text::{MakeError, Small, make, make_cell};

/// Creates an `int` from decimal digits with an optional `-`. CPython limits the digits
/// (`sys.set_int_max_str_digits`), but always accepts 640.
pub(crate) fn big_int<'py>(py: Python<'py>, digits: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // Most of these integers have 20 digits and fit into 64 bits.
    if digits.len() == 20
        && let Some(Ok(value)) = str::from_utf8(digits).ok().map(str::parse::<u64>)
    {
        return Ok(value.into_pyobject(py)?.into_any());
    }
    let digits = std::ffi::CString::new(digits).expect("digits have no zero byte");
    // SAFETY: attached, and a C string.
    unsafe {
        let made = ffi::PyLong_FromString(digits.as_ptr(), std::ptr::null_mut(), 10);
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Creates a `str` from ASCII of any length.
#[inline(always)]
pub(crate) fn ascii<'py, K: Kernels>(
    blanks: Blanks<'py>,
    kernels: K,
    text: Ascii<'_>,
    tally: Option<&mut Tally>,
) -> PyResult<Bound<'py, PyAny>> {
    planted::extra_work_on_text(Units::Latin1(text.bytes()));
    if let Some(tally) = tally {
        tally.copied(text.bytes().len());
    }
    if let Some(Ok(made)) = convert::make_ascii(kernels, text, &mut Small(blanks)) {
        return Ok(made.made.0);
    }
    ascii_of_other_length(blanks.py(), text)
}

/// Implements [`ascii`] for long texts, and for texts of at most one character.
#[inline(never)]
fn ascii_of_other_length<'py>(py: Python<'py>, text: Ascii<'_>) -> PyResult<Bound<'py, PyAny>> {
    let text = text.bytes();
    let n_chars = text.len();
    if n_chars <= 1 {
        return shared(py, text);
    }
    let kind = Kind::Ascii;
    let made = blank(py, Shape { kind, n_chars })?;
    // SAFETY: a new, unshared `str` of one byte for each ASCII character.
    unsafe {
        let data = ffi::PyUnicode_DATA(made.as_ptr()).cast::<u8>();
        std::ptr::copy_nonoverlapping(text.as_ptr(), data, n_chars);
    }
    Ok(made)
}

/// Returns CPython's shared `str` for at most one ASCII character.
#[inline]
fn shared<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let kind = ffi::PyUnicode_1BYTE_KIND as std::ffi::c_int;
    let n = text.len() as ffi::Py_ssize_t;
    // SAFETY: attached, with this number of one-byte units.
    unsafe {
        let made = ffi::PyUnicode_FromKindAndData(kind, text.as_ptr().cast(), n);
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// Creates a `str` from short UTF-8 that is not ASCII. `None` for other text.
#[inline(always)]
pub(crate) fn short_utf8<'py, K: Kernels>(
    blanks: Blanks<'py>,
    kernels: K,
    bytes: &[u8],
) -> Option<Bound<'py, PyAny>> {
    planted::extra_work_on_text(Units::Utf8(bytes));
    let made = convert::make_other_utf8(kernels, bytes, &mut Small(blanks))?.ok()?;
    Some(made.made.0)
}

/// Creates a `str` from text in any encoding.
#[inline(always)]
pub(crate) fn text<'py, K: Kernels>(
    blanks: Blanks<'py>,
    kernels: K,
    text: Units<'_>,
    tally: Option<&mut Tally>,
) -> Result<Bound<'py, PyAny>, MakeError> {
    if tally.is_none() {
        let made = match text {
            Units::Utf8(bytes) => short_utf8(blanks, kernels, bytes),
            Units::Latin1(bytes) => make_cell::<K, CellBytes<false>>(blanks, kernels, bytes, None),
            Units::Ucs2(units) => short_ucs2(blanks, kernels, units),
            _ => None,
        };
        if let Some(made) = made {
            return Ok(made);
        }
    }
    other_text(blanks.py(), text, tally)
}

/// Creates a `str` from short UTF-16 without surrogates. `None` for other text.
#[inline(always)]
fn short_ucs2<'py, K: Kernels>(
    blanks: Blanks<'py>,
    kernels: K,
    units: &[u16],
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the bytes of the units.
    let bytes = unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), size_of_val(units)) };
    let made = make_cell::<K, CellUtf16<false>>(blanks, kernels, bytes, None)?;
    // SAFETY: a new `str`. It has four-byte units only if two surrogates were read as a pair, which
    // is wrong here.
    let is_paired = unsafe { ffi::PyUnicode_KIND(made.as_ptr()) } == ffi::PyUnicode_4BYTE_KIND;
    (!is_paired).then_some(made)
}

/// Creates a `str` from text of any length. The faster functions fall back to this one.
#[inline(never)]
pub(crate) fn other_text<'py>(
    py: Python<'py>,
    text: Units<'_>,
    tally: Option<&mut Tally>,
) -> Result<Bound<'py, PyAny>, MakeError> {
    match tally {
        Some(tally) => make(py, text, Policy::Strict, tally),
        None => make(py, text, Policy::Strict, &mut Tally::default()),
    }
}

/// The error of [`characters`].
pub(crate) enum StrFailure<E> {
    /// The error of the iterator `chars`.
    Chars(E),
    /// CPython could not allocate the `str`.
    Python(PyErr),
}

/// Creates a `str` from code points, which may include lone surrogates. `chars` is called twice and
/// must return the same code points.
///
/// # Errors
/// [`StrFailure`] if `chars` fails, or the allocation fails.
pub(crate) fn characters<'py, E, I: Iterator<Item = Result<u32, E>>>(
    py: Python<'py>,
    chars: impl Fn() -> I,
) -> Result<Bound<'py, PyAny>, StrFailure<E>> {
    let (mut all, mut n_chars) = (0, 0);
    for c in chars() {
        all |= c.map_err(StrFailure::Chars)?;
        n_chars += 1;
    }
    // CPython may share such a short `str`, so it is not written to.
    let mut few = [0; 1];
    if n_chars <= few.len() {
        for (place, c) in few.iter_mut().zip(chars()) {
            *place = c.map_err(StrFailure::Chars)?;
        }
        // SAFETY: attached, with this number of 32-bit units.
        return unsafe {
            let kind = ffi::PyUnicode_4BYTE_KIND as std::ffi::c_int;
            let n = n_chars as ffi::Py_ssize_t;
            let made = ffi::PyUnicode_FromKindAndData(kind, few.as_ptr().cast(), n);
            Bound::from_owned_ptr_or_err(py, made).map_err(StrFailure::Python)
        };
    }
    let kind = Kind::of(all);
    let made = blank(py, Shape { kind, n_chars }).map_err(StrFailure::Python)?;
    // SAFETY: a new, unshared `str` of this kind and length.
    let data = unsafe { ffi::PyUnicode_DATA(made.as_ptr()) };
    macro_rules! write {
        ($unit:ty) => {{
            // SAFETY: the new `str` has this number of units, and no other reference.
            let place = unsafe {
                std::slice::from_raw_parts_mut(data.cast::<MaybeUninit<$unit>>(), n_chars)
            };
            let mut n = 0;
            for (place, c) in place.iter_mut().zip(chars()) {
                place.write(c.map_err(StrFailure::Chars)? as $unit);
                n += 1;
            }
            assert_eq!(n, n_chars, "other characters the second time");
        }};
    }
    match kind {
        Kind::Ascii | Kind::Latin1 => write!(u8),
        Kind::Ucs2 => write!(u16),
        Kind::Ucs4 => write!(u32),
    }
    Ok(made)
}

/// A `str` of known length that is filled in several steps.
pub(crate) struct InParts<'py> {
    made: Bound<'py, PyAny>,
    shape: Shape,
    n_chars: usize,
}

impl<'py> InParts<'py> {
    /// Creates a `str` with the kind and length of `shape`: at least two characters, not yet set.
    pub(crate) fn new(py: Python<'py>, shape: Shape) -> PyResult<InParts<'py>> {
        assert!(shape.n_chars > 1);
        Ok(InParts {
            made: blank(py, shape)?,
            shape,
            n_chars: 0,
        })
    }

    /// Appends the characters of `part`.
    ///
    /// # Panics
    /// If the `str` has too little space, or if its characters are too narrow.
    pub(crate) fn put(&mut self, part: &Measured<'_>) {
        let Shape { kind, n_chars } = part.shape();
        let rest = self.shape.n_chars - self.n_chars;
        assert!(n_chars <= rest && kind <= self.shape.kind);
        // SAFETY: a new, unshared `str` of this kind without another reference. This number of
        // units is left.
        unsafe {
            let data = ffi::PyUnicode_DATA(self.made.as_ptr());
            macro_rules! place {
                ($unit:ty) => {{
                    let at = data.cast::<MaybeUninit<$unit>>().add(self.n_chars);
                    std::slice::from_raw_parts_mut(at, n_chars)
                }};
            }
            part.write(match self.shape.kind {
                Kind::Ascii | Kind::Latin1 => StrData::One(place!(u8)),
                Kind::Ucs2 => StrData::Two(place!(u16)),
                Kind::Ucs4 => StrData::Four(place!(u32)),
            });
        }
        self.n_chars += n_chars;
    }

    /// Appends one code point, which may be a lone surrogate.
    ///
    /// # Panics
    /// As for [`InParts::put`].
    pub(crate) fn put_char(&mut self, c: u32) {
        let unit = [c];
        if let Ok(part) = onecopy_text::measure(Units::Utf32(&unit), Policy::Strict) {
            return self.put(&part);
        }
        // `Measured` does not accept a lone surrogate.
        assert!(self.n_chars < self.shape.n_chars && self.shape.kind >= Kind::Ucs2);
        // SAFETY: a new `str` with units of two or four bytes and no other reference. A unit is
        // left.
        unsafe {
            let data = ffi::PyUnicode_DATA(self.made.as_ptr());
            if self.shape.kind == Kind::Ucs2 {
                data.cast::<u16>().add(self.n_chars).write(c as u16);
            } else {
                data.cast::<u32>().add(self.n_chars).write(c);
            }
        }
        self.n_chars += 1;
    }

    /// Returns the complete `str`.
    ///
    /// # Panics
    /// If not all characters were written.
    pub(crate) fn finish(self) -> Bound<'py, PyAny> {
        assert_eq!(self.n_chars, self.shape.n_chars);
        self.made
    }
}
