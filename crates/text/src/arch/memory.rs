//! Conversions from and to uninitialised memory (`MaybeUninit`).

use std::mem::MaybeUninit;

/// Returns the units as `MaybeUninit` units.
pub(crate) fn uninit<U>(units: &[U]) -> &[MaybeUninit<U>] {
    // SAFETY: `MaybeUninit<U>` has the layout of `U`, and any `U` is a valid value of it.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), units.len()) }
}

/// Returns the bytes of a unit as `MaybeUninit` bytes. The compiler does not always inline `[T;
/// N]::map`, so this function has a loop.
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

/// Returns written `MaybeUninit` units as units.
pub(crate) fn written<U>(data: &[MaybeUninit<U>]) -> &[U] {
    // SAFETY: the callers have written each unit.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), data.len()) }
}

/// Returns `len` units of memory at `out` as a slice.
///
/// # Safety
/// `out` must be writable for `len` units. Nothing else may access these units as long as the slice
/// exists.
#[inline(always)]
pub(crate) unsafe fn destination<'a, U>(out: *mut U, len: usize) -> &'a mut [MaybeUninit<U>] {
    // SAFETY: guaranteed by the caller. Any bits are a valid `MaybeUninit`.
    unsafe { std::slice::from_raw_parts_mut(out.cast(), len) }
}
