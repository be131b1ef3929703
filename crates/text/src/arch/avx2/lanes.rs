//! Assembles UTF-8 characters in vector lanes. The tables of byte shuffles then remove the unused
//! bytes.

#![allow(unused_unsafe)] // Newer compilers treat these intrinsics as safe.

use std::arch::x86_64::*;

/// Byte shuffles for eight 16-bit lanes. The index is a mask of the lanes that keep both bytes.
/// Other lanes keep their low byte.
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

/// Byte shuffles that keep the last 1 to 4 bytes of each 32-bit lane. Lane `i` keeps one byte. It
/// keeps one more byte for bit `i` of the index, and two more for bit `4 + i`.
pub(super) static ANY: [[u8; 16]; 256] = last_bytes(false);

/// Byte shuffles that keep the last 1 to 4 bytes of each 32-bit lane. The index has two bits for
/// each lane: 00 for one byte, 01 for two, 11 for three, 10 for four.
pub(super) static SOME: [[u8; 16]; 256] = last_bytes(true);

/// Returns the table [`SOME`] if `adjacent` is `true`, otherwise [`ANY`]. In an index of `SOME`,
/// the two bits of a lane are adjacent.
const fn last_bytes(adjacent: bool) -> [[u8; 16]; 256] {
    let mut all = [[0x80; 16]; 256];
    let mut index = 0;
    while index < 256 {
        let (mut lane, mut to) = (0, 0);
        while lane < 4 {
            let more = if adjacent {
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

/// Encodes 8 well-formed code points as UTF-8, one in each 32-bit lane. The last byte of a
/// character is the highest byte of its lane. Also returns masks of the characters with at least
/// two, at least three, and four bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn any(chars: __m256i) -> (__m256i, __m256i, __m256i, __m256i) {
    let two = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7F));
    let three = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0x7FF));
    let four = _mm256_cmpgt_epi32(chars, _mm256_set1_epi32(0xFFFF));
    // Each half of a lane gets twelve bits of the code point. Then each byte gets six of these
    // bits. The last byte gets seven bits, for ASCII.
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
    // The prefix bits of each byte, by its position and the length of the character.
    let marks = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 0, 0, -0x10, 0, 0, -0x20, -0x80, 0, -0x40, -0x80, -0x80, 0, -0x80, -0x80, -0x80,
    ));
    let n_more = _mm256_add_epi8(_mm256_add_epi8(two, three), four);
    let index = _mm256_sub_epi8(_mm256_set1_epi32(0x0C08_0400), n_more);
    let bytes = _mm256_or_si256(six, _mm256_shuffle_epi8(marks, index));
    (bytes, two, three, four)
}

/// Encodes 16 units as UTF-8, three bytes each. All units must be at least U+0800 and not
/// surrogates. The low 128-bit halves of the two results contain the 24 bytes of the first 8 units.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn three(units: __m256i) -> (__m256i, __m256i) {
    let six = |v, bits| _mm256_and_si256(v, _mm256_set1_epi16(bits));
    // Each lane of `two` has the first two bytes of a character.
    let two = _mm256_or_si256(
        _mm256_srli_epi16::<12>(units),
        six(_mm256_slli_epi16::<2>(units), 0x3F00),
    );
    let two = _mm256_or_si256(two, _mm256_set1_epi16(0x80E0_u16 as i16));
    let third = _mm256_or_si256(six(units, 0x3F), _mm256_set1_epi16(0x80));
    let order = |v| _mm256_broadcastsi128_si256(v);
    let spread = |from: __m128i, rest: __m128i| {
        _mm256_or_si256(
            _mm256_shuffle_epi8(two, order(from)),
            _mm256_shuffle_epi8(third, order(rest)),
        )
    };
    let most = spread(
        _mm_setr_epi8(0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1, 8, 9, -1, 10),
        _mm_setr_epi8(-1, -1, 0, -1, -1, 2, -1, -1, 4, -1, -1, 6, -1, -1, 8, -1),
    );
    let rest = spread(
        _mm_setr_epi8(
            11, -1, 12, 13, -1, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1,
        ),
        _mm_setr_epi8(
            -1, 10, -1, -1, 12, -1, -1, 14, -1, -1, -1, -1, -1, -1, -1, -1,
        ),
    );
    (most, rest)
}

/// Encodes the first five units as 15 bytes of UTF-8. The units must be at least U+0800 and not
/// surrogates.
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
