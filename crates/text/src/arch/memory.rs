//! Converts units and slices of units to possibly uninitialised memory (`MaybeUninit`), and back.

use std::mem::MaybeUninit;

/// Converts a slice of units to a slice of `MaybeUninit` units.
pub(crate) fn uninit<U>(units: &[U]) -> &[MaybeUninit<U>] {
    // SAFETY: MaybeUninit<U> has the layout of U, and any U is a valid value of it.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), units.len()) }
}

/// Returns the bytes of a unit as `MaybeUninit` bytes. The loop replaces `[T; N]::map`, which the
/// compiler does not always inline: in a function with target features, `map` calls a function for
/// each byte.
#[inline(always)]
pub(crate) fn uninit_bytes<const N: usize>(bytes: [u8; N]) -> [MaybeUninit<u8>; N] {
    let mut out = [MaybeUninit::uninit(); N];
    let mut at = 0;
    while at < N {
        out[at] = MaybeUninit::new(bytes[at]);
        at += 1;
    }
    out
}

/// Converts a slice of `MaybeUninit` units, all of which were written, to a slice of units.
pub(crate) fn written<U>(data: &[MaybeUninit<U>]) -> &[U] {
    // SAFETY: the callers have written each unit: the code in `measured`, `bulk`, `float` and
    // `large` knows how many units were written.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), data.len()) }
}

/// Returns the `len` units of memory at `out` as a slice that a conversion can write to.
///
/// # Safety
/// `out` must be writable for `len` units. As long as the slice exists, these units must not be
/// read or written in any other way.
#[inline(always)]
pub(crate) unsafe fn destination<'a, U>(out: *mut U, len: usize) -> &'a mut [MaybeUninit<U>] {
    // SAFETY: guaranteed by the caller; any bits are a valid `MaybeUninit`.
    unsafe { std::slice::from_raw_parts_mut(out.cast(), len) }
}
