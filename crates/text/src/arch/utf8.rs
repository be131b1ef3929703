//! Writes text as UTF-8 into a [`Pen`], for binary formats such as BSON.
//!
//! The kernels are those of [`super::json`] without escapes.

use std::ptr::copy_nonoverlapping;

use super::dispatch::{find_surrogate, latin1_to_utf8, ucs4_to_utf8, utf16_to_utf8};
#[cfg(target_arch = "x86_64")]
use super::family::{Avx2, Avx512};
use super::family::{Common, Utf8Kernels, utf8_capacity};
use super::json::{advance, rest};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::sink::{Pen, Put};

#[inline(always)]
fn check(pen: &Pen<'_>, n_units: usize) {
    assert!(
        n_units <= usize::MAX / 8 && pen.remaining() >= utf8_capacity(n_units),
        "not enough space"
    );
}

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($family:ident, $kernels:ident) => {
        impl Utf8Kernels for $family {
            #[inline(always)]
            unsafe fn utf8_bytes(self, u: &[u8], out: *mut u8) -> *mut u8 {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                unsafe { $kernels::json::plain::<false>(u, out) }
            }

            #[inline(always)]
            unsafe fn utf8_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                let end = unsafe { $kernels::json::short_latin1::<false>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn utf8_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                let end = unsafe { $kernels::json::short_wide::<false>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            fn put_utf8_latin1(self, u: &[u8], pen: &mut Pen<'_>) {
                check(pen, u.len());
                // SAFETY: this type proves that the instructions are available. The space was
                // checked above: a unit has at most two bytes. All bytes before the returned
                // address were written.
                unsafe {
                    let at = $kernels::json::latin1::<false>(u, false, pen.at());
                    pen.set_at(at);
                }
            }

            #[inline(always)]
            fn put_utf8_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool {
                check(pen, u.len());
                // SAFETY: as in `put_utf8_latin1`, but a unit has at most three bytes.
                unsafe {
                    let at = $kernels::json::ucs2::<false>(u, pen.at());
                    if !at.is_null() {
                        pen.set_at(at);
                    }
                    !at.is_null()
                }
            }

            #[inline(always)]
            fn put_utf8_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool {
                check(pen, u.len());
                // SAFETY: as in `put_utf8_latin1`, but a unit has at most four bytes.
                unsafe {
                    let at = $kernels::json::ucs4::<false>(u, pen.at());
                    if !at.is_null() {
                        pen.set_at(at);
                    }
                    !at.is_null()
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
vectors!(Avx512, avx512);
#[cfg(target_arch = "x86_64")]
vectors!(Avx2, avx2);

impl Utf8Kernels for Common {
    #[inline(always)]
    unsafe fn utf8_bytes(self, u: &[u8], out: *mut u8) -> *mut u8 {
        // SAFETY: `out` has space for the bytes.
        unsafe {
            copy_nonoverlapping(u.as_ptr(), out, u.len());
            out.add(u.len())
        }
    }

    #[inline(always)]
    unsafe fn utf8_short_latin1(self, _: &[u8], _: *mut u8) -> Option<*mut u8> {
        None
    }

    #[inline(always)]
    unsafe fn utf8_short_ucs2(self, _: &[u16], _: *mut u8) -> Option<*mut u8> {
        None
    }

    #[inline(always)]
    fn put_utf8_latin1(self, u: &[u8], pen: &mut Pen<'_>) {
        check(pen, u.len());
        // SAFETY: the slice is dropped before the pen is used. The kernel has written the bytes.
        unsafe {
            let n = latin1_to_utf8(u, rest(pen));
            advance(pen, n.expect("two bytes for each, checked above"));
        }
    }

    #[inline(always)]
    fn put_utf8_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool {
        check(pen, u.len());
        if find_surrogate(u) < u.len() {
            return false;
        }
        // SAFETY: the slice is dropped before the pen is used. The kernel has written the bytes.
        unsafe {
            let n = utf16_to_utf8(u, rest(pen));
            advance(pen, n.expect("no surrogates, checked above"));
        }
        true
    }

    #[inline(always)]
    fn put_utf8_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool {
        check(pen, u.len());
        // SAFETY: the slice is dropped before the pen is used. The kernel has written the bytes.
        unsafe {
            match ucs4_to_utf8(u, rest(pen)) {
                Some(n) => advance(pen, n),
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
