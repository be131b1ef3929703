//! The functions of `include/onecopy.h`, which is made of their documentation.
//!
//! Each makes slices of the pointers it is given, after it has checked what can be checked of them,
//! and calls a safe function. Another thread, process or device may write to a source meanwhile:
//! the answer is then an error, or of a mix of what was there at different times; nothing is
//! written past a capacity.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onecopy_text::convert::within;
use onecopy_text::{Units, find_malformed};

use crate::answer::{self, ONECOPY_INTERNAL_ERROR, ONECOPY_INVALID_ARGUMENT, ONECOPY_NO_ROOM};

/// The version of the interface that this header describes. It grows where a function changes or goes, not where one is added.
pub const ONECOPY_ABI_VERSION: u32 = 1;

/// Bytes of a string of BSON beside its text: the length and the NUL.
const BSON_FRAME_BYTES: usize = 5;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };

/// Bytes that UTF-16 takes as UTF-8: what `onecopy_utf16_to_utf8` would write. Replacements are counted.
///
/// `n_units` units are readable at `src`. Returns the bytes, or -1 - k. Writes nothing.
///
/// # Safety
/// `src` is readable for `n_units`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_len_from_utf16(
    src: *const u16,
    n_units: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_units) }?;
        let replacement = answer::replacement(replacement)?;
        Ok(answer::of_len(within::utf8_len_from_utf16(
            src,
            replacement,
        )))
    })
}

/// Writes UTF-16 as UTF-8 (RFC 3629), without a NUL.
///
/// A unit takes 3 bytes at most, a pair 4: with a capacity of 3 * n_units there is always room but for replacements past U+FFFF,
/// which take 4. Returns the bytes written, -1 - k or ONECOPY_NO_ROOM. The text is read once.
///
/// # Safety
/// `src` is readable for `n_units`. `dst` is writable for `capacity_bytes`, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf16_to_utf8(
    src: *const u16,
    n_units: usize,
    dst: *mut u8,
    capacity_bytes: usize,
    replacement: u32,
) -> i64 {
    // SAFETY: the duties of the caller.
    unsafe { onecopy_utf16_to_utf8_at(src, 0, n_units, dst, 0, capacity_bytes, replacement) }
}

/// Writes UTF-8 as UTF-16, without a NUL or a byte order mark; one in the source is a character like others.
///
/// A byte gives 1 unit at most: with a capacity of n_bytes there is always room but for replacements past U+FFFF, which take 2.
/// Returns the units written, -1 - k or ONECOPY_NO_ROOM.
///
/// # Safety
/// `src` is readable for `n_bytes`. `dst` is writable for `capacity_units`, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_utf16(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u16,
    capacity_units: usize,
    replacement: u32,
) -> i64 {
    // SAFETY: the duties of the caller.
    unsafe { onecopy_utf8_to_utf16_at(src, 0, n_bytes, dst, 0, capacity_units, replacement) }
}

/// Writes UTF-8 as Latin-1 (ISO 8859-1: each byte is its code point).
///
/// A character past U+00FF counts as malformed. Returns the bytes written, -1 - k or ONECOPY_NO_ROOM; with a capacity of n_bytes
/// there is always room.
///
/// # Safety
/// `src` is readable for `n_bytes`. `dst` is writable for `capacity_bytes`, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_latin1(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u8,
    capacity_bytes: usize,
) -> i64 {
    // SAFETY: the duties of the caller.
    unsafe { onecopy_utf8_to_latin1_at(src, 0, n_bytes, dst, 0, capacity_bytes) }
}

/// Writes Latin-1 as UTF-8, without a NUL. No text is malformed.
///
/// With a capacity of 2 * n_bytes there is always room. Returns the bytes written, or ONECOPY_NO_ROOM.
///
/// # Safety
/// `src` is readable for `n_bytes`. `dst` is writable for `capacity_bytes`, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_latin1_to_utf8(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u8,
    capacity_bytes: usize,
) -> i64 {
    // SAFETY: the duties of the caller.
    unsafe { onecopy_latin1_to_utf8_at(src, 0, n_bytes, dst, 0, capacity_bytes) }
}

/// As `onecopy_utf16_to_utf8`, of `n_units` from `src_at` on, to `dst_at`.
///
/// For callers that can name the beginning of an array alone, as managed runtimes. Positions and counts are from those places on.
///
/// # Safety
/// `src` is readable for `src_at` + `n_units`. `dst` is writable from `dst_at` on for
/// `capacity_bytes`, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf16_to_utf8_at(
    src: *const u16,
    src_at: usize,
    n_units: usize,
    dst: *mut u8,
    dst_at: usize,
    capacity_bytes: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        let dst = behind(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: the duties of the caller.
        let (src, dst) = unsafe { both(behind(src, src_at), n_units, dst, capacity_bytes) }?;
        let replacement = answer::replacement(replacement)?;
        Ok(answer::of(within::utf16_to_utf8(src, replacement, dst)))
    })
}

/// As `onecopy_utf8_to_utf16`, of `n_bytes` from `src_at` on, to `dst_at`.
///
/// For callers that can name the beginning of an array alone, as managed runtimes. Positions and counts are from those places on.
///
/// # Safety
/// `src` is readable for `src_at` + `n_bytes`. `dst` is writable from `dst_at` on for
/// `capacity_units`, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_utf16_at(
    src: *const u8,
    src_at: usize,
    n_bytes: usize,
    dst: *mut u16,
    dst_at: usize,
    capacity_units: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        let dst = behind(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: the duties of the caller.
        let (src, dst) = unsafe { both(behind(src, src_at), n_bytes, dst, capacity_units) }?;
        let replacement = answer::replacement(replacement)?;
        Ok(answer::of(within::utf8_to_utf16(src, replacement, dst)))
    })
}

/// As `onecopy_utf8_to_latin1`, of `n_bytes` from `src_at` on, to `dst_at`.
///
/// For callers that can name the beginning of an array alone, as managed runtimes. Positions and counts are from those places on.
///
/// # Safety
/// `src` is readable for `src_at` + `n_bytes`. `dst` is writable from `dst_at` on for
/// `capacity_bytes`, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_latin1_at(
    src: *const u8,
    src_at: usize,
    n_bytes: usize,
    dst: *mut u8,
    dst_at: usize,
    capacity_bytes: usize,
) -> i64 {
    guarded(|| {
        let dst = behind(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: the duties of the caller.
        let (src, dst) = unsafe { both(behind(src, src_at), n_bytes, dst, capacity_bytes) }?;
        Ok(answer::of(within::utf8_to_latin1(src, dst)))
    })
}

/// As `onecopy_latin1_to_utf8`, of `n_bytes` from `src_at` on, to `dst_at`.
///
/// For callers that can name the beginning of an array alone, as managed runtimes. Positions and counts are from those places on.
///
/// # Safety
/// `src` is readable for `src_at` + `n_bytes`. `dst` is writable from `dst_at` on for
/// `capacity_bytes`, and nobody else uses it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_latin1_to_utf8_at(
    src: *const u8,
    src_at: usize,
    n_bytes: usize,
    dst: *mut u8,
    dst_at: usize,
    capacity_bytes: usize,
) -> i64 {
    guarded(|| {
        let dst = behind(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: the duties of the caller.
        let (src, dst) = unsafe { both(behind(src, src_at), n_bytes, dst, capacity_bytes) }?;
        Ok(answer::of(within::latin1_to_utf8(src, dst)))
    })
}

/// Units that UTF-8 takes as UTF-16: what `onecopy_utf8_to_utf16` would write. Replacements are counted.
///
/// Returns the units, or -1 - k. Writes nothing.
///
/// # Safety
/// `src` is readable for `n_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf16_len_from_utf8(
    src: *const u8,
    n_bytes: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        let replacement = answer::replacement(replacement)?;
        Ok(answer::of_len(within::utf16_len_from_utf8(
            src,
            replacement,
        )))
    })
}

/// Where UTF-8 is first malformed (RFC 3629: no overlong forms, no surrogates).
///
/// Returns the index of the first byte of the first ill-formed sequence, or n_bytes where the text is well-formed: no position comes
/// as -1 - k here.
///
/// # Safety
/// `src` is readable for `n_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_find_malformed(src: *const u8, n_bytes: usize) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        let found = find_malformed(Units::Utf8(src));
        Ok(answer::count(found.map_or(n_bytes, |e| e.at_units)))
    })
}

/// Bytes before the first that is not ASCII; n_bytes where all are.
///
/// # Safety
/// `src` is readable for `n_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_ascii_prefix(src: *const u8, n_bytes: usize) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        Ok(answer::count(within::ascii_prefix(src)))
    })
}

/// Writes UTF-16 as a string of BSON (bsonspec.org, 1.1): its length as an int32, little-endian, UTF-8, a NUL. The length counts the NUL and
/// not itself.
///
/// With a capacity of 3 * n_units + 5 there is always room but for replacements past U+FFFF. Returns the bytes written, all of these,
/// -1 - k or ONECOPY_NO_ROOM; ONECOPY_INVALID_ARGUMENT for a text of 2 GiB. A U+0000 in the text is written as it is, which BSON allows.
///
/// # Safety
/// `src` is readable for `n_units`. `dst` is writable for `capacity_bytes`, and nobody else uses it
/// meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_bson_string(
    src: *const u16,
    n_units: usize,
    dst: *mut u8,
    capacity_bytes: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: the duties of the caller.
        let (src, dst) = unsafe { both(src, n_units, dst, capacity_bytes) }?;
        let replacement = answer::replacement(replacement)?;
        bson_string(src, replacement, dst)
    })
}

fn bson_string(
    src: &[u16],
    replacement: Option<char>,
    dst: &mut [MaybeUninit<u8>],
) -> Result<i64, i64> {
    let Some(room) = dst.len().checked_sub(BSON_FRAME_BYTES) else {
        // What is wrong with the text is told first, here too.
        return Err(match within::utf8_len_from_utf16(src, replacement) {
            Ok(_) => ONECOPY_NO_ROOM,
            Err(e) => answer::malformed(e),
        });
    };
    let n = within::utf16_to_utf8(src, replacement, &mut dst[4..4 + room])
        .map_err(|e| answer::of(Err(e)))?;
    let length = i32::try_from(n + 1).map_err(|_| ONECOPY_INVALID_ARGUMENT)?;
    for (to, byte) in dst.iter_mut().zip(length.to_le_bytes()) {
        to.write(byte);
    }
    dst[4 + n].write(0);
    Ok(answer::count(n + BSON_FRAME_BYTES))
}

/// The version of the interface of the library that is loaded: ONECOPY_ABI_VERSION of its own header. A program that finds another
/// number than that of its header must not go on.
#[unsafe(no_mangle)]
pub extern "C" fn onecopy_abi_version() -> u32 {
    ONECOPY_ABI_VERSION
}

/// The version of the library, as text that stays where it is: `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn onecopy_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Runs a function whose panic must not cross the border.
#[inline(always)]
fn guarded(call: impl FnOnce() -> Result<i64, i64>) -> i64 {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(answer) | Err(answer)) => answer,
        Err(_) => ONECOPY_INTERNAL_ERROR,
    }
}

/// So many units behind `p`; NULL for NULL, and where that lies outside the address space.
#[inline(always)]
fn behind<T>(p: *const T, at: usize) -> *const T {
    let is_inside = at
        .checked_mul(size_of::<T>())
        .is_some_and(|n_bytes| p.addr().checked_add(n_bytes).is_some());
    if p.is_null() || !is_inside {
        std::ptr::null()
    } else {
        p.wrapping_add(at)
    }
}

/// Whether `n` units at `p` may be an object: no NULL unless empty, aligned, inside the address space.
#[inline(always)]
fn is_place<T>(p: *const T, n: usize) -> bool {
    n == 0
        || (!p.is_null()
            && p.is_aligned()
            && n <= isize::MAX as usize / size_of::<T>()
            && p.addr().checked_add(n * size_of::<T>()).is_some())
}

/// # Safety
/// Unless `n` is 0: `p` is readable for `n` units. Others may write there while the slice is used,
/// which Rust does not allow of a slice: it is passed only to functions that bear it
/// (`onecopy_text::convert::within`).
#[inline(always)]
unsafe fn source<'a, T>(p: *const T, n: usize) -> Result<&'a [T], i64> {
    if !is_place(p, n) {
        return Err(ONECOPY_INVALID_ARGUMENT);
    }
    if n == 0 {
        return Ok(&[]);
    }
    // SAFETY: not NULL, aligned and of a size that objects have, checked above; readable by the
    // caller's word. Its contents may change, which the functions of `within` bear: they store
    // nothing outside of their destination, whatever they read.
    Ok(unsafe { std::slice::from_raw_parts(p, n) })
}

/// # Safety
/// As [`source`], and unless `capacity` is 0: `dst` is writable for as many units, used by nobody else meanwhile.
#[inline(always)]
unsafe fn both<'a, F, T>(
    src: *const F,
    n: usize,
    dst: *mut T,
    capacity: usize,
) -> Result<(&'a [F], &'a mut [MaybeUninit<T>]), i64> {
    // SAFETY: the caller's duty.
    let src = unsafe { source(src, n) }?;
    if !is_place(dst, capacity) {
        return Err(ONECOPY_INVALID_ARGUMENT);
    }
    if capacity == 0 {
        return Ok((src, &mut []));
    }
    let (from, to) = (src.as_ptr().addr(), dst.addr());
    if from < to + capacity * size_of::<T>() && to < from + size_of_val(src) {
        return Err(ONECOPY_INVALID_ARGUMENT);
    }
    // SAFETY: not NULL, aligned, of a size that objects have, apart from src, looked at above; the rest is the caller's duty.
    // MaybeUninit asks nothing of what is there.
    Ok((src, unsafe {
        std::slice::from_raw_parts_mut(dst.cast(), capacity)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_number_at_the_border() {
        assert_eq!(guarded(|| panic!("planted")), ONECOPY_INTERNAL_ERROR);
        assert_eq!(guarded(|| Ok(7)), 7);
        assert_eq!(guarded(|| Err(-8)), -8);
    }
}
