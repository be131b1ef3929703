//! UTF-8 and UTF-16 to the units of a `str`, for texts the size of a cell.
//!
//! simdutf reads 64 bytes at a time and leaves a shorter text to its scalar code. Here every byte of a vector is taken
//! for the start of a character, the character is put together from the bytes behind it, and then the lanes where none
//! starts are squeezed out by a table. No branch depends on the text, and no step waits for the one before it but for
//! the place of its output. Texts past [`CELL_BYTES`] go to simdutf.
//!
//! (Tried and slower: a step for each run of characters of the same length. A step then starts where the one before it
//! ended, which is known 18 cycles later.)

#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

use super::sse2::load_padded;

/// Up to this many bytes (units, for UTF-16) the text is decoded here.
pub(super) const CELL_BYTES: usize = 512;

/// For each mask of 8 lanes, the order of bytes that brings the lanes of its bits to the front, 2 bytes a lane.
static SQUEEZE_U16: [[u8; 16]; 256] = {
    let mut all = [[0x80; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                all[mask][to] = 2 * lane as u8;
                all[mask][to + 1] = 2 * lane as u8 + 1;
                to += 2;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

/// As [`SQUEEZE_U16`], the numbers of the lanes, for lanes of any size.
static SQUEEZE: [[u8; 8]; 256] = {
    let mut all = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                all[mask][to] = lane as u8;
                to += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

/// Orders of bytes that move a vector up by as many bytes as a load starts before the middle, zeros from below.
static SLIDE: [u8; 32] = {
    let mut all = [0x80; 32];
    let mut i = 0;
    while i < 16 {
        all[16 + i] = i as u8;
        i += 1;
    }
    all
};

/// Where decoded units go: nothing is written outside of the place.
struct Out<U> {
    at: *mut U,
    room: usize,
    /// Units that the place takes in all.
    len: usize,
}

impl<U> Out<U> {
    fn new(at: *mut U, len: usize) -> Out<U> {
        Out { at, room: len, len }
    }
}

/// Units of a `str` made of 8 lanes of 16 bits.
trait Unit: Copy {
    /// Whether characters above U+07FF fit.
    const WIDE: bool;
    /// The lanes as units, in the low bytes.
    /// # Safety
    /// SSE2.
    unsafe fn pack(v: __m128i) -> __m128i;
}

impl Unit for u8 {
    const WIDE: bool = false;
    #[inline(always)]
    unsafe fn pack(v: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_packus_epi16(v, v) }
    }
}

impl Unit for u16 {
    const WIDE: bool = true;
    #[inline(always)]
    unsafe fn pack(v: __m128i) -> __m128i {
        v
    }
}

impl<U: Unit> Out<U> {
    /// Puts the lanes of `mask`.
    ///
    /// # Safety
    /// AVX2; the place has room for the lanes of `mask`.
    #[inline(always)]
    unsafe fn put(&mut self, v: __m128i, mask: u8) {
        // SAFETY: the store of 8 units is made where as many fit, and else just those of the mask.
        unsafe {
            let order = _mm_loadu_si128(SQUEEZE_U16[usize::from(mask)].as_ptr().cast());
            let v = U::pack(_mm_shuffle_epi8(v, order));
            let n = mask.count_ones() as usize;
            debug_assert!(n <= self.room);
            if self.room >= 8 {
                store_eight::<U>(v, self.at);
            } else if self.len >= 8 {
                // The last 8 units of the place at once, those written before taken from where they are: no branch on
                // how many there are.
                let end = self.at.sub(8 - self.room);
                let kept = (8 - self.room) * size_of::<U>();
                let slide = _mm_loadu_si128(SLIDE.as_ptr().add(16 - kept).cast());
                let old = load_eight::<U>(end);
                let below = _mm_cmplt_epi8(slide, _mm_setzero_si128());
                let v = _mm_blendv_epi8(_mm_shuffle_epi8(v, slide), old, below);
                store_eight::<U>(v, end);
            } else {
                store_first(v, self.at.cast(), n * size_of::<U>());
            }
            self.at = self.at.add(n);
            self.room -= n;
        }
    }
}

/// # Safety
/// `to` takes 8 units of 1 or 2 bytes.
#[inline(always)]
unsafe fn store_eight<U>(v: __m128i, to: *mut U) {
    // SAFETY: 8 units, as the caller grants.
    unsafe {
        if size_of::<U>() == 2 {
            _mm_storeu_si128(to.cast(), v);
        } else {
            _mm_storel_epi64(to.cast(), v);
        }
    }
}

/// # Safety
/// `from` has 8 units of 1 or 2 bytes to read; they need not be initialised.
#[inline(always)]
unsafe fn load_eight<U>(from: *const U) -> __m128i {
    // SAFETY: 8 units, as the caller grants. What is not initialised yet is replaced before anybody looks at it: the
    // lanes past those that were written before are written now, or in a later step.
    unsafe {
        if size_of::<U>() == 2 {
            _mm_loadu_si128(from.cast())
        } else {
            _mm_loadl_epi64(from.cast())
        }
    }
}

/// Stores the first 0 to 15 bytes of a vector.
///
/// # Safety
/// `to` takes them.
#[inline(always)]
unsafe fn store_first(v: __m128i, to: *mut u8, n_bytes: usize) {
    // SAFETY: each arm stores its size at the start and up to the end, both inside n_bytes.
    unsafe {
        let low = _mm_cvtsi128_si64(v) as u64;
        if n_bytes >= 8 {
            let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v)) as u64;
            to.cast::<u64>().write_unaligned(low);
            if n_bytes > 8 {
                // The last 8 bytes: some of the low half and the rest of the high one.
                let shift = 8 * (n_bytes - 8) as u32;
                let last = low >> shift | high << (64 - shift);
                to.add(n_bytes - 8).cast::<u64>().write_unaligned(last);
            }
        } else if n_bytes >= 4 {
            to.cast::<u32>().write_unaligned(low as u32);
            let last = (low >> (8 * (n_bytes - 4))) as u32;
            to.add(n_bytes - 4).cast::<u32>().write_unaligned(last);
        } else {
            for i in 0..n_bytes {
                to.add(i).write((low >> (8 * i)) as u8);
            }
        }
    }
}

/// The places of 16 bytes where a character starts.
///
/// # Safety
/// SSE2.
#[inline(always)]
unsafe fn starts(v: __m128i) -> u32 {
    // SAFETY: SSE2 is part of x86-64. Signed: continuation bytes are the lowest.
    unsafe { _mm_movemask_epi8(_mm_cmpgt_epi8(v, _mm_set1_epi8(0xBF_u8 as i8))) as u32 }
}

/// Decodes the characters that start at the places of `mask`.
///
/// # Safety
/// AVX2; every character of `mask` lies in `v` as a whole, none is wider than a unit; `out` has room for them.
#[inline(always)]
unsafe fn utf8_step<U: Unit>(v: __m128i, mask: u32, out: &mut Out<U>) {
    // SAFETY: the caller has AVX2, and grants the room.
    unsafe {
        let first = _mm256_cvtepu8_epi16(v);
        let second = _mm256_cvtepu8_epi16(_mm_srli_si128::<1>(v));
        let low6 = _mm256_set1_epi16(0x3F);
        let second = _mm256_and_si256(second, low6);
        let lead = _mm256_and_si256(first, _mm256_set1_epi16(0x1F));
        let two = _mm256_or_si256(_mm256_slli_epi16::<6>(lead), second);
        let is_two = _mm256_cmpgt_epi16(first, _mm256_set1_epi16(0xBF));
        let mut c = _mm256_blendv_epi8(first, two, is_two);
        if U::WIDE {
            let third = _mm256_cvtepu8_epi16(_mm_srli_si128::<2>(v));
            let third = _mm256_and_si256(third, low6);
            let second = _mm256_slli_epi16::<6>(second);
            // The upper half of the lead falls out of its lane.
            let three = _mm256_or_si256(_mm256_slli_epi16::<12>(first), second);
            let three = _mm256_or_si256(three, third);
            let is_three = _mm256_cmpgt_epi16(first, _mm256_set1_epi16(0xDF));
            c = _mm256_blendv_epi8(c, three, is_three);
        }
        out.put(_mm256_castsi256_si128(c), mask as u8);
        out.put(_mm256_extracti128_si256::<1>(c), (mask >> 8) as u8);
    }
}

/// Decodes valid UTF-8 into exactly `n_chars` units.
///
/// # Safety
/// AVX2. `src` has `n_chars` characters, at least one, none wider than a unit, and `out` takes them.
#[inline(always)]
unsafe fn utf8_to<U: Unit>(src: &[u8], out: *mut U, n_chars: usize) {
    let (p, len) = (src.as_ptr(), src.len());
    let mut out = Out::new(out, n_chars);
    // SAFETY: every load ends inside src. All characters that start at the first 14 of 16 places end among the 16 (kinds 1
    // and 2 have no longer ones than 3 bytes); those of the last vector end with the text.
    unsafe {
        if len < 16 {
            let v = load_padded(p, len).0;
            return utf8_step(v, starts(v) & ((1 << len) - 1), &mut out);
        }
        let mut at = 0;
        while at + 16 < len {
            let v = _mm_loadu_si128(p.add(at).cast());
            utf8_step(v, starts(v) & 0x3FFF, &mut out);
            at += 14;
        }
        let v = _mm_loadu_si128(p.add(len - 16).cast());
        // Without those that were decoded in the step before.
        let fresh = 0xFFFF << (16 - (len - at));
        utf8_step(v, starts(v) & fresh & 0xFFFF, &mut out);
        debug_assert_eq!(out.room, 0);
    }
}

/// # Safety
/// AVX2. `src` is valid UTF-8 of `n_chars` characters, at least one, all below U+0100; `out` takes as many bytes.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) unsafe fn utf8_to_latin1(src: &[u8], out: *mut u8, n_chars: usize) {
    // SAFETY: the duties are the same.
    unsafe { utf8_to(src, out, n_chars) }
}

/// # Safety
/// AVX2. `src` is valid UTF-8 of `n_chars` characters, at least one, all below U+10000; `out` takes as many units.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) unsafe fn utf8_to_ucs2(src: &[u8], out: *mut u16, n_chars: usize) {
    // SAFETY: the duties are the same.
    unsafe { utf8_to(src, out, n_chars) }
}

impl Out<u32> {
    /// Puts the lanes of `mask`.
    ///
    /// # Safety
    /// AVX2; the place has room for the lanes of `mask`.
    #[inline(always)]
    unsafe fn put_wide(&mut self, v: __m256i, mask: u8) {
        // SAFETY: the store of 8 units is made where as many fit, and else just those of the mask.
        unsafe {
            let order = _mm_loadl_epi64(SQUEEZE[usize::from(mask)].as_ptr().cast());
            let v = _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(order));
            let n = mask.count_ones() as usize;
            debug_assert!(n <= self.room);
            if self.room >= 8 {
                _mm256_storeu_si256(self.at.cast(), v);
            } else {
                // The lanes below n, by their sign bits.
                let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes);
                _mm256_maskstore_epi32(self.at.cast(), kept, v);
            }
            self.at = self.at.add(n);
            self.room -= n;
        }
    }
}

/// Decodes the characters that start at the places of `mask`, of the first 8.
///
/// # Safety
/// AVX2; every character of `mask` lies in `v` as a whole; `out` has room for them.
#[inline(always)]
unsafe fn utf8_step_wide(v: __m128i, mask: u8, out: &mut Out<u32>) {
    // SAFETY: the caller has AVX2, and grants the room.
    unsafe {
        let low6 = _mm256_set1_epi32(0x3F);
        let first = _mm256_cvtepu8_epi32(v);
        let second = _mm256_and_si256(_mm256_cvtepu8_epi32(_mm_srli_si128::<1>(v)), low6);
        let third = _mm256_and_si256(_mm256_cvtepu8_epi32(_mm_srli_si128::<2>(v)), low6);
        let fourth = _mm256_and_si256(_mm256_cvtepu8_epi32(_mm_srli_si128::<3>(v)), low6);
        // From 0xC0 on the bits below the length's marks, and what follows.
        let bits_of_two = _mm256_and_si256(first, _mm256_set1_epi32(0x1F));
        let bits_of_three = _mm256_and_si256(first, _mm256_set1_epi32(0xF));
        let bits_of_four = _mm256_and_si256(first, _mm256_set1_epi32(0x7));
        let two = _mm256_or_si256(_mm256_slli_epi32::<6>(bits_of_two), second);
        let three = _mm256_or_si256(_mm256_slli_epi32::<6>(second), third);
        let three = _mm256_or_si256(_mm256_slli_epi32::<12>(bits_of_three), three);
        let four = _mm256_or_si256(
            _mm256_slli_epi32::<12>(second),
            _mm256_slli_epi32::<6>(third),
        );
        let four = _mm256_or_si256(four, fourth);
        let four = _mm256_or_si256(_mm256_slli_epi32::<18>(bits_of_four), four);
        let from_two = _mm256_cmpgt_epi32(first, _mm256_set1_epi32(0xBF));
        let from_three = _mm256_cmpgt_epi32(first, _mm256_set1_epi32(0xDF));
        let from_four = _mm256_cmpgt_epi32(first, _mm256_set1_epi32(0xEF));
        let chars = _mm256_blendv_epi8(first, two, from_two);
        let chars = _mm256_blendv_epi8(chars, three, from_three);
        let chars = _mm256_blendv_epi8(chars, four, from_four);
        out.put_wide(chars, mask);
    }
}

/// # Safety
/// AVX2. `src` is valid UTF-8 of `n_chars` characters, at least one; `out` takes as many units.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) unsafe fn utf8_to_ucs4(src: &[u8], out: *mut u32, n_chars: usize) {
    let (p, len) = (src.as_ptr(), src.len());
    let mut out = Out::new(out, n_chars);
    // SAFETY: every load ends inside src. All characters that start at the first 8 of 16 places end among the 16; those of
    // the last vector end with the text.
    unsafe {
        if len < 16 {
            let v = load_padded(p, len).0;
            let mask = starts(v) & ((1 << len) - 1);
            utf8_step_wide(v, mask as u8, &mut out);
            return utf8_step_wide(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
        }
        let mut at = 0;
        while at + 16 < len {
            let v = _mm_loadu_si128(p.add(at).cast());
            utf8_step_wide(v, starts(v) as u8, &mut out);
            at += 8;
        }
        let v = _mm_loadu_si128(p.add(len - 16).cast());
        // Without those that were decoded in the step before.
        let mask = starts(v) & (0xFFFF << (16 - (len - at)));
        utf8_step_wide(v, mask as u8, &mut out);
        utf8_step_wide(_mm_srli_si128::<8>(v), (mask >> 8) as u8, &mut out);
        debug_assert_eq!(out.room, 0);
    }
}

/// Decodes the characters that start at the units of `mask`.
///
/// # Safety
/// AVX2; every pair of `mask` lies in `v` as a whole; `out` has room for the characters.
#[inline(always)]
unsafe fn utf16_step(v: __m128i, mask: u8, out: &mut Out<u32>) {
    // SAFETY: the caller has AVX2, and grants the room.
    unsafe {
        let first = _mm256_cvtepu16_epi32(v);
        let second = _mm256_cvtepu16_epi32(_mm_srli_si128::<2>(v));
        // Both prefixes and the plane's offset in one constant.
        let prefixes = (0xD800 << 10) + 0xDC00 - 0x1_0000;
        let pair = _mm256_add_epi32(_mm256_slli_epi32::<10>(first), second);
        let pair = _mm256_sub_epi32(pair, _mm256_set1_epi32(prefixes));
        let top = _mm256_and_si256(first, _mm256_set1_epi32(0xFC00));
        let is_pair = _mm256_cmpeq_epi32(top, _mm256_set1_epi32(0xD800));
        out.put_wide(_mm256_blendv_epi8(first, pair, is_pair), mask);
    }
}

/// The places of 8 units where a character starts: all but the second halves of pairs.
///
/// # Safety
/// SSE2.
#[inline(always)]
unsafe fn starts_u16(v: __m128i) -> u32 {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let top = _mm_and_si128(v, _mm_set1_epi16(0xFC00_u16 as i16));
        let second = _mm_cmpeq_epi16(top, _mm_set1_epi16(0xDC00_u16 as i16));
        !_mm_movemask_epi8(_mm_packs_epi16(second, second)) as u32 & 0xFF
    }
}

/// # Safety
/// AVX2. `src` is valid UTF-16 of `n_chars` characters, at least one; `out` takes as many units.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) unsafe fn utf16_to_ucs4(src: &[u16], out: *mut u32, n_chars: usize) {
    let (p, len) = (src.as_ptr(), src.len());
    let mut out = Out::new(out, n_chars);
    // SAFETY: every load ends inside src. All characters that start at the first 7 of 8 units end among the 8; those of
    // the last vector end with the text.
    unsafe {
        if len < 8 {
            let v = load_padded(p.cast(), 2 * len).0;
            let mask = starts_u16(v) & ((1 << len) - 1);
            return utf16_step(v, mask as u8, &mut out);
        }
        let mut at = 0;
        while at + 8 < len {
            let v = _mm_loadu_si128(p.add(at).cast());
            utf16_step(v, starts_u16(v) as u8 & 0x7F, &mut out);
            at += 7;
        }
        let v = _mm_loadu_si128(p.add(len - 8).cast());
        // Without those that were decoded in the step before.
        let fresh = 0xFF << (8 - (len - at));
        utf16_step(v, (starts_u16(v) & fresh) as u8, &mut out);
        debug_assert_eq!(out.room, 0);
    }
}
