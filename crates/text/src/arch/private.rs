//! Converts text that may be written to during the conversion. Each part of the text is first
//! copied to private memory, and the copy is converted. The conversions read a text more than once,
//! and do not check the bounds of their output. If they read the original text, a change between
//! two reads could make them write out of bounds.

use std::mem::MaybeUninit;

use super::memory::uninit;

/// The number of units of one part. A part and its result fit into the L1 cache together.
const PART_UNITS: usize = 1024;

/// A text and its encoding. The text may be divided into parts only between two characters, so the
/// encoding determines where it may be divided.
#[derive(Clone, Copy)]
pub(super) enum Encoded<'a, U> {
    Utf8(&'a [U]),
    Utf16(&'a [U]),
}

impl<U: Copy + Into<u32>> Encoded<'_, U> {
    fn units(&self) -> &[U] {
        match self {
            Encoded::Utf8(units) | Encoded::Utf16(units) => units,
        }
    }

    /// Returns the number of units at the start of `part` that can be converted now without
    /// dividing a character. For UTF-8, this number never includes the last character of `part`,
    /// even if that character is complete. The text must be well-formed.
    fn whole(&self, part: &[U]) -> usize {
        let n = part.len();
        let last = |n_back: usize| part.get(n.wrapping_sub(n_back)).map_or(0, |&u| u.into());
        match self {
            Encoded::Utf16(_) => n - usize::from(last(1) & 0xFC00 == 0xD800),
            // Searches for the last byte that is the start of a character.
            Encoded::Utf8(_) => (1..=4)
                .find(|&n_back| last(n_back) & 0xC0 != 0x80)
                .map_or(n, |n_back| n - n_back),
        }
    }
}

/// Converts the text one part after another. `convert` receives a private copy of a part and the
/// remaining destination, and returns the number of units written. If `convert` returns `None`, the
/// result is `None`.
#[inline]
pub(super) fn by_private_parts<U: Copy + Into<u32>, T>(
    text: Encoded<'_, U>,
    out: &mut [MaybeUninit<T>],
    convert: impl Fn(&[U], &mut [MaybeUninit<T>]) -> Option<usize>,
) -> Option<usize> {
    let mut copy = [const { MaybeUninit::<U>::uninit() }; PART_UNITS];
    let (mut rest, mut n) = (text.units(), 0);
    while !rest.is_empty() {
        let len = rest.len().min(PART_UNITS);
        copy[..len].copy_from_slice(uninit(&rest[..len]));
        // SAFETY: len units were written on the line above.
        let part = unsafe { std::slice::from_raw_parts(copy.as_ptr().cast::<U>(), len) };
        let len = if len < rest.len() {
            text.whole(part)
        } else {
            len
        };
        n += convert(&part[..len], &mut out[n..])?;
        rest = &rest[len..];
    }
    Some(n)
}
