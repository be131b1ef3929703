//! Widens bytes to units of two or four bytes, at any address.
//!
//! The stores start at an aligned address, which may be inside a unit. Each lane then has the last
//! bytes of one unit and the first bytes of the next.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::{BYTES, first, store};

/// The output size in bytes from which non-temporal stores are used. Such an output exceeds the
/// caches.
const LARGE_BYTES: usize = 16 << 20;

/// Loads `n` bytes at `p` and widens each to `W` bytes.
///
/// # Safety
/// `p` must be readable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
unsafe fn wide<const W: usize>(p: *const u8, n: usize) -> __m512i {
    // SAFETY: the mask permits only the first `n` bytes.
    unsafe {
        if W == 2 {
            _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(first(n.min(32)) as u32, p.cast()))
        } else {
            _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n.min(16)) as u16, p.cast()))
        }
    }
}

/// Shifts each lane of `W` bytes left by `bits`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn up<const W: usize>(v: __m512i, bits: __m128i) -> __m512i {
    if W == 2 {
        _mm512_sll_epi16(v, bits)
    } else {
        _mm512_sll_epi32(v, bits)
    }
}

/// Widens each byte to a unit of `W` bytes, 2 or 4. If `SWAPPED` is `true`, the bytes of each unit
/// are reversed.
///
/// # Safety
/// The processor must support AVX-512, and `out` must have one unit for each byte of `src`.
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
pub(in crate::arch) unsafe fn widen<const W: usize, const SWAPPED: bool>(
    src: &[u8],
    out: &mut [[MaybeUninit<u8>; W]],
) {
    let dst = out.as_mut_ptr().cast::<u8>();
    // The index of the nonzero byte in each unit.
    let byte = if SWAPPED { W - 1 } else { 0 };
    let (p, len) = (src.as_ptr(), src.len());
    let (total, units) = (W * len, BYTES / W);
    let bits = |n: usize| _mm_cvtsi32_si128(8 * n as i32);
    // SAFETY: every load ends inside `src`. Every store is inside the `W` bytes of `out` for each
    // byte of `src`.
    unsafe {
        // The number of bytes before the first aligned address.
        let head = (BYTES - dst as usize % BYTES).min(total);
        let v = up::<W>(wide::<W>(p, len), bits(byte));
        _mm512_mask_storeu_epi8(dst.cast(), first(head), v);
        // The position of the nonzero byte in a lane, and the source index of the first lane.
        let position = (byte + W - head % W) % W;
        let mut from = (head + position - byte) / W;
        let position = bits(position);
        let mut at = head;
        let vector = |from: usize| {
            let v = if W == 2 {
                _mm512_cvtepu8_epi16(_mm256_loadu_si256(p.add(from).cast()))
            } else {
                _mm512_cvtepu8_epi32(_mm_loadu_si128(p.add(from).cast()))
            };
            up::<W>(v, position)
        };
        if total >= LARGE_BYTES {
            while at + BYTES <= total {
                _mm512_stream_si512(dst.add(at).cast(), vector(from));
                at += BYTES;
                from += units;
            }
            // The fence orders the non-temporal stores before later stores.
            _mm_sfence();
        }
        while at + BYTES <= total {
            store(dst.add(at), vector(from));
            at += BYTES;
            from += units;
        }
        if at < total {
            let v = up::<W>(wide::<W>(p.wrapping_add(from), len - from), position);
            _mm512_mask_storeu_epi8(dst.add(at).cast(), first(total - at), v);
        }
    }
}
