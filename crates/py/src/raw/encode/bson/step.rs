//! The fast path of the BSON encoder for short values and keys. It runs no Python code.

use onecopy_text::convert::{JSON_PLAIN_BYTES, Kernels, UTF8_SHORT_BYTES, utf8_capacity};
use onecopy_text::{Pen, Put, Units};
use onecopy_wire::bson::{SUBTYPE_GENERIC, Tag};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::super::builtin_types::{self, ObjectKind};
use super::super::format::Step;
use super::super::standard_types::{self, Native};
use super::texts::BLOCK_UNITS;
use super::value::unix_ms;
use super::{BsonEncoder, ROOM};
use crate::bson::ObjectId;

/// The size in bytes of a length field.
pub(super) const LENGTH_BYTES: usize = 4;

/// Writes a short value with its tag, without Python code; see [`Step`].
///
/// # Safety
/// `value` must be alive and of this kind; `tag` must be its reserved byte; `pen` must have space
/// for `ROOM / 2` bytes.
#[inline(always)]
pub(super) unsafe fn step<K: Kernels>(
    kernels: K,
    encoder: &mut BsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    kind: ObjectKind,
    tag: *mut u8,
    pen: &mut Pen<'_>,
) -> Step {
    // SAFETY: guaranteed by the caller; the written bytes end at the returned address.
    unsafe {
        if !matches!(
            kind,
            ObjectKind::Other | ObjectKind::Fields | ObjectKind::Array
        ) {
            return scalar(kernels, encoder, kind, value, tag, pen);
        }
        let end = other(kernels, encoder, value, tag, pen.at(), pen.remaining());
        if end.is_null() {
            return encoder.unwritten;
        }
        pen.set_at(end);
    }
    Step::Done
}

/// Implements [`step`] for built-in types and derived classes.
///
/// # Safety
/// The requirements of [`step`] apply.
#[inline(always)]
unsafe fn scalar<K: Kernels>(
    kernels: K,
    encoder: &mut BsonEncoder<'_, '_>,
    kind: ObjectKind,
    value: *mut ffi::PyObject,
    tag: *mut u8,
    pen: &mut Pen<'_>,
) -> Step {
    // Each match arm writes its own tag: returning the tag would be slower.
    match kind {
        ObjectKind::Str => {
            // SAFETY: the caller guarantees the requirements; a `str`, by its kind.
            unsafe {
                if !short_text(kernels, encoder, value, pen) {
                    return Step::Slow(kind);
                }
                tag.write(Tag::String.byte());
            }
        }
        ObjectKind::Int => {
            // SAFETY: an `int`, by its kind.
            let Some(value) = (unsafe { builtin_types::small_int(value) }) else {
                return Step::Slow(kind);
            };
            // The assignment compiles to code without a branch.
            let is_short = i64::from(value as i32) == value;
            let (found, n_bytes) = match is_short {
                true => (Tag::Int32, 4),
                false => (Tag::Int64, 8),
            };
            // SAFETY: the byte that was reserved for the tag; the pen has half of ROOM.
            unsafe {
                tag.write(found.byte());
                put_eight(value.to_le_bytes(), n_bytes, pen);
            }
        }
        // SAFETY: a `float`, by its kind; the tag has its byte, and the pen has half of ROOM.
        ObjectKind::Float => unsafe {
            tag.write(Tag::Double.byte());
            put_eight(builtin_types::float(value).to_le_bytes(), 8, pen);
        },
        // SAFETY: the byte that was reserved for the tag.
        ObjectKind::None => unsafe { tag.write(Tag::Null.byte()) },
        // SAFETY: the byte that was reserved for the tag; an address is compared.
        ObjectKind::Bool => unsafe {
            tag.write(Tag::Bool.byte());
            pen.put_byte(u8::from(value == ffi::Py_True()));
        },
        _ => return Step::Large(kind),
    }
    Step::Done
}

/// Writes the first `n_bytes` of an array with one store of all eight bytes.
///
/// # Safety
/// `pen` must have space for eight bytes.
#[inline(always)]
unsafe fn put_eight(bytes: [u8; 8], n_bytes: usize, pen: &mut Pen<'_>) {
    let at = pen.at();
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        at.cast::<[u8; 8]>().write_unaligned(bytes);
        pen.set_at(at.add(n_bytes));
    }
}

/// Implements [`step`] for a `bytes` or an object without a built-in type. Returns the end of the
/// written bytes. On failure, returns null and stores the reason in `encoder.unwritten`.
///
/// The parameters are addresses: a `Pen` reference cannot stay in registers.
///
/// # Safety
/// The requirements of [`step`]; at least `ROOM / 2` bytes must be writable at `at`.
#[inline(never)]
unsafe fn other<K: Kernels>(
    kernels: K,
    encoder: &mut BsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    tag: *mut u8,
    at: *mut u8,
    n_bytes: usize,
) -> *mut u8 {
    // SAFETY: the caller guarantees writable memory; MaybeUninit needs no initialisation.
    let mut pen = Pen::new(unsafe { std::slice::from_raw_parts_mut(at.cast(), n_bytes) });
    // SAFETY: the caller guarantees the requirements.
    let done = unsafe {
        match simple(encoder, value, &mut pen) {
            Some(found) => {
                tag.write(found.byte());
                Step::Done
            }
            None => derived(kernels, encoder, value, tag, &mut pen),
        }
    };
    if let Step::Done | Step::Constant = done {
        return pen.at();
    }
    encoder.unwritten = done;
    std::ptr::null_mut()
}

/// Writes a `bytes`, an `ObjectId`, a `datetime` or a `date`. Returns its tag.
///
/// # Safety
/// `value` must be alive.
#[inline(always)]
unsafe fn simple(
    encoder: &mut BsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> Option<Tag> {
    // SAFETY: alive, as the caller guarantees.
    let (bytes, ms) = unsafe {
        (
            builtin_types::bytes(value),
            unix_ms(value, &mut encoder.shared.recent.zone),
        )
    };
    if let Some(ms) = ms {
        pen.put_short(&ms.to_le_bytes(), 8);
        return Some(Tag::DateTime);
    }
    if let Some(bytes) = bytes {
        if bytes.len() > encoder.style.max_bytes || bytes.len() + ROOM > pen.remaining() {
            return None;
        }
        pen.put_short(&(bytes.len() as u32).to_le_bytes(), LENGTH_BYTES);
        pen.put_byte(SUBTYPE_GENERIC);
        pen.put(bytes);
        return Some(Tag::Binary);
    }
    // SAFETY: alive, as the caller guarantees; attached.
    let object = unsafe { Borrowed::<PyAny>::from_ptr(encoder.py(), value) };
    if let Ok(id) = object.cast_exact::<ObjectId>() {
        pen.put_short(id.get().bytes(), ObjectId::N_BYTES);
        return Some(Tag::ObjectId);
    }
    // SAFETY: alive, as the caller guarantees.
    let day = unsafe { standard_types::date_of(value, &encoder.style.natives) };
    let ms = day?.to_unix_ms().ok()?;
    pen.put_short(&ms.to_le_bytes(), 8);
    Some(Tag::DateTime)
}

/// Writes the objects that [`simple`] does not support, without Python code.
///
/// # Safety
/// The requirements of [`step`] apply.
#[inline(always)]
unsafe fn derived<K: Kernels>(
    kernels: K,
    encoder: &mut BsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    tag: *mut u8,
    pen: &mut Pen<'_>,
) -> Step {
    let natives = &encoder.style.natives;
    // SAFETY: the caller guarantees the requirements; no code has run since `recent` was none.
    let found = unsafe { standard_types::read(value, natives, &mut encoder.shared.recent) };
    let put = match found {
        Native::Contents(kind) => {
            // SAFETY: alive, of a class that derives from the type of this kind.
            return unsafe { scalar(kernels, encoder, kind, value, tag, pen) };
        }
        Native::Instead(instead) => {
            // SAFETY: alive as long as its enumeration member.
            let step = unsafe {
                let kind = builtin_types::kind(instead);
                scalar(kernels, encoder, kind, instead, tag, pen)
            };
            return match step {
                Step::Done | Step::Constant => Step::Done,
                _ => Step::Large(ObjectKind::Other),
            };
        }
        Native::Fields(class) => {
            encoder.found = class;
            return Step::Large(ObjectKind::Fields);
        }
        Native::Array => return Step::Large(ObjectKind::Array),
        Native::Marked(class) => {
            // SAFETY: the class of this object; no code has run since the lookup.
            let marked = unsafe { (*class).marked.as_ref() };
            let Some(marked) = marked else {
                return Step::Large(ObjectKind::Other);
            };
            // SAFETY: alive; an instance of the class.
            if let Some(found) = unsafe { marked.text_tag(value) } {
                // SAFETY: every instance of such a class is a `str`.
                let step = unsafe { scalar(kernels, encoder, ObjectKind::Str, value, tag, pen) };
                if !matches!(step, Step::Done) {
                    return Step::Large(ObjectKind::Other);
                }
                Some(found)
            } else {
                let most_bytes = pen.remaining().saturating_sub(ROOM);
                let most_bytes = most_bytes.min(encoder.style.max_bytes);
                // SAFETY: alive, and an instance of the class; the pen has half of ROOM.
                unsafe { marked.put(value, most_bytes, pen) }
            }
        }
        Native::Scalar(scalar) => encoder.value_of(scalar).ok().map(|value| {
            pen.put_short(&value.bytes, value.n_bytes);
            value.tag
        }),
        Native::Uuid(bytes) => encoder.style.uuid.binary(bytes).map(|(subtype, bytes)| {
            pen.put_short(&[16, 0, 0, 0, subtype], 5);
            pen.put_short(&bytes, 16);
            Tag::Binary
        }),
        _ => None,
    };
    let Some(put) = put else {
        return Step::Large(ObjectKind::Other);
    };
    // SAFETY: the byte that was reserved for the tag.
    unsafe { tag.write(put.byte()) };
    Step::Done
}

/// Writes a short string with its length and NUL. Returns `false` if the string requires the slow
/// path.
///
/// # Safety
/// `value` must be a live `str`. `pen` must have space for `ROOM / 2` bytes.
#[inline(always)]
unsafe fn short_text<K: Kernels>(
    kernels: K,
    encoder: &mut BsonEncoder<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    let at = pen.at();
    debug_assert!(pen.remaining() > LENGTH_BYTES + UTF8_SHORT_BYTES);
    let out = at.wrapping_add(LENGTH_BYTES);
    // SAFETY: a `str` that is alive.
    if let Some(u) = unsafe { builtin_types::ascii(value) } {
        let units = Units::Utf8(u);
        // SAFETY: the caller guarantees half of ROOM, enough for the longest short text, its length
        // and its NUL.
        unsafe {
            if u.len() > UTF8_SHORT_BYTES {
                return longer_text(kernels, encoder, units, pen);
            }
            end_text(at, kernels.utf8_bytes(u, out), pen);
        }
        encoder.count(units);
        return true;
    }
    // SAFETY: a `str` that is alive.
    let Some((units, is_ascii)) = (unsafe { builtin_types::text(value) }) else {
        return false;
    };
    // SAFETY: the caller guarantees half of ROOM, enough for the longest short text, its length and
    // its NUL.
    let end = unsafe {
        match units {
            Units::Utf8(u) if u.len() <= UTF8_SHORT_BYTES => Some(kernels.utf8_bytes(u, out)),
            Units::Latin1(u) if is_ascii && u.len() <= UTF8_SHORT_BYTES => {
                Some(kernels.utf8_bytes(u, out))
            }
            Units::Latin1(u) => kernels.utf8_short_latin1(u, out),
            Units::Ucs2(u) => kernels.utf8_short_ucs2(u, out),
            _ => None,
        }
    };
    let Some(end) = end else {
        // SAFETY: the caller guarantees the requirements.
        return unsafe { longer_text(kernels, encoder, units, pen) };
    };
    // SAFETY: the text ends at `end`, after space for its length.
    unsafe { end_text(at, end, pen) };
    encoder.count(units);
    true
}

/// Writes the length before a string, and the NUL after it.
///
/// # Safety
/// The string must begin [`LENGTH_BYTES`] bytes after `at` and end at `end`, in the memory of the
/// pen. The pen must have space for one more byte.
#[inline(always)]
unsafe fn end_text(at: *mut u8, end: *mut u8, pen: &mut Pen<'_>) {
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        end.write(0);
        let n_bytes = end as usize - at as usize - LENGTH_BYTES + 1;
        at.cast::<[u8; LENGTH_BYTES]>()
            .write_unaligned((n_bytes as u32).to_le_bytes());
        pen.set_at(end.add(1));
    }
}

/// Implements [`short_text`] for a string of up to [`BLOCK_UNITS`] code units.
///
/// # Safety
/// The requirements of [`short_text`] apply.
#[inline(always)]
unsafe fn longer_text<K: Kernels>(
    kernels: K,
    encoder: &mut BsonEncoder<'_, '_>,
    units: Units<'_>,
    pen: &mut Pen<'_>,
) -> bool {
    let n = units.len_units();
    if n > BLOCK_UNITS || pen.remaining() < utf8_capacity(n) + ROOM {
        return false;
    }
    let at = pen.at();
    pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
    let done = put_utf8(kernels, units, pen);
    // SAFETY: the previous position of the pen; otherwise the text follows its length.
    unsafe {
        if !done {
            pen.set_at(at);
            return false;
        }
        end_text(at, pen.at(), pen);
    }
    encoder.count(units);
    true
}

/// Writes a string as UTF-8 into reserved space. Returns `false` for surrogates.
#[inline(always)]
fn put_utf8<K: Kernels>(kernels: K, units: Units<'_>, pen: &mut Pen<'_>) -> bool {
    match units {
        Units::Utf8(u) => pen.put(u),
        Units::Latin1(u) => kernels.put_utf8_latin1(u, pen),
        Units::Utf16(u) | Units::Ucs2(u) => return kernels.put_utf8_ucs2(u, pen),
        Units::Utf32(u) => return kernels.put_utf8_ucs4(u, pen),
    }
    true
}

/// Writes a reserved tag byte and a short key with its NUL. Returns `false` if the key is not
/// short.
///
/// # Safety
/// `key` must be alive, and the pen must have space for `ROOM / 2` bytes.
#[inline(always)]
pub(super) unsafe fn short_key<K: Kernels>(
    kernels: K,
    encoder: &mut BsonEncoder<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    let is_kept = encoder.is_nested;
    // The cache compares the address of a key, and does not read the object.
    if is_kept && let Some((text, len)) = encoder.keys.get(key) {
        pen.put_short(text, len);
        return true;
    }
    // SAFETY: alive, as the caller guarantees.
    if unsafe { builtin_types::kind(key) } != ObjectKind::Str || encoder.style.check_keys {
        return false;
    }
    let at = pen.at();
    // SAFETY: a `str`, by its kind. Half of ROOM is enough for the longest key.
    let Some((end, units)) = (unsafe { put_key(kernels, key, at) }) else {
        return false;
    };
    encoder.count(units);
    // SAFETY: the key ends at `end`; the space for its NUL is reserved.
    let written = unsafe {
        end.write(0);
        pen.set_at(end.add(1));
        std::slice::from_raw_parts(at, pen.at().addr() - at.addr())
    };
    // Conversions count texts. The ledger would miss a cached key.
    if is_kept && !encoder.is_counted {
        encoder.keys.keep(key, written);
    }
    true
}

/// Writes a zero byte for the tag and a short key. Returns the key's end and units.
///
/// # Safety
/// `key` must be a live `str`. At least `ROOM / 2` bytes must be writable at `at`.
#[inline(always)]
unsafe fn put_key<'k, K: Kernels>(
    kernels: K,
    key: *mut ffi::PyObject,
    at: *mut u8,
) -> Option<(*mut u8, Units<'k>)> {
    // SAFETY: the caller guarantees the requirements.
    let out = unsafe {
        at.write(0);
        at.add(1)
    };
    // SAFETY: alive, as the caller guarantees; the space is there.
    unsafe {
        if let Some(u) = builtin_types::ascii(key)
            && u.len() <= JSON_PLAIN_BYTES
        {
            return Some((kernels.json_plain(u, out)?, Units::Utf8(u)));
        }
    }
    // SAFETY: a `str` that is alive.
    let (units, is_ascii) = unsafe { builtin_types::text(key)? };
    // SAFETY: the caller guarantees the space. JSON escapes a NUL, so a plain JSON text has none.
    let end = unsafe {
        match units {
            Units::Latin1(u) | Units::Utf8(u) if u.len() > JSON_PLAIN_BYTES => None,
            Units::Utf8(u) => kernels.json_plain(u, out),
            Units::Latin1(u) if is_ascii => kernels.json_plain(u, out),
            Units::Latin1(u) => kernels.json_short_latin1(u, out),
            Units::Ucs2(u) => kernels.json_short_ucs2(u, out),
            _ => None,
        }
    };
    Some((end?, units))
}
