//! Lengths of text in UTF-8, with the look at whether it is well-formed where that is a question: the twins, compiled for
//! wider vectors.

use crate::arch::scalar;

/// Bytes of Latin-1 as UTF-8.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn latin1(src: &[u8]) -> usize {
    scalar::utf8_len_of_latin1(src)
}

/// Bytes of 16-bit units as UTF-8, and whether there is a surrogate.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn wide(src: &[u16]) -> (usize, bool) {
    scalar::utf8_len_of_wide(src)
}

/// Bytes of 32-bit units as UTF-8; `None` where one is a surrogate or past U+10FFFF.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn ucs4(src: &[u32]) -> Option<usize> {
    scalar::utf8_len_of_ucs4(src)
}
