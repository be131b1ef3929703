//! The fast path of the JSON encoder: short values, without Python code.

use onecopy_text::convert::{JSON_PLAIN_BYTES, Kernels, json_capacity};
use onecopy_text::{Pen, Put, Units};
use onecopy_wire::{NonFinite, json};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::numpy_scalar;
use super::put_standard;
use super::texts::BLOCK_UNITS;
use super::{JsonEncoder, ROOM, SHORT_UNITS, Style};
use crate::json::Fragment;
use crate::raw::encode::builtin_types::{self, ObjectKind};
use crate::raw::encode::format::Step;
use crate::raw::encode::standard_types::{self, Native};
use crate::raw::ndarray::Scalar;

/// Writes a short value and a comma, without Python code.
///
/// # Safety
/// `value` must be alive, and the pen must have `ROOM / 2` bytes of space.
#[inline(always)]
pub(super) unsafe fn step<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> Step {
    // SAFETY: guaranteed by the caller. The written bytes end at the returned address.
    unsafe {
        let kind = builtin_types::kind(value);
        if kind != ObjectKind::Other {
            return scalar::<K, STYLED>(kernels, encoder, kind, value, pen);
        }
        let end = other::<K, STYLED>(kernels, encoder, value, pen.at());
        if end.is_null() {
            return encoder.unwritten;
        }
        pen.set_at(end);
    }
    Step::Done
}

/// Implements [`step`] for an object of a built-in type, or of a subclass.
///
/// # Safety
/// Same as [`step`].
#[inline(always)]
pub(super) unsafe fn scalar<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    kind: ObjectKind,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> Step {
    match kind {
        ObjectKind::Str => {
            // SAFETY: as the caller guarantees. A `str`, by its kind.
            let is_put = unsafe { short_text::<K, STYLED>(kernels, encoder, value, pen, *b"\",") };
            return if is_put { Step::Done } else { Step::Slow(kind) };
        }
        // SAFETY: an `int`, alive as the caller guarantees.
        ObjectKind::Int => match unsafe { builtin_types::small_int(value) } {
            Some(value) if !STYLED || is_number(value, encoder.style) => {
                json::put_i64(value, pen);
            }
            _ => return Step::Slow(kind),
        },
        ObjectKind::None => {
            pen.put_short(b"null,", 5);
            return Step::Constant;
        }
        ObjectKind::Bool => {
            put_bool(value, pen);
            return Step::Constant;
        }
        ObjectKind::Float => {
            // SAFETY: a `float`. The pen has space, and the written bytes end at that address.
            unsafe {
                let end = float(kernels, builtin_types::float(value), pen.at());
                if end.is_null() {
                    return Step::Slow(kind);
                }
                pen.set_at(end);
            }
            return Step::Done;
        }
        _ => return Step::Large(kind),
    }
    pen.put_byte(b',');
    Step::Done
}

/// Returns `true` if `style` permits `value` as a JSON number.
fn is_number(value: i64, style: &Style) -> bool {
    style.exact_ints || value.unsigned_abs() < 1 << 53
}

/// Writes a `bool` and a comma with one store and no branch on the value.
#[inline(always)]
fn put_bool(value: *mut ffi::PyObject, pen: &mut Pen<'_>) {
    const TRUE: u64 = u64::from_le_bytes(*b"true,\0\0\0");
    const FALSE: u64 = u64::from_le_bytes(*b"false,\0\0");
    // SAFETY: only compares addresses.
    let is_true = u64::from(value == unsafe { ffi::Py_True() });
    let text = FALSE ^ ((FALSE ^ TRUE) & is_true.wrapping_neg());
    pen.put_short(&text.to_le_bytes(), 6 - is_true as usize);
}

/// Writes the leading `None`, `True` and `False` of `items`, and returns their number.
///
/// # Safety
/// The items must be alive.
#[inline(always)]
pub(super) unsafe fn constants(items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> usize {
    // SAFETY: only compares addresses.
    let none = unsafe { ffi::Py_None() };
    let mut n = 0;
    while let Some(&item) = items.get(n)
        && pen.remaining() >= ROOM
    {
        if item == none {
            pen.put_short(b"null,", 5);
        // A branch on the type is predictable; a branch on the value is not. SAFETY: an item is
        // alive.
        } else if unsafe { ffi::Py_TYPE(item) == &raw mut ffi::PyBool_Type } {
            put_bool(item, pen);
        } else {
            break;
        }
        n += 1;
    }
    n
}

/// Implements [`step`] for other types, and returns the end of the output. If it is null, the field
/// `unwritten` contains the reason.
///
/// Addresses remain in registers; a `Pen` would not.
///
/// # Safety
/// `value` must be alive, and `ROOM / 2` bytes must be writable at `at`.
#[inline(never)]
unsafe fn other<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    at: *mut u8,
) -> *mut u8 {
    // SAFETY: writable, as the caller guarantees. MaybeUninit needs no initialisation.
    let mut pen = Pen::new(unsafe { std::slice::from_raw_parts_mut(at.cast(), ROOM / 2) });
    let natives = &encoder.style.natives;
    let recent = &mut encoder.shared.recent;
    // SAFETY: alive, as the caller guarantees. No code has run since `recent` was none.
    let native = unsafe {
        if put_standard::put_temporal(value, natives, recent, &mut pen) {
            pen.put_byte(b',');
            return pen.at();
        }
        standard_types::read(value, natives, recent)
    };
    let step = match native {
        // SAFETY: of a subclass of this kind's type.
        Native::Contents(kind) => unsafe {
            if kind == ObjectKind::Str
                && derived_text::<K, STYLED>(kernels, encoder, value, &mut pen)
            {
                Step::Done
            } else {
                scalar::<K, STYLED>(kernels, encoder, kind, value, &mut pen)
            }
        },
        Native::Array => Step::Large(ObjectKind::Array),
        // SAFETY: the pen has half of ROOM.
        Native::Scalar(found) => unsafe { number(kernels, found, encoder.style, &mut pen) },
        Native::Instead(instead) => {
            // SAFETY: alive while its enumeration member is alive.
            let step = unsafe {
                scalar::<K, STYLED>(
                    kernels,
                    encoder,
                    builtin_types::kind(instead),
                    instead,
                    &mut pen,
                )
            };
            match step {
                Step::Done | Step::Constant => Step::Done,
                _ => Step::Large(ObjectKind::Other),
            }
        }
        Native::Fields(class) => {
            encoder.found = class;
            Step::Large(ObjectKind::Fields)
        }
        native if put_standard::put_scalar(&native, encoder.style, &mut pen) => {
            pen.put_byte(b',');
            Step::Done
        }
        // SAFETY: alive, as the caller guarantees.
        _ => match unsafe { short_fragment(encoder, value, &mut pen) } {
            true => Step::Done,
            false => Step::Large(ObjectKind::Other),
        },
    };
    if matches!(step, Step::Done) {
        return pen.at();
    }
    encoder.unwritten = step;
    std::ptr::null_mut()
}

/// Writes a short `Fragment` and a comma. Returns `false` for other objects, and for another
/// encoding.
///
/// # Safety
/// `value` must be alive.
#[inline(always)]
unsafe fn short_fragment(
    encoder: &JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // SAFETY: alive, as the caller guarantees, and attached.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(encoder.py(), value) };
    let Ok(fragment) = object.cast_exact::<Fragment>() else {
        return false;
    };
    let text = fragment.get().bytes();
    if text.len() >= pen.remaining() || (encoder.is_latin1 && !text.is_ascii()) {
        return false;
    }
    pen.put(text);
    pen.put_byte(b',');
    true
}

/// Writes a short ASCII string of a subclass of `str`. Returns `false` if it is long, not ASCII, or
/// needs escapes.
///
/// # Safety
/// `value` must be a live `str`, and the pen must have `ROOM / 2` bytes of space.
#[inline(always)]
unsafe fn derived_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // SAFETY: a live `str`. Half of ROOM is more than the text, two quotes and a comma.
    unsafe {
        let Some(u) = builtin_types::ascii_apart(value).filter(|u| u.len() <= JSON_PLAIN_BYTES)
        else {
            return false;
        };
        let at = pen.at();
        let Some(end) = kernels.json_plain(u, at.add(1)) else {
            return false;
        };
        at.write(b'"');
        end.cast::<[u8; 2]>().write_unaligned(*b"\",");
        pen.set_at(end.add(2));
        encoder.count(Units::Latin1(u));
    }
    true
}

/// Writes a NumPy scalar and a comma.
///
/// # Safety
/// The pen must have `ROOM / 2` bytes of space.
#[inline(always)]
unsafe fn number<K: Kernels>(kernels: K, value: Scalar, style: &Style, pen: &mut Pen<'_>) -> Step {
    if let Scalar::Double(value) = value {
        // SAFETY: guaranteed by the caller. The written bytes end at the returned address.
        unsafe {
            let end = float(kernels, value, pen.at());
            if !end.is_null() {
                pen.set_at(end);
                return Step::Done;
            }
        }
    }
    if numpy_scalar::put(value, style, pen).is_err() {
        return Step::Large(ObjectKind::Other);
    }
    pen.put_byte(b',');
    Step::Done
}

/// Writes a short string, then `suffix`. Returns `false` if the string needs the slow path.
///
/// # Safety
/// `value` must be a live `str`, and the pen must have `ROOM / 2` bytes of space.
#[inline(always)]
pub(super) unsafe fn short_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
    suffix: [u8; 2],
) -> bool {
    let at = pen.at();
    debug_assert!(pen.remaining() >= JSON_PLAIN_BYTES + 3);
    // SAFETY: half of ROOM, as the caller guarantees. This is more than the longest text, a quote
    // and the suffix.
    let out = unsafe {
        at.write(b'"');
        at.add(1)
    };
    // SAFETY: a live `str`, as above.
    let (end, units) = if let Some(u) = unsafe { builtin_types::ascii(value) } {
        if u.len() > JSON_PLAIN_BYTES {
            // SAFETY: as the caller guarantees.
            return unsafe { any_short_text::<K, STYLED>(kernels, encoder, value, pen, suffix) };
        }
        // SAFETY: the space exists, as above.
        (unsafe { kernels.json_plain(u, out) }, Units::Latin1(u))
    } else {
        // SAFETY: a live `str`.
        let Some((units, is_ascii)) = (unsafe { builtin_types::text(value) }) else {
            return false;
        };
        if STYLED && encoder.style.ensure_ascii && !is_ascii {
            return false;
        }
        if encoder.is_latin1 {
            // SAFETY: as the caller guarantees. The quote is written.
            return unsafe { latin1_text::<K, STYLED>(kernels, encoder, units, pen, suffix) };
        }
        // SAFETY: the space exists, as above.
        let end = unsafe {
            match units {
                Units::Latin1(u) if is_ascii && u.len() <= JSON_PLAIN_BYTES => {
                    kernels.json_plain(u, out)
                }
                Units::Latin1(u) => kernels.json_short_latin1(u, out),
                Units::Ucs2(u) => kernels.json_short_ucs2(u, out),
                Units::Utf8(u) if u.len() <= JSON_PLAIN_BYTES => kernels.json_plain(u, out),
                _ => None,
            }
        };
        (end, units)
    };
    // SAFETY: the output ends at `end`. The rest has space.
    unsafe {
        let Some(end) = end else {
            return any_short_text::<K, STYLED>(kernels, encoder, value, pen, suffix);
        };
        end.cast::<[u8; 2]>().write_unaligned(suffix);
        pen.set_at(end.add(2));
    }
    encoder.count(units);
    true
}

/// Implements [`short_text`] for text that is not ASCII, while the output is Latin-1.
///
/// # Safety
/// Same as [`short_text`]. The opening quote must be written already.
#[inline(always)]
unsafe fn latin1_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    units: Units<'_>,
    pen: &mut Pen<'_>,
    suffix: [u8; 2],
) -> bool {
    let u = match (units, encoder.target.ucs2) {
        (Units::Latin1(u), _) => u,
        (Units::Ucs2(u), Some(ucs2)) => {
            // SAFETY: the quote after the pen is written.
            let is_put = unsafe { ucs2.put_short(kernels, u, pen) };
            if is_put {
                // SAFETY: space for the quote and the suffix, as for any short text.
                unsafe {
                    let after_quote = pen.at().add(1);
                    after_quote.cast::<[u8; 2]>().write_unaligned(suffix);
                    pen.set_at(after_quote.add(2));
                }
                encoder.count(units);
            }
            return is_put;
        }
        _ => return false, // wider, or its UTF-8 is cached
    };
    // SAFETY: as for ASCII. The function accepts any bytes.
    unsafe {
        if u.len() <= JSON_PLAIN_BYTES
            && let Some(end) = kernels.json_plain(u, pen.at().add(1))
        {
            end.cast::<[u8; 2]>().write_unaligned(suffix);
            pen.set_at(end.add(2));
            encoder.count(units);
            return true;
        }
    }
    if u.len() > BLOCK_UNITS || pen.remaining() < json_capacity(u.len()) + ROOM {
        return false;
    }
    pen.put_byte(b'"');
    kernels.put_json_latin1(u, true, pen);
    encoder.count(units);
    pen.put_short(&suffix, 2);
    true
}

/// Implements [`short_text`] for longer strings, and for strings with escapes.
///
/// # Safety
/// Same as [`short_text`].
#[inline(always)]
unsafe fn any_short_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
    suffix: [u8; 2],
) -> bool {
    // SAFETY: a live `str`.
    let Some((units, is_ascii)) = (unsafe { builtin_types::text(value) }) else {
        return false;
    };
    let n = units.len_units();
    // A text of up to one block is also written here if it has space, because the general path is
    // slower.
    if n > SHORT_UNITS && (n > BLOCK_UNITS || pen.remaining() < json_capacity(n) + ROOM) {
        return false;
    }
    let start = pen.at();
    pen.put_byte(b'"');
    let done = match units {
        Units::Latin1(u) => {
            kernels.put_json_latin1(u, is_ascii, pen);
            true
        }
        Units::Utf8(u) => {
            kernels.put_json_utf8(u, pen);
            true
        }
        Units::Utf16(u) | Units::Ucs2(u) => kernels.put_json_ucs2(u, pen),
        Units::Utf32(u) => kernels.put_json_ucs4(u, pen),
    };
    if !done {
        // SAFETY: an earlier position of the pen.
        unsafe { pen.set_at(start) };
        return false;
    }
    encoder.count(units);
    pen.put_short(&suffix, 2);
    true
}

/// Writes a float and a comma, and returns the end of the output. Null for NaN and the infinities.
///
/// Addresses remain in registers; a `Pen` would not.
///
/// # Safety
/// `ROOM / 2` bytes must be writable at `at`.
#[inline(always)]
unsafe fn float<K: Kernels>(kernels: K, value: f64, at: *mut u8) -> *mut u8 {
    // SAFETY: writable, as the caller guarantees.
    unsafe {
        if let Some(end) = kernels.json_float(value, at) {
            end.write(b',');
            return end.add(1);
        }
        other_float(value, at)
    }
}

/// Implements [`float`] for values that the kernel does not support.
///
/// # Safety
/// Same as [`float`].
#[inline(never)]
unsafe fn other_float(value: f64, at: *mut u8) -> *mut u8 {
    const HALF: usize = ROOM / 2;
    // SAFETY: writable, as the caller guarantees. MaybeUninit needs no initialisation.
    let place = unsafe { std::slice::from_raw_parts_mut(at.cast(), HALF) };
    let mut pen = Pen::new(place);
    if json::put_f64(value, NonFinite::Error, &mut pen).is_err() {
        return std::ptr::null_mut();
    }
    pen.put_byte(b',');
    pen.at()
}
