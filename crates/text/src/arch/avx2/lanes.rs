//! The bytes of characters as UTF-8, put together in lanes, and the tables by which those that a character does not need are squeezed
//! out: for text and for JSON.

#![allow(unused_unsafe)] // Newer compilers know which intrinsics are safe where the feature is on; ours may not.

use std::arch::x86_64::*;

/// For each mask of 8 lanes of 16 bits, the order of bytes that keeps the low byte of each lane, and the high byte of those
/// whose bits are set.
pub(super) static TWO: [[u8; 16]; 256] = {
    let mut all = [[0x80; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 8 {
            all[mask][to] = 2 * lane as u8;
            to += 1;
            if mask >> lane & 1 == 1 {
                all[mask][to] = 2 * lane as u8 + 1;
                to += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    all
};

/// The last one to four bytes of each of four lanes of 32 bits, by how many are kept but for the last: the low bits of the
/// four numbers, and the high bits of them.
pub(super) static ANY: [[u8; 16]; 256] = last_bytes(false);

/// The last one to four bytes of each of four lanes of 32 bits, by two bits for each lane: whether it has two or three, and
/// whether it has three or four.
pub(super) static SOME: [[u8; 16]; 256] = last_bytes(true);

/// For each index, the order of bytes that keeps the last of each of four lanes, and those before it that the index tells of: by two
/// bits side by side, or by the low bits of all and the high bits of all.
const fn last_bytes(side_by_side: bool) -> [[u8; 16]; 256] {
    let mut all = [[0x80; 16]; 256];
    let mut index = 0;
    while index < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 4 {
            let more = if side_by_side {
                [0, 1, 3, 2][index >> (2 * lane) & 3]
            } else {
                (index >> lane & 1) + 2 * (index >> (4 + lane) & 1)
            };
            let mut byte = 3 - more;
            while byte < 4 {
                all[index][to] = (4 * lane + byte) as u8;
                to += 1;
                byte += 1;
            }
            lane += 1;
        }
        index += 1;
    }
    all
}

/// The bytes of 8 code points, none of which is malformed, the last one highest in each lane; and the lanes that have two or
/// more, three or more, and four.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn any(chars: __m256i) -> (__m256i, __m256i, __m256i, __m256i) {
    let two = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7F));
    let three = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7FF));
    let four = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0xFFFF));
    // Twelve bits in each half of a lane, then six in each byte, the last ones highest: they have seven, which ASCII needs.
    let halves = _mm256_blend_epi16::<0xAA>(
        _mm256_srli_epi32::<12>(chars),
        _mm256_slli_epi32::<16>(chars),
    );
    let six = _mm256_or_si256(
        _mm256_and_si256(_mm256_srli_epi16::<6>(halves), _mm256_set1_epi16(0x3F)),
        _mm256_and_si256(
            _mm256_slli_epi16::<8>(halves),
            _mm256_set1_epi32(0x7F00_3F00),
        ),
    );
    let seventh = _mm256_and_si256(two, _mm256_set1_epi32(0x4000_0000));
    let six = _mm256_andnot_si256(seventh, six);
    // What marks each byte, by its place and how many bytes more than one the character has.
    let marks = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 0, 0, -0x10, 0, 0, -0x20, -0x80, 0, -0x40, -0x80, -0x80, 0, -0x80, -0x80, -0x80,
    ));
    let n_more = _mm256_add_epi8(_mm256_add_epi8(two, three), four);
    let index = _mm256_sub_epi8(_mm256_set1_epi32(0x0C08_0400), n_more);
    let bytes = _mm256_or_si256(six, _mm256_shuffle_epi8(marks, index));
    (bytes, two, three, four)
}

/// The bytes of 16 units from U+0800 on, no surrogates: in each half 16 bytes of each 8 units' 24, and the 8 behind them.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn three(units: __m256i) -> (__m256i, __m256i) {
    let six = |v, bits| _mm256_and_si256(v, _mm256_set1_epi16(bits));
    // The first two bytes in each lane, and the third.
    let two = _mm256_or_si256(
        _mm256_srli_epi16::<12>(units),
        six(_mm256_slli_epi16::<2>(units), 0x3F00),
    );
    let two = _mm256_or_si256(two, _mm256_set1_epi16(0x80E0_u16 as i16));
    let third = _mm256_or_si256(six(units, 0x3F), _mm256_set1_epi16(0x80));
    let order = |v| _mm256_broadcastsi128_si256(v);
    let place = |from: __m128i, rest: __m128i| {
        _mm256_or_si256(
            _mm256_shuffle_epi8(two, order(from)),
            _mm256_shuffle_epi8(third, order(rest)),
        )
    };
    let most = place(
        _mm_setr_epi8(0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1, 8, 9, -1, 10),
        _mm_setr_epi8(-1, -1, 0, -1, -1, 2, -1, -1, 4, -1, -1, 6, -1, -1, 8, -1),
    );
    let rest = place(
        _mm_setr_epi8(
            11, -1, 12, 13, -1, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1,
        ),
        _mm_setr_epi8(
            -1, 10, -1, -1, 12, -1, -1, 14, -1, -1, -1, -1, -1, -1, -1, -1,
        ),
    );
    (most, rest)
}

/// The bytes of the first five of 8 units from U+0800 on, no surrogates.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn five(units: __m128i) -> __m128i {
    let six = |v, bits| _mm_and_si128(v, _mm_set1_epi16(bits));
    let two = _mm_or_si128(
        _mm_srli_epi16::<12>(units),
        six(_mm_slli_epi16::<2>(units), 0x3F00),
    );
    let two = _mm_or_si128(two, _mm_set1_epi16(0x80E0_u16 as i16));
    let third = _mm_or_si128(six(units, 0x3F), _mm_set1_epi16(0x80));
    _mm_or_si128(
        _mm_shuffle_epi8(
            two,
            _mm_setr_epi8(0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1, 8, 9, -1, -1),
        ),
        _mm_shuffle_epi8(
            third,
            _mm_setr_epi8(-1, -1, 0, -1, -1, 2, -1, -1, 4, -1, -1, 6, -1, -1, 8, -1),
        ),
    )
}
