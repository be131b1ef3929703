//! Conversions between bytes and the code units of UTF-16 and UTF-32.

use std::mem::MaybeUninit;

use super::dispatch::{utf16_len_from_utf8, valid_utf8_to_utf16};
use super::measured::Measured;
use crate::Kind;
use crate::convert::StrData;

/// A 16-bit or 32-bit code unit of any value.
pub(crate) trait CodeUnit: Copy + Default {
    /// Reverses the bytes of the unit.
    fn swapped(self) -> Self;
    /// Reads a unit from bytes in native byte order.
    fn of(bytes: &[u8]) -> Self;
}

impl CodeUnit for u16 {
    fn swapped(self) -> u16 {
        self.swap_bytes()
    }
    fn of(bytes: &[u8]) -> u16 {
        u16::from_ne_bytes([bytes[0], bytes[1]])
    }
}

impl CodeUnit for u32 {
    fn swapped(self) -> u32 {
        self.swap_bytes()
    }
    fn of(bytes: &[u8]) -> u32 {
        u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

/// Returns the bytes as units, without a copy. Returns `None` for unaligned bytes or an incomplete
/// last unit.
pub(crate) fn as_units<U: CodeUnit>(bytes: &[u8]) -> Option<&[U]> {
    if !bytes.len().is_multiple_of(size_of::<U>()) || !bytes.as_ptr().cast::<U>().is_aligned() {
        return None;
    }
    // SAFETY: the bytes are aligned whole units, as checked above. The trait is implemented only
    // for integers, for which every bit pattern is valid.
    Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<U>()) })
}

pub(crate) fn as_bytes<U: CodeUnit>(units: &[U]) -> &[u8] {
    // SAFETY: integers have no padding, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), size_of_val(units)) }
}

/// Replaces the contents of `out` with the whole units in `bytes`. If `swap` is `true`, the bytes
/// of each unit are reversed.
pub(crate) fn copy_units<U: CodeUnit>(bytes: &[u8], swap: bool, out: &mut Vec<U>) {
    out.clear();
    let units = bytes.chunks_exact(size_of::<U>()).map(U::of);
    match swap {
        true => out.extend(units.map(U::swapped)),
        false => out.extend(units),
    }
}

/// Appends the text to `out` as Latin-1. Returns `false` without a change for a character above
/// U+00FF.
pub(crate) fn append_latin1(text: &Measured<'_>, out: &mut Vec<u8>) -> bool {
    let shape = text.shape();
    if shape.kind > Kind::Latin1 {
        return false;
    }
    out.reserve(shape.n_chars);
    let spare: &mut [MaybeUninit<u8>] = &mut out.spare_capacity_mut()[..shape.n_chars];
    text.write(StrData::One(spare));
    // SAFETY: `write` has filled `spare`.
    unsafe { out.set_len(out.len() + shape.n_chars) };
    true
}

/// Appends `text` to `out` as UTF-16.
pub(crate) fn append_utf16(text: &str, out: &mut Vec<u16>) {
    let n_units = utf16_len_from_utf8(text.as_bytes());
    out.reserve(n_units);
    let spare = &mut out.spare_capacity_mut()[..n_units];
    let made = valid_utf8_to_utf16::<true>(text.as_bytes(), spare);
    assert_eq!(made, Some(n_units), "a `str` never changes");
    // SAFETY: `n_units` units were written, inside the capacity.
    unsafe { out.set_len(out.len() + n_units) };
}
