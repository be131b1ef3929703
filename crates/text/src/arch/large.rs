//! Converts long text to a `str`. The text is scanned and written in one pass.
//!
//! If the text were measured and then converted, it would be read twice. For a text larger than the
//! L2 cache, the first pass would take as long as the conversion. Therefore, the kind of the `str`
//! is guessed from a few samples. The guess is never too wide, because each sampled unit is in the
//! text. If a unit does not fit into the guessed kind, the conversion starts again with a wider
//! `str`. For non-ASCII UTF-8, the kind is not guessed: a scan, which is cheap, counts the
//! characters and determines the kind. The text is then validated while it is decoded.

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

/// For a text of at least this length in bytes, guessing the kind of the `str` and converting in
/// one pass is faster than measuring and converting in two passes.
const LARGE_BYTES: usize = 512;

/// The length in bytes from which a text is scanned and copied in one pass by a kernel. Below this
/// length, a scan followed by the C library's copy is equally fast; from it on, that is slower.
const LARGE_COPY_BYTES: usize = 64 * 1024;

/// Returns `true` if a scan while copying is faster than a scan followed by a copy. If `VOLATILE`
/// is `true`, the text may change. The result is then always `true`, because a text that may change
/// must not be read twice.
fn is_worth_a_copy<const VOLATILE: bool>(len_bytes: usize) -> bool {
    VOLATILE || len_bytes >= LARGE_COPY_BYTES
}

/// Makes a `str` from a long well-formed text. The kind of the `str` is the narrowest that can
/// store all characters.
///
/// Returns `None` if the text is short or malformed, or if measuring it before the conversion is
/// faster; the caller then uses [`measure`](crate::measure).
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

/// Makes a `str` from `units`, as [`make_large`] does. If `VOLATILE` is `true`, another thread may
/// change the text during the conversion, and the text must be at least a few vectors long.
///
/// If a unit changes between two reads of a kernel, the `str` may have a wider kind than its
/// characters need. A `str` of kind ASCII contains only ASCII even then, because its kernels store
/// the same vectors that they test.
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

/// The result of writing a text into a `str` of one kind: the `str`, or the number of units written
/// before the first unit that did not fit.
enum Tried<S> {
    Made(S),
    UpTo(usize),
}

/// A unit type of the data area of a `str`.
trait DataUnit: Sized {
    /// Returns the data area of a new `str` as units of type `Self`; `None` if the units of the
    /// `str` have another width.
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

/// Makes a `str` of the given kind. `write` writes the text into it, and returns the number of
/// units written before the first one that does not fit.
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

/// Copies a text that is probably ASCII into a `str`. If the text contains a byte that is not
/// ASCII, returns the number of bytes that were copied before this byte. Returns 0 without copying
/// if the length or the samples of the text are unsuitable.
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

/// The number of samples of a long text that are examined to guess the `str` kind that it needs.
const N_SAMPLES: usize = 8;
/// The number of code units in each sample that [`samples`] returns.
const SAMPLE_UNITS: usize = 32;

/// Returns samples of a text: short slices at equal distances. The caller guesses from them the
/// kind of the text, which is the width of its widest character.
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
    // The text has a non-ASCII byte, so all bytes are copied as Latin-1 without another search.
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
        // The call of `try_ascii` found a non-ASCII byte, so the text has changed since.
        Kind::Ascii if VOLATILE => Kind::Latin1,
        kind => kind,
    };
    if n < 2 {
        return None;
    }
    // The kernel either converts the whole text or returns `None` for malformed text. The caller
    // then determines the position of the error.
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
                // The kernel stopped at the unit that did not fit, or at most a few vectors before
                // it.
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

/// Returns `true` if all units in `data` are valid code points. A kernel that validates a text in
/// one pass and decodes it in another can write invalid units if the text changes in between.
fn are_code_points<const VOLATILE: bool>(data: &[MaybeUninit<u32>]) -> bool {
    !VOLATILE || writes_code_points() || with_kernels(LargestUnit(written(data))) <= 0x10_FFFF
}

/// Returns the narrowest kind of `str` that can store the text that these UTF-16 units encode.
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
