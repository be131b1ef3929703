//! Values that take a few instructions, and what is done with the others.

use onecopy_text::convert::{JSON_PLAIN_BYTES, Kernels, json_room};
use onecopy_text::{Pen, Put, Units};
use onecopy_wire::{NonFinite, json};
use pyo3::ffi;

use super::native::{self, Native};
use super::object::{self, Kind};
use super::scalar as value_of_numpy;
use super::texts::BLOCK_UNITS;
use super::{ROOM, SHORT_UNITS, Style, Walk};
use crate::raw::ndarray::Scalar;

/// What became of a value.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// It is written.
    Done,
    /// It is written, and is `None` or a `bool`.
    Constant,
    /// It is a long text, an `int` past two digits, or NaN.
    Slow(Kind),
    /// It is a container, or none of CPython's own types.
    Large(Kind),
}

/// Writes a value, if it is one that takes a few instructions.
///
/// # Safety
/// `value` is alive, and the pen has half of [`ROOM`].
#[inline(always)]
pub(super) unsafe fn step<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> Step {
    // SAFETY: the duties are the caller's; what was put ends at the address that comes back.
    unsafe {
        let kind = object::kind(value);
        if kind != Kind::Other {
            return scalar::<K, STYLED>(kernels, walk, kind, value, pen);
        }
        let end = other::<K, STYLED>(kernels, walk, value, pen.at());
        if end.is_null() {
            return walk.unwritten;
        }
        pen.set_at(end);
    }
    Step::Done
}

/// As [`step`], of a value of this kind, or of a class derived from one.
///
/// # Safety
/// As [`step`].
#[inline(always)]
pub(super) unsafe fn scalar<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    kind: Kind,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> Step {
    // SAFETY: alive, by the caller's word, and of the kind that was looked at.
    unsafe {
        match kind {
            Kind::Str => {
                if short_text::<K, STYLED>(kernels, walk, value, pen, *b"\",") {
                    return Step::Done;
                }
                return Step::Slow(kind);
            }
            Kind::Int => match object::small_int(value) {
                Some(value) if !STYLED || is_number(value, walk.style) => {
                    json::put_i64(value, pen);
                }
                _ => return Step::Slow(kind),
            },
            Kind::None => {
                pen.put_short(b"null,", 5);
                return Step::Constant;
            }
            Kind::Bool => {
                put_bool(value, pen);
                return Step::Constant;
            }
            Kind::Float => {
                let end = float(kernels, object::float(value), pen.at());
                if end.is_null() {
                    return Step::Slow(kind);
                }
                pen.set_at(end);
                return Step::Done;
            }
            _ => return Step::Large(kind),
        }
        pen.put_byte(b',');
    }
    Step::Done
}

/// Returns whether the style has an integer as a number.
fn is_number(value: i64, style: &Style) -> bool {
    style.exact_ints || value.unsigned_abs() < 1 << 53
}

/// Puts a `bool` and a comma, both in one word: which one it is decides no branch.
#[inline(always)]
fn put_bool(value: *mut ffi::PyObject, pen: &mut Pen<'_>) {
    const TRUE: u64 = u64::from_le_bytes(*b"true,\0\0\0");
    const FALSE: u64 = u64::from_le_bytes(*b"false,\0\0");
    // SAFETY: an address is compared.
    let is_true = u64::from(value == unsafe { ffi::Py_True() });
    let text = FALSE ^ ((FALSE ^ TRUE) & is_true.wrapping_neg());
    pen.put_short(&text.to_le_bytes(), 6 - is_true as usize);
}

/// Writes the items from `at` on that are `None`, `True` or `False`, and a comma after each; returns how many. Columns have many of
/// them in a row.
///
/// # Safety
/// The items are alive.
#[inline(always)]
pub(super) unsafe fn constants(items: &[*mut ffi::PyObject], pen: &mut Pen<'_>) -> usize {
    // SAFETY: addresses are compared.
    let none = unsafe { ffi::Py_None() };
    let mut n = 0;
    while let Some(&item) = items.get(n)
        && pen.room() >= ROOM
    {
        if item == none {
            pen.put_short(b"null,", 5);
        // By the type: which of the two it is, is as good as random.
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

/// As [`step`], of an object of none of CPython's own types. Returns the end of what was put; null if it is a container
/// or Python code has to run, as
/// [`Walk::unwritten`] says.
///
/// Addresses in and out, as of [`float`].
///
/// # Safety
/// `value` is alive, and from `at` on as many bytes are writable as [`ROOM`] has in one half.
#[inline(never)]
unsafe fn other<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    at: *mut u8,
) -> *mut u8 {
    // SAFETY: the duties are the caller's; MaybeUninit needs no initialisation.
    unsafe {
        let mut pen = Pen::new(std::slice::from_raw_parts_mut(at.cast(), ROOM / 2));
        let natives = &walk.style.natives;
        let recent = &mut walk.shared.recent;
        if native::put_temporal(value, natives, recent, &mut pen) {
            pen.put_byte(b',');
            return pen.at();
        }
        let step = match native::read(value, natives, recent) {
            Native::Contents(Kind::Str)
                if derived_text::<K, STYLED>(kernels, walk, value, &mut pen) =>
            {
                Step::Done
            }
            Native::Array => Step::Large(Kind::Array),
            Native::Scalar(found) => number(kernels, found, walk.style, &mut pen),
            Native::Contents(kind) => scalar::<K, STYLED>(kernels, walk, kind, value, &mut pen),
            Native::Instead(instead) => {
                match scalar::<K, STYLED>(kernels, walk, object::kind(instead), instead, &mut pen) {
                    Step::Done | Step::Constant => Step::Done,
                    _ => Step::Large(Kind::Other),
                }
            }
            Native::Fields(class) => {
                walk.found = class;
                Step::Large(Kind::Fields)
            }
            native if native::put_scalar(&native, walk.style, &mut pen) => {
                pen.put_byte(b',');
                Step::Done
            }
            _ => Step::Large(Kind::Other),
        };
        if matches!(step, Step::Done) {
            return pen.at();
        }
        walk.unwritten = step;
        std::ptr::null_mut()
    }
}

/// Writes a short ASCII text of a class derived from `str`, and a comma; `false` if it is not one, or not to be written as it is.
///
/// # Safety
/// `value` is a `str` that is alive, and the pen has half of [`ROOM`].
#[inline(always)]
unsafe fn derived_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // SAFETY: a `str` that is alive; the pen has half of ROOM, which is more than the text, two quotes and a comma.
    unsafe {
        let Some(u) = object::ascii_apart(value).filter(|u| u.len() <= JSON_PLAIN_BYTES) else {
            return false;
        };
        let at = pen.at();
        let Some(end) = kernels.json_plain(u, at.add(1)) else {
            return false;
        };
        at.write(b'"');
        end.cast::<[u8; 2]>().write_unaligned(*b"\",");
        pen.set_at(end.add(2));
        walk.count(Units::Latin1(u));
    }
    true
}

/// Writes a number, boolean or moment of NumPy's, and the comma after it.
///
/// # Safety
/// The pen has half of [`ROOM`].
#[inline(always)]
unsafe fn number<K: Kernels>(kernels: K, value: Scalar, style: &Style, pen: &mut Pen<'_>) -> Step {
    if let Scalar::Double(value) = value {
        // SAFETY: the duty of the caller; what was put ends at the address that comes back.
        unsafe {
            let end = float(kernels, value, pen.at());
            if !end.is_null() {
                pen.set_at(end);
                return Step::Done;
            }
        }
    }
    if value_of_numpy::put(value, style, pen).is_err() {
        return Step::Large(Kind::Other);
    }
    pen.put_byte(b',');
    Step::Done
}

/// Writes a short text and what follows it; `false` where it is long, or not to be written as it is.
///
/// # Safety
/// `value` is a `str` that is alive, and the pen has half of [`ROOM`].
#[inline(always)]
unsafe fn short_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
    suffix: [u8; 2],
) -> bool {
    let at = pen.at();
    debug_assert!(pen.room() >= JSON_PLAIN_BYTES + 3);
    // SAFETY: a `str` that is alive. The pen has half of ROOM, by the caller's word, which is more than the longest text that is
    // written here, a quote, and what follows.
    unsafe {
        at.write(b'"');
        let out = at.add(1);
        let (end, units) = if let Some(u) = object::ascii(value) {
            if u.len() > JSON_PLAIN_BYTES {
                return any_short_text::<K, STYLED>(kernels, walk, value, pen, suffix);
            }
            (kernels.json_plain(u, out), Units::Latin1(u))
        } else {
            let Some((units, is_ascii)) = object::text(value) else {
                return false;
            };
            if STYLED && walk.style.ensure_ascii && !is_ascii {
                return false;
            }
            if walk.is_latin1 {
                return latin1_text::<K, STYLED>(kernels, walk, units, pen, suffix);
            }
            let end = match units {
                Units::Latin1(u) if is_ascii && u.len() <= JSON_PLAIN_BYTES => {
                    kernels.json_plain(u, out)
                }
                Units::Latin1(u) => kernels.json_short_latin1(u, out),
                Units::Ucs2(u) => kernels.json_short_ucs2(u, out),
                Units::Utf8(u) if u.len() <= JSON_PLAIN_BYTES => kernels.json_plain(u, out),
                _ => None,
            };
            (end, units)
        };
        let Some(end) = end else {
            return any_short_text::<K, STYLED>(kernels, walk, value, pen, suffix);
        };
        end.cast::<[u8; 2]>().write_unaligned(suffix);
        pen.set_at(end.add(2));
        walk.count(units);
    }
    true
}

/// As [`short_text`], of text past ASCII in a chunk of Latin-1.
///
/// # Safety
/// As [`short_text`]; a quote is written already.
#[inline(always)]
unsafe fn latin1_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    units: Units<'_>,
    pen: &mut Pen<'_>,
    suffix: [u8; 2],
) -> bool {
    let u = match (units, walk.target.beside) {
        (Units::Latin1(u), _) => u,
        (Units::Ucs2(u), Some(beside)) => {
            // SAFETY: the quote after the pen is written.
            let is_put = unsafe { beside.put_short(kernels, u, pen) };
            if is_put {
                // SAFETY: room for the quote and what follows, as for any short text.
                unsafe {
                    let after_quote = pen.at().add(1);
                    after_quote.cast::<[u8; 2]>().write_unaligned(suffix);
                    pen.set_at(after_quote.add(2));
                }
                walk.count(units);
            }
            return is_put;
        }
        _ => return false, // wider, or its UTF-8 stands
    };
    // SAFETY: as for ASCII; these bytes are as good as others.
    unsafe {
        if u.len() <= JSON_PLAIN_BYTES
            && let Some(end) = kernels.json_plain(u, pen.at().add(1))
        {
            end.cast::<[u8; 2]>().write_unaligned(suffix);
            pen.set_at(end.add(2));
            walk.count(units);
            return true;
        }
    }
    if u.len() > BLOCK_UNITS || pen.room() < json_room(u.len()) + ROOM {
        return false;
    }
    pen.put_byte(b'"');
    kernels.put_json_latin1(u, true, pen);
    walk.count(units);
    pen.put_short(&suffix, 2);
    true
}

/// As [`short_text`], where that takes more than one step.
///
/// # Safety
/// As [`short_text`].
#[inline(always)]
unsafe fn any_short_text<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
    suffix: [u8; 2],
) -> bool {
    // SAFETY: a `str` that is alive.
    let Some((units, is_ascii)) = (unsafe { object::text(value) }) else {
        return false;
    };
    let n = units.len_units();
    // A longer one too, where its room and that of what follows is there: the way of any text costs 15 ns.
    if n > SHORT_UNITS && (n > BLOCK_UNITS || pen.room() < json_room(n) + ROOM) {
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
    walk.count(units);
    pen.put_short(&suffix, 2);
    true
}

/// Writes the short text of a key, and the colon after it: what was written for the same object before, or anew.
///
/// # Safety
/// `key` is alive, and the pen has half of [`ROOM`].
#[inline(always)]
pub(super) unsafe fn short_key<K: Kernels, const STYLED: bool>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // A key that was written before is not even looked at.
    if let Some((text, len)) = walk.keys.get(key) {
        pen.put_short(text, len);
        return true;
    }
    let start = pen.at();
    // SAFETY: the duties are the caller's; what was written stands between the two places.
    unsafe {
        if object::kind(key) != Kind::Str
            || !short_text::<K, STYLED>(kernels, walk, key, pen, *b"\":")
        {
            return false;
        }
        let len = pen.at() as usize - start as usize;
        // Each text is counted where it is converted: one that is kept would not be. One that went beside does not stand here.
        let stands_here = walk.target.beside.is_none_or(|b| b.from() <= start);
        if !walk.is_counted && stands_here {
            walk.keys.keep(key, std::slice::from_raw_parts(start, len));
        }
    }
    true
}

/// Writes a float, and the comma after it; null for NaN and the infinities.
///
/// Two addresses in, one out: a pen that is passed by reference would no longer stay in registers.
///
/// # Safety
/// From `at` on as many bytes are writable as [`ROOM`] has in one half.
#[inline(always)]
unsafe fn float<K: Kernels>(kernels: K, value: f64, at: *mut u8) -> *mut u8 {
    // SAFETY: writable, by the caller's word.
    unsafe {
        if let Some(end) = kernels.json_float(value, at) {
            end.write(b',');
            return end.add(1);
        }
        other_float(value, at)
    }
}

/// As [`float`], of any.
///
/// # Safety
/// As [`float`].
#[inline(never)]
unsafe fn other_float(value: f64, at: *mut u8) -> *mut u8 {
    const HALF: usize = ROOM / 2;
    // SAFETY: writable, by the caller's word; MaybeUninit asks for no initialisation.
    let place = unsafe { std::slice::from_raw_parts_mut(at.cast(), HALF) };
    let mut pen = Pen::new(place);
    if json::put_f64(value, NonFinite::Error, &mut pen).is_err() {
        return std::ptr::null_mut();
    }
    pen.put_byte(b',');
    pen.at()
}
