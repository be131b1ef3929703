//! Converts text that may change during the conversion. Each part is copied to private memory
//! first: kernels read a text more than once.

use std::mem::MaybeUninit;

use super::memory::uninit;

/// The number of units of a part. A part and its result fit into the L1 cache.
const PART_UNITS: usize = 1024;

/// A text and its encoding. The encoding determines where the text can be divided.
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

    /// Returns how many units of `part` can be converted without dividing a character. UTF-8 always
    /// excludes the last character.
    fn whole(&self, part: &[U]) -> usize {
        let n = part.len();
        let last = |n_back: usize| part.get(n.wrapping_sub(n_back)).map_or(0, |&u| u.into());
        match self {
            Encoded::Utf16(_) => n - usize::from(last(1) & 0xFC00 == 0xD800),
            // Finds the first byte of the last character.
            Encoded::Utf8(_) => (1..=4)
                .find(|&n_back| last(n_back) & 0xC0 != 0x80)
                .map_or(n, |n_back| n - n_back),
        }
    }
}

/// Converts the text part by part. `convert` receives a private copy, and returns the number of
/// units.
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
        // SAFETY: the line above has written `len` units.
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
