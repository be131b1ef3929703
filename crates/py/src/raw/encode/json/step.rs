//! The fast path of the JSON encoder. It writes short values without running Python code.

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

/// Writes a value and a comma if this needs little space and no Python code; see [`Step`].
///
/// # Safety
/// `value` must be alive, and the pen must have space for `ROOM / 2` bytes.
#[inline(always)]
pub(super) unsafe fn step<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> Step {
    // SAFETY: guaranteed by the caller; the written bytes end at the returned address.
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

/// Implements [`step`] for an object of the given built-in type, or of a class derived from it.
///
/// # Safety
/// The same requirements as for [`step`].
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
            // SAFETY: the caller guarantees the requirements; a `str`, by its kind.
            let is_put = unsafe { short_text::<K, STYLED>(kernels, encoder, value, pen, *b"\",") };
            return if is_put { Step::Done } else { Step::Slow(kind) };
        }
        // SAFETY: alive, as the caller guarantees, an `int`.
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
            // SAFETY: a `float`; the pen has space, and what was put ends at that address.
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

/// Returns `true` if `style` permits that `value` is written as a JSON number.
fn is_number(value: i64, style: &Style) -> bool {
    style.exact_ints || value.unsigned_abs() < 1 << 53
}

/// Writes a `bool` and a comma with a single store, and without a branch on the value.
#[inline(always)]
fn put_bool(value: *mut ffi::PyObject, pen: &mut Pen<'_>) {
    const TRUE: u64 = u64::from_le_bytes(*b"true,\0\0\0");
    const FALSE: u64 = u64::from_le_bytes(*b"false,\0\0");
    // SAFETY: an address is compared.
    let is_true = u64::from(value == unsafe { ffi::Py_True() });
    let text = FALSE ^ ((FALSE ^ TRUE) & is_true.wrapping_neg());
    pen.put_short(&text.to_le_bytes(), 6 - is_true as usize);
}

/// Writes the leading items of `items` that are `None`, `True` or `False`, each followed by a
/// comma, and returns their number. Columns often have many such values one after the other.
///
/// # Safety
/// The items must be alive.
#[inline(always)]
pub(super) unsafe fn constants(items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> usize {
    // SAFETY: addresses are compared.
    let none = unsafe { ffi::Py_None() };
    let mut n = 0;
    while let Some(&item) = items.get(n)
        && pen.remaining() >= ROOM
    {
        if item == none {
            pen.put_short(b"null,", 5);
        // The type decides the branch, because a branch on the value could not be predicted.
        // SAFETY: an item is alive.
        } else if unsafe { ffi::Py_TYPE(item) == &raw mut ffi::PyBool_Type } {
            put_bool(item, pen);
        } else {
            break;
        }
        n += 1;
    }
    n
}

/// Implements [`step`] for an object that is not of a built-in type. Returns the end of the written
/// bytes. If nothing was written, returns null and stores the reason in the encoder's field
/// `unwritten`.
///
/// The parameters are addresses because a `Pen` passed by reference cannot remain in registers.
///
/// # Safety
/// `value` must be alive, and at least `ROOM / 2` bytes must be writable from `at` on.
#[inline(never)]
unsafe fn other<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    at: *mut u8,
) -> *mut u8 {
    // SAFETY: writable, as the caller guarantees; MaybeUninit needs no initialisation.
    let mut pen = Pen::new(unsafe { std::slice::from_raw_parts_mut(at.cast(), ROOM / 2) });
    let natives = &encoder.style.natives;
    let recent = &mut encoder.shared.recent;
    // SAFETY: alive, as the caller guarantees; no code has run since `recent` was none.
    let native = unsafe {
        if put_standard::put_temporal(value, natives, recent, &mut pen) {
            pen.put_byte(b',');
            return pen.at();
        }
        standard_types::read(value, natives, recent)
    };
    let step = match native {
        // SAFETY: of a class derived from the type of this kind.
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
            // SAFETY: alive as long as the member of the enumeration that has it.
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

/// Writes a `Fragment` and a comma. Returns `false` if the object is not a `Fragment`, or if it is
/// too long or not in the encoding of the output so far.
///
/// # Safety
/// `value` must be alive.
#[inline(always)]
unsafe fn short_fragment(
    encoder: &JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // SAFETY: alive, as the caller guarantees; attached.
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

/// Writes a short ASCII string whose class derives from `str`, and a comma. Returns `false` if the
/// string is long or not ASCII, or if it needs escapes.
///
/// # Safety
/// `value` must be a live `str`, and the destination of `pen` must have space for `ROOM / 2` bytes.
#[inline(always)]
unsafe fn derived_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // SAFETY: a `str` that is alive; the pen has half of ROOM, which is more than the text, two
    // quotes and a comma.
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

/// Writes the value of a NumPy scalar, and a comma.
///
/// # Safety
/// The pen must have space for `ROOM / 2` bytes.
#[inline(always)]
unsafe fn number<K: Kernels>(kernels: K, value: Scalar, style: &Style, pen: &mut Pen<'_>) -> Step {
    if let Scalar::Double(value) = value {
        // SAFETY: guaranteed by the caller; the written bytes end at the returned address.
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

/// Writes a short string and then the bytes `suffix`. Returns `false` if the string is long or
/// requires the slow path, for example because it contains surrogates.
///
/// # Safety
/// `value` must be a live `str`, and the destination of `pen` must have space for `ROOM / 2` bytes.
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
    // SAFETY: the pen has half of ROOM, as the caller guarantees, which is more than the longest
    // text that is written here, a quote, and what follows.
    let out = unsafe {
        at.write(b'"');
        at.add(1)
    };
    // SAFETY: a `str` that is alive; as above.
    let (end, units) = if let Some(u) = unsafe { builtin_types::ascii(value) } {
        if u.len() > JSON_PLAIN_BYTES {
            // SAFETY: the caller guarantees the requirements.
            return unsafe { any_short_text::<K, STYLED>(kernels, encoder, value, pen, suffix) };
        }
        // SAFETY: the space is there, as above.
        (unsafe { kernels.json_plain(u, out) }, Units::Latin1(u))
    } else {
        // SAFETY: a `str` that is alive.
        let Some((units, is_ascii)) = (unsafe { builtin_types::text(value) }) else {
            return false;
        };
        if STYLED && encoder.style.ensure_ascii && !is_ascii {
            return false;
        }
        if encoder.is_latin1 {
            // SAFETY: the caller guarantees the requirements; the quote is written.
            return unsafe { latin1_text::<K, STYLED>(kernels, encoder, units, pen, suffix) };
        }
        // SAFETY: the space is there, as above.
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
    // SAFETY: what was put ends at `end`; there is space for what follows.
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

/// Implements [`short_text`] for a string that is not ASCII, if the output so far is Latin-1.
///
/// # Safety
/// The same requirements as for [`short_text`]; a quote must be written already.
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
                // SAFETY: space for the quote and the bytes after it, as for any short text.
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
    // SAFETY: as for ASCII; these bytes are as good as others.
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

/// Implements [`short_text`] for a string that has more than [`SHORT_UNITS`] code units or needs
/// escapes.
///
/// # Safety
/// The same requirements as for [`short_text`].
#[inline(always)]
unsafe fn any_short_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
    suffix: [u8; 2],
) -> bool {
    // SAFETY: a `str` that is alive.
    let Some((units, is_ascii)) = (unsafe { builtin_types::text(value) }) else {
        return false;
    };
    let n = units.len_units();
    // A text of up to one block is also written here if there is space for the text and the bytes
    // after it, because the general path takes 15 ns longer.
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
        // SAFETY: where the pen was a moment ago.
        unsafe { pen.set_at(start) };
        return false;
    }
    encoder.count(units);
    pen.put_short(&suffix, 2);
    true
}

/// Writes a float and a comma, and returns the end of the output; null for NaN and the infinities.
///
/// The parameters are addresses because a `Pen` passed by reference cannot remain in registers.
///
/// # Safety
/// At least `ROOM / 2` bytes must be writable from `at` on.
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

/// Implements [`float`] for a value that the kernel does not support.
///
/// # Safety
/// The same requirements as for [`float`].
#[inline(never)]
unsafe fn other_float(value: f64, at: *mut u8) -> *mut u8 {
    const HALF: usize = ROOM / 2;
    // SAFETY: writable, as the caller guarantees; MaybeUninit requires no initialisation.
    let place = unsafe { std::slice::from_raw_parts_mut(at.cast(), HALF) };
    let mut pen = Pen::new(place);
    if json::put_f64(value, NonFinite::Error, &mut pen).is_err() {
        return std::ptr::null_mut();
    }
    pen.put_byte(b',');
    pen.at()
}
