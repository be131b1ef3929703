//! The functions of `include/onecopy.h`, which is generated from their documentation.
//!
//! Each function validates its pointers as far as possible, converts them to slices and calls a
//! safe function. Another thread, process or device may write to a source during the call. The
//! result is then an error, or the conversion of a mix of the old and the new contents. In every
//! case, nothing is written past the capacity of a destination.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onecopy_text::convert::within;
use onecopy_text::{Units, find_malformed};

use crate::result_code::{self, ONECOPY_INTERNAL_ERROR, ONECOPY_INVALID_ARGUMENT, ONECOPY_NO_ROOM};

/// The version of the interface that this header describes. It is incremented when a function is
/// changed or removed, not when one is added.
pub const ONECOPY_ABI_VERSION: u32 = 1;

/// The number of bytes that a BSON string has in addition to its text: 4 for the length prefix and
/// 1 for the terminating NUL.
const BSON_FRAME_BYTES: usize = 5;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no NUL"),
    };

/// Returns the length of UTF-16 text converted to UTF-8: the number of bytes that
/// `onecopy_utf16_to_utf8` would write, including replacements.
///
/// Returns -1 - k if the first malformed sequence starts at unit k. Writes nothing.
///
/// # Safety
/// `src` must be readable for `n_units`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_len_from_utf16(
    src: *const u16,
    n_units: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let src = unsafe { source(src, n_units) }?;
        let replacement = result_code::replacement(replacement)?;
        Ok(result_code::of_len(within::utf8_len_from_utf16(
            src,
            replacement,
        )))
    })
}

/// Converts UTF-16 to UTF-8 (RFC 3629), without a terminating NUL.
///
/// A unit needs at most 3 bytes, and a surrogate pair 4. So a capacity of 3 * n_units is always
/// sufficient, unless `replacement` is past U+FFFF: each replacement then needs 4 bytes. Returns
/// the number of bytes written; -1 - k if the first malformed sequence starts at unit k; or
/// ONECOPY_NO_ROOM. Well-formed text that fits is read once.
///
/// # Safety
/// `src` must be readable for `n_units`. `dst` must be writable for `capacity_bytes`, and nothing
/// else may access it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf16_to_utf8(
    src: *const u16,
    n_units: usize,
    dst: *mut u8,
    capacity_bytes: usize,
    replacement: u32,
) -> i64 {
    // SAFETY: guaranteed by the caller, as documented above.
    unsafe { onecopy_utf16_to_utf8_at(src, 0, n_units, dst, 0, capacity_bytes, replacement) }
}

/// Converts UTF-8 to UTF-16, without a terminating NUL or a byte order mark. A byte order mark in
/// the source is converted like any character.
///
/// A byte yields at most 1 unit. So a capacity of n_bytes is always sufficient, unless
/// `replacement` is past U+FFFF: each replacement then needs 2 units. Returns the number of units
/// written; -1 - k if the first malformed sequence starts at byte k; or ONECOPY_NO_ROOM.
///
/// # Safety
/// `src` must be readable for `n_bytes`. `dst` must be writable for `capacity_units`, and nothing
/// else may access it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_utf16(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u16,
    capacity_units: usize,
    replacement: u32,
) -> i64 {
    // SAFETY: guaranteed by the caller, as documented above.
    unsafe { onecopy_utf8_to_utf16_at(src, 0, n_bytes, dst, 0, capacity_units, replacement) }
}

/// Converts UTF-8 to Latin-1 (ISO 8859-1: each byte is the code point of its character).
///
/// A character past U+00FF is treated as malformed. Returns the number of bytes written; -1 - k if
/// the first malformed sequence starts at byte k; or ONECOPY_NO_ROOM. A capacity of n_bytes is
/// always sufficient.
///
/// # Safety
/// `src` must be readable for `n_bytes`. `dst` must be writable for `capacity_bytes`, and nothing
/// else may access it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_to_latin1(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u8,
    capacity_bytes: usize,
) -> i64 {
    // SAFETY: guaranteed by the caller, as documented above.
    unsafe { onecopy_utf8_to_latin1_at(src, 0, n_bytes, dst, 0, capacity_bytes) }
}

/// Converts Latin-1 to UTF-8, without a terminating NUL. Every sequence of bytes is valid Latin-1.
///
/// A capacity of 2 * n_bytes is always sufficient. Returns the number of bytes written, or
/// ONECOPY_NO_ROOM.
///
/// # Safety
/// `src` must be readable for `n_bytes`. `dst` must be writable for `capacity_bytes`, and nothing
/// else may access it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_latin1_to_utf8(
    src: *const u8,
    n_bytes: usize,
    dst: *mut u8,
    capacity_bytes: usize,
) -> i64 {
    // SAFETY: guaranteed by the caller, as documented above.
    unsafe { onecopy_latin1_to_utf8_at(src, 0, n_bytes, dst, 0, capacity_bytes) }
}

/// Converts UTF-16 to UTF-8 as `onecopy_utf16_to_utf8` does, but reads `n_units` units from index
/// `src_at` on and writes from index `dst_at` on.
///
/// The function is for callers that can only pass the start of an array, such as managed runtimes.
/// The index k in the result is relative to `src_at`.
///
/// # Safety
/// `src` must be readable for `src_at` + `n_units`. `dst` must be writable from `dst_at` on for
/// `capacity_bytes`, and not accessed by others during the call.
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
        let dst = after(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: guaranteed by the caller, as documented above.
        let (src, dst) = unsafe { both(after(src, src_at), n_units, dst, capacity_bytes) }?;
        let replacement = result_code::replacement(replacement)?;
        Ok(result_code::of(within::utf16_to_utf8(
            src,
            replacement,
            dst,
        )))
    })
}

/// Converts UTF-8 to UTF-16 as `onecopy_utf8_to_utf16` does, but reads `n_bytes` bytes from index
/// `src_at` on and writes from index `dst_at` on.
///
/// The function is for callers that can only pass the start of an array, such as managed runtimes.
/// The index k in the result is relative to `src_at`.
///
/// # Safety
/// `src` must be readable for `src_at` + `n_bytes`. `dst` must be writable from `dst_at` on for
/// `capacity_units`, and not accessed by others during the call.
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
        let dst = after(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: guaranteed by the caller, as documented above.
        let (src, dst) = unsafe { both(after(src, src_at), n_bytes, dst, capacity_units) }?;
        let replacement = result_code::replacement(replacement)?;
        Ok(result_code::of(within::utf8_to_utf16(
            src,
            replacement,
            dst,
        )))
    })
}

/// Converts UTF-8 to Latin-1 as `onecopy_utf8_to_latin1` does, but reads `n_bytes` bytes from index
/// `src_at` on and writes from index `dst_at` on.
///
/// The function is for callers that can only pass the start of an array, such as managed runtimes.
/// The index k in the result is relative to `src_at`.
///
/// # Safety
/// `src` must be readable for `src_at` + `n_bytes`. `dst` must be writable from `dst_at` on for
/// `capacity_bytes`, and not accessed by others during the call.
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
        let dst = after(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: guaranteed by the caller, as documented above.
        let (src, dst) = unsafe { both(after(src, src_at), n_bytes, dst, capacity_bytes) }?;
        Ok(result_code::of(within::utf8_to_latin1(src, dst)))
    })
}

/// Converts Latin-1 to UTF-8 as `onecopy_latin1_to_utf8` does, but reads `n_bytes` bytes from index
/// `src_at` on and writes from index `dst_at` on.
///
/// The function is for callers that can only pass the start of an array, such as managed runtimes.
///
/// # Safety
/// `src` must be readable for `src_at` + `n_bytes`. `dst` must be writable from `dst_at` on for
/// `capacity_bytes`, and not accessed by others during the call.
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
        let dst = after(dst.cast_const(), dst_at).cast_mut();
        // SAFETY: guaranteed by the caller, as documented above.
        let (src, dst) = unsafe { both(after(src, src_at), n_bytes, dst, capacity_bytes) }?;
        Ok(result_code::of(within::latin1_to_utf8(src, dst)))
    })
}

/// Returns the length of UTF-8 text converted to UTF-16: the number of units that
/// `onecopy_utf8_to_utf16` would write, including replacements.
///
/// Returns -1 - k if the first malformed sequence starts at byte k. Writes nothing.
///
/// # Safety
/// `src` must be readable for `n_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf16_len_from_utf8(
    src: *const u8,
    n_bytes: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let src = unsafe { source(src, n_bytes) }?;
        let replacement = result_code::replacement(replacement)?;
        Ok(result_code::of_len(within::utf16_len_from_utf8(
            src,
            replacement,
        )))
    })
}

/// Finds the first malformed sequence of UTF-8 (RFC 3629: no overlong forms, no surrogates).
///
/// Returns the index k of the first byte of this sequence, or n_bytes if the text is well-formed.
/// Other functions return such an index as -1 - k; this function returns k itself.
///
/// # Safety
/// `src` must be readable for `n_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_find_malformed(src: *const u8, n_bytes: usize) -> i64 {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let src = unsafe { source(src, n_bytes) }?;
        let found = find_malformed(Units::Utf8(src));
        Ok(result_code::count(found.map_or(n_bytes, |e| e.at_units)))
    })
}

/// Returns the number of bytes before the first one that is not ASCII; n_bytes if all bytes are
/// ASCII.
///
/// # Safety
/// `src` must be readable for `n_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_utf8_ascii_prefix(src: *const u8, n_bytes: usize) -> i64 {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let src = unsafe { source(src, n_bytes) }?;
        Ok(result_code::count(within::ascii_prefix(src)))
    })
}

/// Converts UTF-16 to a BSON string (bsonspec.org, 1.1): the length as a little-endian int32, the
/// text in UTF-8, and a NUL. The length includes the NUL, but not the length itself.
///
/// A capacity of 3 * n_units + 5 is always sufficient, unless `replacement` is past U+FFFF: each
/// replacement then needs 4 bytes. Returns the number of bytes written, with length and NUL; -1 - k
/// if the first malformed sequence starts at unit k; ONECOPY_NO_ROOM; or ONECOPY_INVALID_ARGUMENT
/// for a text of 2 GiB or more. A U+0000 in the text is written unchanged, which BSON permits.
///
/// # Safety
/// `src` must be readable for `n_units`. `dst` must be writable for `capacity_bytes`, and nothing
/// else may access it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn onecopy_bson_string(
    src: *const u16,
    n_units: usize,
    dst: *mut u8,
    capacity_bytes: usize,
    replacement: u32,
) -> i64 {
    guarded(|| {
        // SAFETY: guaranteed by the caller, as documented above.
        let (src, dst) = unsafe { both(src, n_units, dst, capacity_bytes) }?;
        let replacement = result_code::replacement(replacement)?;
        bson_string(src, replacement, dst)
    })
}

fn bson_string(
    src: &[u16],
    replacement: Option<char>,
    dst: &mut [MaybeUninit<u8>],
) -> Result<i64, i64> {
    let Some(capacity) = dst.len().checked_sub(BSON_FRAME_BYTES) else {
        // As in the other conversions, malformed text is reported before a destination that is too
        // small.
        return Err(match within::utf8_len_from_utf16(src, replacement) {
            Ok(_) => ONECOPY_NO_ROOM,
            Err(e) => result_code::malformed(e),
        });
    };
    let n = within::utf16_to_utf8(src, replacement, &mut dst[4..4 + capacity])
        .map_err(|e| result_code::of(Err(e)))?;
    let length = i32::try_from(n + 1).map_err(|_| ONECOPY_INVALID_ARGUMENT)?;
    for (to, byte) in dst.iter_mut().zip(length.to_le_bytes()) {
        to.write(byte);
    }
    dst[4 + n].write(0);
    Ok(result_code::count(n + BSON_FRAME_BYTES))
}

/// Returns the interface version of the loaded library. A program must not use the library if this
/// version differs from ONECOPY_ABI_VERSION in the header that the program was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn onecopy_abi_version() -> u32 {
    ONECOPY_ABI_VERSION
}

/// Returns the version of the library as static text, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn onecopy_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Calls a function of the interface; returns [`ONECOPY_INTERNAL_ERROR`] if it panics.
#[inline(always)]
fn guarded(call: impl FnOnce() -> Result<i64, i64>) -> i64 {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(result) | Err(result)) => result,
        Err(_) => ONECOPY_INTERNAL_ERROR,
    }
}

/// Returns `p` advanced by `at` units; NULL if `p` is NULL or the result is outside the address
/// space.
#[inline(always)]
fn after<T>(p: *const T, at: usize) -> *const T {
    let is_inside = at
        .checked_mul(size_of::<T>())
        .is_some_and(|n_bytes| p.addr().checked_add(n_bytes).is_some());
    if p.is_null() || !is_inside {
        std::ptr::null()
    } else {
        p.wrapping_add(at)
    }
}

/// Returns `true` if a slice of `n` units may start at the address `p`. An empty slice may start at
/// any address. For any other slice, `p` must be aligned and not NULL, and all units must be inside
/// the address space.
#[inline(always)]
fn is_place<T>(p: *const T, n: usize) -> bool {
    n == 0
        || (!p.is_null()
            && p.is_aligned()
            && n <= isize::MAX as usize / size_of::<T>()
            && p.addr().checked_add(n * size_of::<T>()).is_some())
}

/// Returns the `n` units at `p`, the source of a conversion, as a slice. Returns the result code
/// [`ONECOPY_INVALID_ARGUMENT`] if `p` or `n` is invalid.
///
/// # Safety
/// Unless `n` is 0, `p` must be readable for `n` units. Other threads or processes may write to
/// these units while the slice is used, which Rust does not permit for slices. The slice must
/// therefore be passed only to functions that tolerate such writes
/// (`onecopy_text::convert::within`).
#[inline(always)]
unsafe fn source<'a, T>(p: *const T, n: usize) -> Result<&'a [T], i64> {
    if !is_place(p, n) {
        return Err(ONECOPY_INVALID_ARGUMENT);
    }
    if n == 0 {
        return Ok(&[]);
    }
    // SAFETY: `p` is not NULL, is aligned, and has a permitted size, as checked above. The caller
    // guarantees that it is readable. The contents may change during the call: the functions of
    // `within` write nothing outside of their destination, whatever values they read.
    Ok(unsafe { std::slice::from_raw_parts(p, n) })
}

/// Returns the source and the destination of a conversion as slices, after checking their pointers.
///
/// # Safety
/// The requirements of [`source`] must be met. Unless `capacity` is 0, `dst` must be writable for
/// `capacity` units, and nothing else may access these units during the call.
#[inline(always)]
unsafe fn both<'a, F, T>(
    src: *const F,
    n: usize,
    dst: *mut T,
    capacity: usize,
) -> Result<(&'a [F], &'a mut [MaybeUninit<T>]), i64> {
    // SAFETY: guaranteed by the caller.
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
    // SAFETY: `dst` is not NULL, is aligned, has a permitted size and does not overlap `src`, as
    // checked above. The caller guarantees that it is writable and that nothing else accesses it.
    // `MaybeUninit` permits any contents.
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
