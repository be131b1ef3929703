//! Checks the second byte of UTF-8 characters of three or four bytes. The second byte shows if the
//! bytes are an overlong form, a surrogate or a value above U+10FFFF, which are all invalid.

use std::arch::x86_64::*;

use super::load;

/// Validates the second bytes of UTF-8 characters of three or four bytes. `three` is a mask of the
/// lead bytes of these characters in `v`. Byte `i` of `second` is the byte after byte `i` of `v`.
/// Returns a mask of the lead bytes that are followed by an invalid second byte.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
pub(super) fn wrong_seconds(three: u64, v: __m512i, second: __m512i) -> u64 {
    let least = _mm512_permutexvar_epi8(v, low_bits(&LEAST));
    let span = _mm512_permutexvar_epi8(v, low_bits(&SPAN));
    _mm512_mask_cmpgt_epu8_mask(three, _mm512_sub_epi8(second, least), span)
}

/// The lowest valid second byte of a UTF-8 character (table 3-7 of the Unicode standard). The index
/// is the low six bits of the lead byte of a character of three or four bytes.
static LEAST: [u8; 64] = second_bytes(true);
/// The highest valid second byte minus the lowest one, which is in `LEAST`, with the same index as
/// `LEAST`. After a lead above 0xF4, no second byte is valid.
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
