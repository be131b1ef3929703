//! The fast path of the JSON encoder for keys. It writes short keys without running Python code.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;

use super::step::{scalar, short_text};
use super::{JsonEncoder, put_standard};
use crate::raw::encode::builtin_types::{self, ObjectKind};
use crate::raw::encode::format::Step;
use crate::raw::encode::standard_types::{self, Native};

/// Writes a short `str` key in quotes and a colon. If the key cache contains the key, its cached
/// text is copied. Returns `false` if the key is long, is not a `str`, or requires the slow path.
///
/// # Safety
/// `key` must be alive, and the destination of `pen` must have space for `ROOM / 2` bytes.
#[inline(always)]
pub(super) unsafe fn short_key<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // A key in the cache is identified by its address; the object is not accessed.
    if let Some((text, len)) = encoder.keys.get(key) {
        pen.put_short(text, len);
        return true;
    }
    let start = pen.at();
    // SAFETY: guaranteed by the caller; the written bytes are between the two positions.
    unsafe {
        if builtin_types::kind(key) != ObjectKind::Str {
            return encoder.style.scalar_keys
                && scalar_key::<K, STYLED>(kernels, encoder, key, pen);
        }
        if !short_text::<K, STYLED>(kernels, encoder, key, pen, *b"\":") {
            return false;
        }
        let len = pen.at() as usize - start as usize;
        // Texts are counted when they are converted, so a cached key would not be counted. Text
        // that was written to the `str` is not in this chunk.
        let is_in_chunk = encoder.target.ucs2.is_none_or(|b| b.from() <= start);
        if !encoder.is_counted && is_in_chunk {
            encoder
                .keys
                .keep(key, std::slice::from_raw_parts(start, len));
        }
    }
    true
}

/// Writes a key that is a number, a boolean, `None`, a date, a time, a UUID or a member of an
/// enumeration: the text of its JSON value in quotes, and a colon. Returns `false` if the key is of
/// another type, or requires the slow path.
///
/// # Safety
/// The same requirements as for [`short_key`].
#[inline(never)]
unsafe fn scalar_key<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    let start = pen.at();
    // SAFETY: alive, as the caller guarantees; no code has run since `recent` was none. The pen has
    // half of ROOM, which is more than any of these values with two quotes and a comma.
    unsafe {
        let (natives, recent) = (&encoder.style.natives, &mut encoder.shared.recent);
        let kind = builtin_types::kind(key);
        let native = match kind {
            ObjectKind::Other if put_standard::put_temporal(key, natives, recent, pen) => {
                pen.put_byte(b':'); // The value has quotes.
                return true;
            }
            ObjectKind::Other => standard_types::read(key, natives, recent),
            _ => Native::Other,
        };
        let (value, kind) = match native {
            Native::Uuid(bytes) => {
                json::put_uuid(&bytes, pen);
                pen.put_byte(b':');
                return true;
            }
            Native::Instead(value) => (value, builtin_types::kind(value)),
            _ => (key, kind),
        };
        if kind == ObjectKind::Str {
            return short_text::<K, STYLED>(kernels, encoder, value, pen, *b"\":");
        }
        if !kind.is_scalar() {
            return false;
        }
        pen.put_byte(b'"');
        match scalar::<K, STYLED>(kernels, encoder, kind, value, pen) {
            Step::Done | Step::Constant => {
                pen.set_at(pen.at().sub(1)); // A comma was put last.
                pen.put_short(b"\":", 2);
                true
            }
            _ => {
                pen.set_at(start);
                false
            }
        }
    }
}
