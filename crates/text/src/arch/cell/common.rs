//! What every processor has for cells; the slow twin where a kernel is forced to be plain.

use std::mem::MaybeUninit;

use super::steps::Steps;
use super::{Encoded, Kernels, NewBytes, NewStr, Tried, encoded, one, two};
use crate::Kind;
use crate::arch::{is_ascii, narrow_u16, scan_u16};

/// What every processor has: UTF-16 without surrogates, and plain copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common;

impl Kernels for Common {
    #[inline(always)]
    fn is_equal(self, a: &[u8], b: &[u8]) -> bool {
        a == b
    }

    #[inline(always)]
    fn hash(self, text: &[u8]) -> u32 {
        let n = text.len();
        let word = |at: usize| u64::from_le_bytes(text[at..at + 8].try_into().expect("8 bytes"));
        let mixed = if n >= 8 {
            let ends = word(0) ^ word(n - 8).rotate_left(29);
            ends ^ word((n - 8) / 2).rotate_left(13)
        } else {
            let mut bytes = [0; 8];
            bytes[..n].copy_from_slice(text);
            u64::from_le_bytes(bytes)
        };
        let mixed = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as u32 ^ (n as u32).wrapping_mul(0xC2B2_AE35)
    }

    #[inline(always)]
    fn fetch(self, _: &[u8], _: usize) {}
}

impl Steps for Common {
    #[inline(always)]
    fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> Tried<N> {
        // SAFETY: any bits are a good unit.
        let ([], units, []) = (unsafe { text.align_to::<u16>() }) else {
            return None;
        };
        let scan = scan_u16(units);
        if SWAPPED || scan.surrogate {
            return None;
        }
        let n = units.len();
        Some(if scan.kind == Kind::Ucs2 {
            // SAFETY: `two` has checked that out takes as many units.
            two(new, scan.kind, n, true, |out| unsafe {
                self.copy(text, out.cast());
            })
        } else {
            // SAFETY: `one` has checked that out takes a byte for each unit.
            one(new, scan.kind, n, false, |out| unsafe {
                narrow_u16(units, out);
            })
        })
    }

    #[inline(always)]
    fn make_utf8<N: NewStr>(self, _: &[u8], _: &mut N) -> Tried<N> {
        None
    }

    #[inline(always)]
    fn is_ascii(self, text: &[u8]) -> bool {
        is_ascii(text)
    }

    #[inline(always)]
    unsafe fn copy(self, text: &[u8], out: *mut u8) {
        // SAFETY: the duty of the caller.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), out, text.len()) }
    }

    #[inline(always)]
    fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u8],
        new: &mut B,
    ) -> Encoded<B> {
        Some(new.new_bytes(2 * u.len(), |out| {
            for (to, &b) in out.as_chunks_mut().0.iter_mut().zip(u) {
                let unit = if SWAPPED { [0, b] } else { [b, 0] };
                *to = unit.map(MaybeUninit::new);
            }
        }))
    }

    #[inline(always)]
    fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(self, u: &[u16], new: &mut B) -> Encoded<B> {
        if SWAPPED || scan_u16(u).surrogate {
            return None;
        }
        Some(encoded(new, 2 * u.len(), |out| {
            // SAFETY: out takes as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(u.as_ptr().cast(), out, 2 * u.len()) }
        }))
    }

    #[inline(always)]
    fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(self, _: &[u32], _: &mut B) -> Encoded<B> {
        None
    }

    #[inline(always)]
    fn latin1_to_utf8<B: NewBytes>(self, _: &[u8], _: &mut B) -> Encoded<B> {
        None
    }

    #[inline(always)]
    fn ucs2_to_utf8<B: NewBytes>(self, _: &[u16], _: &mut B) -> Encoded<B> {
        None
    }

    #[inline(always)]
    fn ucs4_to_utf8<B: NewBytes>(self, _: &[u32], _: &mut B) -> Encoded<B> {
        None
    }
}
