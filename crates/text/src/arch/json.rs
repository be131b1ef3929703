//! Text as the body of a JSON string behind a [`Pen`]: the steps of a writer of objects, which has thousands of short texts.
//!
//! [`convert::to_json_body`](crate::convert::to_json_body) does the same for one text of any form into any sink.

use std::mem::MaybeUninit;
use std::slice;

#[cfg(target_arch = "x86_64")]
use super::family::{Avx2, Avx512};
use super::family::{Common, JsonKernels, json_room};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use super::{
    copy_to_escape, encode, find_escape_u8, find_escape_u16, is_ascii, narrow_plain, scalar,
};
use crate::sink::{Pen, Put};

#[inline(always)]
fn check(pen: &Pen<'_>, n_units: usize) {
    assert!(
        n_units <= usize::MAX / 8 && pen.room() >= json_room(n_units),
        "no room"
    );
}

#[cfg(target_arch = "x86_64")]
macro_rules! vectors {
    ($family:ident, $kernels:ident, $float:path, $float32:path) => {
        impl JsonKernels for $family {
            #[inline(always)]
            unsafe fn json_plain(self, u: &[u8], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: a value of this type proves that its instructions are there; the duty of the caller.
                let end = unsafe { $kernels::json::plain::<true>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_short_latin1(self, u: &[u8], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: a value of this type proves that its instructions are there; the duty of the caller.
                let end = unsafe { $kernels::json::short_latin1::<true>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_short_ucs2(self, u: &[u16], out: *mut u8) -> Option<*mut u8> {
                // SAFETY: a value of this type proves that its instructions are there; the duty of the caller.
                let end = unsafe { $kernels::json::short_wide::<true>(u, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_copy_ucs2(self, u: &[u16], out: *mut u16) -> bool {
                // SAFETY: a value of this type proves that its instructions are there; the duty of the caller.
                unsafe { $kernels::json::copy_ucs2(u, out) }
            }

            #[inline(always)]
            unsafe fn json_float(self, value: f64, out: *mut u8) -> Option<*mut u8> {
                // SAFETY: a value of this type proves that its instructions are there; the duty of the caller.
                let end = unsafe { $float(value, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            unsafe fn json_float32(self, value: f32, out: *mut u8) -> Option<*mut u8> {
                // SAFETY: a value of this type proves that its instructions are there; the duty of
                // the caller.
                let end = unsafe { $float32(value, out) };
                (!end.is_null()).then_some(end)
            }

            #[inline(always)]
            fn put_json_latin1(self, u: &[u8], is_ascii: bool, pen: &mut Pen<'_>) {
                check(pen, u.len());
                // SAFETY: a value of this type proves that its instructions are there; the pen has the room, checked above, and all up to where
                // the kernel says was written.
                unsafe {
                    let at = $kernels::json::latin1::<true>(u, is_ascii, pen.at());
                    pen.set_at(at);
                }
            }

            #[inline(always)]
            fn put_json_utf8(self, u: &[u8], pen: &mut Pen<'_>) {
                // Bytes past ASCII are as good as others: they are not looked at.
                self.put_json_latin1(u, true, pen);
            }

            #[inline(always)]
            fn put_json_ucs2(self, u: &[u16], pen: &mut Pen<'_>) -> bool {
                check(pen, u.len());
                // SAFETY: the instructions are there, and the pen has the room, as for Latin-1; up to where the kernel says all was written.
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
                // SAFETY: the instructions are there, and the pen has the room, as for Latin-1; up to where the kernel says all was written.
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

/// The rest of the room of a pen.
///
/// # Safety
/// The pen is not used while the slice lives.
pub(super) unsafe fn rest<'a>(pen: &Pen<'_>) -> &'a mut [MaybeUninit<u8>] {
    // SAFETY: from `at` on there is as much room; MaybeUninit asks nothing of its contents.
    unsafe { slice::from_raw_parts_mut(pen.at().cast(), pen.room()) }
}

/// Counts what a kernel has written.
///
/// # Safety
/// The first `n` bytes of the rest were written.
#[inline(always)]
pub(super) unsafe fn advance(pen: &mut Pen<'_>, n: usize) {
    // SAFETY: the duty of the caller.
    unsafe { pen.set_at(pen.at().add(n)) }
}

/// Puts bytes, escaped; whether one of them is past ASCII.
#[inline(always)]
fn put_bytes(u: &[u8], pen: &mut Pen<'_>) {
    let mut left = u;
    loop {
        // SAFETY: the room is that of the escapes of all of u, checked by the callers.
        unsafe {
            let (n, _) = copy_to_escape(left, pen.at());
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
        // SAFETY: out takes as many bytes, by the caller's word.
        let (n, _) = unsafe { copy_to_escape(u, out) };
        // SAFETY: inside of the place, or right behind it.
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
        // SAFETY: the duty of the caller.
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
        // SAFETY: the slice is dropped before the pen is used again; the kernel has written as many bytes as it says.
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
        // SAFETY: the slice is dropped before the pen is used again; the kernel has written as many bytes as it says.
        unsafe {
            let n = encode::latin1_to_utf8(&left[..n], rest(pen));
            advance(pen, n);
        }
        let Some((&c, after)) = left[n..].split_first() else {
            return;
        };
        pen.put(scalar::escape(c).as_slice());
        left = after;
    }
}

fn ucs2(u: &[u16], pen: &mut Pen<'_>) -> bool {
    if super::find_surrogate(u) < u.len() {
        return false;
    }
    let mut left = u;
    loop {
        // SAFETY: the room is that of the escapes of all of u, checked by the callers.
        unsafe {
            let n = narrow_plain::<true>(left, pen.at());
            advance(pen, n);
            left = &left[n..];
        }
        let n = find_escape_u16(left);
        if n > 0 {
            // SAFETY: the slice is dropped before the pen is used again; the kernel has written as many bytes as it says.
            unsafe {
                let n = encode::utf16_to_utf8(&left[..n], rest(pen));
                advance(pen, n.expect("no surrogates, looked at above"));
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
