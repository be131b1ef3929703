//! Bytes as units of two or four, at any address.
//!
//! The data of a `bytes` begins at an odd address, so that no unit of it lies where a vector may be stored whole. But all bytes
//! of a unit except one are zeros: seen from an aligned address, the text is a row of lanes with the character's byte at some
//! other place in them.

use std::arch::x86_64::*;

use super::{BYTES, first, store};

/// From this many bytes on, what is written is not fetched before: no cache holds as much.
const LARGE_BYTES: usize = 16 << 20;

/// Bytes at `p` in the lanes of a vector of units of `W`.
///
/// # Safety
/// `p` is readable for `n` bytes.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
unsafe fn wide<const W: usize>(p: *const u8, n: usize) -> __m512i {
    // SAFETY: no lane outside of the mask is touched; the duty of the caller.
    unsafe {
        if W == 2 {
            _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(first(n.min(32)) as u32, p.cast()))
        } else {
            _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first(n.min(16)) as u16, p.cast()))
        }
    }
}

/// Lanes of `W` bytes, shifted up by some bits.
#[inline]
#[target_feature(enable = "avx512bw")]
fn up<const W: usize>(v: __m512i, bits: __m128i) -> __m512i {
    if W == 2 {
        _mm512_sll_epi16(v, bits)
    } else {
        _mm512_sll_epi32(v, bits)
    }
}

/// Writes each byte as a unit of `W` bytes (2 or 4), of which it is the one numbered `AT`, and the others zeros.
///
/// # Safety
/// `dst` takes `W` bytes for each, apart from `src`.
#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
pub(in crate::arch) unsafe fn widen<const W: usize, const AT: usize>(src: &[u8], dst: *mut u8) {
    let (p, len) = (src.as_ptr(), src.len());
    let (total, units) = (W * len, BYTES / W);
    let bits = |n: usize| _mm_cvtsi32_si128(8 * n as i32);
    // SAFETY: every load ends inside src, and every store inside the W bytes for each of its bytes; behind the head, places are
    // whole vectors from an aligned one.
    unsafe {
        // Up to the first place that no store splits over two cache lines.
        let head = (BYTES - dst as usize % BYTES).min(total);
        let v = up::<W>(wide::<W>(p, len), bits(AT));
        _mm512_mask_storeu_epi8(dst.cast(), first(head), v);
        // From there on, where in a lane the byte stands, and which one is in the first lane.
        let place = (AT + W - head % W) % W;
        let mut from = (head + place - AT) / W;
        let place = bits(place);
        let mut at = head;
        let vector = |from: usize| {
            let v = if W == 2 {
                _mm512_cvtepu8_epi16(_mm256_loadu_si256(p.add(from).cast()))
            } else {
                _mm512_cvtepu8_epi32(_mm_loadu_si128(p.add(from).cast()))
            };
            up::<W>(v, place)
        };
        if total >= LARGE_BYTES {
            while at + BYTES <= total {
                _mm512_stream_si512(dst.add(at).cast(), vector(from));
                at += BYTES;
                from += units;
            }
            // Such stores are seen in no order before this.
            _mm_sfence();
        }
        while at + BYTES <= total {
            store(dst.add(at), vector(from));
            at += BYTES;
            from += units;
        }
        if at < total {
            let v = up::<W>(wide::<W>(p.wrapping_add(from), len - from), place);
            _mm512_mask_storeu_epi8(dst.add(at).cast(), first(total - at), v);
        }
    }
}
