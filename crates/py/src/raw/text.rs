//! Reads a `str` as [`Units`] (PEP 393), and creates a `str` with a single conversion.
//!
//! This module never creates the UTF-8 cache of `PyUnicode_AsUTF8AndSize`. This cache would
//! increase the memory of a `str` by 48 to 78 %. `clippy.toml` forbids the calls that create it.

use std::mem::MaybeUninit;
use std::slice;

use super::fresh::{Blanks, blank};
use super::fresh_bytes::SmallBytes;
use super::str_header;
use onecopy_text::convert::{
    self, Ascii, CellEncoding, Kernels, Made, NewStr, StrData, VolatileBytes,
};
use onecopy_text::{Encoding, Kind, Malformed, Measured, Policy, Shape, Tally, Units, planted};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

/// The reason why a `str` could not be created.
#[derive(Debug)]
pub(crate) enum MakeError {
    /// The text is malformed, and the policy is [`Policy::Strict`].
    Malformed(Malformed),
    /// The exception of a failed allocation.
    Python(PyErr),
}

/// Creates a `str` from `text`. Copies the text once, or converts it to other code units.
///
/// # Errors
/// [`MakeError`] if the text is malformed, or the `str` cannot be allocated.
#[inline]
pub(crate) fn make<'py>(
    py: Python<'py>,
    text: Units<'_>,
    policy: Policy,
    tally: &mut Tally,
) -> Result<Bound<'py, PyAny>, MakeError> {
    make_as::<false>(py, text, policy, tally)
}

/// Creates a `str` like [`make`], from a buffer to which the driver may write at the same time.
///
/// # Errors
/// [`MakeError`] if the text is malformed, or the `str` cannot be allocated. If the text changed
/// during the read, the kind is [`MalformedKind::Changed`](onecopy_text::MalformedKind::Changed).
#[inline]
pub(crate) fn make_of_cell<'py>(
    py: Python<'py>,
    text: Units<'_>,
    policy: Policy,
    tally: &mut Tally,
) -> Result<Bound<'py, PyAny>, MakeError> {
    make_as::<true>(py, text, policy, tally)
}

#[inline(always)]
fn make_as<'py, const VOLATILE: bool>(
    py: Python<'py>,
    text: Units<'_>,
    policy: Policy,
    tally: &mut Tally,
) -> Result<Bound<'py, PyAny>, MakeError> {
    planted::extra_work_on_text(text);
    let made = match VOLATILE {
        true => convert::make_large_volatile(text, &mut Fresh(py)),
        false => convert::make_large(text, &mut Fresh(py)),
    };
    if let Some(made) = made {
        let made = made.map_err(MakeError::Python)?;
        tally.decoded_large(text.len_bytes(), &made);
        return Ok(made.made.0);
    }
    let measured = onecopy_text::measure(text, policy).map_err(MakeError::Malformed)?;
    tally.decoded(&measured);
    let shape = measured.shape();
    if shape.n_chars <= 1 && shape.kind <= Kind::Latin1 {
        return shared(py, &measured);
    }
    let mut made = blank(py, shape).map_err(MakeError::Python)?;
    // SAFETY: `blank` has just made it, and n_chars is not 0: it is not shared.
    let data = unsafe { data(&mut made, shape) };
    if VOLATILE {
        measured
            .write_volatile(data)
            .map_err(MakeError::Malformed)?;
    } else {
        measured.write(data);
    }
    Ok(made)
}

/// Creates a `str` like [`make`], from a long text that other code may change. Returns `None` if
/// the text is short or malformed, or changed during the conversion.
pub(crate) fn make_volatile<'py>(
    py: Python<'py>,
    text: VolatileBytes<'_>,
    encoding: Encoding,
    tally: &mut Tally,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let made = convert::make_volatile(text, encoding, &mut Fresh(py));
    counted(text.len(), made, tally)
}

/// Creates a `str` from short, well-formed text in the encoding `E`. Returns `None` for other text,
/// and for strings that CPython shares (empty, one Latin-1 character).
#[inline(always)]
pub(crate) fn make_cell<'py, K: Kernels, E: CellEncoding>(
    blanks: Blanks<'py>,
    kernels: K,
    text: &[u8],
    tally: Option<&mut Tally>,
) -> Option<Bound<'py, PyAny>> {
    planted::extra_work_on_text(Units::Latin1(text));
    let made = E::make(kernels, text, &mut Small(blanks))?.ok()?;
    if let Some(tally) = tally {
        tally.decoded_large(text.len(), &made);
    }
    Some(made.made.0)
}

/// Creates a `str` from two or more characters of ASCII, or of Latin-1 if `or_latin1` is `true`.
/// Returns `None` for other text. `onecopy.ledger()` does not count it.
pub(crate) fn make_bytes_uncounted<'py>(
    py: Python<'py>,
    bytes: &[u8],
    or_latin1: bool,
) -> Option<Bound<'py, PyAny>> {
    planted::extra_work_on_text(Units::Latin1(bytes));
    let kind = match Ascii::new(bytes) {
        Some(_) => Kind::Ascii,
        None if or_latin1 => Kind::Latin1,
        None => return None,
    };
    let n_chars = bytes.len();
    if n_chars <= 1 {
        return None;
    }
    let made = blank(py, Shape { kind, n_chars }).ok()?;
    // SAFETY: a fresh `str` of one byte for each character. It has no other reference, and is not
    // shared.
    unsafe {
        let data = ffi::PyUnicode_DATA(made.as_ptr()).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, n_chars);
    }
    Some(made)
}

/// Creates a `str` like [`make`], from UTF-16 at any address. `SWAPPED` reverses the byte order.
/// Returns `None` for malformed text, or at most one character.
pub(crate) fn make_ordered_utf16<'py, const SWAPPED: bool>(
    py: Python<'py>,
    bytes: &[u8],
    tally: &mut Tally,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    planted::extra_work_on_text(Units::Latin1(bytes));
    let made = convert::make_ordered_utf16::<SWAPPED, _>(bytes.as_chunks().0, &mut Fresh(py));
    counted(bytes.len(), made, tally)
}

/// Creates a `str` from UTF-32, as [`make_ordered_utf16`] does from UTF-16.
pub(crate) fn make_ordered_utf32<'py, const SWAPPED: bool>(
    py: Python<'py>,
    bytes: &[u8],
    tally: &mut Tally,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    planted::extra_work_on_text(Units::Latin1(bytes));
    let made = convert::make_ordered_utf32::<SWAPPED, _>(bytes.as_chunks().0, &mut Fresh(py));
    counted(bytes.len(), made, tally)
}

/// Returns the new `str` in `made`, if any. Counts `len_bytes` bytes of text for it in `tally`.
fn counted<'py>(
    len_bytes: usize,
    made: Option<PyResult<Made<Shaped<'py>>>>,
    tally: &mut Tally,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(made) = made.transpose()? else {
        return Ok(None);
    };
    tally.decoded_large(len_bytes, &made);
    Ok(Some(made.made.0))
}

/// A new `str` with the width and number of its characters.
pub(super) type Shaped<'py> = (Bound<'py, PyAny>, Shape);

/// Allocates the `str` objects for long text.
struct Fresh<'py>(Python<'py>);

impl<'py> NewStr for Fresh<'py> {
    type Str = Shaped<'py>;
    type Error = PyErr;

    fn new_str(&mut self, shape: Shape) -> PyResult<Self::Str> {
        Ok((blank(self.0, shape)?, shape))
    }

    fn data<'a>(&self, (made, shape): &'a mut Self::Str) -> StrData<'a> {
        // SAFETY: `blank` has made it of this shape. It has no other reference, and more than one
        // character.
        unsafe { data(made, *shape) }
    }
}

/// Allocates `str` objects for short text. After the error `()`, the caller calls the function for
/// any length, which returns the exception.
pub(super) struct Small<'py>(pub(super) Blanks<'py>);

impl<'py> NewStr for Small<'py> {
    type Str = Shaped<'py>;
    type Error = ();

    #[inline(always)]
    fn new_str(&mut self, shape: Shape) -> Result<Self::Str, ()> {
        Ok((self.0.small(shape).ok_or(())?, shape))
    }

    #[inline(always)]
    fn data<'a>(&self, (made, shape): &'a mut Self::Str) -> StrData<'a> {
        // SAFETY: `small` has made it of this shape, and it has no other reference. It has two
        // characters or one outside of Latin-1, so it is not shared.
        unsafe { data(made, *shape) }
    }
}

/// Returns CPython's shared `str` for an empty text or one Latin-1 character.
fn shared<'py>(py: Python<'py>, measured: &Measured<'_>) -> Result<Bound<'py, PyAny>, MakeError> {
    let n_chars = measured.shape().n_chars;
    let mut character = [MaybeUninit::new(0u8); 1];
    let data = StrData::One(&mut character[..n_chars]);
    measured
        .write_volatile(data)
        .map_err(MakeError::Malformed)?;
    // SAFETY: n_chars (0 or 1) units of one byte, initialised.
    let made = unsafe {
        let made = ffi::PyUnicode_FromKindAndData(
            ffi::PyUnicode_1BYTE_KIND as std::ffi::c_int,
            character.as_ptr().cast(),
            n_chars as ffi::Py_ssize_t,
        );
        Bound::from_owned_ptr_or_err(py, made)
    };
    made.map_err(MakeError::Python)
}

/// Returns the memory for the characters of a new `str`.
///
/// # Safety
/// `made` must come from [`blank`] with this shape, without other references. It must not be a
/// shared `str` of at most one character.
#[inline]
unsafe fn data<'a>(made: &'a mut Bound<'_, PyAny>, shape: Shape) -> StrData<'a> {
    let (at, n) = (made.as_ptr(), shape.n_chars);
    // SAFETY: a compact `str` of this kind and length. Its data follows the header, holds n_chars
    // units, and is terminated. MaybeUninit requires nothing of its contents. It is borrowed as
    // long as `made`.
    unsafe {
        let at = data_of(at, shape.kind);
        match shape.kind {
            Kind::Ascii | Kind::Latin1 => {
                StrData::One(slice::from_raw_parts_mut(at.cast::<MaybeUninit<u8>>(), n))
            }
            Kind::Ucs2 => StrData::Two(slice::from_raw_parts_mut(at.cast::<MaybeUninit<u16>>(), n)),
            Kind::Ucs4 => {
                StrData::Four(slice::from_raw_parts_mut(at.cast::<MaybeUninit<u32>>(), n))
            }
        }
    }
}

/// Returns the address of the characters of a compact `str`. `PyUnicode_DATA` would load the kind
/// again.
///
/// # Safety
/// `at` must be a compact `str` of the kind `kind`.
#[inline(always)]
pub(super) unsafe fn data_of(at: *mut ffi::PyObject, kind: Kind) -> *mut std::ffi::c_void {
    let header_bytes = match kind {
        Kind::Ascii => str_header::ASCII_HEADER_BYTES,
        _ => str_header::COMPACT_HEADER_BYTES,
    };
    // SAFETY: the data of a compact `str` follows its header.
    unsafe { at.byte_add(header_bytes).cast() }
}

/// Returns the text of `string`, borrowed from its UTF-8 cache or its characters.
///
/// Copies: none, and no cache is created. (Up to Python 3.11, CPython first converts a `str` in the
/// legacy representation.)
pub(crate) fn units<'a>(string: Borrowed<'a, '_, PyString>) -> PyResult<Units<'a>> {
    let at = string.as_ptr();
    ready(string)?;
    // SAFETY: `at` is a ready, immutable `str`. Its data exists as long as the object, which 'a
    // borrows. Its kind is the width of the units, and the data is aligned for them.
    unsafe {
        let n = usize::try_from(ffi::PyUnicode_GET_LENGTH(at)).unwrap_or(0);
        let data = ffi::PyUnicode_DATA(at);
        Ok(match ffi::PyUnicode_KIND(at) {
            ffi::PyUnicode_1BYTE_KIND => match standing_utf8(at) {
                Some(utf8) => Units::Utf8(utf8),
                None => Units::Latin1(slice::from_raw_parts(data.cast(), n)),
            },
            ffi::PyUnicode_2BYTE_KIND => match standing_utf8(at) {
                Some(utf8) => Units::Utf8(utf8),
                None => Units::Ucs2(slice::from_raw_parts(data.cast(), n)),
            },
            _ => match standing_utf8(at) {
                Some(utf8) => Units::Utf8(utf8),
                None => Units::Utf32(slice::from_raw_parts(data.cast(), n)),
            },
        })
    }
}

/// Returns the text of `string` in its own code units (PEP 393). Copies: none.
#[inline]
pub(crate) fn own_units<'a>(string: Borrowed<'a, '_, PyString>) -> PyResult<Units<'a>> {
    let at = string.as_ptr();
    ready(string)?;
    // SAFETY: as in `units`.
    unsafe {
        let n = ffi::PyUnicode_GET_LENGTH(at).unsigned_abs();
        let data = ffi::PyUnicode_DATA(at);
        Ok(match ffi::PyUnicode_KIND(at) {
            ffi::PyUnicode_1BYTE_KIND => Units::Latin1(slice::from_raw_parts(data.cast(), n)),
            ffi::PyUnicode_2BYTE_KIND => Units::Ucs2(slice::from_raw_parts(data.cast(), n)),
            _ => Units::Utf32(slice::from_raw_parts(data.cast(), n)),
        })
    }
}

/// Creates a `bytes` from a short `str`, in the encoding `E`. Returns `None` for a long `str`, or
/// one that cannot be encoded.
///
/// The few parameters are all passed in registers.
#[inline(always)]
pub(crate) fn encode_cell<'py, K: Kernels, E: CellEncoding>(
    kernels: K,
    string: Borrowed<'_, 'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let units = own_units(string).ok()?;
    let new = &mut SmallBytes(string.py());
    // SAFETY: a ready `str`: `own_units` has looked.
    let is_ascii = unsafe { str_header::is_compact_ascii(string.as_ptr()) };
    Some(E::encode(kernels, units, is_ascii, new)?.ok()?.0)
}

/// Returns the text of a `str` with the ASCII flag.
#[inline]
pub(crate) fn known_ascii<'a>(string: Borrowed<'a, '_, PyString>) -> PyResult<Option<&'a [u8]>> {
    let units = own_units(string)?;
    // SAFETY: a ready `str`: `own_units` has looked.
    let is_ascii = unsafe { str_header::is_compact_ascii(string.as_ptr()) };
    Ok(match units {
        Units::Latin1(u) if is_ascii => Some(u),
        _ => None,
    })
}

/// Creates a `str` from ASCII; `None` for other bytes. The copy also checks the text.
pub(crate) fn make_ascii<'py>(
    py: Python<'py>,
    bytes: &[u8],
    tally: &mut Tally,
) -> Result<Option<Bound<'py, PyAny>>, MakeError> {
    let made = make(py, Units::Latin1(bytes), Policy::Strict, tally)?;
    // SAFETY: `make` makes a ready `str`.
    let is_ascii = unsafe { str_header::is_compact_ascii(made.as_ptr()) };
    Ok(is_ascii.then_some(made))
}

/// Returns the characters of an ASCII `str`. Returns `None` for any other object.
#[inline]
pub(crate) fn ascii<'a>(object: Borrowed<'a, '_, PyAny>) -> Option<&'a [u8]> {
    match own_units(any_str(object)?) {
        Ok(Units::Latin1(u)) if u.is_ascii() => Some(u),
        _ => None,
    }
}

/// Returns the object as a `str` if its class is `str` or a derived class.
#[inline]
pub(crate) fn any_str<'a, 'py>(
    object: Borrowed<'a, 'py, PyAny>,
) -> Option<Borrowed<'a, 'py, PyString>> {
    // SAFETY: any object has a type, and PyUnicode_Check reads the flag in it.
    let is_str = unsafe { ffi::PyUnicode_Check(object.as_ptr()) } != 0;
    is_str.then(|| as_str_object(object))
}

/// Casts a `str` object to `PyString`.
///
/// # Panics
/// If the object is not a `str` (a bug of the caller).
#[inline]
pub(crate) fn as_str_object<'a, 'py>(
    object: Borrowed<'a, 'py, PyAny>,
) -> Borrowed<'a, 'py, PyString> {
    // SAFETY: any object has a type; the cast is to what has just been checked.
    unsafe {
        assert!(ffi::PyUnicode_Check(object.as_ptr()) != 0);
        object.cast_unchecked()
    }
}

/// Returns a `str` unchanged. Converts an instance of a derived class to a `str`.
pub(crate) fn exact<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: attached; a new reference or null with an error, as of an object that is no `str`.
    unsafe {
        let made = ffi::PyUnicode_FromObject(object.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(object.py(), made)?.cast_into_unchecked())
    }
}

/// Converts a `str` in the legacy representation (up to Python 3.11) to that of PEP 393.
#[inline]
fn ready(string: Borrowed<'_, '_, PyString>) -> PyResult<()> {
    #[cfg(not(Py_3_12))]
    {
        #[allow(deprecated)]
        // SAFETY: a `str`, and we are attached. The call returns -1 with an error set when memory
        // runs out.
        if unsafe { ffi::PyUnicode_READY(string.as_ptr()) } != 0 {
            return Err(PyErr::fetch(string.py()));
        }
    }
    #[cfg(Py_3_12)]
    let _ = string;
    Ok(())
}

/// Returns the UTF-8 of a `str` if it exists: ASCII characters, or the UTF-8 cache.
///
/// # Safety
/// `at` must be a ready `str`, and the GIL must be held while the slice is used.
unsafe fn standing_utf8<'a>(at: *mut ffi::PyObject) -> Option<&'a [u8]> {
    // SAFETY: `at` is a ready `str` (contract of this function). An ASCII `str` has its UTF-8 in
    // its data. Any other has a PyCompactUnicodeObject header: `utf8` is null or points to
    // `utf8_length` bytes, which CPython frees with the object.
    unsafe {
        if str_header::is_compact_ascii(at) {
            let n = usize::try_from(ffi::PyUnicode_GET_LENGTH(at)).unwrap_or(0);
            return Some(slice::from_raw_parts(ffi::PyUnicode_DATA(at).cast(), n));
        }
        str_header::cached_utf8(at)
    }
}

/// Returns the text of `string` as a Rust `String`.
///
/// # Errors
/// [`MakeError::Malformed`] with the position of the first lone surrogate, in characters.
pub(crate) fn to_string(
    string: Borrowed<'_, '_, PyString>,
    tally: &mut Tally,
) -> Result<String, MakeError> {
    let text = units(string).map_err(MakeError::Python)?;
    tally.encoded(text);
    let mut out = Vec::new();
    match convert::to_utf8(text, Policy::Strict, &mut out) {
        // SAFETY: `to_utf8` writes valid UTF-8 and nothing else.
        Ok(_) => Ok(unsafe { String::from_utf8_unchecked(out) }),
        Err(convert::ConvertError::Malformed(e)) => Err(MakeError::Malformed(e)),
        Err(_) => Err(MakeError::Python(PyMemoryError::new_err(()))),
    }
}
