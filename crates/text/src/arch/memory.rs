//! Units as memory that need not be initialised, and back.

use std::mem::MaybeUninit;

/// Initialised units as a part of what need not be.
pub(crate) fn uninit<U>(units: &[U]) -> &[MaybeUninit<U>] {
    // SAFETY: MaybeUninit<U> has the layout of U, and any U is a good value of it.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), units.len()) }
}

/// The bytes of a unit as a part of what need not be initialised. `[T; N]::map` would call a
/// function for each byte where the compiler does not inline it into a function with target
/// features.
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

/// Units that were all written.
pub(crate) fn written<U>(data: &[MaybeUninit<U>]) -> &[U] {
    // SAFETY: the callers have written each of them: the writers of `measured`, `bulk` and
    // `large` compare or know their number.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), data.len()) }
}
