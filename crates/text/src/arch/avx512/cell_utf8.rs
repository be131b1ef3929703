//! Converts UTF-8 of at most 64 bytes (one vector) to a `str`, without a loop.
//!
//! All functions are inlined into their callers. Otherwise masks would be passed through memory.

use std::arch::x86_64::*;

use super::cell::make_utf8 as make_any;
use super::utf8_second_bytes::wrong_seconds;
use super::{BYTES, first, load_first, select, splat8, store_first, utf8};
use crate::arch::new_cell::of_another_shape;
use crate::new_object::StrData;
use crate::new_object::{MadeStr, NewStr};
use crate::{Kind, Shape};

/// One mask for each class of bytes.
#[derive(Clone, Copy)]
struct Look {
    /// The first bytes of characters of two or more bytes.
    leads: u64,
    /// The first bytes of three-byte characters.
    three: u64,
    /// The first bytes of all characters.
    starts: u64,
}

impl Look {
    fn n_chars(self) -> usize {
        self.starts.count_ones() as usize
    }
}

/// Makes a `str` from UTF-8 that is not all ASCII. Returns `None` for malformed text, and for one
/// character below U+0100: CPython has a shared `str` for it.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
pub(in crate::arch) unsafe fn make_utf8<N: NewStr>(
    text: &[u8],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    // SAFETY: AVX-512 is available. The buffer has one unit for each character, as checked. (The
    // text is loaded again after the call: a call preserves no vector register.)
    unsafe {
        if text.len() > BYTES {
            return make_any(text, new);
        }
        let v = load_first(text.as_ptr(), text.len());
        if _mm512_cmpge_epu8_mask(v, splat8(0xF0)) != 0 {
            return make_any(text, new);
        }
        let look = look(text, v)?;
        let n = look.n_chars();
        // No closures: they lack the target features of this function until they are inlined.
        let kind = if _mm512_cmpge_epu8_mask(v, splat8(0xC4)) != 0 {
            Kind::Ucs2
        } else if n > 1 {
            Kind::Latin1
        } else {
            return None;
        };
        let mut made = match new.new_str(Shape { kind, n_chars: n }) {
            Ok(made) => made,
            Err(e) => return Some(Err(e)),
        };
        match new.data(&mut made) {
            StrData::Two(out) if out.len() == n && kind == Kind::Ucs2 => {
                store_ucs2(out.as_mut_ptr().cast(), text, look);
            }
            StrData::One(out) if out.len() == n && kind == Kind::Latin1 => {
                store_latin1(out.as_mut_ptr().cast(), text, look);
            }
            _ => of_another_shape(),
        }
        Some(Ok(MadeStr {
            made,
            is_copied: false,
            in_vain_bytes: 0,
        }))
    }
}

/// Returns the bytes of `text` from index `n` on.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn following(text: &[u8], n: usize) -> __m512i {
    let rest = text.get(n..).unwrap_or_default();
    // SAFETY: no byte after the text is loaded.
    unsafe { load_first(rest.as_ptr(), rest.len()) }
}

/// Classifies the bytes of `text`, which has no four-byte characters. `None` for malformed text.
///
/// # Safety
/// The processor must support AVX-512.
#[inline(always)]
unsafe fn look(text: &[u8], v: __m512i) -> Option<Look> {
    // SAFETY: AVX-512 is available.
    unsafe {
        let high = _mm512_movepi8_mask(v);
        // As signed numbers, continuation bytes are the lowest.
        let tails = _mm512_cmplt_epi8_mask(v, splat8(0xC0));
        let leads = high & !tails;
        let three = _mm512_cmpge_epu8_mask(v, splat8(0xE0));
        let due = leads << 1 | three << 2;
        // The last character of 64 bytes must be complete. (`due ^ tails` shows this error in a
        // shorter text.)
        let owed = leads >> 63 | three >> 62;
        // The leads 0xC0 and 0xC1 are always overlong.
        let mut bad = due ^ tails | owed | _mm512_mask_cmplt_epu8_mask(leads, v, splat8(0xC2));
        if three != 0 {
            bad |= wrong_seconds(three, v, following(text, 1));
        }
        (bad == 0).then_some(Look {
            leads,
            three,
            starts: !tails & first(text.len()),
        })
    }
}

/// Stores a text whose characters are all below U+0100.
///
/// # Safety
/// The processor must support AVX-512. `out` must have one byte for each character.
#[inline(always)]
unsafe fn store_latin1(out: *mut u8, text: &[u8], look: Look) {
    // SAFETY: the text fits into a vector, and its characters fit into `out`.
    unsafe {
        let v = load_first(text.as_ptr(), text.len());
        let units = _mm512_maskz_compress_epi8(
            look.starts,
            low_bytes(look.leads, v, v, following(text, 1)),
        );
        store_first(out, units, look.n_chars());
    }
}

/// Computes the low byte of each character's unit, at the lead byte. It has six bits of the last
/// byte (`last`) and two of the byte before it. Other bytes are those of `v`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn low_bytes(leads: u64, v: __m512i, before: __m512i, last: __m512i) -> __m512i {
    let low = select(splat8(0xC0), _mm512_slli_epi16::<6>(before), last);
    _mm512_mask_mov_epi8(v, leads, low)
}

/// Stores a text whose characters are all below U+10000.
///
/// # Safety
/// The processor must support AVX-512. `out` must have two bytes for each character.
#[inline(always)]
unsafe fn store_ucs2(out: *mut u8, text: &[u8], look: Look) {
    // SAFETY: the text fits into a vector, and its characters fit into `out`.
    unsafe {
        let v = load_first(text.as_ptr(), text.len());
        let second = following(text, 1);
        let (low, high);
        if look.three == 0 {
            low = low_bytes(look.leads, v, v, second);
            let bits = _mm512_and_si512(_mm512_srli_epi16::<2>(v), splat8(0x07));
            high = _mm512_maskz_mov_epi8(look.leads, bits);
        } else {
            // The last two bytes yield ten or eleven bits, and the lead of a three-byte character
            // four more.
            let last = _mm512_mask_mov_epi8(second, look.three, following(text, 2));
            let before = _mm512_mask_mov_epi8(v, look.three, second);
            low = low_bytes(look.leads, v, before, last);
            let bits = _mm512_and_si512(_mm512_srli_epi16::<2>(before), splat8(0x0F));
            let bits = _mm512_maskz_mov_epi8(look.leads, bits);
            let top = select(splat8(0xF0), _mm512_slli_epi16::<4>(v), bits);
            high = _mm512_mask_mov_epi8(bits, look.three, top);
        }
        let low = _mm512_maskz_compress_epi8(look.starts, low);
        let high = _mm512_maskz_compress_epi8(look.starts, high);
        let n_bytes = 2 * look.n_chars();
        let units = utf8::units(_mm512_castsi512_si256(low), _mm512_castsi512_si256(high));
        store_first(out, units, n_bytes.min(BYTES));
        if n_bytes > BYTES {
            let units = utf8::units(
                _mm512_extracti64x4_epi64::<1>(low),
                _mm512_extracti64x4_epi64::<1>(high),
            );
            store_first(out.add(BYTES), units, n_bytes - BYTES);
        }
    }
}
