//! The functions of `include/onecopy.h`.
//!
//! Each makes slices of the pointers it is given, after it has looked at what can be seen of them, and calls a safe function.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onecopy_text::convert::within;
use onecopy_text::{Units, find_malformed};

use crate::answer::{self, INTERNAL_ERROR, INVALID_ARGUMENT, NO_ROOM};

/// What [`onecopy_abi_version`] returns: it grows where a function changes or goes, not where one is added.
pub const ABI_VERSION: u32 = 1;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };

/// Runs a function whose panic must not cross the border.
#[inline(always)]
fn guarded(call: impl FnOnce() -> Result<i64, i64>) -> i64 {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(answer) | Err(answer)) => answer,
        Err(_) => INTERNAL_ERROR,
    }
}

/// Whether `n` units at `p` may be an object: no NULL unless empty, aligned, inside the address space.
#[inline(always)]
fn is_place<T>(p: *const T, n: usize) -> bool {
    if n == 0 {
        return true;
    }
    !p.is_null() && p.is_aligned() && n <= isize::MAX as usize / size_of::<T>()
}

/// # Safety
/// `p` is NULL and `n` is 0, or `n` units at `p` are readable and nobody changes them during the call.
#[inline(always)]
unsafe fn source<'a, T>(p: *const T, n: usize) -> Result<&'a [T], i64> {
    if !is_place(p, n) {
        return Err(INVALID_ARGUMENT);
    }
    if n == 0 {
        return Ok(&[]);
    }
    // SAFETY: not NULL, aligned and of a size that objects have, looked at above; the rest is the caller's duty.
    Ok(unsafe { std::slice::from_raw_parts(p, n) })
}

/// # Safety
/// As [`source`], and the units are writable, by nobody else during the call.
#[inline(always)]
unsafe fn destination<'a, F, T>(
    p: *mut T,
    n: usize,
    src: &[F],
) -> Result<&'a mut [MaybeUninit<T>], i64> {
    if !is_place(p, n) {
        return Err(INVALID_ARGUMENT);
    }
    if n == 0 {
        return Ok(&mut []);
    }
    let (from, to) = (
        src.as_ptr_range(),
        p.cast_const()..p.wrapping_add(n).cast_const(),
    );
    if from.start.addr() < to.end.addr() && to.start.addr() < from.end.addr() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: not NULL, aligned and of a size that objects have, and apart from src, looked at above; the rest is the caller's
    // duty. MaybeUninit asks nothing of what is there.
    Ok(unsafe { std::slice::from_raw_parts_mut(p.cast(), n) })
}

/// Bytes that `onecopy_utf16_to_utf8` would write.
///
/// # Safety
/// `n_units` units at `src` are readable; NULL where there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_len_from_utf16(
    src: *const u16,
    n_units: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_units) }?;
        Ok(answer::of_len(within::utf8_len_from_utf16(
            src,
            answer::replacement(replacement)?,
        )))
    })
}

/// Writes UTF-16 as UTF-8.
///
/// # Safety
/// `n_units` units at `src` are readable, `capacity_bytes` at `dst` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf16_to_utf8(
    src: *const u16,
    n_units: usize,
    dst: *mut u8,
    capacity_bytes: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: the duties of the caller.
        let src = unsafe { source(src, n_units) }?;
        // SAFETY: as well.
        let dst = unsafe { destination(dst, capacity_bytes, src) }?;
        Ok(answer::of(within::utf16_to_utf8(
            src,
            answer::replacement(replacement)?,
            dst,
        )))
    })
}

/// Writes UTF-8 as UTF-16.
///
/// # Safety
/// `n_bytes` at `src` are readable, `capacity_units` units at `dst` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_utf16(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u16,
    capacity_units: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: the duties of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        // SAFETY: as well.
        let dst = unsafe { destination(dst, capacity_units, src) }?;
        Ok(answer::of(within::utf8_to_utf16(
            src,
            answer::replacement(replacement)?,
            dst,
        )))
    })
}

/// Writes UTF-8 as Latin-1.
///
/// # Safety
/// `n_bytes` at `src` are readable, `capacity_bytes` at `dst` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_latin1(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u8,
    capacity_bytes: usize,
) -> i64 {
    guarded(|| {
        // SAFETY: the duties of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        // SAFETY: as well.
        let dst = unsafe { destination(dst, capacity_bytes, src) }?;
        Ok(answer::of(within::utf8_to_latin1(src, dst)))
    })
}

/// Writes Latin-1 as UTF-8.
///
/// # Safety
/// `n_bytes` at `src` are readable, `capacity_bytes` at `dst` writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_latin1_to_utf8(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u8,
    capacity_bytes: usize,
) -> i64 {
    guarded(|| {
        // SAFETY: the duties of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        // SAFETY: as well.
        let dst = unsafe { destination(dst, capacity_bytes, src) }?;
        Ok(answer::of(within::latin1_to_utf8(src, dst)))
    })
}

/// Units that `onecopy_utf8_to_utf16` would write.
///
/// # Safety
/// `n_bytes` at `src` are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf16_len_from_utf8(
    src: *const u8,
    n_bytes: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        Ok(answer::of_len(within::utf16_len_from_utf8(
            src,
            answer::replacement(replacement)?,
        )))
    })
}

/// The index of the first malformed byte of UTF-8, or `n_bytes`.
///
/// # Safety
/// `n_bytes` at `src` are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_find_malformed(src: *const u8, n_bytes: usize) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        let found = find_malformed(Units::Utf8(src));
        Ok(answer::count(found.map_or(n_bytes, |e| e.at_units)))
    })
}

/// Bytes before the first that is not ASCII.
///
/// # Safety
/// `n_bytes` at `src` are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_ascii_prefix(src: *const u8, n_bytes: usize) -> i64 {
    guarded(|| {
        // SAFETY: the duty of the caller.
        let src = unsafe { source(src, n_bytes) }?;
        Ok(answer::count(within::ascii_prefix(src)))
    })
}

/// Writes UTF-16 as a string of BSON: a 32-bit length, UTF-8, a NUL.
///
/// # Safety
/// As of `onecopy_utf16_to_utf8`.
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
        let src = unsafe { source(src, n_units) }?;
        // SAFETY: as well.
        let dst = unsafe { destination(dst, capacity_bytes, src) }?;
        let replacement = answer::replacement(replacement)?;
        let Some(room) = dst.len().checked_sub(5) else {
            // What is wrong with the text is told first, here too.
            return Err(match within::utf8_len_from_utf16(src, replacement) {
                Ok(_) => NO_ROOM,
                Err(e) => answer::malformed(e),
            });
        };
        let n = within::utf16_to_utf8(src, replacement, &mut dst[4..4 + room]);
        let n = n.map_err(|e| answer::of(Err(e)))?;
        let length = i32::try_from(n + 1).map_err(|_| INVALID_ARGUMENT)?;
        for (to, byte) in dst.iter_mut().zip(length.to_le_bytes()) {
            to.write(byte);
        }
        dst[4 + n].write(0);
        Ok(answer::count(n + 5))
    })
}

/// The version of this interface.
#[unsafe(no_mangle)]
pub extern "C" fn onecopy_abi_version() -> u32 {
    ABI_VERSION
}

/// The version of the library, as text that stays.
#[unsafe(no_mangle)]
pub extern "C" fn onecopy_version() -> *const c_char {
    VERSION.as_ptr()
}
