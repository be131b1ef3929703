//! Conversions of cells for any processor, and for `ONECOPY_KERNEL` set to `scalar`.

use crate::arch::dispatch::{
    is_ascii, narrow_u16, scan_u16, shape_of_utf8, valid_utf8_to_latin1, valid_utf8_to_ucs4,
    valid_utf8_to_utf16,
};
use crate::arch::encode;
use crate::arch::family::{CellSteps, Common, Kernels, Work};
use crate::arch::memory::destination;
use crate::arch::new_cell::{MaybeBytes, MaybeStr, encoded, four, one, two};
use crate::convert::utf8_exact;
use crate::new_object::{NewBytes, NewStr};
use crate::{Kind, Shape, Units};

impl Kernels for Common {
    #[inline(never)]
    fn call<W: Work>(self, work: W) -> W::Output {
        work.run(self)
    }

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

impl CellSteps for Common {
    #[inline(always)]
    fn make_utf16<const SWAPPED: bool, N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N> {
        // SAFETY: any bits are a valid unit.
        let ([], units, []) = (unsafe { text.align_to::<u16>() }) else {
            return None;
        };
        let scan = scan_u16(units);
        if SWAPPED || scan.surrogate {
            return None;
        }
        let n = units.len();
        Some(if scan.kind == Kind::Ucs2 {
            // SAFETY: `two` has checked that `out` has as many units.
            two(new, scan.kind, n, true, |out| unsafe {
                self.copy(text, out.cast());
            })
        } else {
            // SAFETY: `one` has checked that `out` has a byte for each unit.
            one(new, scan.kind, n, false, |out| unsafe {
                narrow_u16(units, destination(out, units.len()));
            })
        })
    }

    #[inline(always)]
    fn make_utf8<N: NewStr>(self, text: &[u8], new: &mut N) -> MaybeStr<N> {
        let Shape { kind, n_chars: n } = shape_of_utf8(text)?;
        if n < 2 {
            return None;
        }
        let mut is_whole = false;
        // SAFETY: `one`, `two` and `four` have checked that `out` has a unit for each character.
        let made = unsafe {
            match kind {
                Kind::Ascii | Kind::Latin1 => one(new, kind, n, false, |out| {
                    is_whole = valid_utf8_to_latin1(text, destination(out, n)) == Some(n);
                }),
                Kind::Ucs2 => two(new, kind, n, false, |out| {
                    is_whole = valid_utf8_to_utf16::<false>(text, destination(out, n)) == Some(n);
                }),
                Kind::Ucs4 => four(new, kind, n, false, |out| {
                    is_whole = valid_utf8_to_ucs4(text, destination(out, n)) == Some(n);
                }),
            }
        };
        match made {
            Ok(_) if !is_whole => None,
            made => Some(made),
        }
    }

    #[inline(always)]
    fn is_ascii(self, text: &[u8]) -> bool {
        is_ascii(text)
    }

    #[inline(always)]
    unsafe fn copy(self, text: &[u8], out: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), out, text.len()) }
    }

    #[inline(always)]
    fn latin1_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u8],
        new: &mut B,
    ) -> MaybeBytes<B> {
        Some(encoded(new, 2 * u.len(), |out| {
            for (i, &b) in u.iter().enumerate() {
                let unit = if SWAPPED { [0, b] } else { [b, 0] };
                // SAFETY: `out` has two bytes for each unit of `u`.
                unsafe { out.cast::<[u8; 2]>().add(i).write(unit) };
            }
        }))
    }

    #[inline(always)]
    fn ucs2_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        u: &[u16],
        new: &mut B,
    ) -> MaybeBytes<B> {
        if SWAPPED || scan_u16(u).surrogate {
            return None;
        }
        Some(encoded(new, 2 * u.len(), |out| {
            // SAFETY: `out` has as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(u.as_ptr().cast(), out, 2 * u.len()) }
        }))
    }

    #[inline(always)]
    fn ucs4_to_utf16<const SWAPPED: bool, B: NewBytes>(
        self,
        _: &[u32],
        _: &mut B,
    ) -> MaybeBytes<B> {
        None
    }

    #[inline(always)]
    fn latin1_to_utf8<B: NewBytes>(self, u: &[u8], new: &mut B) -> MaybeBytes<B> {
        to_utf8(Units::Latin1(u), new)
    }

    #[inline(always)]
    fn ucs2_to_utf8<B: NewBytes>(self, u: &[u16], new: &mut B) -> MaybeBytes<B> {
        to_utf8(Units::Ucs2(u), new)
    }

    #[inline(always)]
    fn ucs4_to_utf8<B: NewBytes>(self, u: &[u32], new: &mut B) -> MaybeBytes<B> {
        to_utf8(Units::Utf32(u), new)
    }
}

/// Converts text to UTF-8. Returns `None` for lone surrogates.
#[inline(always)]
fn to_utf8<B: NewBytes>(units: Units<'_>, new: &mut B) -> MaybeBytes<B> {
    let len = encode::valid_utf8_len(units)?;
    Some(encoded(new, len, |out| {
        // SAFETY: `encoded` has checked that `out` has `len` bytes.
        utf8_exact(units, unsafe { destination(out, len) });
    }))
}
