//! Converts long text to a `str`, usually in one pass.
//!
//! The kind of the `str` is guessed from a few samples. If a unit does not fit, the conversion
//! starts again with a wider `str`. For non-ASCII UTF-8, a scan determines the kind.

use std::mem::MaybeUninit;

use super::dispatch::{
    copy_ascii, copy_bmp, count_utf16, is_ascii, narrow_up_to, scan_u16, scan_utf8, utf8_to_latin1,
    utf8_to_ucs4, utf8_to_utf16, utf16_to_ucs4, with_kernels,
};
use super::family::LargestUnit;
use super::kernel::{checks_while_decoding, writes_code_points};
use super::memory::{uninit, written};
use crate::new_object::{MadeStr, NewStr, StrData};
use crate::{Kind, Shape, Units};

pub(crate) mod volatile;

/// The length in bytes from which one pass with a guessed kind is faster than two passes.
const LARGE_BYTES: usize = 512;

/// The length in bytes from which one pass is faster than a scan and the C library's copy.
const LARGE_COPY_BYTES: usize = 64 * 1024;

/// Returns `true` if scan and copy should be one pass. If `VOLATILE` is `true`, the text may
/// change, so it is never read twice.
fn is_worth_a_copy<const VOLATILE: bool>(len_bytes: usize) -> bool {
    VOLATILE || len_bytes >= LARGE_COPY_BYTES
}

/// Makes a `str` of the narrowest kind from a long well-formed text.
///
/// Returns `None` if the text is short or malformed, or if two passes are faster. The caller then
/// uses [`measure`](crate::measure).
///
/// Copies: the text is copied once, by its conversion into the `str`.
///
/// # Errors
/// Returns the error that `new` returns.
pub fn make_large<N: NewStr>(
    units: Units<'_>,
    new: &mut N,
) -> Option<Result<MadeStr<N::Str>, N::Error>> {
    if units.len_bytes() < LARGE_BYTES {
        return None;
    }
    make::<N, false>(units, new)
}

/// Makes a `str` from `units` like [`make_large`]. If `VOLATILE` is `true`, another thread may
/// change the text. The text must then have at least a few vectors, and the kind may be wider than
/// necessary.
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

/// The result of writing a `str` of one kind: the `str`, or the number of units that fit.
enum Tried<S> {
    Made(S),
    UpTo(usize),
}

/// A unit type of the data area of a `str`.
trait DataUnit: Sized {
    /// Returns the data area as units of type `Self`; `None` for another width.
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<Self>]>;
}

impl DataUnit for u8 {
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<u8>]> {
        match data {
            StrData::One(data) => Some(data),
            _ => None,
        }
    }
}

impl DataUnit for u16 {
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<u16>]> {
        match data {
            StrData::Two(data) => Some(data),
            _ => None,
        }
    }
}

impl DataUnit for u32 {
    fn of(data: StrData<'_>) -> Option<&mut [MaybeUninit<u32>]> {
        match data {
            StrData::Four(data) => Some(data),
            _ => None,
        }
    }
}

/// Makes a `str` of the given kind. `write` fills the `str` and returns the number of units that
/// fit.
fn try_kind<U: DataUnit, N: NewStr>(
    new: &mut N,
    kind: Kind,
    n_chars: usize,
    write: impl FnOnce(&mut [MaybeUninit<U>]) -> usize,
) -> Result<Tried<N::Str>, N::Error> {
    let mut made = new.new_str(Shape { kind, n_chars })?;
    let data = U::of(new.data(&mut made)).expect("a `str` of another kind was made");
    assert_eq!(data.len(), n_chars, "a `str` of another length was made");
    let done = write(data);
    Ok(if done == n_chars {
        Tried::Made(made)
    } else {
        Tried::UpTo(done)
    })
}

/// Copies a text that is probably ASCII into a `str`. At a non-ASCII byte, returns the number of
/// bytes copied before it. Returns 0 if the length or the samples are unsuitable.
fn try_ascii<N: NewStr, const VOLATILE: bool>(
    u: &[u8],
    new: &mut N,
) -> Result<Tried<N::Str>, N::Error> {
    if !is_worth_a_copy::<VOLATILE>(u.len()) || !samples(u).all(is_ascii) {
        return Ok(Tried::UpTo(0));
    }
    try_kind(
        new,
        Kind::Ascii,
        u.len(),
        |data: &mut [MaybeUninit<u8>]| copy_ascii(u, data),
    )
}

/// The number of samples for the guess of the `str` kind.
const N_SAMPLES: usize = 8;
/// The number of code units in each sample.
const SAMPLE_UNITS: usize = 32;

/// Returns short slices of a text at equal distances.
fn samples<U>(text: &[U]) -> impl Iterator<Item = &[U]> {
    let step = (text.len() - SAMPLE_UNITS) / (N_SAMPLES - 1);
    (0..N_SAMPLES).map(move |i| &text[i * step..i * step + SAMPLE_UNITS])
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
    // The text is not ASCII, so all bytes are copied as Latin-1 without a search.
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
    let likely_ascii = || samples(u).all(is_ascii);
    if !checks_while_decoding() || (!is_worth_a_copy::<VOLATILE>(u.len()) && likely_ascii()) {
        return None;
    }
    let scan = scan_utf8(u);
    let n = scan.n_chars;
    let kind = match Kind::of_utf8(scan.max) {
        // The text has changed since `try_ascii` found a non-ASCII byte.
        Kind::Ascii if VOLATILE => Kind::Latin1,
        kind => kind,
    };
    if n < 2 {
        return None;
    }
    // The kernel converts the whole text, or returns `None` for malformed text.
    let all = |made| if made == Some(n) { n } else { usize::MAX };
    let tried = match kind {
        Kind::Ascii | Kind::Latin1 => try_kind(new, kind, n, |data| all(utf8_to_latin1(u, data))),
        Kind::Ucs2 => try_kind(new, kind, n, |data| all(utf8_to_utf16::<false>(u, data))),
        Kind::Ucs4 => try_kind(new, kind, n, |data| {
            all(utf8_to_ucs4(u, data).filter(|_| are_code_points::<VOLATILE>(data)))
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
    let mut kind = samples(u).map(kind_of).max().expect("there are samples");
    let mut in_vain_bytes = 0;
    loop {
        if kind == Kind::Ucs2 && !is_worth_a_copy::<VOLATILE>(2 * u.len()) {
            return None;
        }
        let tried = match kind {
            Kind::Ascii => try_kind(new, kind, u.len(), |data: &mut [MaybeUninit<u8>]| {
                narrow_up_to::<0x7F>(u, data)
            }),
            Kind::Latin1 => try_kind(new, kind, u.len(), |data: &mut [MaybeUninit<u8>]| {
                narrow_up_to::<0xFF>(u, data)
            }),
            Kind::Ucs2 => try_kind(new, kind, u.len(), |data: &mut [MaybeUninit<u16>]| {
                copy_bmp(u, data)
            }),
            Kind::Ucs4 => {
                let n = count_utf16(u);
                let tried = try_kind(new, kind, n, |data| {
                    let made = utf16_to_ucs4(u, data).filter(|_| are_code_points::<VOLATILE>(data));
                    if made == Some(n) { n } else { usize::MAX }
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
                // The kernel stopped at most a few vectors before the unit that did not fit.
                kind = kind.max(
                    u[n..]
                        .chunks(SAMPLE_UNITS)
                        .map(kind_of)
                        .find(|&k| k > kind)?,
                );
            }
            Err(e) => return Some(Err(e)),
        }
    }
}

/// Returns `true` if all units are valid code points. A kernel with two passes can write invalid
/// units if the text changes between the passes.
fn are_code_points<const VOLATILE: bool>(data: &[MaybeUninit<u32>]) -> bool {
    !VOLATILE || writes_code_points() || with_kernels(LargestUnit(written(data))) <= 0x10_FFFF
}

/// Returns the narrowest kind for UTF-16 text.
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
