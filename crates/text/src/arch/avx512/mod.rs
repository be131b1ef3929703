//! The kernels on 64-byte vectors, for any length from 0 on: what is left behind the last whole vector is loaded and
//! stored under a mask, so there are no scalar tails and nothing past an end is touched.
//!
//! | module | what it holds |
//! |---|---|
//! | `cell`, `cell_encode`, `cell_utf8` | texts of at most two vectors, without a loop |
//! | `scan` | looks at text, and copies it while it stays what it was taken for |
//! | `utf8` | UTF-8 to the units of a `str`: validated on the way, or before |
//! | `second` | the second bytes that leads allow |
//! | `runs` | the same where all characters have three bytes |
//! | `utf16` | UTF-16 with pairs to 32-bit units |
//! | `measure` | the lengths of units of any width in UTF-8 |
//! | `widen` | bytes as wider units, at any address |
//! | `json_read` | the looks of the reader of JSON |
//! | `encode` | units of any width to UTF-8 |
//! | `three` | those that take three bytes each |
//! | `json` | units of any width to the body of a JSON string |
//! | `float` | the digits of a float |
//!
//! Wants Ice Lake or Zen 4: AVX-512 with IFMA, VBMI and VBMI2, whose byte compression does most of the work.

use std::arch::x86_64::*;

pub(super) mod cell;
pub(super) mod cell_encode;
pub(super) mod cell_utf8;
pub(super) mod encode;
pub(super) mod float;
pub(super) mod json;
pub(super) mod json_read;
pub(super) mod measure;
mod runs;
pub(super) mod scan;
mod second;
mod three;
pub(super) mod utf16;
pub(super) mod utf8;
pub(super) mod widen;

pub(super) use scan::*;

/// Bytes of a vector.
const BYTES: usize = 64;

/// A mask of the first `n` lanes, at most 64.
#[inline]
#[target_feature(enable = "bmi2")]
fn first(n: usize) -> u64 {
    _bzhi_u64(u64::MAX, n as u32)
}

/// # Safety
/// `p` is readable for 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(p: *const u8) -> __m512i {
    // SAFETY: the duty of the caller.
    unsafe { _mm512_loadu_si512(p.cast()) }
}

/// The first `n` bytes, at most 64, and zeros.
///
/// # Safety
/// `p` is readable for them.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn load_first(p: *const u8, n: usize) -> __m512i {
    // SAFETY: no lane outside of the mask is touched; the duty of the caller.
    unsafe { _mm512_maskz_loadu_epi8(first(n.min(BYTES)), p.cast()) }
}

/// # Safety
/// `p` is writable for 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store(p: *mut u8, v: __m512i) {
    // SAFETY: the duty of the caller.
    unsafe { _mm512_storeu_si512(p.cast(), v) }
}

/// # Safety
/// `p` is writable for `n` bytes, at most 64.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn store_first(p: *mut u8, v: __m512i, n: usize) {
    // SAFETY: no lane outside of the mask is touched; the duty of the caller.
    unsafe { _mm512_mask_storeu_epi8(p.cast(), first(n), v) }
}

/// As [`store_first`] in a place of `room` bytes, fewer than 64, by the narrowest vector that has them all: a load of what lies behind the
/// place waits for a store whose vector reaches there, masked or not (8 ns where that is an object that is looked at next).
///
/// # Safety
/// As [`store_first`]; `n` is at most `room`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
unsafe fn store_at_end(p: *mut u8, v: __m512i, n: usize, room: usize) {
    let which = first(n);
    // SAFETY: no lane outside of the mask is touched; the duty of the caller.
    unsafe {
        if room > BYTES / 2 {
            _mm512_mask_storeu_epi8(p.cast(), which, v);
        } else if room > BYTES / 4 {
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

/// Bits of `a` where `mask` has ones, of `b` where it has zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn select(mask: __m512i, a: __m512i, b: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xCA>(mask, a, b)
}

/// A destination that nothing is written past, whatever is put: what does not fit is left out, and the result with it.
struct Out {
    at: *mut u8,
    end: *mut u8,
}

impl Out {
    /// # Safety
    /// `p` is writable for `n_bytes`.
    unsafe fn new(p: *mut u8, n_bytes: usize) -> Out {
        Out {
            at: p,
            // SAFETY: the end of the destination that the caller grants.
            end: unsafe { p.add(n_bytes) },
        }
    }

    /// Bytes that there is room for; negative once something did not fit.
    #[inline(always)]
    fn left(&self) -> isize {
        (self.end as isize).wrapping_sub(self.at as isize)
    }

    /// Puts the first `n` bytes of a vector, at most 64; what follows them in the destination may be written over.
    #[inline]
    #[target_feature(enable = "avx512bw,bmi2")]
    fn put(&mut self, v: __m512i, n: usize) {
        let left = self.left();
        // SAFETY: the whole vector is stored where as many bytes are left, else those of the first n that fit.
        unsafe {
            if left >= BYTES as isize {
                store(self.at, v);
            } else {
                store_first(self.at, v, n.min(left.max(0) as usize));
            }
        }
        // Past the end where something did not fit: nothing is stored there.
        self.at = self.at.wrapping_add(n);
    }

    /// Bytes written since `start`, the start of the destination; `None` if something did not fit.
    fn written(self, start: *mut u8) -> Option<usize> {
        (self.left() >= 0).then(|| self.at as usize - start as usize)
    }
}

/// As [`Out`], for writers that go on with another text after one that did not fit. `BRIEF` is for texts that take few stores:
/// near the end these reach no further past it than they must.
struct Bounded<const BRIEF: bool> {
    at: *mut u8,
    end: *mut u8,
    full: bool,
}

impl<const BRIEF: bool> Bounded<BRIEF> {
    /// # Safety
    /// `p` is writable for `n_bytes`.
    unsafe fn new(p: *mut u8, n_bytes: usize) -> Self {
        Bounded {
            at: p,
            // SAFETY: the end of the place that the caller grants.
            end: unsafe { p.add(n_bytes) },
            full: false,
        }
    }

    /// The same for what little is left of a text.
    #[inline(always)]
    fn brief(self) -> Bounded<true> {
        let Bounded { at, end, full } = self;
        Bounded { at, end, full }
    }

    /// Bytes that there is room for.
    #[inline(always)]
    fn left(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Puts the first `n` bytes of a vector, at most 64; what follows them in the place may be written over.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512vl,bmi2")]
    fn put(&mut self, v: __m512i, n: usize) {
        debug_assert!(n <= BYTES);
        let left = self.left();
        // SAFETY: the whole vector is stored where as many bytes are left, else just the first n if these are.
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

    /// Bytes written since `start`, the start of the place; `None` where something did not fit.
    fn written(self, start: *mut u8) -> Option<usize> {
        (!self.full).then(|| self.at as usize - start as usize)
    }
}

#[cfg(test)]
mod tests;

/// 16-bit units with their two bytes exchanged.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn swap_u16(v: __m512i) -> __m512i {
    _mm512_or_si512(_mm512_slli_epi16::<8>(v), _mm512_srli_epi16::<8>(v))
}
