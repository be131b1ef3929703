//! Widens bytes to units of two or four bytes, which may be stored at any address.
//!
//! The destination may start at an address that is not a multiple of `W`. Stores of whole units
//! would then never be aligned to a cache line. Therefore the stores start at an aligned address
//! inside a unit: each stored lane has the last bytes of one unit and the first bytes of the next.
//! Since a unit has only one nonzero byte, it suffices to shift this byte within the lane.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::{BYTES, first, store};

/// The size in bytes from which the output is written with non-temporal stores, because an output
/// of this size is larger than the caches.
const LARGE_BYTES: usize = 16 << 20;

/// Returns `n` bytes at `p`, each widened to a lane of `W` bytes.
///
/// # Safety
/// `p` must be readable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
unsafe fn wide<const W: usize>(p: *const u8, n: usize) -> __m512i {
    // SAFETY: only lanes in the mask are loaded, which are readable by this function's contract.
    unsafe {
        if W == 2 {
            _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(first(n.min(32)) as u32, p.cast()))
        } else {
            _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n.min(16)) as u16, p.cast()))
        }
    }
}

/// Returns the vector with each lane of `W` bytes shifted left by `bits`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn up<const W: usize>(v: __m512i, bits: __m128i) -> __m512i {
    if W == 2 {
        _mm512_sll_epi16(v, bits)
    } else {
        _mm512_sll_epi32(v, bits)
    }
}

/// Writes each byte as a unit of `W` bytes (2 or 4), in native byte order (reversed if `SWAPPED` is
/// `true`).
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
    // SAFETY: every load ends inside `src`, and every store inside the `W` bytes of `out` for each
    // byte of `src`. After the first store, whole vectors are stored at aligned addresses.
    unsafe {
        // The number of bytes before the first address from which whole-vector stores are not split
        // over two cache lines.
        let head = (BYTES - dst as usize % BYTES).min(total);
        let v = up::<W>(wide::<W>(p, len), bits(byte));
        _mm512_mask_storeu_epi8(dst.cast(), first(head), v);
        // From that address on, the position of the nonzero byte in a lane, and the index of the
        // source byte for the first lane.
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
            // The fence orders the non-temporal stores before all later stores.
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
