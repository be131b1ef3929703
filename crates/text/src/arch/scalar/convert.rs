//! Conversions one character at a time, and the lengths of their results. None writes past its
//! destination or reads past its text, whatever the text holds: it may have changed since it was
//! measured.

use std::mem::MaybeUninit;

use crate::{Units, naive};

/// Whether the unit is a surrogate.
#[inline(always)]
pub(crate) fn is_surrogate(u: u16) -> bool {
    u & 0xF800 == 0xD800
}

/// Bytes of a code point in UTF-8.
#[inline]
pub(crate) fn utf8_len_of(c: u32) -> usize {
    1 + usize::from(c >= 0x80) + usize::from(c >= 0x800) + usize::from(c >= 0x1_0000)
}

/// Writes code points as units; whether all of them fitted and filled `out`.
#[must_use]
pub(crate) fn fill<U: TryFrom<u32>>(
    code_points: impl Iterator<Item = u32>,
    out: &mut [MaybeUninit<U>],
) -> bool {
    let mut n = 0;
    for c in code_points {
        let (Some(to), Ok(unit)) = (out.get_mut(n), U::try_from(c)) else {
            return false;
        };
        to.write(unit);
        n += 1;
    }
    n == out.len()
}

/// The code points of valid UTF-8; some numbers of other bytes, none of them read past the end.
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

/// The units of UTF-16 of code points.
pub(crate) fn utf16_of(code_points: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    code_points.flat_map(|c| {
        let (high, low) = match c.checked_sub(0x1_0000) {
            None => (None, c),
            Some(c) => (Some(0xD800 | c >> 10), 0xDC00 | (c & 0x3FF)),
        };
        high.into_iter().chain([low])
    })
}

/// The code points of text that is known to be well-formed; U+FFFD for each malformed part.
pub(crate) fn lossy(units: Units<'_>) -> impl Iterator<Item = u32> + '_ {
    naive::code_points(units).map(|c| c.unwrap_or(naive::REPLACEMENT))
}

/// Writes a scalar value as UTF-8 and returns its length.
///
/// # Safety
/// `dst` takes the bytes that the value needs (1 to 4).
#[inline(always)]
pub(crate) unsafe fn write_utf8(c: u32, dst: *mut u8) -> usize {
    let tail = |shift: u32| 0x80 | (c >> shift & 0x3F) as u8;
    // SAFETY: each arm writes as many bytes as the value needs in UTF-8, which dst takes (duty of
    // the caller).
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

/// Writes scalar values as UTF-8 and returns how many bytes these are; `None` if they do not fit
/// into `n`. The bytes of each are put together in one number and stored as such, with no branch on
/// how many they are; the last few, where a number of four bytes would not fit, one by one.
///
/// # Safety
/// `dst` takes `n` bytes.
pub(in crate::arch) unsafe fn write_all_utf8(src: &[u32], dst: *mut u8, n: usize) -> Option<usize> {
    // By how many bytes there are before the last: what makes the first of them a lead.
    const LEADS: [u32; 4] = [0, 0x40, 0x60, 0x70];
    let mut at = 0;
    for &c in src {
        // SAFETY: four bytes where they fit, else as many as the value needs, if those fit.
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

// Those below are counted in numbers as narrow as the units, in parts that these hold, so that the
// compiler has whole vectors of them; inlined where wider vectors are on.

/// Characters of UTF-16 that is valid.
#[inline(always)]
pub(crate) fn count_utf16(src: &[u16]) -> usize {
    let of = |part: &[u16]| -> u16 { part.iter().map(|&u| u16::from(u & 0xFC00 != 0xDC00)).sum() };
    src.chunks(60_000).map(|part| usize::from(of(part))).sum()
}

/// Bytes of Latin-1 as UTF-8.
#[inline(always)]
pub(crate) fn utf8_len_of_latin1(src: &[u8]) -> usize {
    let of = |part: &[u8]| -> u8 { part.iter().map(|&b| b >> 7).sum() };
    let more: usize = src.chunks(255).map(|part| usize::from(of(part))).sum();
    src.len() + more
}

/// Bytes of 16-bit units as UTF-8, each half of a pair 2, and whether there is a surrogate.
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

/// Bytes of 32-bit units as UTF-8; `None` where one is a surrogate or past U+10FFFF.
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
