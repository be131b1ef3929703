//! Conversions of one character at a time, and the lengths of their results. No function writes
//! past its destination or reads past its text, even if the text was changed.

use std::mem::MaybeUninit;

use crate::arch::memory::uninit_bytes;
use crate::{Units, naive};

#[inline(always)]
pub(crate) fn is_surrogate(u: u16) -> bool {
    u & 0xF800 == 0xD800
}

/// Returns the length of a code point in UTF-8.
#[inline]
pub(crate) fn utf8_len_of(c: u32) -> usize {
    1 + usize::from(c >= 0x80) + usize::from(c >= 0x800) + usize::from(c >= 0x1_0000)
}

/// Writes each code point as one unit and returns the number of units. Returns `None` if a code
/// point or the text does not fit.
pub(crate) fn fill<U: TryFrom<u32>>(
    code_points: impl Iterator<Item = u32>,
    out: &mut [MaybeUninit<U>],
) -> Option<usize> {
    let mut n = 0;
    for c in code_points {
        out.get_mut(n)?.write(U::try_from(c).ok()?);
        n += 1;
    }
    Some(n)
}

#[inline(never)]
pub(in crate::arch) fn valid_utf8_to_latin1(
    src: &[u8],
    out: &mut [MaybeUninit<u8>],
) -> Option<usize> {
    fill(chars_of(src), out)
}

#[inline(never)]
pub(in crate::arch) fn valid_utf8_to_utf16(
    src: &[u8],
    out: &mut [MaybeUninit<u16>],
) -> Option<usize> {
    fill(utf16_of(chars_of(src)), out)
}

#[inline(never)]
pub(in crate::arch) fn valid_utf8_to_ucs4(
    src: &[u8],
    out: &mut [MaybeUninit<u32>],
) -> Option<usize> {
    fill(chars_of(src), out)
}

#[inline(never)]
pub(in crate::arch) fn valid_utf16_to_ucs4(
    src: &[u16],
    out: &mut [MaybeUninit<u32>],
) -> Option<usize> {
    fill(lossy(Units::Utf16(src)), out)
}

#[inline(never)]
pub(in crate::arch) fn valid_ucs4_to_utf16(
    src: &[u32],
    out: &mut [MaybeUninit<u16>],
) -> Option<usize> {
    fill(utf16_of(src.iter().copied()), out)
}

#[inline(never)]
pub(in crate::arch) fn utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let mut n = 0;
    for c in naive::code_points(Units::Utf8(src)) {
        out.get_mut(n)?.write(u8::try_from(c.ok()?).ok()?);
        n += 1;
    }
    Some(n)
}

#[inline(never)]
pub(in crate::arch) fn utf8_to_utf16(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    let mut n = 0;
    for c in naive::code_points(Units::Utf8(src)) {
        n += fill(utf16_of([c.ok()?].into_iter()), &mut out[n..])?;
    }
    Some(n)
}

/// Converts text to UTF-8 and returns the number of bytes. Returns `None` if the text is malformed
/// or does not fit.
#[inline(never)]
pub(in crate::arch) fn to_utf8(units: Units<'_>, out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let mut n = 0;
    for c in naive::code_points(units) {
        let c = char::from_u32(c.ok()?).expect("the reference decoder gives scalar values");
        for b in c.encode_utf8(&mut [0; 4]).bytes() {
            out.get_mut(n)?.write(b);
            n += 1;
        }
    }
    Some(n)
}

#[inline(never)]
pub(in crate::arch) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    to_utf8(Units::Latin1(src), out)
}

#[inline(never)]
pub(in crate::arch) fn utf16_to_utf8(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    to_utf8(Units::Utf16(src), out)
}

#[inline(never)]
pub(in crate::arch) fn ucs4_to_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    utf8_len_of_ucs4(src)?;
    write_all_utf8(src, out)
}

/// Widens each byte to a unit of `W` bytes. If `SWAPPED` is `true`, the bytes of each unit are
/// reversed. The function is inlined into functions for wider vectors.
#[inline(always)]
pub(in crate::arch) fn widen<const W: usize, const SWAPPED: bool>(
    src: &[u8],
    out: &mut [[MaybeUninit<u8>; W]],
) {
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

/// Returns a 16-bit unit. If `SWAPPED` is `true`, its bytes are reversed first.
#[inline(always)]
pub(in crate::arch) fn value<const SWAPPED: bool>(unit: [u8; 2]) -> u16 {
    let unit = u16::from_ne_bytes(unit);
    if SWAPPED { unit.swap_bytes() } else { unit }
}

pub(in crate::arch) fn is_utf8(src: &[u8]) -> bool {
    std::str::from_utf8(src).is_ok()
}

pub(in crate::arch) fn utf8_error_near(src: &[u8]) -> Option<usize> {
    std::str::from_utf8(src).err().map(|e| e.valid_up_to())
}

pub(in crate::arch) fn is_utf16(src: &[u16]) -> bool {
    utf16_error_near(src).is_none()
}

pub(in crate::arch) fn utf16_error_near(src: &[u16]) -> Option<usize> {
    naive::find_malformed(Units::Utf16(src)).map(|e| e.at_units)
}

pub(in crate::arch) fn utf16_len_from_utf8(src: &[u8]) -> usize {
    src.iter()
        .map(|&b| usize::from(b & 0xC0 != 0x80) + usize::from(b >= 0xF0))
        .sum()
}

pub(in crate::arch) fn count_ordered_utf16<const SWAPPED: bool>(src: &[[u8; 2]]) -> usize {
    let is_second = |unit| value::<SWAPPED>(unit) & 0xFC00 == 0xDC00;
    src.len() - src.iter().filter(|&&unit| is_second(unit)).count()
}

/// Returns the code points of valid UTF-8. Malformed text yields arbitrary numbers.
pub(crate) fn chars_of(src: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let lead = u32::from(*src.get(at)?);
        let tail = |i: usize| u32::from(src.get(at + i).copied().unwrap_or(0) & 0x3F);
        let (c, len) = match lead {
            0..0x80 => (lead, 1),
            0x80..0xE0 => ((lead & 0x1F) << 6 | tail(1), 2),
            0xE0..0xF0 => ((lead & 0x0F) << 12 | tail(1) << 6 | tail(2), 3),
            _ => (
                (lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
                4,
            ),
        };
        at += len;
        Some(c)
    })
}

/// Converts code points to UTF-16 units, each as a 32-bit number.
pub(crate) fn utf16_of(code_points: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    code_points.flat_map(|c| {
        let (high, low) = match c.checked_sub(0x1_0000) {
            None => (None, c),
            Some(c) => (Some(0xD800 | c >> 10), 0xDC00 | (c & 0x3FF)),
        };
        high.into_iter().chain([low])
    })
}

/// Returns the code points, with U+FFFD for each malformed sequence.
pub(crate) fn lossy(units: Units<'_>) -> impl Iterator<Item = u32> + '_ {
    naive::code_points(units).map(|c| c.unwrap_or(naive::REPLACEMENT))
}

/// Writes a Unicode scalar value as UTF-8. Returns its number of bytes.
///
/// # Safety
/// `dst` must have space for the 1 to 4 bytes of the value.
#[inline(always)]
pub(crate) unsafe fn write_utf8(c: u32, dst: *mut u8) -> usize {
    let tail = |shift: u32| 0x80 | (c >> shift & 0x3F) as u8;
    // SAFETY: each arm writes the UTF-8 bytes of the value, for which `dst` has space.
    unsafe {
        match c {
            0..0x80 => {
                dst.write(c as u8);
                1
            }
            0x80..0x800 => {
                dst.cast::<[u8; 2]>()
                    .write_unaligned([0xC0 | (c >> 6) as u8, tail(0)]);
                2
            }
            0x800..0x10000 => {
                dst.cast::<[u8; 3]>()
                    .write_unaligned([0xE0 | (c >> 12) as u8, tail(6), tail(0)]);
                3
            }
            _ => {
                dst.cast::<[u8; 4]>().write_unaligned([
                    0xF0 | (c >> 18) as u8,
                    tail(12),
                    tail(6),
                    tail(0),
                ]);
                4
            }
        }
    }
}

/// Writes Unicode scalar values as UTF-8 and returns the number of bytes. Returns `None` if they do
/// not fit. Each character is stored as four bytes, without a branch on its length.
fn write_all_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, n) = (out.as_mut_ptr().cast::<u8>(), out.len());
    // The prefix bits of the lead byte without 0x80, by the number of bytes after it.
    const LEADS: [u32; 4] = [0, 0x40, 0x60, 0x70];
    let mut at = 0;
    for &c in src {
        // SAFETY: four bytes are stored only if they fit. Otherwise only the bytes of the value are
        // stored, if they fit.
        unsafe {
            if at + 4 > n {
                if utf8_len_of(c) > n - at {
                    return None;
                }
                at += write_utf8(c, dst.add(at));
                continue;
            }
            let more = u32::from(c >= 0x80) + u32::from(c >= 0x800) + u32::from(c >= 0x1_0000);
            let six =
                c >> 18 | (c >> 4 & 0x3F00) | (c << 10 & 0x003F_0000) | (c << 24 & 0x3F00_0000);
            let bytes = (six | 0x8080_8080) >> (24 - 8 * more) | LEADS[more as usize & 3];
            let bytes = if c < 0x80 { c } else { bytes };
            dst.add(at).cast::<u32>().write_unaligned(bytes.to_le());
            at += 1 + more as usize;
        }
    }
    Some(at)
}

// The functions below count in integers of the width of a unit, so the compiler vectorizes them.
// The counted parts are short enough for such integers.

/// Returns the number of characters of valid UTF-16.
#[inline(always)]
pub(crate) fn count_utf16(src: &[u16]) -> usize {
    let of = |part: &[u16]| -> u16 { part.iter().map(|&u| u16::from(u & 0xFC00 != 0xDC00)).sum() };
    src.chunks(60_000).map(|part| usize::from(of(part))).sum()
}

/// Returns the length in bytes of Latin-1 converted to UTF-8.
#[inline(always)]
pub(crate) fn utf8_len_of_latin1(src: &[u8]) -> usize {
    let of = |part: &[u8]| -> u8 { part.iter().map(|&b| b >> 7).sum() };
    let more: usize = src.chunks(255).map(|part| usize::from(of(part))).sum();
    src.len() + more
}

/// Returns the length of 16-bit units in UTF-8. A surrogate counts as 2 bytes. Also returns `true`
/// if any unit is a surrogate.
#[inline(always)]
pub(crate) fn utf8_len_of_wide(src: &[u16]) -> (usize, bool) {
    let (mut n, mut any) = (src.len(), 0);
    for part in src.chunks(20_000) {
        let (mut more, mut halves) = (0_u16, 0_u16);
        for &u in part {
            more += u16::from(u >= 0x80) + u16::from(u >= 0x800);
            halves += u16::from(is_surrogate(u));
        }
        n += usize::from(more - halves);
        any |= halves;
    }
    (n, any != 0)
}

/// Returns the length of 32-bit units in UTF-8. Returns `None` if a unit is a surrogate or past
/// U+10FFFF.
#[inline(always)]
pub(crate) fn utf8_len_of_ucs4(src: &[u32]) -> Option<usize> {
    let (mut n, mut bad) = (src.len(), 0);
    for part in src.chunks(1 << 20) {
        let mut more = 0_u32;
        for &c in part {
            more += u32::from(c >= 0x80) + u32::from(c >= 0x800) + u32::from(c >= 0x1_0000);
            bad |= u32::from(c & 0xFFFF_F800 == 0xD800) | u32::from(c > 0x10_FFFF);
        }
        n += more as usize;
    }
    (bad == 0).then_some(n)
}

/// Returns the number of UTF-16 units of the code points.
#[inline(always)]
pub(in crate::arch) fn utf16_len_from_ucs4(src: &[u32]) -> usize {
    let pairs = src.chunks(1 << 16).map(|part| {
        let pairs = part.iter().map(|&c| u32::from(c > 0xFFFF));
        pairs.sum::<u32>() as usize
    });
    src.len() + pairs.sum::<usize>()
}
