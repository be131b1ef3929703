//! Values and keys that take a few instructions.

use onecopy_text::convert::{JSON_PLAIN_BYTES, Kernels, UTF8_SHORT_BYTES, utf8_room};
use onecopy_text::{Pen, Put, Units};
use onecopy_wire::bson::Tag;
use pyo3::ffi;

use super::super::object::{self, Kind};
use super::texts::BLOCK_UNITS;
use super::{ROOM, Walk};

/// Bytes of a length.
pub(super) const LENGTH_BYTES: usize = 4;

/// Writes a value and its tag, if it is one that takes a few instructions; else its kind.
///
/// # Safety
/// `value` is alive; `tag` is the place of its tag, before the pen, which has half of [`ROOM`].
#[inline(always)]
pub(super) unsafe fn step<K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    tag: *mut u8,
    pen: &mut Pen<'_>,
) -> Option<Kind> {
    // SAFETY: alive, by the caller's word, and of the kind that was looked at; the pen has more than any of these takes.
    unsafe {
        let at = pen.at();
        let kind = object::kind(value);
        match kind {
            Kind::Str => {
                if !short_text(kernels, walk, value, pen) {
                    return Some(kind);
                }
                tag.write(Tag::String.byte());
            }
            Kind::Int => {
                let Some(value) = object::small_int(value) else {
                    return Some(kind);
                };
                // No branch on how long it is.
                let is_short = i64::from(value as i32) == value;
                tag.write(if is_short {
                    Tag::Int32.byte()
                } else {
                    Tag::Int64.byte()
                });
                at.cast::<[u8; 8]>().write_unaligned(value.to_le_bytes());
                pen.set_at(at.add(if is_short { 4 } else { 8 }));
            }
            Kind::Float => {
                tag.write(Tag::Double.byte());
                let value = object::float(value);
                at.cast::<[u8; 8]>().write_unaligned(value.to_le_bytes());
                pen.set_at(at.add(8));
            }
            Kind::None => tag.write(Tag::Null.byte()),
            Kind::Bool => {
                tag.write(Tag::Bool.byte());
                pen.put_byte(u8::from(value == ffi::Py_True()));
            }
            _ => return Some(kind),
        }
    }
    None
}

/// Puts a short text, with its length and its NUL; `false` where it is long, or not to be written as it is.
///
/// # Safety
/// `value` is a `str` that is alive, and the pen has half of [`ROOM`].
#[inline(always)]
unsafe fn short_text<K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    value: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    let at = pen.at();
    debug_assert!(pen.room() > LENGTH_BYTES + UTF8_SHORT_BYTES);
    // SAFETY: a `str` that is alive. The pen has half of ROOM, by the caller's word, which is more than the longest text that is
    // written here, its length and its NUL.
    unsafe {
        let out = at.add(LENGTH_BYTES);
        let (end, units) = if let Some(u) = object::ascii(value) {
            if u.len() > UTF8_SHORT_BYTES {
                return longer_text(kernels, walk, Units::Utf8(u), pen);
            }
            (kernels.utf8_bytes(u, out), Units::Utf8(u))
        } else {
            let Some((units, is_ascii)) = object::text(value) else {
                return false;
            };
            let end = match units {
                Units::Latin1(u) if is_ascii && u.len() <= UTF8_SHORT_BYTES => {
                    Some(kernels.utf8_bytes(u, out))
                }
                Units::Latin1(u) => kernels.utf8_short_latin1(u, out),
                Units::Ucs2(u) => kernels.utf8_short_ucs2(u, out),
                Units::Utf8(u) if u.len() <= UTF8_SHORT_BYTES => Some(kernels.utf8_bytes(u, out)),
                _ => None,
            };
            match end {
                Some(end) => (end, units),
                None => return longer_text(kernels, walk, units, pen),
            }
        };
        end_text(at, end, pen);
        walk.count(units);
    }
    true
}

/// Puts the length of a text at its start, and the NUL behind it.
///
/// # Safety
/// The text stands from [`LENGTH_BYTES`] behind `at` up to `end`, in the place of the pen, which has a byte more.
#[inline(always)]
unsafe fn end_text(at: *mut u8, end: *mut u8, pen: &mut Pen<'_>) {
    // SAFETY: the duty of the caller.
    unsafe {
        end.write(0);
        let n_bytes = end as usize - at as usize - LENGTH_BYTES + 1;
        at.cast::<[u8; LENGTH_BYTES]>()
            .write_unaligned((n_bytes as u32).to_le_bytes());
        pen.set_at(end.add(1));
    }
}

/// As [`short_text`], of one block, where there is room for it.
///
/// # Safety
/// As [`short_text`].
#[inline(always)]
unsafe fn longer_text<K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    units: Units<'_>,
    pen: &mut Pen<'_>,
) -> bool {
    let n = units.len_units();
    if n > BLOCK_UNITS || pen.room() < utf8_room(n) + ROOM {
        return false;
    }
    let at = pen.at();
    pen.put_short(&[0; LENGTH_BYTES], LENGTH_BYTES);
    let done = match units {
        Units::Utf8(u) => {
            pen.put(u);
            true
        }
        Units::Latin1(u) => {
            kernels.put_utf8_latin1(u, pen);
            true
        }
        Units::Utf16(u) | Units::Ucs2(u) => kernels.put_utf8_ucs2(u, pen),
        Units::Utf32(u) => kernels.put_utf8_ucs4(u, pen),
    };
    // SAFETY: where the pen was a moment ago; else the text stands behind its length.
    unsafe {
        if !done {
            pen.set_at(at);
            return false;
        }
        end_text(at, pen.at(), pen);
    }
    walk.count(units);
    true
}

/// Leaves a byte for the tag, and puts a short key and its NUL: what was written for the same object before, or anew; `false`, and
/// nothing put, where it is none of a few instructions.
///
/// # Safety
/// `key` is alive, and the pen has half of [`ROOM`].
#[inline(always)]
pub(super) unsafe fn short_key<K: Kernels>(
    kernels: K,
    walk: &mut Walk<'_, '_>,
    key: *mut ffi::PyObject,
    is_kept: bool,
    pen: &mut Pen<'_>,
) -> bool {
    // A key that was written before is not even looked at.
    if is_kept && let Some((text, len)) = walk.keys.get(key) {
        pen.put_short(text, len);
        return true;
    }
    let at = pen.at();
    // SAFETY: alive, by the caller's word; half of ROOM is more than the longest key that is written here. What JSON writes as it is
    // holds no NUL: it escapes that.
    unsafe {
        if object::kind(key) != Kind::Str || walk.style.check_keys {
            return false;
        }
        let out = at.add(1);
        at.write(0);
        let (end, units) = if let Some(u) = object::ascii(key)
            && u.len() <= JSON_PLAIN_BYTES
        {
            (kernels.json_plain(u, out), Units::Utf8(u))
        } else {
            let Some((units, is_ascii)) = object::text(key) else {
                return false;
            };
            let end = match units {
                Units::Latin1(u) | Units::Utf8(u) if u.len() > JSON_PLAIN_BYTES => None,
                Units::Latin1(u) if is_ascii => kernels.json_plain(u, out),
                Units::Utf8(u) => kernels.json_plain(u, out),
                Units::Latin1(u) => kernels.json_short_latin1(u, out),
                Units::Ucs2(u) => kernels.json_short_ucs2(u, out),
                _ => None,
            };
            (end, units)
        };
        let Some(end) = end else { return false };
        end.write(0);
        pen.set_at(end.add(1));
        walk.count(units);
        walk.keep(key, at, is_kept, pen);
    }
    true
}

impl Walk<'_, '_> {
    /// Keeps what was written for a key, where it may come again.
    ///
    /// # Safety
    /// It stands from `at` up to the pen.
    #[inline(always)]
    pub(super) unsafe fn keep(
        &mut self,
        key: *mut ffi::PyObject,
        at: *mut u8,
        is_kept: bool,
        pen: &Pen<'_>,
    ) {
        // Each text is counted where it is converted: one that is kept would not be.
        if is_kept && !self.is_counted {
            let len = pen.at() as usize - at as usize;
            // SAFETY: the duty of the caller.
            let written = unsafe { std::slice::from_raw_parts(at, len) };
            self.keys.keep(key, written);
        }
    }
}
