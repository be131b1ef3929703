//! UTF-8 of at most a vector to a `str`: what was seen at the first look is used to write, and no step loops.
//!
//! Whatever the caller's function grows to, the steps are inlined into it: what a look has seen would pass through memory, and
//! wait for it.

use std::arch::x86_64::*;

use super::cell::make_utf8 as make_any;
use super::second::wrong_seconds;
use super::{BYTES, first, load_first, select, splat8, store_first, utf8};
use crate::arch::new_cell::of_another_shape;
use crate::new_object::StrData;
use crate::new_object::{MadeStr, NewStr};
use crate::{Kind, Shape};

/// Where in the vector is what.
#[derive(Clone, Copy)]
struct Look {
    /// Leads of two bytes or more.
    leads: u64,
    /// Leads of three.
    three: u64,
    /// Bytes where a character starts.
    starts: u64,
}

impl Look {
    fn n_chars(self) -> usize {
        self.starts.count_ones() as usize
    }
}

/// Makes a `str` of UTF-8 that is not all ASCII; `None` where it is malformed, or a single character that is shared.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
pub(in crate::arch) unsafe fn make_utf8<N: NewStr>(
    text: &[u8],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    // SAFETY: AVX-512 is there; each place takes a unit for each character, as is checked. What was loaded is loaded
    // again behind the call that makes the `str`: no vector outlives a call.
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
        // No closures here: what they hold is not compiled for these instructions before it is inlined.
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

/// The byte behind each.
#[inline]
#[target_feature(enable = "avx512bw,bmi2")]
fn behind(text: &[u8], n: usize) -> __m512i {
    let rest = text.get(n..).unwrap_or_default();
    // SAFETY: no more than the text.
    unsafe { load_first(rest.as_ptr(), rest.len()) }
}

/// Looks at a text without leads of four bytes; `None` where it is malformed.
///
/// # Safety
/// AVX-512 is there.
#[inline(always)]
unsafe fn look(text: &[u8], v: __m512i) -> Option<Look> {
    // SAFETY: AVX-512 is there.
    unsafe {
        let high = _mm512_movepi8_mask(v);
        // Signed: continuation bytes are the lowest.
        let tails = _mm512_cmplt_epi8_mask(v, splat8(0xC0));
        let leads = high & !tails;
        let three = _mm512_cmpge_epu8_mask(v, splat8(0xE0));
        let due = leads << 1 | three << 2;
        // Called for behind the end; the places behind a shorter text hold no continuation.
        let owed = leads >> 63 | three >> 62;
        // 0xC0 and 0xC1: overlong.
        let mut bad = due ^ tails | owed | _mm512_mask_cmplt_epu8_mask(leads, v, splat8(0xC2));
        if three != 0 {
            bad |= wrong_seconds(three, v, behind(text, 1));
        }
        (bad == 0).then_some(Look {
            leads,
            three,
            starts: !tails & first(text.len()),
        })
    }
}

/// Stores a text without a character past U+00FF.
///
/// # Safety
/// AVX-512 is there; `out` is writable for a byte for each character.
#[inline(always)]
unsafe fn store_latin1(out: *mut u8, text: &[u8], look: Look) {
    // SAFETY: the text is not longer than a vector; the duty of the caller.
    unsafe {
        let v = load_first(text.as_ptr(), text.len());
        let units =
            _mm512_maskz_compress_epi8(look.starts, low_bytes(look.leads, v, v, behind(text, 1)));
        store_first(out, units, look.n_chars());
    }
}

/// The low byte of each character's unit at its first byte: six bits of its last byte, two of the one before; elsewhere what
/// stands in `v`.
#[inline]
#[target_feature(enable = "avx512bw")]
fn low_bytes(leads: u64, v: __m512i, before: __m512i, last: __m512i) -> __m512i {
    let low = select(splat8(0xC0), _mm512_slli_epi16::<6>(before), last);
    _mm512_mask_mov_epi8(v, leads, low)
}

/// Stores a text without a character past U+FFFF.
///
/// # Safety
/// AVX-512 is there; `out` is writable for two bytes for each character.
#[inline(always)]
unsafe fn store_ucs2(out: *mut u8, text: &[u8], look: Look) {
    // SAFETY: the text is not longer than a vector; the duty of the caller.
    unsafe {
        let v = load_first(text.as_ptr(), text.len());
        let second = behind(text, 1);
        let (low, high);
        if look.three == 0 {
            low = low_bytes(look.leads, v, v, second);
            let bits = _mm512_and_si512(_mm512_srli_epi16::<2>(v), splat8(0x07));
            high = _mm512_maskz_mov_epi8(look.leads, bits);
        } else {
            // The last two bytes of each character give ten or eleven bits, the lead of three the rest.
            let last = _mm512_mask_mov_epi8(second, look.three, behind(text, 2));
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
