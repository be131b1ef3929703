//! Units as memory that need not be initialised, and back.

use std::mem::MaybeUninit;

/// Initialised units as a part of what need not be.
pub(crate) fn uninit<U>(units: &[U]) -> &[MaybeUninit<U>] {
    // SAFETY: MaybeUninit<U> has the layout of U, and any U is a good value of it.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), units.len()) }
}

/// Units that were all written.
pub(crate) fn written<U>(data: &[MaybeUninit<U>]) -> &[U] {
    // SAFETY: the callers have written each of them: the writers of `measured`, `bulk` and
    // `large` compare or know their number.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), data.len()) }
}
