//! Conversions between a `str` and bytes with 16-bit or 32-bit units. The units may be in native or
//! swapped byte order, at any address.
//!
//! Text is scanned and written block by block, so each block is read from memory only once.

use std::mem::MaybeUninit;

use crate::arch::dispatch::{
    count_ordered_utf16, ordered_utf16_to_ucs4, valid_ucs4_to_ordered_utf16, widen, with_kernels,
};
use crate::arch::family::{Kernels, Work};
use crate::arch::memory::uninit_bytes;
use crate::new_object::{MadeStr, NewStr, StrData};
use crate::{Kind, Shape, Units};

/// The number of code units in a block.
const BLOCK_UNITS: usize = 2048;

/// Makes a `str` of the narrowest kind from UTF-16. If `SWAPPED` is `true`, the bytes of each unit
/// are reversed. Returns `None` for malformed text. Also returns `None` if CPython has a shared
/// `str` for the text (empty, or one character up to U+00FF).
///
/// Copies: the text is copied once, by its conversion.
///
/// # Errors
/// Returns the error that `new` returns.
pub fn make_ordered_utf16<const SWAPPED: bool, N: NewStr>(
    text: &[[u8; 2]],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    with_kernels(Make::<_, _, SWAPPED, true>(text, new))
}

/// Makes a `str` of the narrowest kind from UTF-32. If `SWAPPED` is `true`, the bytes of each unit
/// are reversed. Returns `None` for malformed text, or if CPython has a shared `str` for the text.
///
/// Copies: the text is copied once, by its conversion.
///
/// # Errors
/// Returns the error that `new` returns.
pub fn make_ordered_utf32<const SWAPPED: bool, N: NewStr>(
    text: &[[u8; 4]],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    with_kernels(Make::<_, _, SWAPPED, true>(text, new))
}

/// Makes a `str` from text in which each unit of `BYTES` bytes is a character. Returns `None` for
/// an invalid unit, or if CPython has a shared `str` for the text. If the text changes, the number
/// of written units stays the same.
///
/// # Errors
/// Returns the error that `new` returns.
pub(crate) fn make_ordered_one_to_one<const BYTES: usize, const SWAPPED: bool, N: NewStr>(
    text: &[[u8; BYTES]],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>>
where
    [u8; BYTES]: OrderedUnit,
{
    with_kernels(Make::<_, _, SWAPPED, false>(text, new))
}

/// A 16-bit or 32-bit code unit in a buffer of bytes.
pub(crate) trait OrderedUnit: Copy {
    /// Returns the bitwise OR of the units. Also returns `true` if a unit is a surrogate or past
    /// U+10FFFF.
    fn look<const SWAPPED: bool>(units: &[Self]) -> (u32, bool);

    /// Writes each unit as one unit of `out`, which must be wide enough.
    fn write<const SWAPPED: bool>(units: &[Self], out: StrData<'_>);

    /// Writes each unit as a 32-bit unit and returns the result of `look`. Each unit is read only
    /// once.
    fn write_looked<const SWAPPED: bool>(
        units: &[Self],
        out: &mut [MaybeUninit<u32>],
    ) -> (u32, bool);

    /// Returns the number of characters of well-formed UTF-16. Returns `None` for 32-bit units.
    fn count<const SWAPPED: bool>(units: &[Self]) -> Option<usize>;

    /// Decodes UTF-16 to 32-bit code points. Returns `false` for malformed text and for 32-bit
    /// units.
    fn write_pairs<const SWAPPED: bool>(units: &[Self], out: &mut [MaybeUninit<u32>]) -> bool;

    /// Returns `true` if a `str` of this kind has the same bytes as the text. The text is then only
    /// copied.
    fn is_copied<const SWAPPED: bool>(kind: Kind) -> bool;
}

macro_rules! unit_methods {
    ($unit:ty, |$u:ident| $special:expr) => {
        #[inline(always)]
        fn look<const SWAPPED: bool>(units: &[Self]) -> (u32, bool) {
            let (mut or, mut special) = (0, false);
            for &unit in units {
                let $u = <$unit>::from_ne_bytes(unit);
                let $u = if SWAPPED { $u.swap_bytes() } else { $u };
                or |= $u;
                special |= $special;
            }
            (or.into(), special)
        }

        #[inline(always)]
        fn write_looked<const SWAPPED: bool>(
            units: &[Self],
            out: &mut [MaybeUninit<u32>],
        ) -> (u32, bool) {
            let (mut or, mut special) = (0, false);
            for (to, &unit) in out.iter_mut().zip(units) {
                let $u = <$unit>::from_ne_bytes(unit);
                let $u = if SWAPPED { $u.swap_bytes() } else { $u };
                to.write($u.into());
                or |= $u;
                special |= $special;
            }
            (or.into(), special)
        }

        #[inline(always)]
        fn write<const SWAPPED: bool>(units: &[Self], out: StrData<'_>) {
            let units = units.iter().map(|&unit| {
                let unit = <$unit>::from_ne_bytes(unit);
                if SWAPPED { unit.swap_bytes() } else { unit }
            });
            match out {
                StrData::One(out) => out.iter_mut().zip(units).for_each(|(to, u)| {
                    to.write(u as u8);
                }),
                StrData::Two(out) => out.iter_mut().zip(units).for_each(|(to, u)| {
                    to.write(u as u16);
                }),
                StrData::Four(out) => out.iter_mut().zip(units).for_each(|(to, u)| {
                    to.write(u.into());
                }),
            }
        }
    };
}

impl OrderedUnit for [u8; 2] {
    unit_methods!(u16, |u| u & 0xF800 == 0xD800);

    #[inline(always)]
    fn count<const SWAPPED: bool>(units: &[Self]) -> Option<usize> {
        Some(count_ordered_utf16::<SWAPPED>(units))
    }

    #[inline(always)]
    fn write_pairs<const SWAPPED: bool>(units: &[Self], out: &mut [MaybeUninit<u32>]) -> bool {
        ordered_utf16_to_ucs4::<SWAPPED>(units, out) == Some(out.len())
    }

    fn is_copied<const SWAPPED: bool>(kind: Kind) -> bool {
        !SWAPPED && kind == Kind::Ucs2
    }
}

impl OrderedUnit for [u8; 4] {
    unit_methods!(u32, |u| u > 0x10_FFFF || u & 0xFFFF_F800 == 0xD800);

    fn count<const SWAPPED: bool>(_: &[Self]) -> Option<usize> {
        None
    }

    fn write_pairs<const SWAPPED: bool>(_: &[Self], _: &mut [MaybeUninit<u32>]) -> bool {
        false
    }

    fn is_copied<const SWAPPED: bool>(kind: Kind) -> bool {
        !SWAPPED && kind == Kind::Ucs4
    }
}

/// Makes a `str` from code units; `N` creates the `str`. If `PAIRS` is `true`, the text may contain
/// surrogate pairs.
struct Make<'a, U, N, const SWAPPED: bool, const PAIRS: bool>(&'a [U], &'a mut N);

/// The number of samples for the guess of the `str` kind.
const N_SAMPLES: usize = 8;
/// The number of code units in each sample.
const SAMPLE_UNITS: usize = 32;

impl<U: OrderedUnit, N: NewStr, const SWAPPED: bool, const PAIRS: bool> Work
    for Make<'_, U, N, SWAPPED, PAIRS>
{
    type Output = Option<Result<MadeStr<N::Str>, N::Error>>;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> Self::Output {
        let Make(text, new) = self;
        // The sampled units are in the text, so the guessed kind is never too wide.
        let (mut or, mut special) = (0, false);
        for sample in 0..N_SAMPLES {
            let at = text.len() / N_SAMPLES * sample;
            let part = &text[at..text.len().min(at + SAMPLE_UNITS)];
            let seen = U::look::<SWAPPED>(part);
            (or, special) = (or | seen.0, special | seen.1);
        }
        let (mut kind, mut in_vain_bytes) = (Kind::of(or), 0);
        while !special {
            match try_kind::<U, N, SWAPPED>(text, kind, new)? {
                Ok(Tried::Made(made)) => {
                    return Some(Ok(of::<U, N, SWAPPED>(made, kind, in_vain_bytes)));
                }
                Ok(Tried::UpTo(at, found)) => {
                    in_vain_bytes += at * size_of::<U>();
                    (or, special) = found;
                    kind = Kind::of(or);
                }
                Err(e) => return Some(Err(e)),
            }
        }
        if !PAIRS {
            return None;
        }
        let n_chars = U::count::<SWAPPED>(text)?;
        let kind = Kind::Ucs4;
        let mut made = match new.new_str(Shape { kind, n_chars }) {
            Ok(made) => made,
            Err(e) => return Some(Err(e)),
        };
        let StrData::Four(out) = new.data(&mut made) else {
            unreachable!("a str of another kind was made");
        };
        if !U::write_pairs::<SWAPPED>(text, out) {
            return None;
        }
        Some(Ok(of::<U, N, SWAPPED>(made, kind, in_vain_bytes)))
    }
}

fn of<U: OrderedUnit, N: NewStr, const SWAPPED: bool>(
    made: N::Str,
    kind: Kind,
    in_vain_bytes: usize,
) -> MadeStr<N::Str> {
    MadeStr {
        made,
        is_copied: U::is_copied::<SWAPPED>(kind),
        in_vain_bytes,
    }
}

/// The result of writing a `str` of one kind. `Made` has the `str`. `UpTo` has the number of units
/// before the block that does not fit, and the result of `look` for this block.
enum Tried<S> {
    Made(S),
    UpTo(usize, (u32, bool)),
}

#[inline(always)]
fn try_kind<U: OrderedUnit, N: NewStr, const SWAPPED: bool>(
    text: &[U],
    kind: Kind,
    new: &mut N,
) -> Option<Result<Tried<N::Str>, N::Error>> {
    let n_chars = text.len();
    if n_chars == 0 || (n_chars == 1 && kind <= Kind::Latin1) {
        return None;
    }
    let mut made = match new.new_str(Shape { kind, n_chars }) {
        Ok(made) => made,
        Err(e) => return Some(Err(e)),
    };
    let mut data = new.data(&mut made);
    // A 32-bit unit is read once, to be scanned and stored. A second read could return an invalid
    // code point.
    let (mut or, mut special) = (0, false);
    for (i, block) in text.chunks(BLOCK_UNITS).enumerate() {
        let at = i * BLOCK_UNITS;
        let to = at..at + block.len();
        if size_of::<U>() == 4
            && let StrData::Four(data) = &mut data
        {
            let found = U::write_looked::<SWAPPED>(block, &mut data[to]);
            (or, special) = (or | found.0, special | found.1);
            if special {
                return Some(Ok(Tried::UpTo(at, (or, special))));
            }
            continue;
        }
        let found = U::look::<SWAPPED>(block);
        if found.1 || Kind::of(found.0) > kind {
            return Some(Ok(Tried::UpTo(at, found)));
        }
        U::write::<SWAPPED>(
            block,
            match &mut data {
                StrData::One(data) => StrData::One(&mut data[to]),
                StrData::Two(data) => StrData::Two(&mut data[to]),
                StrData::Four(data) => StrData::Four(&mut data[to]),
            },
        );
    }
    if size_of::<U>() == 4 && kind == Kind::Ucs4 && Kind::of(or) != kind {
        // The text has changed: no character needs four bytes any more.
        return None;
    }
    Some(Ok(Tried::Made(made)))
}

/// Returns the number of characters of a `str`. Returns `None` if the `str` contains a surrogate,
/// which UTF-32 cannot encode.
///
/// Copies: none.
#[must_use]
pub fn utf32_len_exact(units: Units<'_>) -> Option<usize> {
    Some(with_kernels(Count(units))?.0)
}

/// Returns the number of UTF-16 units of a `str`. Returns `None` if the `str` contains a surrogate.
pub(super) fn utf16_len_of_str(units: Units<'_>) -> Option<usize> {
    let (n_chars, n_pairs) = with_kernels(Count(units))?;
    Some(n_chars + n_pairs)
}

struct Count<'a>(Units<'a>);

impl Work for Count<'_> {
    /// The number of characters, and the number of surrogate pairs in UTF-16. `None` if the text
    /// cannot be encoded.
    type Output = Option<(usize, usize)>;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> Self::Output {
        match self.0 {
            Units::Latin1(u) => Some((u.len(), 0)),
            Units::Utf8(_) => None,
            Units::Utf16(u) | Units::Ucs2(u) => {
                let special = u
                    .iter()
                    .fold(false, |found, u| found | (u & 0xF800 == 0xD800));
                (!special).then_some((u.len(), 0))
            }
            Units::Utf32(u) => {
                let (mut special, mut n_pairs) = (false, 0);
                for block in u.chunks(BLOCK_UNITS) {
                    let mut pairs = 0_u32;
                    for &u in block {
                        special |= u > 0x10_FFFF || is_surrogate(u);
                        pairs += u32::from(u > 0xFFFF);
                    }
                    n_pairs += pairs as usize;
                }
                (!special).then_some((u.len(), n_pairs))
            }
        }
    }
}

/// Writes a `str` as UTF-32 into `out`, which must have four bytes for each unit. If `SWAPPED` is
/// `true`, the bytes of each unit are reversed. Returns `false` if a character is a surrogate;
/// `out` is then unspecified.
///
/// Copies: none besides the conversion. 32-bit units are copied.
///
/// # Panics
/// Panics if `out` has another length or the text is UTF-8 (bugs in the caller).
#[must_use]
pub fn ordered_utf32<const SWAPPED: bool>(units: Units<'_>, out: &mut [MaybeUninit<u8>]) -> bool {
    let (out, []) = out.as_chunks_mut() else {
        panic!("the buffer was made for another text");
    };
    with_kernels(Write32::<SWAPPED>(units, out))
}

struct Write32<'a, const SWAPPED: bool>(Units<'a>, &'a mut [[MaybeUninit<u8>; 4]]);

impl<const SWAPPED: bool> Work for Write32<'_, SWAPPED> {
    type Output = bool;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> bool {
        let Write32(units, out) = self;
        let n = units.len_units();
        assert_eq!(out.len(), n, "the buffer was made for another text");
        let bytes = |c: u32| {
            let c = if SWAPPED { c.swap_bytes() } else { c };
            uninit_bytes(c.to_ne_bytes())
        };
        // The block is scanned for surrogates and then written.
        match units {
            Units::Latin1(u) => widen::<_, SWAPPED>(u, out),
            Units::Utf16(u) | Units::Ucs2(u) => {
                for (u, out) in u.chunks(BLOCK_UNITS).zip(out.chunks_mut(BLOCK_UNITS)) {
                    if u.iter()
                        .fold(false, |found, &u| found | is_surrogate(u.into()))
                    {
                        return false;
                    }
                    out.iter_mut()
                        .zip(u)
                        .for_each(|(to, &u)| *to = bytes(u.into()));
                }
            }
            Units::Utf32(u) => {
                for (u, out) in u.chunks(BLOCK_UNITS).zip(out.chunks_mut(BLOCK_UNITS)) {
                    let special = |u: u32| u > 0x10_FFFF || is_surrogate(u);
                    if u.iter().fold(false, |found, &u| found | special(u)) {
                        return false;
                    }
                    out.iter_mut().zip(u).for_each(|(to, &u)| *to = bytes(u));
                }
            }
            Units::Utf8(_) => unreachable!("a `str` is not UTF-8"),
        }
        true
    }
}

#[inline(always)]
fn is_surrogate(u: u32) -> bool {
    u & 0xFFFF_F800 == 0xD800
}

/// Writes a `str` as UTF-16 into `out`. `out` must have two bytes for each unit of
/// [`utf16_len_exact`](super::utf16_len_exact). If `SWAPPED` is `true`, the bytes of each unit are
/// reversed.
///
/// # Panics
/// Panics if `out` has another length or the text is UTF-8 (bugs in the caller).
pub fn ordered_utf16<const SWAPPED: bool>(units: Units<'_>, out: &mut [MaybeUninit<u8>]) {
    let (out, []) = out.as_chunks_mut() else {
        panic!("the buffer was made for another text");
    };
    with_kernels(Write16::<SWAPPED>(units, out));
}

struct Write16<'a, const SWAPPED: bool>(Units<'a>, &'a mut [[MaybeUninit<u8>; 2]]);

impl<const SWAPPED: bool> Work for Write16<'_, SWAPPED> {
    type Output = ();

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) {
        let Write16(units, out) = self;
        let bytes = |u: u16| {
            let u = if SWAPPED { u.swap_bytes() } else { u };
            uninit_bytes(u.to_ne_bytes())
        };
        let is_long = match units {
            Units::Utf32(u) => out.len() >= u.len(),
            units => out.len() == units.len_units(),
        };
        assert!(is_long, "the buffer was made for another text");
        match units {
            Units::Latin1(u) => widen::<_, SWAPPED>(u, out),
            Units::Utf16(u) | Units::Ucs2(u) => {
                out.iter_mut().zip(u).for_each(|(to, &u)| *to = bytes(u));
            }
            Units::Utf32(u) => valid_ucs4_to_ordered_utf16::<SWAPPED>(u, out),
            Units::Utf8(_) => unreachable!("a `str` is not UTF-8"),
        }
    }
}

#[cfg(test)]
mod tests;
