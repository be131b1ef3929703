//! Operations of [`dispatch`](super::dispatch) that call other operations of its table.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::dispatch::{
    is_utf8, is_utf16, narrow_up_to, scan_utf8, valid_ucs4_to_utf16, valid_utf8_to_ucs4,
    valid_utf16_to_ucs4,
};
use super::memory::uninit_bytes;
use super::scalar::value;
use crate::{Kind, Shape};

#[inline(never)]
pub(super) fn shape_of_utf8(src: &[u8]) -> Option<Shape> {
    is_utf8(src).then(|| {
        let scan = scan_utf8(src);
        Shape {
            kind: Kind::of_utf8(scan.max),
            n_chars: scan.n_chars,
        }
    })
}

/// The size in bytes of a block that fits into the L1 cache.
const BLOCK_BYTES: usize = 16 << 10;

/// Decodes and validates UTF-8 block by block. Returns the number of code points, or `None` if the
/// text is malformed or does not fit into `out`.
#[inline(never)]
pub(super) fn utf8_to_ucs4_by_blocks(src: &[u8], out: &mut [MaybeUninit<u32>]) -> Option<usize> {
    let (mut rest, mut n) = (src, 0);
    while !rest.is_empty() {
        let mut end = rest.len().min(BLOCK_BYTES);
        // Moves the end of the block back to the start of a character.
        while end > 1 && rest.get(end).is_some_and(|b| b & 0xC0 == 0x80) {
            end -= 1;
        }
        let (block, after) = rest.split_at(end);
        if !is_utf8(block) {
            return None;
        }
        n += valid_utf8_to_ucs4(block, &mut out[n..])?;
        rest = after;
    }
    Some(n)
}

#[inline(never)]
pub(super) fn utf16_to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize> {
    if !is_utf16(src) {
        return None;
    }
    valid_utf16_to_ucs4(src, out)
}

/// The number of units in a block on the stack.
const BLOCK_UNITS: usize = 1024;

/// Decodes UTF-16 block by block. Each block is copied to the stack in native byte order. `None` if
/// the text is malformed or does not fit into `out`.
#[inline(never)]
pub(super) fn ordered_utf16_to_ucs4<const SWAPPED: bool>(
    src: &[[u8; 2]],
    out: &mut [MaybeUninit<u32>],
) -> Option<usize> {
    let mut block = [0_u16; BLOCK_UNITS];
    let (mut rest, mut n) = (src, 0);
    while !rest.is_empty() {
        let len = rest.len().min(BLOCK_UNITS);
        for (to, &unit) in block.iter_mut().zip(&rest[..len]) {
            *to = value::<SWAPPED>(unit);
        }
        // A block must not split a surrogate pair.
        let is_cut = len < rest.len() && block[len - 1] & 0xFC00 == 0xD800;
        let len = len - usize::from(is_cut);
        n += utf16_to_ucs4(&block[..len], &mut out[n..])?;
        rest = &rest[len..];
    }
    Some(n)
}

#[inline(never)]
pub(super) fn valid_ucs4_to_ordered_utf16<const SWAPPED: bool>(
    src: &[u32],
    out: &mut [[MaybeUninit<u8>; 2]],
) {
    let (mut block, mut out) = ([const { MaybeUninit::uninit() }; BLOCK_UNITS], out);
    for part in src.chunks(BLOCK_UNITS / 2) {
        let n = valid_ucs4_to_utf16(part, &mut block).expect("two units for each");
        let here = out.split_off_mut(..n).expect("as many units as are needed");
        for (to, unit) in here.iter_mut().zip(super::memory::written(&block[..n])) {
            let unit = if SWAPPED { unit.swap_bytes() } else { *unit };
            *to = uninit_bytes(unit.to_ne_bytes());
        }
    }
}

/// Copies leading ASCII units as bytes, then converts the others with AVX2. `None` if the text is
/// malformed or does not fit into `out`.
///
/// # Safety
/// The processor must support AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(super) unsafe fn utf16_to_utf8_after_ascii(
    src: &[u16],
    out: &mut [MaybeUninit<u8>],
) -> Option<usize> {
    let n = if out.len() >= src.len() {
        narrow_up_to::<0x7F>(src, out)
    } else {
        0
    };
    // SAFETY: the caller has checked for AVX2. The kernel stops at the end of the destination.
    let rest = unsafe { avx2::encode::wide(&src[n..], &mut out[n..]) };
    rest.map(|more| n + more)
}
