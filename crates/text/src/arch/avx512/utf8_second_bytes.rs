//! Checks the second byte of UTF-8 characters of three or four bytes.

use std::arch::x86_64::*;

use super::load;

/// Returns a mask of the lead bytes with an invalid second byte. `three` selects the lead bytes of
/// three or four bytes in `v`.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
pub(super) fn wrong_seconds(three: u64, v: __m512i, second: __m512i) -> u64 {
    let least = _mm512_permutexvar_epi8(v, low_bits(&LEAST));
    let span = _mm512_permutexvar_epi8(v, low_bits(&SPAN));
    _mm512_mask_cmpgt_epu8_mask(three, _mm512_sub_epi8(second, least), span)
}

/// The lowest valid second byte, indexed by the low six bits of the lead byte.
static LEAST: [u8; 64] = second_bytes(true);
/// The highest valid second byte minus the one in `LEAST`. No second byte is valid after a lead
/// above 0xF4.
static SPAN: [u8; 64] = second_bytes(false);

const fn second_bytes(least: bool) -> [u8; 64] {
    let mut all = [0; 64];
    let mut lead = 0xE0;
    while lead <= 0xFF {
        let (low, high) = match lead {
            0xE0 => (0xA0, 0xBF),
            0xED => (0x80, 0x9F),
            0xF0 => (0x90, 0xBF),
            0xF4 => (0x80, 0x8F),
            0xF5.. => (0xC0, 0xC0),
            _ => (0x80, 0xBF),
        };
        all[lead & 0x3F] = if least { low } else { high - low };
        lead += 1;
    }
    all
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn low_bits(table: &'static [u8; 64]) -> __m512i {
    // SAFETY: the table has 64 bytes.
    unsafe { load(table.as_ptr()) }
}
