//! The fast path of the JSON encoder for short keys. It runs no Python code.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;

use super::step::{scalar, short_text};
use super::{JsonEncoder, put_standard};
use crate::raw::encode::builtin_types::{self, ObjectKind};
use crate::raw::encode::format::Step;
use crate::raw::encode::standard_types::{self, Native};

/// Writes a short `str` key in quotes and a colon. Returns `false` if the key requires the slow
/// path.
///
/// # Safety
/// `key` must be alive. `pen` must have space for `ROOM / 2` bytes.
#[inline(always)]
pub(super) unsafe fn short_key<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    // The cache compares the address of a key, and does not read the object.
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
        // Conversions count texts, so the ledger would miss a cached key. Text in the `str` is not
        // in this chunk.
        let is_in_chunk = encoder.target.ucs2.is_none_or(|b| b.from() <= start);
        if !encoder.is_counted && is_in_chunk {
            encoder
                .keys
                .keep(key, std::slice::from_raw_parts(start, len));
        }
    }
    true
}

/// Writes a key such as a number or a date: its JSON value in quotes, and a colon. Returns `false`
/// if the key requires the slow path.
///
/// # Safety
/// The requirements of [`short_key`] apply.
#[inline(never)]
unsafe fn scalar_key<K: Kernels, const STYLED: bool>(
    kernels: K,
    encoder: &mut JsonEncoder<'_, '_>,
    key: *mut ffi::PyObject,
    pen: &mut Pen<'_>,
) -> bool {
    let start = pen.at();
    // SAFETY: alive, as the caller guarantees; no code has run since `recent` was none. Half of
    // ROOM is enough for any of these values with two quotes and a comma.
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
