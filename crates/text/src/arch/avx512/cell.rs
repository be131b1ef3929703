//! AVX-512 kernels for texts of at most two vectors of 64 bytes. They have no loop, and no branch
//! on the length of the text.

use std::arch::x86_64::*;

use super::scan::narrow;
use super::utf16::pairs;
use super::{BYTES, Out, first, load_first, splat16, store_first, swap_u16, utf8};
use crate::arch::memory::destination;
use crate::arch::new_cell::{MOST_CELL_BYTES, four, one, two};
use crate::new_object::{MadeStr, NewStr};
use crate::{Kind, Shape};

/// Returns the byte masks of two vectors for a text of `len` bytes, at most 128.
#[inline]
#[target_feature(enable = "bmi2")]
fn lanes(len: usize) -> (u64, u64) {
    debug_assert!(len <= MOST_CELL_BYTES);
    // `bzhi` keeps all bits if its index is 64 to 255.
    (first(len), first(len.saturating_sub(BYTES)))
}

/// Loads a text of at most 128 bytes into two vectors, followed by zeros.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) fn load_two<U>(text: &[U]) -> (__m512i, __m512i) {
    let (p, (lo, hi)) = (text.as_ptr().cast::<u8>(), lanes(size_of_val(text)));
    // SAFETY: the masks exclude bytes after the text.
    unsafe {
        (
            _mm512_maskz_loadu_epi8(lo, p.cast()),
            _mm512_maskz_loadu_epi8(hi, p.wrapping_add(BYTES).cast()),
        )
    }
}

/// Reverses the bytes of each 16-bit unit if `SWAPPED` is `true`.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn load_units<const SWAPPED: bool>(text: &[u8]) -> (__m512i, __m512i) {
    let (lo, hi) = load_two(text);
    if SWAPPED {
        (swap_u16(lo), swap_u16(hi))
    } else {
        (lo, hi)
    }
}

/// Stores the first `n_bytes` bytes (at most 128) of the two vectors.
///
/// # Safety
/// `p` must be writable for `n_bytes` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(super) unsafe fn store_two(p: *mut u8, (lo, hi): (__m512i, __m512i), n_bytes: usize) {
    let (first, second) = lanes(n_bytes);
    // SAFETY: the masks exclude bytes after the destination.
    unsafe {
        _mm512_mask_storeu_epi8(p.cast(), first, lo);
        _mm512_mask_storeu_epi8(p.wrapping_add(BYTES).cast(), second, hi);
    }
}

/// Returns a mask of the 16-bit lanes with `lane & bits == top`.
#[inline]
#[target_feature(enable = "avx512bw")]
pub(super) fn tops((lo, hi): (__m512i, __m512i), bits: u16, top: u16) -> u64 {
    let of = |v| _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, splat16(bits)), splat16(top));
    u64::from(of(lo)) | u64::from(of(hi)) << 32
}

/// Creates a `str` from at most 128 bytes of UTF-16. Returns `None` if the text is malformed.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn make_utf16<const SWAPPED: bool, N: NewStr>(
    text: &[u8],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    let n = text.len() / 2;
    // SAFETY: AVX-512 is available. `one`, `two` and `four` check that `out` has one unit for each
    // character.
    unsafe {
        let units = load_units::<SWAPPED>(text);
        if !any(units, 0xFF80) {
            return Some(one(new, Kind::Ascii, n, false, |out| {
                store_narrow(out, load_units::<SWAPPED>(text), n);
            }));
        }
        if !any(units, 0xFF00) {
            return Some(one(new, Kind::Latin1, n, false, |out| {
                store_narrow(out, load_units::<SWAPPED>(text), n);
            }));
        }
        if tops(units, 0xF800, 0xD800) == 0 {
            return Some(two(new, Kind::Ucs2, n, !SWAPPED, |out| {
                store_two(out.cast(), load_units::<SWAPPED>(text), 2 * n);
            }));
        }
        let (highs, lows) = (tops(units, 0xFC00, 0xD800), tops(units, 0xFC00, 0xDC00));
        // Each first surrogate half must precede a second half, and each second half must follow
        // one.
        if highs << 1 != lows || highs >> 63 != 0 {
            return None;
        }
        let n_chars = n - lows.count_ones() as usize;
        Some(four(new, Kind::Ucs4, n_chars, false, |out| {
            store_pairs::<SWAPPED>(out, text, n_chars);
        }))
    }
}

/// Returns `true` if any 16-bit lane has a bit of `bits`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn any((lo, hi): (__m512i, __m512i), bits: u16) -> bool {
    _mm512_test_epi16_mask(_mm512_or_si512(lo, hi), splat16(bits)) != 0
}

/// Stores the low byte of the first `n` 16-bit units, at most 64. The units must be below U+0100.
///
/// # Safety
/// `p` must be writable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn store_narrow(p: *mut u8, (lo, hi): (__m512i, __m512i), n: usize) {
    // SAFETY: guaranteed by the caller of this function.
    unsafe { store_first(p, narrow(lo, hi), n) }
}

/// Stores well-formed UTF-16 as `n_chars` 32-bit units.
///
/// # Safety
/// `out` must be writable for `n_chars` units.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
unsafe fn store_pairs<const SWAPPED: bool>(out: *mut u32, text: &[u8], n_chars: usize) {
    let (lo, hi) = load_units::<SWAPPED>(text);
    let starts = !tops((lo, hi), 0xFC00, 0xDC00) & first(text.len() / 2);
    // For each lane, the index of the next unit.
    let indices = _mm512_add_epi16(lanes_u16(), splat16(1));
    let following_lo = _mm512_permutex2var_epi16(lo, indices, hi);
    let following_hi = _mm512_permutexvar_epi16(indices, hi);
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        let mut out = Out::new(out.cast(), 4 * n_chars);
        put_starts(&mut out, lo, following_lo, starts as u32);
        if starts >> 32 != 0 {
            put_starts(&mut out, hi, following_hi, (starts >> 32) as u32);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn lanes_u16() -> __m512i {
    _mm512_cvtepu8_epi16(_mm256_setr_epi8(
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31,
    ))
}

/// Decodes UTF-16 and writes its characters as 32-bit units. `starts` is a mask of the lanes with
/// the first unit of a character. `following` has the next unit of each lane.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
fn put_starts(out: &mut Out, units: __m512i, following: __m512i, starts: u32) {
    let units = _mm512_maskz_compress_epi16(starts, units);
    let following = _mm512_maskz_compress_epi16(starts, following);
    let n = starts.count_ones() as usize;
    let lower = |v| _mm512_castsi512_si256(v);
    let upper = |v| _mm512_extracti64x4_epi64::<1>(v);
    out.put(pairs(lower(units), lower(following)).0, 4 * n.min(16));
    if n > 16 {
        out.put(pairs(upper(units), upper(following)).0, 4 * (n - 16));
    }
}

/// Creates a `str` from non-ASCII UTF-8 text. Returns `None` if the text is malformed.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn make_utf8<N: NewStr>(
    text: &[u8],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    // SAFETY: AVX-512 is available.
    let Shape { kind, n_chars: n } = unsafe { utf8::measure(text) }?;
    // SAFETY: AVX-512 is available. The `str` has one unit for each character (`one`, `two` and
    // `four` check it), wide enough for the widest character.
    unsafe {
        Some(match kind {
            Kind::Ascii | Kind::Latin1 if n > 1 => one(new, kind, n, false, |out| {
                utf8::to_latin1::<false>(text, destination(out, n));
            }),
            Kind::Ascii | Kind::Latin1 => return None,
            Kind::Ucs2 => two(new, kind, n, false, |out| {
                utf8::to_utf16::<false, false>(text, destination(out, n));
            }),
            Kind::Ucs4 => four(new, kind, n, false, |out| {
                utf8::to_ucs4::<false>(text, destination(out, n));
            }),
        })
    }
}

#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn is_ascii(text: &[u8]) -> bool {
    if text.len() <= BYTES {
        // SAFETY: only bytes of the text are loaded.
        let v = unsafe { load_first(text.as_ptr(), text.len()) };
        return _mm512_movepi8_mask(v) == 0;
    }
    let (lo, hi) = load_two(text);
    _mm512_movepi8_mask(_mm512_or_si512(lo, hi)) == 0
}

/// Copies a text of at most 128 bytes to `out`.
///
/// # Safety
/// `out` must be writable for as many bytes as `text` has, and must not overlap `text`.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) unsafe fn copy(text: &[u8], out: *mut u8) {
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        if text.len() <= BYTES {
            store_first(out, load_first(text.as_ptr(), text.len()), text.len());
        } else {
            store_two(out, load_two(text), text.len());
        }
    }
}

#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn is_equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if a.len() > MOST_CELL_BYTES {
        return a == b;
    }
    let ((a_lo, a_hi), (b_lo, b_hi)) = (load_two(a), load_two(b));
    let lo = _mm512_xor_si512(a_lo, b_lo);
    // The OR of `lo` (the difference of the first vectors) and `a_hi ^ b_hi`.
    let differs = _mm512_ternarylogic_epi32::<0xF6>(lo, a_hi, b_hi);
    _mm512_test_epi32_mask(differs, differs) == 0
}

#[inline]
#[target_feature(enable = "avx512bw")]
pub(in crate::arch) fn fetch(text: &[u8], bytes: usize) {
    #[allow(unused_unsafe)] // Newer compilers treat it as safe.
    // SAFETY: a prefetch of any address is not an access.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(text.as_ptr().wrapping_add(bytes).cast())
    }
}

#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
pub(in crate::arch) fn hash(text: &[u8]) -> u32 {
    let (lo, hi) = load_two(&text[..text.len().min(MOST_CELL_BYTES)]);
    let indices = lanes_u16();
    let factor = |salt| {
        let mixed = _mm512_mullo_epi16(_mm512_add_epi16(indices, splat16(salt)), splat16(0x9E37));
        _mm512_or_si512(mixed, splat16(1))
    };
    let sums = _mm512_add_epi32(
        _mm512_madd_epi16(lo, factor(1)),
        _mm512_madd_epi16(hi, factor(77)),
    );
    let sum = _mm512_reduce_add_epi32(sums) as u32;
    (sum ^ (text.len() as u32) << 20).wrapping_mul(0x9E37_79B1)
}
