//! The hash function for keys and cell texts in caches.

/// Returns a hash of a short text: of its length, start, middle and end.
#[inline(always)]
pub(crate) fn hash(text: &[u8]) -> u32 {
    let n = text.len();
    let mixed = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let middle = text[(n - 8) / 2..].first_chunk().expect("8 bytes and more");
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        first ^ last.rotate_left(23) ^ u64::from_le_bytes(*middle).rotate_left(41)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
    } else {
        let at = |i: usize| u64::from(text.get(i).copied().unwrap_or(0));
        at(0) | at(1) << 8 | at(2) << 16
    };
    let mixed = (mixed ^ (n as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32
}
