//! Encodes a `str` of at most 128 bytes as `bytes`.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::cell::{load_two, store_two, tops};
use super::swap_u16;
use super::{BYTES, Out, encode, first, load, load_first, splat16, splat32, store_first, utf8_len};
use crate::arch::memory::destination;
use crate::arch::new_cell::encoded;
use crate::new_object::NewBytes;

/// Asserts that the kernel wrote `len` bytes.
#[inline(always)]
fn all(written: Option<usize>, len: usize) {
    assert_eq!(written, Some(len), "the measured length was wrong");
}

type Encoded<B> = Option<Result<<B as NewBytes>::Bytes, <B as NewBytes>::Error>>;

/// Encodes at most 64 bytes of Latin-1 as UTF-16. If `SWAPPED` is `true`, the bytes of each unit
/// are reversed.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
    u: &[u8],
    new: &mut B,
) -> Encoded<B> {
    Some(encoded(new, 2 * u.len(), |out| {
        // SAFETY: AVX-512 is available; `out` has two bytes for each unit.
        unsafe { store_up_to_two(out, widened::<SWAPPED>(u), 2 * u.len()) }
    }))
}

/// Stores bytes like [`store_two`], but skips an empty second vector.
///
/// # Safety
/// `out` must be writable for `n_bytes` bytes.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
unsafe fn store_up_to_two(out: *mut u8, (lo, hi): (__m512i, __m512i), n_bytes: usize) {
    // SAFETY: guaranteed by the caller of this function.
    unsafe {
        if n_bytes <= BYTES {
            store_first(out, lo, n_bytes);
        } else {
            store_two(out, (lo, hi), n_bytes);
        }
    }
}

/// Widens at most 64 bytes to 16-bit units. If `SWAPPED` is `true`, their bytes are reversed.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn widened<const SWAPPED: bool>(u: &[u8]) -> (__m512i, __m512i) {
    let (v, _) = load_two(u);
    let wide = |half| {
        let wide = _mm512_cvtepu8_epi16(half);
        if SWAPPED {
            _mm512_slli_epi16::<8>(wide)
        } else {
            wide
        }
    };
    (
        wide(_mm512_castsi512_si256(v)),
        wide(_mm512_extracti64x4_epi64::<1>(v)),
    )
}

/// Copies at most 64 16-bit units as UTF-16, with their bytes swapped if `SWAPPED` is `true`.
/// Returns `None` if a unit is a surrogate.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(
    u: &[u16],
    new: &mut B,
) -> Encoded<B> {
    // SAFETY: AVX-512 is available; `out` has two bytes for each unit.
    unsafe {
        if tops(load_two(u), 0xF800, 0xD800) != 0 {
            return None;
        }
        Some(encoded(new, 2 * u.len(), |out| {
            let (lo, hi) = load_two(u);
            let units = if SWAPPED {
                (swap_u16(lo), swap_u16(hi))
            } else {
                (lo, hi)
            };
            store_up_to_two(out, units, 2 * u.len());
        }))
    }
}

/// Encodes at most 32 32-bit units as UTF-16. Returns `None` if a unit is a surrogate or past
/// U+10FFFF.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(
    u: &[u32],
    new: &mut B,
) -> Encoded<B> {
    // SAFETY: AVX-512 is available. `out` has two bytes for each character, and four for each
    // surrogate pair.
    unsafe {
        let n_pairs = count_pairs(u)?;
        let len = 2 * (u.len() + n_pairs);
        Some(encoded(new, len, |out| {
            store_pairs::<SWAPPED>(out, len, u);
        }))
    }
}

/// Counts the surrogate pairs of at most 32 characters in UTF-16. Returns `None` if a character is
/// a surrogate or past U+10FFFF.
#[inline]
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
fn count_pairs(u: &[u32]) -> Option<usize> {
    let (lo, hi) = load_two(u);
    let is_malformed = |chars| {
        let top = _mm512_and_si512(chars, splat32(0xFFFF_F800));
        let surrogate = _mm512_cmpeq_epi32_mask(top, splat32(0xD800));
        surrogate | _mm512_cmpgt_epu32_mask(chars, splat32(0x10_FFFF)) != 0
    };
    if is_malformed(lo) || is_malformed(hi) {
        return None;
    }
    Some((pairs_of(lo).count_ones() + pairs_of(hi).count_ones()) as usize)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn pairs_of(chars: __m512i) -> u16 {
    _mm512_cmpge_epu32_mask(chars, splat32(0x1_0000))
}

/// Writes at most 32 valid characters as UTF-16.
///
/// # Safety
/// `out` must be writable for `len` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
unsafe fn store_pairs<const SWAPPED: bool>(out: *mut u8, len: usize, u: &[u32]) {
    let (lo, hi) = load_two(u);
    // SAFETY: `Out` writes only the first `len` bytes of `out`.
    unsafe {
        let mut out = Out::new(out, len);
        put_pairs::<SWAPPED>(&mut out, lo, u.len().min(16));
        if u.len() > 16 {
            put_pairs::<SWAPPED>(&mut out, hi, u.len() - 16);
        }
    }
}

/// Stores valid text of any length as UTF-16.
///
/// # Safety
/// The processor must support AVX-512 with VBMI2.
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::arch) unsafe fn store_all_pairs<const SWAPPED: bool>(
    u: &[u32],
    out: &mut [[MaybeUninit<u8>; 2]],
) {
    let len = 2 * out.len();
    // SAFETY: `Out` writes only inside the destination. Every load ends inside `u`.
    unsafe {
        let mut out = Out::new(out.as_mut_ptr().cast(), len);
        for part in u.chunks(16) {
            let v = if part.len() == 16 {
                load(part.as_ptr().cast())
            } else {
                load_first(part.as_ptr().cast(), 4 * part.len())
            };
            put_pairs::<SWAPPED>(&mut out, v, part.len());
        }
    }
}

/// Writes the first `n` characters of the vector as UTF-16.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
fn put_pairs<const SWAPPED: bool>(out: &mut Out, chars: __m512i, n: usize) {
    let pairs = pairs_of(chars);
    // The lower unit of each lane has the first surrogate half, the upper unit the second.
    let rest = _mm512_sub_epi32(chars, splat32(0x1_0000));
    let second = _mm512_slli_epi32::<16>(_mm512_and_si512(rest, splat32(0x3FF)));
    let both = _mm512_or_si512(_mm512_srli_epi32::<10>(rest), second);
    let both = _mm512_or_si512(both, splat32(0xDC00_D800));
    let units = _mm512_mask_mov_epi32(chars, pairs, both);
    let kept = 0x5555_5555 | _pdep_u32(u32::from(pairs), 0xAAAA_AAAA);
    let kept = kept & first(2 * n) as u32;
    let mut units = _mm512_maskz_compress_epi16(kept, units);
    if SWAPPED {
        units = swap_u16(units);
    }
    out.put(units, 2 * kept.count_ones() as usize);
}

/// Encodes at most 64 bytes of Latin-1 as UTF-8.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn latin1_to_utf8<B: NewBytes>(u: &[u8], new: &mut B) -> Encoded<B> {
    // SAFETY: AVX-512 is available; `out` has as many bytes as the text needs.
    unsafe {
        let len = utf8_len::latin1(u);
        Some(encoded(new, len, |out| {
            all(encode::latin1(u, destination(out, len)), len);
        }))
    }
}

/// Encodes at most 64 16-bit units as UTF-8. Returns `None` if a unit is a surrogate.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs2_to_utf8<B: NewBytes>(u: &[u16], new: &mut B) -> Encoded<B> {
    // SAFETY: AVX-512 is available. `out` has the bytes of the text in UTF-8, without surrogates.
    unsafe {
        let len = utf8_len_of_ucs2(u)?;
        Some(encoded(new, len, |out| {
            all(encode::wide(u, destination(out, len)), len);
        }))
    }
}

/// Returns the UTF-8 length of at most 64 16-bit units. Returns `None` if a unit is a surrogate.
#[inline]
#[target_feature(enable = "avx512bw,bmi2,popcnt")]
fn utf8_len_of_ucs2(u: &[u16]) -> Option<usize> {
    let (lo, hi) = load_two(u);
    if tops((lo, hi), 0xF800, 0xD800) != 0 {
        return None;
    }
    let more = |v, bits| _mm512_test_epi16_mask(v, splat16(bits)).count_ones() as usize;
    let more = |v| more(v, 0xFF80) + more(v, 0xF800);
    Some(u.len() + more(lo) + more(hi))
}

/// Encodes at most 32 32-bit units as UTF-8. Returns `None` for a surrogate or past U+10FFFF.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn ucs4_to_utf8<B: NewBytes>(u: &[u32], new: &mut B) -> Encoded<B> {
    // SAFETY: AVX-512 is available. `out` has the bytes of the text in UTF-8. The text is
    // well-formed.
    unsafe {
        let len = utf8_len::ucs4(u)?;
        Some(encoded(new, len, |out| {
            all(encode::ucs4(u, destination(out, len)), len);
        }))
    }
}
