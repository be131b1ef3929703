//! Long text into a `str`, looked at and written in one pass.
//!
//! To measure first and write then reads the text twice, which beyond the second cache costs as much as the conversion.
//! So the kind is guessed from a few places: each unit seen there is one of the text, hence the guess is never too wide.
//! The text is written as long as it fits; where it does not, a wider `str` is begun. UTF-8 of other scripts is counted
//! before, which is cheap, and validated while it is decoded, which costs little there.

use std::mem::MaybeUninit;

use super::memory::uninit;
use super::{bulk, copy_ascii, copy_bmp, is_ascii, narrow_up_to, scan_u16, scan_utf8};
use crate::new_object::{MadeStr, NewStr, StrData};
use crate::{Kind, Shape, Units};

pub(crate) mod volatile;

/// From this many bytes on one pass is worth a guess.
const LARGE_BYTES: usize = 512;

/// From this many bytes on one pass is worth a copy of our own: below, a look and then the C library's are as fast.
const LARGE_COPY_BYTES: usize = 64 * 1024;

/// Returns whether one pass is better than a look and then a copy. A text that may change is not
/// looked at twice.
fn is_worth_a_copy<const VOLATILE: bool>(len_bytes: usize) -> bool {
    VOLATILE || len_bytes >= LARGE_COPY_BYTES
}

/// Makes a `str` of a long well-formed text, with the narrowest kind that holds it.
///
/// `None` where the text is short or malformed: [`measure`](crate::measure) takes it then.
///
/// Copies: one, the conversion, into the `str`.
///
/// # Errors
/// Those of `new`.
pub fn make_large<N: NewStr>(
    units: Units<'_>,
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    if units.len_bytes() < LARGE_BYTES {
        return None;
    }
    make::<N, false>(units, new)
}

/// As [`make_large`]; if `VOLATILE`, of a text of any length from some vectors on that may be
/// written to meanwhile. A `str` is then not canonical if a unit had two values, but for one of
/// kind ASCII: the kernels store the very vectors that they look at.
fn make<N: NewStr, const VOLATILE: bool>(
    units: Units<'_>,
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    match units {
        Units::Latin1(u) => make_latin1::<N, VOLATILE>(u, new),
        Units::Utf8(u) => make_utf8::<N, VOLATILE>(u, new),
        Units::Utf16(u) => make_utf16::<N, VOLATILE>(u, new),
        Units::Ucs2(_) | Units::Utf32(_) => None,
    }
}

/// A try at a kind: the `str`, or up to which unit it went.
enum Tried<S> {
    Made(S),
    UpTo(usize),
}

/// A unit of a data area.
trait Unit: Sized {
    /// The data area as units of this size.
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<Self>]>;
}

impl Unit for u8 {
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<u8>]> {
        match data {
            StrData::One(data) => Some(data),
            _ => None,
        }
    }
}

impl Unit for u16 {
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<u16>]> {
        match data {
            StrData::Two(data) => Some(data),
            _ => None,
        }
    }
}

impl Unit for u32 {
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<u32>]> {
        match data {
            StrData::Four(data) => Some(data),
            _ => None,
        }
    }
}

/// Writes a text into a new `str`; `write` says how many units of it went well.
fn try_kind<U: Unit, N: NewStr>(
    new: &mut N,
    kind: Kind,
    n_chars: usize,
    write: impl FnOnce(&mut [MaybeUninit<U>]) -> usize,
) -> Result<Tried<N::Str>, N::Error> {
    let mut made = new.new_str(Shape { kind, n_chars })?;
    let data = U::of(new.data(&mut made)).expect("a str of another kind was made");
    assert_eq!(data.len(), n_chars, "a str of another length was made");
    let done = write(data);
    Ok(if done == n_chars {
        Tried::Made(made)
    } else {
        Tried::UpTo(done)
    })
}

/// Copies a text that looks like ASCII while it is; how far that went.
fn try_ascii<N: NewStr, const VOLATILE: bool>(
    u: &[u8],
    new: &mut N,
) -> Result<Tried<N::Str>, N::Error> {
    if !is_worth_a_copy::<VOLATILE>(u.len()) || !looks(u).all(is_ascii) {
        return Ok(Tried::UpTo(0));
    }
    try_kind(
        new,
        Kind::Ascii,
        u.len(),
        |data: &mut [MaybeUninit<u8>]| {
            // SAFETY: data takes u.len() bytes, which `try_kind` has checked, and is borrowed mutably.
            unsafe { copy_ascii(u, data.as_mut_ptr().cast()) }
        },
    )
}

/// Places of a long text that are looked at for a guess.
const LOOKS: usize = 8;
/// Units looked at in each.
const LOOK_UNITS: usize = 32;

/// Parts of the text, spread over its length.
fn looks<U>(text: &[U]) -> impl Iterator<Item = &[U]> {
    let step = (text.len() - LOOK_UNITS) / (LOOKS - 1);
    (0..LOOKS).map(move |i| &text[i * step..i * step + LOOK_UNITS])
}

fn make_latin1<N: NewStr, const VOLATILE: bool>(
    u: &[u8],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    if !is_worth_a_copy::<VOLATILE>(u.len()) {
        return None;
    }
    let in_vain_bytes = match try_ascii::<N, VOLATILE>(u, new) {
        Ok(Tried::Made(made)) => return Some(Ok(of(made, true, 0))),
        Ok(Tried::UpTo(n)) => n,
        Err(e) => return Some(Err(e)),
    };
    // One that is not ASCII was seen: nothing is left to look for.
    let tried = try_kind(new, Kind::Latin1, u.len(), |data| {
        data.copy_from_slice(uninit(u));
        u.len()
    });
    Some(tried.map(|tried| match tried {
        Tried::Made(made) => of(made, true, in_vain_bytes),
        Tried::UpTo(_) => unreachable!("all of it was copied"),
    }))
}

fn make_utf8<N: NewStr, const VOLATILE: bool>(
    u: &[u8],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    let in_vain_bytes = match try_ascii::<N, VOLATILE>(u, new) {
        Ok(Tried::Made(made)) => return Some(Ok(of(made, true, 0))),
        Ok(Tried::UpTo(n)) => n,
        Err(e) => return Some(Err(e)),
    };
    let likely_ascii = || looks(u).all(is_ascii);
    if !bulk::checks_while_decoding() || (!is_worth_a_copy::<VOLATILE>(u.len()) && likely_ascii()) {
        return None;
    }
    let scan = scan_utf8(u);
    let n = scan.n_chars;
    let kind = match Kind::of_utf8(scan.max) {
        // It was not ASCII a moment ago.
        Kind::Ascii if VOLATILE => Kind::Latin1,
        kind => kind,
    };
    if n < 2 {
        return None;
    }
    // All or nothing: the place of what is malformed is found elsewhere.
    let all = |is_whole| if is_whole { n } else { usize::MAX };
    let tried = match kind {
        Kind::Ascii | Kind::Latin1 => try_kind(new, kind, n, |data| {
            all(bulk::utf8_to_latin1_checked(u, data))
        }),
        Kind::Ucs2 => try_kind(new, kind, n, |data| {
            all(bulk::utf8_to_ucs2_checked(u, data))
        }),
        Kind::Ucs4 => try_kind(new, kind, n, |data| {
            all(bulk::utf8_to_ucs4_checked::<VOLATILE>(u, data))
        }),
    };
    match tried {
        Ok(Tried::Made(made)) => Some(Ok(of(made, kind == Kind::Ascii, in_vain_bytes))),
        Ok(Tried::UpTo(_)) => None,
        Err(e) => Some(Err(e)),
    }
}

fn make_utf16<N: NewStr, const VOLATILE: bool>(
    u: &[u16],
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    let mut kind = looks(u).map(kind_of).max().expect("there are looks");
    let mut in_vain_bytes = 0;
    loop {
        if kind == Kind::Ucs2 && !is_worth_a_copy::<VOLATILE>(2 * u.len()) {
            return None;
        }
        let tried = match kind {
            Kind::Ascii => try_kind(new, kind, u.len(), |data: &mut [MaybeUninit<u8>]| {
                // SAFETY: data takes a byte for each unit, and is borrowed mutably.
                unsafe { narrow_up_to::<0x7F>(u, data.as_mut_ptr().cast()) }
            }),
            Kind::Latin1 => try_kind(new, kind, u.len(), |data: &mut [MaybeUninit<u8>]| {
                // SAFETY: data takes a byte for each unit, and is borrowed mutably.
                unsafe { narrow_up_to::<0xFF>(u, data.as_mut_ptr().cast()) }
            }),
            Kind::Ucs2 => try_kind(new, kind, u.len(), |data: &mut [MaybeUninit<u16>]| {
                // SAFETY: data takes a unit for each unit, and is borrowed mutably.
                unsafe { copy_bmp(u, data.as_mut_ptr().cast()) }
            }),
            Kind::Ucs4 => {
                let n = bulk::count_utf16(u);
                let tried = try_kind(new, kind, n, |data| {
                    match bulk::utf16_to_ucs4_checked::<VOLATILE>(u, data) {
                        true => n,
                        false => usize::MAX,
                    }
                });
                match tried {
                    Ok(Tried::UpTo(_)) => return None,
                    tried => tried,
                }
            }
        };
        match tried {
            Ok(Tried::Made(made)) => {
                return Some(Ok(of(made, kind == Kind::Ucs2, in_vain_bytes)));
            }
            Ok(Tried::UpTo(n)) => {
                in_vain_bytes += 2 * n;
                // The kernel stopped at most a few vectors before the unit that does not fit.
                kind = kind.max(u[n..].chunks(LOOK_UNITS).map(kind_of).find(|&k| k > kind)?);
            }
            Err(e) => return Some(Err(e)),
        }
    }
}

/// The narrowest kind for these units, as far as they tell.
fn kind_of(units: &[u16]) -> Kind {
    let scan = scan_u16(units);
    if scan.surrogate {
        Kind::Ucs4
    } else {
        scan.kind
    }
}

fn of<S>(made: S, is_copied: bool, in_vain_bytes: usize) -> MadeStr<S> {
    MadeStr {
        made,
        is_copied,
        in_vain_bytes,
    }
}
