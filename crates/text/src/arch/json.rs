//! Writes short texts as bodies of JSON strings into a [`Pen`], with the `JsonKernels`.
//!
//! [`convert::to_json_body`](crate::convert::to_json_body) writes the same bytes for any
//! [`Units`](crate::Units) into any sink.

use std::mem::MaybeUninit;
use std::slice;

use super::dispatch::{
    copy_to_escape, find_escape_u8, find_escape_u16, find_surrogate, is_ascii, latin1_to_utf8,
    narrow_plain, utf16_to_utf8,
};
#[cfg(target_arch = "x86_64")]
use super::family::{Avx2, Avx512};
use super::family::{Common, JsonKernels, json_capacity};
use super::memory::destination;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use super::{encode, scalar};
use crate::sink::{Pen, Put};

#[inline(always)]
fn check(pen: &Pen<'_>, n_units: usize) {
    assert!(
        n_units <= usize::MAX / 8 && pen.remaining() >= json_capacity(n_units),
        "not enough space"
    );
}

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($family:ident, $kernels:ident, $float:path, $float32:path) => {
        impl JsonKernels for $family {
            #[inline(always)]
            unsafe fn json_plain(self, u: &[u8], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                let end = unsafe { $kernels::json::plain::<true>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                let end = unsafe { $kernels::json::short_latin1::<true>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                let end = unsafe { $kernels::json::short_wide::<true>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_copy_ucs2(self, u: &[u16], out: *mut u16) -> bool {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                unsafe { $kernels::json::copy_ucs2(u, out) }
            }

            #[inline(always)]
            unsafe fn json_float(self, value: f64, out: *mut u8) -> Option<*mut u8> {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                let end = unsafe { $float(value, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_float32(self, value: f32, out: *mut u8) -> Option<*mut u8> {
                // SAFETY: this type proves that the instructions are available. `out` has the
                // required space.
                let end = unsafe { $float32(value, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            fn put_json_latin1(self, u: &[u8], is_ascii: bool, pen: &mut Pen<'_>) {
                check(pen, u.len());
                // SAFETY: this type proves that the instructions are available. The space was
                // checked above. All bytes before the returned address were written.
                unsafe {
                    let at = $kernels::json::latin1::<true>(u, is_ascii, pen.at());
                    pen.set_at(at);
                }
            }

            #[inline(always)]
            fn put_json_utf8(self, u: &[u8], pen: &mut Pen<'_>) {
                // Non-ASCII bytes need no escape.
                self.put_json_latin1(u, true, pen);
            }

            #[inline(always)]
            fn put_json_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool {
                check(pen, u.len());
                // SAFETY: this type proves that the instructions are available. The space was
                // checked above. All bytes before the returned address were written.
                unsafe {
                    let at = $kernels::json::ucs2::<true>(u, pen.at());
                    if !at.is_null() {
                        pen.set_at(at);
                    }
                    !at.is_null()
                }
            }

            #[inline(always)]
            fn put_json_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool {
                check(pen, u.len());
                // SAFETY: this type proves that the instructions are available. The space was
                // checked above. All bytes before the returned address were written.
                unsafe {
                    let at = $kernels::json::ucs4::<true>(u, pen.at());
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
vectors!(
    Avx512,
    avx512,
    avx512::float::put,
    avx512::float::put_float32
);
#[cfg(target_arch = "x86_64")]
vectors!(Avx2, avx2, avx2::float::put, avx2::float::put_float32);

/// Returns the unused space of a pen.
///
/// # Safety
/// The pen must not be used while the slice exists.
pub(super) unsafe fn rest<'a>(pen: &Pen<'_>) -> &'a mut [MaybeUninit<u8>] {
    // SAFETY: the pen has this space, and `MaybeUninit` needs no initialised contents.
    unsafe { slice::from_raw_parts_mut(pen.at().cast(), pen.remaining()) }
}

/// Advances the pen by `n` bytes.
///
/// # Safety
/// The first `n` bytes of the unused space must have been written.
#[inline(always)]
pub(super) unsafe fn advance(pen: &mut Pen<'_>, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { pen.set_at(pen.at().add(n)) }
}

/// Writes ASCII or UTF-8 as the body of a JSON string.
#[inline(always)]
fn put_bytes(u: &[u8], pen: &mut Pen<'_>) {
    let mut left = u;
    loop {
        // SAFETY: the callers checked the space for escaping all of `u`.
        unsafe {
            let (n, _) = copy_to_escape(left, rest(pen));
            advance(pen, n);
            let Some((&c, after)) = left[n..].split_first() else {
                return;
            };
            pen.put(scalar::escape(c).as_slice());
            left = after;
        }
    }
}

impl JsonKernels for Common {
    #[inline(always)]
    unsafe fn json_plain(self, u: &[u8], out: *mut u8) -> Option<*mut u8> {
        // SAFETY: `out` has space for as many bytes, and nothing else refers to it.
        let (n, _) = copy_to_escape(u, unsafe { destination(out, u.len()) });
        // SAFETY: the address is at most the end of the destination.
        (n == u.len()).then(|| unsafe { out.add(n) })
    }

    #[inline(always)]
    unsafe fn json_short_latin1(self, _: &[u8], _: *mut u8) -> Option<*mut u8> {
        None
    }

    #[inline(always)]
    unsafe fn json_short_ucs2(self, _: &[u16], _: *mut u8) -> Option<*mut u8> {
        None
    }

    #[inline(always)]
    unsafe fn json_copy_ucs2(self, u: &[u16], out: *mut u16) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { scalar::copy_ucs2(u, out) }
    }

    #[inline(always)]
    unsafe fn json_float(self, _: f64, _: *mut u8) -> Option<*mut u8> {
        None
    }

    #[inline(always)]
    unsafe fn json_float32(self, _: f32, _: *mut u8) -> Option<*mut u8> {
        None
    }

    #[inline(always)]
    fn put_json_latin1(self, u: &[u8], known: bool, pen: &mut Pen<'_>) {
        check(pen, u.len());
        if known || is_ascii(u) {
            return put_bytes(u, pen);
        }
        latin1(u, pen);
    }

    #[inline(always)]
    fn put_json_utf8(self, u: &[u8], pen: &mut Pen<'_>) {
        check(pen, u.len());
        put_bytes(u, pen);
    }

    #[inline(always)]
    fn put_json_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool {
        check(pen, u.len());
        ucs2(u, pen)
    }

    #[inline(always)]
    fn put_json_ucs4(self, u: &[u32], pen: &mut Pen<'_>) -> bool {
        check(pen, u.len());
        // SAFETY: the slice is dropped before the pen is used. The kernel has written the bytes.
        unsafe {
            match encode::utf32_to_json(u, rest(pen)) {
                Some(n) => advance(pen, n),
                None => return false,
            }
        }
        true
    }
}

fn latin1(u: &[u8], pen: &mut Pen<'_>) {
    let mut left = u;
    loop {
        let n = find_escape_u8(left);
        // SAFETY: the slice is dropped before the pen is used. The kernel has written the bytes.
        unsafe {
            let n = latin1_to_utf8(&left[..n], rest(pen));
            advance(
                pen,
                n.expect("the caller checked the space of two bytes for each"),
            );
        }
        let Some((&c, after)) = left[n..].split_first() else {
            return;
        };
        pen.put(scalar::escape(c).as_slice());
        left = after;
    }
}

fn ucs2(u: &[u16], pen: &mut Pen<'_>) -> bool {
    if find_surrogate(u) < u.len() {
        return false;
    }
    let mut left = u;
    loop {
        // SAFETY: the callers checked the space for escaping all of `u`.
        unsafe {
            let n = narrow_plain::<true>(left, rest(pen));
            advance(pen, n);
            left = &left[n..];
        }
        let n = find_escape_u16(left);
        if n > 0 {
            // SAFETY: the slice is dropped before the pen is used. The kernel has written the
            // bytes.
            unsafe {
                let n = utf16_to_utf8(&left[..n], rest(pen));
                advance(pen, n.expect("no surrogates, checked above"));
            }
        }
        let Some((&c, after)) = left[n..].split_first() else {
            return true;
        };
        pen.put(scalar::escape(c as u8).as_slice());
        left = after;
    }
}

#[cfg(test)]
mod tests;
