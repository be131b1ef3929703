//! Computes how many bytes a text has after conversion to UTF-8. In the same pass, units that may
//! be malformed are validated. The code is that of the scalar implementation, compiled for AVX2.

use crate::arch::scalar;

/// Returns the length in bytes of Latin-1 text converted to UTF-8.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn latin1(src: &[u8]) -> usize {
    scalar::utf8_len_of_latin1(src)
}

/// Returns the length in bytes of 16-bit units converted to UTF-8, and `true` if any of the units
/// is a surrogate.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn wide(src: &[u16]) -> (usize, bool) {
    scalar::utf8_len_of_wide(src)
}

/// Returns the length in bytes of 32-bit units converted to UTF-8; `None` if one is a surrogate or
/// past U+10FFFF.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn ucs4(src: &[u32]) -> Option<usize> {
    scalar::utf8_len_of_ucs4(src)
}
