//! The AVX-512 kernels, with vectors of 64 bytes, for text of any length. Masked loads and stores
//! handle the end of a text. They access no memory outside of the text and the destination.
//!
//! | module | contents |
//! |---|---|
//! | `cell`, `cell_encode`, `cell_utf8` | convert texts of at most two vectors, without a loop |
//! | `scan` | scans text, and copies text up to the first unit that the destination cannot hold |
//! | `utf8` | converts UTF-8 to the units of a `str`; it is validated in the same pass or before |
//! | `utf8_second_bytes` | checks the second byte of UTF-8 characters of three or four bytes |
//! | `three_byte_runs` | decodes UTF-8 in which all characters have three bytes |
//! | `utf16` | converts UTF-16 with surrogate pairs to 32-bit units |
//! | `utf8_len` | computes the length of units of any width in UTF-8 |
//! | `widen` | widens bytes to units, which may be stored at any address |
//! | `json_read` | the searches of the JSON reader |
//! | `encode` | converts units of any width to UTF-8 |
//! | `three_byte_units` | encodes units that have three bytes in UTF-8 |
//! | `json` | converts units of any width to the body of a JSON string |
//! | `float` | writes floats as text |
//!
//! The kernels require AVX-512 with IFMA, VBMI and VBMI2 (Ice Lake, Zen 4 or newer).

use std::arch::x86_64::*;

pub(super) mod cell;
pub(super) mod cell_encode;
pub(super) mod cell_utf8;
pub(super) mod encode;
pub(super) mod float;
pub(super) mod json;
pub(super) mod json_read;
pub(super) mod scan;
mod three_byte_runs;
mod three_byte_units;
pub(super) mod utf16;
pub(super) mod utf8;
pub(super) mod utf8_len;
mod utf8_second_bytes;
pub(super) mod widen;

/// The size of a vector in bytes.
const BYTES: usize = 64;

/// Returns a mask with the first `n` bits set, at most 64.
#[inline]
#[target_feature(enable = "bmi2")]
fn first(n: usize) -> u64 {
    _bzhi_u64(u64::MAX, n as u32)
}

/// Loads a vector of 64 bytes.
///
/// # Safety
/// `p` must be readable for 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(p: *const u8) -> __m512i {
    // SAFETY: guaranteed by the caller of this function.
    unsafe { _mm512_loadu_si512(p.cast()) }
}

/// Loads the first `n` bytes at `p`, at most 64, followed by zeros.
///
/// # Safety
/// `p` must be readable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn load_first(p: *const u8, n: usize) -> __m512i {
    // SAFETY: the mask permits only the first `n` bytes.
    unsafe { _mm512_maskz_loadu_epi8(first(n.min(BYTES)), p.cast()) }
}

/// Stores a vector of 64 bytes.
///
/// # Safety
/// `p` must be writable for 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store(p: *mut u8, v: __m512i) {
    // SAFETY: guaranteed by the caller of this function.
    unsafe { _mm512_storeu_si512(p.cast(), v) }
}

/// Stores the first `n` bytes of a vector, at most 64.
///
/// # Safety
/// `p` must be writable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn store_first(p: *mut u8, v: __m512i, n: usize) {
    // SAFETY: the mask permits only the first `n` bytes.
    unsafe { _mm512_mask_storeu_epi8(p.cast(), first(n), v) }
}

/// Stores the first `n` bytes in a destination of fewer than 64 bytes. The store has the smallest
/// possible vector size. A larger store would delay later loads after the destination.
///
/// # Safety
/// `n` must be at most `capacity`, and `p` must be writable for `capacity` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
unsafe fn store_at_end(p: *mut u8, v: __m512i, n: usize, capacity: usize) {
    let which = first(n);
    // SAFETY: the mask permits only the first `n` bytes.
    unsafe {
        if capacity > BYTES / 2 {
            _mm512_mask_storeu_epi8(p.cast(), which, v);
        } else if capacity > BYTES / 4 {
            _mm256_mask_storeu_epi8(p.cast(), which as u32, _mm512_castsi512_si256(v));
        } else {
            _mm_mask_storeu_epi8(p.cast(), which as u16, _mm512_castsi512_si128(v));
        }
    }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn splat8(b: u8) -> __m512i {
    _mm512_set1_epi8(b as i8)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn splat16(u: u16) -> __m512i {
    _mm512_set1_epi16(u as i16)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat32(u: u32) -> __m512i {
    _mm512_set1_epi32(u as i32)
}

/// Returns the bits of `a` where `mask` is 1, and of `b` elsewhere.
#[inline]
#[target_feature(enable = "avx512f")]
fn select(mask: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xCA>(mask, a, b)
}

/// A destination that is never written past its end. Bytes that do not fit are dropped.
struct Out {
    at: *mut u8,
    end: *mut u8,
}

impl Out {
    /// Creates a destination of `n_bytes` bytes that starts at `p`.
    ///
    /// # Safety
    /// `p` must be writable for `n_bytes` bytes.
    unsafe fn new(p: *mut u8, n_bytes: usize) -> Out {
        Out {
            at: p,
            // SAFETY: the caller guarantees that `n_bytes` bytes are writable.
            end: unsafe { p.add(n_bytes) },
        }
    }

    /// Returns the number of remaining bytes. It is negative after an overflow.
    #[inline(always)]
    fn left(&self) -> isize {
        (self.end as isize).wrapping_sub(self.at as isize)
    }

    /// Writes the first `n` bytes of a vector, at most 64. The bytes after them may be overwritten.
    #[inline]
    #[target_feature(enable = "avx512bw,bmi2")]
    fn put(&mut self, v: __m512i, n: usize) {
        let left = self.left();
        // SAFETY: the whole vector is stored only if 64 bytes fit. Otherwise only bytes that fit
        // are stored.
        unsafe {
            if left >= BYTES as isize {
                store(self.at, v);
            } else {
                store_first(self.at, v, n.min(left.max(0) as usize));
            }
        }
        // After an overflow, the address is past the end, and nothing is stored there.
        self.at = self.at.wrapping_add(n);
    }

    /// Returns the number of bytes written since `start`. Returns `None` after an overflow.
    fn written(self, start: *mut u8) -> Option<usize> {
        (self.left() >= 0).then(|| self.at as usize - start as usize)
    }
}

/// A destination like [`Out`], with a flag for an overflow. If `BRIEF` is `true`, a store near the
/// end uses the smallest vector that covers the remaining space.
struct Bounded<const BRIEF: bool> {
    at: *mut u8,
    end: *mut u8,
    full: bool,
}

impl<const BRIEF: bool> Bounded<BRIEF> {
    /// Creates a destination of `n_bytes` bytes that starts at `p`.
    ///
    /// # Safety
    /// `p` must be writable for `n_bytes` bytes.
    unsafe fn new(p: *mut u8, n_bytes: usize) -> Self {
        Bounded {
            at: p,
            // SAFETY: the caller guarantees that `n_bytes` bytes are writable.
            end: unsafe { p.add(n_bytes) },
            full: false,
        }
    }

    /// Sets `BRIEF` to `true`, to write the short remainder of a text.
    #[inline(always)]
    fn brief(self) -> Bounded<true> {
        let Bounded { at, end, full } = self;
        Bounded { at, end, full }
    }

    /// Returns the number of remaining bytes.
    #[inline(always)]
    fn left(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Writes the first `n` bytes of a vector, at most 64. The bytes after them may be overwritten.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,bmi2")]
    fn put(&mut self, v: __m512i, n: usize) {
        debug_assert!(n <= BYTES);
        let left = self.left();
        // SAFETY: the whole vector is stored only if 64 bytes fit. Otherwise its first `n` bytes
        // are stored only if they fit.
        unsafe {
            if left >= BYTES {
                store(self.at, v);
            } else if n > left {
                self.full = true;
                return;
            } else if BRIEF {
                store_at_end(self.at, v, n, left);
            } else {
                store_first(self.at, v, n);
            }
            self.at = self.at.add(n);
        }
    }

    /// Returns the number of bytes written since `start`. Returns `None` after an overflow.
    fn written(self, start: *mut u8) -> Option<usize> {
        (!self.full).then(|| self.at as usize - start as usize)
    }
}

#[cfg(test)]
mod tests;

/// Swaps the two bytes of each 16-bit unit.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn swap_u16(v: __m512i) -> __m512i {
    _mm512_or_si512(_mm512_slli_epi16::<8>(v), _mm512_srli_epi16::<8>(v))
}
