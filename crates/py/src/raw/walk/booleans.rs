//! Four booleans of an array at once.

/// Bytes of four booleans and their commas at most.
pub(super) const FOUR_BYTES: usize = 4 * "false,".len();

/// Four booleans, a comma after each, by a bit for each that is true, the first in the lowest; and
/// how long they are.
pub(super) static FOUR_BOOLEANS: [([u8; FOUR_BYTES], usize); 16] = {
    let mut all = [([0; FOUR_BYTES], 0); 16];
    let mut i = 0;
    while i < all.len() {
        let (text, len) = &mut all[i];
        let mut bit = 0;
        while bit < 4 {
            let word: &[u8] = if i >> bit & 1 == 1 {
                b"true,"
            } else {
                b"false,"
            };
            let mut k = 0;
            while k < word.len() {
                text[*len] = word[k];
                *len += 1;
                k += 1;
            }
            bit += 1;
        }
        i += 1;
    }
    all
};

/// A bit for each of four bytes that is not zero.
#[inline(always)]
pub(super) fn index_of_four(bytes: u32) -> usize {
    const LOW: u32 = 0x7F7F_7F7F;
    let ones = (((bytes & LOW) + LOW) | bytes) >> 7 & 0x0101_0101;
    (ones.wrapping_mul(0x0102_0408) >> 24 & 15) as usize
}
