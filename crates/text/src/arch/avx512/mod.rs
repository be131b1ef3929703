//! The kernels for AVX-512, with vectors of 64 bytes, for text of any length from 0 on. The bytes
//! after the last whole vector are loaded and stored under a mask. Therefore, no scalar loop is
//! needed for the end of a text, and no memory after the end of the text or of the destination is
//! accessed.
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
//! The kernels require AVX-512 with IFMA, VBMI and VBMI2 (Ice Lake or Zen 4, or newer). The byte
//! compression of VBMI2 does most of the work.

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

/// The number of bytes of a vector.
const BYTES: usize = 64;

/// Returns a mask with one bit for each lane, of which the first `n` bits (at most 64) are set.
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

/// Returns the first `n` bytes at `p`, at most 64, followed by zeros.
///
/// # Safety
/// `p` must be readable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn load_first(p: *const u8, n: usize) -> __m512i {
    // SAFETY: only lanes in the mask are accessed, which are readable by this function's contract.
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

/// Stores the first `n` bytes (at most 64) of a vector.
///
/// # Safety
/// `p` must be writable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn store_first(p: *mut u8, v: __m512i, n: usize) {
    // SAFETY: only lanes in the mask are accessed, which are writable by this function's contract.
    unsafe { _mm512_mask_storeu_epi8(p.cast(), first(n), v) }
}

/// Stores the first `n` bytes as [`store_first`] does, in a destination of `capacity` bytes (fewer
/// than 64). The store has the smallest vector size (16, 32 or 64 bytes) that covers the
/// destination. A larger store would delay later loads of the bytes after the destination by 8 ns,
/// even though its mask excludes these bytes.
///
/// # Safety
/// `n` must be at most `capacity`, and `p` must be writable for `capacity` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
unsafe fn store_at_end(p: *mut u8, v: __m512i, n: usize, capacity: usize) {
    let which = first(n);
    // SAFETY: only lanes in the mask are accessed, which are writable by this function's contract.
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

/// Returns the bits of `a` where `mask` has ones, and of `b` where it has zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn select(mask: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xCA>(mask, a, b)
}

/// A destination that is never written past its end. Bytes that do not fit are dropped, and
/// [`Out::written`] then returns `None`.
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
            // SAFETY: the caller guarantees that the destination is writable up to this end.
            end: unsafe { p.add(n_bytes) },
        }
    }

    /// Returns the number of bytes that still fit; negative if some bytes did not fit.
    #[inline(always)]
    fn left(&self) -> isize {
        (self.end as isize).wrapping_sub(self.at as isize)
    }

    /// Writes the first `n` bytes of the vector, at most 64; the bytes after them in the
    /// destination may be overwritten.
    #[inline]
    #[target_feature(enable = "avx512bw,bmi2")]
    fn put(&mut self, v: __m512i, n: usize) {
        let left = self.left();
        // SAFETY: the whole vector is stored if 64 bytes fit, otherwise those of its first `n`
        // bytes that fit.
        unsafe {
            if left >= BYTES as isize {
                store(self.at, v);
            } else {
                store_first(self.at, v, n.min(left.max(0) as usize));
            }
        }
        // If bytes did not fit, the address is past the end, and nothing is stored there.
        self.at = self.at.wrapping_add(n);
    }

    /// Returns the number of bytes written from `start`, the start of the destination; `None` if
    /// some bytes did not fit.
    fn written(self, start: *mut u8) -> Option<usize> {
        (self.left() >= 0).then(|| self.at as usize - start as usize)
    }
}

/// A destination like [`Out`]. In addition, it has the flag `full` for bytes that did not fit, so
/// its address is never past its end. If `BRIEF` is `true`, a store near the end of the destination
/// uses the smallest vector that covers the remaining space. `BRIEF` is faster only for texts that
/// need few stores.
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
            // SAFETY: the caller guarantees that the destination is writable up to this end.
            end: unsafe { p.add(n_bytes) },
            full: false,
        }
    }

    /// Returns the same destination with the parameter `BRIEF` set to `true`, to write the short
    /// remainder of a text.
    #[inline(always)]
    fn brief(self) -> Bounded<true> {
        let Bounded { at, end, full } = self;
        Bounded { at, end, full }
    }

    /// Returns the number of bytes for which the destination still has space.
    #[inline(always)]
    fn left(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Writes the first `n` bytes of the vector, at most 64; the bytes after them in the
    /// destination may be overwritten.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,bmi2")]
    fn put(&mut self, v: __m512i, n: usize) {
        debug_assert!(n <= BYTES);
        let left = self.left();
        // SAFETY: the whole vector is stored if 64 bytes fit, otherwise its first `n` bytes, if
        // they fit.
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

    /// Returns the number of bytes written from `start`, the start of the destination; `None` if
    /// some bytes did not fit.
    fn written(self, start: *mut u8) -> Option<usize> {
        (!self.full).then(|| self.at as usize - start as usize)
    }
}

#[cfg(test)]
mod tests;

/// Returns the 16-bit units of `v`, each with its two bytes swapped.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn swap_u16(v: __m512i) -> __m512i {
    _mm512_or_si512(_mm512_slli_epi16::<8>(v), _mm512_srli_epi16::<8>(v))
}
