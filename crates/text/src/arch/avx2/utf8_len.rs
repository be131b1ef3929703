//! Computes the length of a text in UTF-8. The scalar code is compiled for AVX2.

use crate::arch::scalar;

/// Returns the UTF-8 length of Latin-1 text.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn latin1(src: &[u8]) -> usize {
    scalar::utf8_len_of_latin1(src)
}

/// Returns the UTF-8 length of 16-bit units, and `true` if one is a surrogate.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn wide(src: &[u16]) -> (usize, bool) {
    scalar::utf8_len_of_wide(src)
}

/// Returns the UTF-8 length of 32-bit units. `None` if a unit is not a valid character.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn ucs4(src: &[u32]) -> Option<usize> {
    scalar::utf8_len_of_ucs4(src)
}
