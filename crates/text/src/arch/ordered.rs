//! UTF-16 with pairs as bytes, in the machine's order or (`SWAPPED`) the other one, at any address.

use std::mem::MaybeUninit;

use super::bulk;
use super::memory::uninit_bytes;
#[cfg(target_arch = "x86_64")]
use super::{Kernel, avx512, kernel};

/// Units that are no second halves of pairs.
#[inline]
pub(crate) fn count_utf16<const SWAPPED: bool>(src: &[[u8; 2]]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if kernel() == Kernel::Avx512 {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::utf16::count_ordered::<SWAPPED>(src) };
    }
    let is_second = |unit| value::<SWAPPED>(unit) & 0xFC00 == 0xDC00;
    src.len() - src.iter().filter(|&&unit| is_second(unit)).count()
}

/// Decodes text; `false` where it is malformed or gives other than as many units as `out` takes.
#[inline]
#[must_use]
pub(crate) fn utf16_to_ucs4<const SWAPPED: bool>(
    src: &[[u8; 2]],
    out: &mut [MaybeUninit<u32>],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if kernel() == Kernel::Avx512 {
        let (to, n) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: AVX-512 is there; out takes n units.
        return unsafe { avx512::utf16::to_ucs4_ordered::<SWAPPED>(src, to, n) } == Some(n);
    }
    // In the machine's order first, a block at a time: it stays in the first cache.
    let mut block = [0_u16; BLOCK];
    let (mut rest, mut out) = (src, out);
    while !rest.is_empty() {
        let n = rest.len().min(BLOCK);
        for (to, &unit) in block.iter_mut().zip(&rest[..n]) {
            *to = value::<SWAPPED>(unit);
        }
        // No pair is cut in two.
        let is_cut = n < rest.len() && block[n - 1] & 0xFC00 == 0xD800;
        let n = n - usize::from(is_cut);
        let Some(here) = out.split_off_mut(..bulk::count_utf16(&block[..n])) else {
            return false;
        };
        if !bulk::utf16_to_ucs4_checked::<false>(&block[..n], here) {
            return false;
        }
        rest = &rest[n..];
    }
    out.is_empty()
}

/// Units of a block that is put into another order, on the stack.
const BLOCK: usize = 1024;

/// Encodes well-formed text into a place of its size.
#[inline(always)]
pub(crate) fn ucs4_to_utf16<const SWAPPED: bool>(src: &[u32], out: &mut [[MaybeUninit<u8>; 2]]) {
    let pairs = src.chunks(1 << 16).map(|part| {
        let pairs = part.iter().map(|&c| u32::from(c > 0xFFFF));
        pairs.sum::<u32>() as usize
    });
    assert_eq!(out.len(), src.len() + pairs.sum::<usize>());
    #[cfg(target_arch = "x86_64")]
    if kernel() == Kernel::Avx512 {
        let (to, n) = (out.as_mut_ptr().cast(), 2 * out.len());
        // SAFETY: AVX-512 is there; out takes a unit for each character, and one more for each past U+FFFF, counted above.
        return unsafe { avx512::cell_encode::store_all_pairs::<SWAPPED>(to, n, src) };
    }
    // In the machine's order first, as above.
    let (mut block, mut out) = ([const { MaybeUninit::uninit() }; BLOCK], out);
    for part in src.chunks(BLOCK / 2) {
        let units = bulk::str_utf32_to_utf16(part, &mut block);
        let here = out.split_off_mut(..units.len()).expect("counted above");
        for (to, &unit) in here.iter_mut().zip(units) {
            let unit = if SWAPPED { unit.swap_bytes() } else { unit };
            *to = uninit_bytes(unit.to_ne_bytes());
        }
    }
}

/// Writes each byte as a unit of `W` bytes (2 or 4) in the machine's order or (`SWAPPED`) the other one.
#[inline]
pub(crate) fn widen<const W: usize, const SWAPPED: bool>(
    src: &[u8],
    out: &mut [[MaybeUninit<u8>; W]],
) {
    assert_eq!(src.len(), out.len());
    #[cfg(target_arch = "x86_64")]
    if kernel() == Kernel::Avx512 && src.len() > 64 {
        let to = out.as_mut_ptr().cast();
        // SAFETY: AVX-512 is there; out takes W bytes for each.
        return unsafe {
            match (W, SWAPPED) {
                (2, false) => avx512::widen::widen::<2, 0>(src, to),
                (2, true) => avx512::widen::widen::<2, 1>(src, to),
                (4, false) => avx512::widen::widen::<4, 0>(src, to),
                (4, true) => avx512::widen::widen::<4, 3>(src, to),
                _ => unreachable!("units of two or four bytes"),
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    if kernel() >= Kernel::Avx2 {
        // SAFETY: AVX2 is there.
        return unsafe { widen_on_avx2::<W, SWAPPED>(src, out) };
    }
    widen_each::<W, SWAPPED>(src, out);
}

/// The same loop, which the compiler makes wider vectors of.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn widen_on_avx2<const W: usize, const SWAPPED: bool>(
    src: &[u8],
    out: &mut [[MaybeUninit<u8>; W]],
) {
    widen_each::<W, SWAPPED>(src, out);
}

#[inline(always)]
fn widen_each<const W: usize, const SWAPPED: bool>(src: &[u8], out: &mut [[MaybeUninit<u8>; W]]) {
    let at = if SWAPPED == cfg!(target_endian = "little") {
        W - 1
    } else {
        0
    };
    for (to, &byte) in out.iter_mut().zip(src) {
        let mut unit = [0; W];
        unit[at] = byte;
        *to = uninit_bytes(unit);
    }
}

fn value<const SWAPPED: bool>(unit: [u8; 2]) -> u16 {
    let unit = u16::from_ne_bytes(unit);
    if SWAPPED { unit.swap_bytes() } else { unit }
}

/// What a test has written.
#[cfg(test)]
pub(crate) fn written<U: Copy>(data: &[MaybeUninit<U>]) -> &[U] {
    // SAFETY: the tests that ask make their places of initialised units.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), data.len()) }
}
