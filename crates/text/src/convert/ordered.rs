//! Units of 16 and 32 bits as bytes, in the machine's order or the other one, at any address: to a `str`, and from one.
//!
//! Text is looked at and written block by block, so that the second step finds its block in the first cache. The loops are
//! plain and compiled for each family of kernels: the compiler makes vectors of them.

use std::mem::MaybeUninit;

use crate::arch::family::{Kernels, Work, with_kernels};
use crate::arch::memory::uninit_bytes;
use crate::arch::ordered::{count_utf16, ucs4_to_utf16, utf16_to_ucs4, widen};
use crate::new_object::{MadeStr, NewStr, StrData};
use crate::{Kind, Shape, Units};

/// Units of a block.
const BLOCK_UNITS: usize = 2048;

/// Makes a `str` of well-formed UTF-16, the bytes of each unit in the machine's order or (`SWAPPED`) the other one, with the
/// narrowest kind that holds it. `None` where it is malformed, and where it is a shared `str` of no or one character.
///
/// Copies: one, the conversion, into the `str`.
///
/// # Errors
/// Those of `new`.
pub fn make_ordered_utf16<const SWAPPED: bool, N: NewStr>(
    text: &[[u8; 2]],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    with_kernels(Make::<_, _, SWAPPED, true>(text, new))
}

/// As [`make_ordered_utf16`], of UTF-32.
///
/// # Errors
/// Those of `new`.
pub fn make_ordered_utf32<const SWAPPED: bool, N: NewStr>(
    text: &[[u8; 4]],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    with_kernels(Make::<_, _, SWAPPED, true>(text, new))
}

/// As both, where each unit is a character; `None` for other text. It writes one unit for each that it reads, whatever
/// they are.
///
/// # Errors
/// Those of `new`.
pub(crate) fn make_ordered_one_to_one<const BYTES: usize, const SWAPPED: bool, N: NewStr>(
    text: &[[u8; BYTES]],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>>
where
    [u8; BYTES]: Unit,
{
    with_kernels(Make::<_, _, SWAPPED, false>(text, new))
}

/// A unit as bytes.
pub(crate) trait Unit: Copy {
    /// The union of the units, and whether one is no character of its own.
    fn look<const SWAPPED: bool>(units: &[Self]) -> (u32, bool);

    /// Writes units that all fit, one for one.
    fn write<const SWAPPED: bool>(units: &[Self], out: StrData<'_>);

    /// Writes units as 32-bit units and looks at them, each read once; as `look`.
    fn write_looked<const SWAPPED: bool>(
        units: &[Self],
        out: &mut [MaybeUninit<u32>],
    ) -> (u32, bool);

    /// Characters, where some take two units; `None` where none may.
    fn count<const SWAPPED: bool>(units: &[Self]) -> Option<usize>;

    /// Writes all as 32-bit units; `false` where it is malformed.
    fn write_pairs<const SWAPPED: bool>(units: &[Self], out: &mut [MaybeUninit<u32>]) -> bool;

    /// Whether units of a `str` of this kind are the same.
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

impl Unit for [u8; 2] {
    unit_methods!(u16, |u| u & 0xF800 == 0xD800);

    #[inline(always)]
    fn count<const SWAPPED: bool>(units: &[Self]) -> Option<usize> {
        Some(count_utf16::<SWAPPED>(units))
    }

    #[inline(always)]
    fn write_pairs<const SWAPPED: bool>(units: &[Self], out: &mut [MaybeUninit<u32>]) -> bool {
        utf16_to_ucs4::<SWAPPED>(units, out)
    }

    fn is_copied<const SWAPPED: bool>(kind: Kind) -> bool {
        !SWAPPED && kind == Kind::Ucs2
    }
}

impl Unit for [u8; 4] {
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

/// A `str` to be made; with `PAIRS` of text with pairs too.
struct Make<'a, U, N, const SWAPPED: bool, const PAIRS: bool>(&'a [U], &'a mut N);

/// Places of a text that are looked at for a guess.
const LOOKS: usize = 8;
/// Units looked at in each.
const LOOK_UNITS: usize = 32;

impl<U: Unit, N: NewStr, const SWAPPED: bool, const PAIRS: bool> Work
    for Make<'_, U, N, SWAPPED, PAIRS>
{
    type Output = Option<Result<MadeStr<N::Str>, N::Error>>;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> Self::Output {
        let Make(text, new) = self;
        // Each unit seen is one of the text: the guess is never too wide.
        let (mut or, mut special) = (0, false);
        for place in 0..LOOKS {
            let at = text.len() / LOOKS * place;
            let part = &text[at..text.len().min(at + LOOK_UNITS)];
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

fn of<U: Unit, N: NewStr, const SWAPPED: bool>(
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

/// A try at a kind: the `str`, or up to where it went and what was found there.
enum Tried<S> {
    Made(S),
    UpTo(usize, (u32, bool)),
}

#[inline(always)]
fn try_kind<U: Unit, N: NewStr, const SWAPPED: bool>(
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
    // What is stored as 32-bit units is what was looked at, even if the text changes.
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
        // What was seen before is not there any more.
        return None;
    }
    Some(Ok(Tried::Made(made)))
}

/// Characters of a text of a `str`, where it can be encoded.
///
/// Copies: none (so below).
#[must_use]
pub fn utf32_len_exact(units: Units<'_>) -> Option<usize> {
    Some(with_kernels(Count(units))?.0)
}

/// Units of a text of a `str` as UTF-16, where it can be encoded.
pub(super) fn utf16_len_of_str(units: Units<'_>) -> Option<usize> {
    let (n_chars, n_pairs) = with_kernels(Count(units))?;
    Some(n_chars + n_pairs)
}

struct Count<'a>(Units<'a>);

impl Work for Count<'_> {
    /// Characters, and how many of them are pairs in UTF-16.
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

/// Writes text of a `str` as UTF-32, the bytes of each unit in the machine's order or (`SWAPPED`) the other one: all of `out`,
/// which takes four bytes for each unit. `false` where the text cannot be encoded, and then anything is written.
///
/// Copies: none besides the conversion (for 32-bit units one copy).
///
/// # Panics
/// Where `out` has another length, or the text is UTF-8: a bug of the caller (so below).
#[must_use]
pub fn ordered_utf32<const SWAPPED: bool>(units: Units<'_>, out: &mut [MaybeUninit<u8>]) -> bool {
    let (out, []) = out.as_chunks_mut() else {
        panic!("the place was made for another text");
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
        assert_eq!(out.len(), n, "the place was made for another text");
        let bytes = |c: u32| {
            let c = if SWAPPED { c.swap_bytes() } else { c };
            uninit_bytes(c.to_ne_bytes())
        };
        // Block by block: what is looked at is still in the first cache when it is written.
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
            Units::Utf8(_) => unreachable!("a str is no UTF-8"),
        }
        true
    }
}

#[inline(always)]
fn is_surrogate(u: u32) -> bool {
    u & 0xFFFF_F800 == 0xD800
}

/// Writes text of a `str` as UTF-16, as [`ordered_utf32`]: all of `out`, which is as long as
/// [`utf16_len_exact`](super::utf16_len_exact) says.
///
/// # Panics
/// As [`ordered_utf32`].
pub fn ordered_utf16<const SWAPPED: bool>(units: Units<'_>, out: &mut [MaybeUninit<u8>]) {
    let (out, []) = out.as_chunks_mut() else {
        panic!("the place was made for another text");
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
        assert!(is_long, "the place was made for another text");
        match units {
            Units::Latin1(u) => widen::<_, SWAPPED>(u, out),
            Units::Utf16(u) | Units::Ucs2(u) => {
                out.iter_mut().zip(u).for_each(|(to, &u)| *to = bytes(u));
            }
            Units::Utf32(u) => ucs4_to_utf16::<SWAPPED>(u, out),
            Units::Utf8(_) => unreachable!("a str is no UTF-8"),
        }
    }
}

#[cfg(test)]
mod tests;
