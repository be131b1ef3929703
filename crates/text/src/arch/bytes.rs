//! Bytes as units and units as bytes, for text that stands in a stream.

use std::mem::MaybeUninit;

use super::measured::Measured;
use super::{Kernel, bulk, kernel};
use crate::Kind;
use crate::convert::StrData;

/// A unit of any bits, of a size that text has.
pub(crate) trait Unit: Copy + Default {
    /// Swaps its bytes.
    fn swapped(self) -> Self;
    /// From bytes in the machine's order.
    fn of(bytes: &[u8]) -> Self;
}

impl Unit for u16 {
    fn swapped(self) -> u16 {
        self.swap_bytes()
    }
    fn of(bytes: &[u8]) -> u16 {
        u16::from_ne_bytes([bytes[0], bytes[1]])
    }
}

impl Unit for u32 {
    fn swapped(self) -> u32 {
        self.swap_bytes()
    }
    fn of(bytes: &[u8]) -> u32 {
        u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

/// The bytes as whole units, where they stand at a place for such.
pub(crate) fn as_units<U: Unit>(bytes: &[u8]) -> Option<&[U]> {
    if !bytes.len().is_multiple_of(size_of::<U>()) || !bytes.as_ptr().cast::<U>().is_aligned() {
        return None;
    }
    // SAFETY: aligned and whole, checked above; any bits are a good unit (16 and 32-bit integers implement the trait).
    Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<U>()) })
}

/// The units as bytes.
pub(crate) fn as_bytes<U: Unit>(units: &[U]) -> &[u8] {
    // SAFETY: integers have no padding, a byte may stand anywhere, and the length in bytes is that of the slice.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), size_of_val(units)) }
}

/// Copies whole units out of bytes that stand anywhere.
pub(crate) fn copy_units<U: Unit>(bytes: &[u8], swap: bool, out: &mut Vec<U>) {
    out.clear();
    let units = bytes.chunks_exact(size_of::<U>()).map(U::of);
    match swap {
        true => out.extend(units.map(U::swapped)),
        false => out.extend(units),
    }
}

/// Appends text as Latin-1; `false`, and nothing appended, where a character is above U+00FF.
pub(crate) fn append_latin1(text: &Measured<'_>, out: &mut Vec<u8>) -> bool {
    let shape = text.shape();
    if shape.kind > Kind::Latin1 {
        return false;
    }
    out.reserve(shape.n_chars);
    let room: &mut [MaybeUninit<u8>] = &mut out.spare_capacity_mut()[..shape.n_chars];
    text.write(StrData::One(room));
    // SAFETY: `write` fills the place, which has a unit for each character, all of it (its contract with `str`).
    unsafe { out.set_len(out.len() + shape.n_chars) };
    true
}

/// Appends text as UTF-16.
pub(crate) fn append_utf16(text: &str, out: &mut Vec<u16>) {
    let n_units = match kernel() {
        _ if cfg!(miri) => text.encode_utf16().count(),
        Kernel::Scalar => text.encode_utf16().count(),
        _ => simdutf::utf16_length_from_utf8(text.as_bytes()),
    };
    out.reserve(n_units);
    let spare = &mut out.spare_capacity_mut()[..n_units];
    let is_whole = bulk::valid_utf8_to_utf16::<true>(text.as_bytes(), spare);
    assert!(is_whole, "a str never changes");
    // SAFETY: so many units were written behind the length, inside the capacity.
    unsafe { out.set_len(out.len() + n_units) };
}
