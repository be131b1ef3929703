//! Text that was validated and measured once, on its way into a `str`.

use std::mem::MaybeUninit;

use super::bulk::LargestUnit;
use super::family::with_kernels;
use super::memory::written;
use super::{bulk, find_high, is_ascii, narrow_u16, ordered, scalar, scan_u16};
use crate::new_object::StrData;
use crate::validate::find_malformed;
use crate::{Kind, Malformed, MalformedKind, Policy, Shape, Units};

/// Text that was looked at once: its form is known and its writing needs no second validation.
///
/// Made by [`measure`]. It borrows the text, so that it is the same when it is written; memory that
/// others write to is written by [`Measured::write_volatile`].
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    text: Text<'a>,
    shape: Shape,
}

/// The text in a form that its writer can rely on.
#[derive(Clone, Copy, Debug)]
enum Text<'a> {
    /// Each unit is a character: ASCII, Latin-1.
    Bytes(&'a [u8]),
    /// UTF-8, valid.
    Utf8(&'a [u8]),
    /// Each unit is a character.
    Wide(&'a [u16]),
    /// UTF-16 with pairs, valid.
    Pairs(&'a [u16]),
    /// Each unit is a character.
    Ucs4(&'a [u32]),
    /// Malformed, to be written with U+FFFD.
    Lossy(Units<'a>),
}

/// Validates and measures `units`: kind and length of the narrowest `str` that holds the text.
///
/// Copies: none.
///
/// # Errors
/// [`Malformed`] under [`Policy::Strict`].
#[inline]
pub fn measure(units: Units<'_>, policy: Policy) -> Result<Measured<'_>, Malformed> {
    match units {
        Units::Utf8(u) | Units::Latin1(u) if is_ascii(u) => Ok(Measured {
            text: Text::Bytes(u),
            shape: Shape {
                kind: Kind::Ascii,
                n_chars: u.len(),
            },
        }),
        Units::Utf16(u) | Units::Ucs2(u) => {
            let scan = scan_u16(u);
            if scan.surrogate {
                return measure_slowly(units, policy);
            }
            Ok(Measured {
                text: Text::Wide(u),
                shape: Shape {
                    kind: scan.kind,
                    n_chars: u.len(),
                },
            })
        }
        _ => measure_slowly(units, policy),
    }
}

#[inline(never)]
fn measure_slowly(units: Units<'_>, policy: Policy) -> Result<Measured<'_>, Malformed> {
    let measured = |text, kind, n_chars| {
        Ok(Measured {
            text,
            shape: Shape { kind, n_chars },
        })
    };
    match units {
        Units::Latin1(u) => return measured(Text::Bytes(u), Kind::Latin1, u.len()),
        Units::Utf8(u) => {
            if let Some(Shape { kind, n_chars }) = bulk::shape_of_utf8(u) {
                return measured(Text::Utf8(u), kind, n_chars);
            }
        }
        Units::Utf16(u) => {
            if bulk::is_utf16(u) {
                // A surrogate is here, and where all stand in pairs, each second one is no character of its own.
                let n_chars = bulk::count_utf16(u);
                return measured(Text::Pairs(u), Kind::Ucs4, n_chars);
            }
        }
        Units::Ucs2(_) => {}
        Units::Utf32(u) => {
            let (or, bad) = scalar::scan_u32(u);
            if !bad {
                return measured(Text::Ucs4(u), Kind::of(or), u.len());
            }
        }
    }
    if policy == Policy::Strict {
        return Err(find_malformed(units).unwrap_or(Malformed::CHANGED));
    }
    let (mut or, mut n_chars) = (0, 0);
    for c in scalar::lossy(units) {
        or |= c;
        n_chars += 1;
    }
    measured(Text::Lossy(units), Kind::of(or), n_chars)
}

impl Measured<'_> {
    /// What `PyUnicode_New` needs.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Bytes of the text as its owner holds it.
    #[inline]
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        match self.text {
            Text::Bytes(u) => u.len(),
            Text::Utf8(u) => u.len(),
            Text::Wide(u) | Text::Pairs(u) => u.len() * 2,
            Text::Ucs4(u) => u.len() * 4,
            Text::Lossy(units) => units.len_bytes(),
        }
    }

    /// Whether [`Measured::write`] is a plain copy: the units match those of the `str` already.
    #[inline]
    #[must_use]
    pub fn is_copied(&self) -> bool {
        match self.text {
            Text::Bytes(_) => true,
            Text::Wide(_) => self.shape.kind == Kind::Ucs2,
            Text::Ucs4(_) => self.shape.kind == Kind::Ucs4,
            Text::Utf8(_) | Text::Pairs(_) | Text::Lossy(_) => false,
        }
    }

    /// Writes the text into the data area of a `str` that was made for [`Measured::shape`]: all of it, with the
    /// terminator left to its maker.
    ///
    /// Copies: one, or the conversion, into `data`.
    ///
    /// # Panics
    /// Where `data` is not `n_chars` long or narrower than the kind, or the text was written to
    /// since it was measured: a bug of the caller.
    #[inline]
    pub fn write(&self, data: StrData<'_>) {
        match (self.text, data) {
            (Text::Bytes(u), StrData::One(out)) => copy(u, out),
            (Text::Wide(u), StrData::One(out)) => {
                assert!(out.len() == u.len() && self.shape.kind <= Kind::Latin1);
                // SAFETY: out takes a byte for each unit (checked above) and is borrowed mutably, apart from u.
                unsafe { narrow_u16(u, out.as_mut_ptr().cast()) };
            }
            (Text::Wide(u), StrData::Two(out)) => copy(u, out),
            (_, data) => {
                assert!(
                    self.write_slowly(data),
                    "the text is longer, shorter or wider than the shape says"
                );
            }
        }
    }

    /// As [`Measured::write`], of a text that may have been written to since it was measured.
    ///
    /// # Errors
    /// [`MalformedKind::Changed`] where what is in `data` then is not of the shape. If it is of it,
    /// the text may be a mix of what was in memory at different times.
    ///
    /// # Panics
    /// Where `data` is not `n_chars` long or narrower than the kind: a bug of the caller.
    #[inline]
    pub fn write_volatile(&self, mut data: StrData<'_>) -> Result<(), Malformed> {
        let Shape { kind, .. } = self.shape;
        let here = data.reborrow();
        let is_whole = match self.text {
            Text::Bytes(_) | Text::Wide(_) => {
                self.write(here);
                true
            }
            _ => self.write_slowly(here),
        };
        if is_whole && is_canonical::<false>(kind, data) {
            Ok(())
        } else {
            Err(Malformed::CHANGED)
        }
    }

    /// Writes the text; returns whether it filled `data`, and no unit of it was left.
    #[inline(never)]
    fn write_slowly(&self, data: StrData<'_>) -> bool {
        let Shape { kind, n_chars } = self.shape;
        match (self.text, data) {
            (Text::Utf8(u), StrData::One(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Latin1);
                bulk::valid_utf8_to_latin1(u, out)
            }
            (Text::Utf8(u), StrData::Two(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Ucs2);
                bulk::valid_utf8_to_utf16::<false>(u, out)
            }
            (Text::Utf8(u), StrData::Four(out)) => {
                assert!(out.len() == n_chars);
                bulk::valid_utf8_to_utf32(u, out)
            }
            (Text::Pairs(u), StrData::Four(out)) => {
                assert!(out.len() == n_chars);
                bulk::valid_utf16_to_utf32(u, out)
            }
            (Text::Ucs4(u), StrData::One(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Latin1);
                out.iter_mut().zip(u).for_each(|(to, &c)| {
                    to.write(c as u8);
                });
                true
            }
            (Text::Ucs4(u), StrData::Two(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Ucs2);
                out.iter_mut().zip(u).for_each(|(to, &c)| {
                    to.write(c as u16);
                });
                true
            }
            (Text::Ucs4(u), StrData::Four(out)) => {
                copy(u, out);
                true
            }
            // Wider data than the text asks for: a part of a larger one.
            (Text::Bytes(u), StrData::Two(out)) => {
                ordered::widen::<2, false>(u, as_bytes(out));
                true
            }
            (Text::Bytes(u), StrData::Four(out)) => {
                ordered::widen::<4, false>(u, as_bytes(out));
                true
            }
            // Malformed text, and a part of another width: rare, and the simple way is right for all.
            (text, StrData::One(out)) => scalar::fill(text.code_points(), out),
            (text, StrData::Two(out)) => scalar::fill(text.code_points(), out),
            (text, StrData::Four(out)) => scalar::fill(text.code_points(), out),
        }
    }
}

/// Returns whether a `str` of this kind, all of whose data was written, holds a character that
/// needs the kind, and none that needs more. `CODE_POINTS`: units of 32 bits are known to be code
/// points.
#[inline]
pub(crate) fn is_canonical<const CODE_POINTS: bool>(kind: Kind, data: StrData<'_>) -> bool {
    match data {
        StrData::One(data) if kind == Kind::Ascii => is_ascii(written(data)),
        StrData::One(data) => find_high(written(data)) < data.len(),
        StrData::Two(data) => written(data).iter().any(|&u| u > 0xFF),
        StrData::Four(data) if CODE_POINTS => {
            let mut parts = written(data).chunks(PART_UNITS);
            parts.any(|part| with_kernels(LargestUnit(part)) >= 0x1_0000)
        }
        StrData::Four(data) => {
            (0x1_0000..=0x10_FFFF).contains(&with_kernels(LargestUnit(written(data))))
        }
    }
}

/// Units that are looked at before a look can end.
const PART_UNITS: usize = 256;

/// Appends measured text as UTF-16.
pub(crate) fn append_utf16(measured: &Measured<'_>, out: &mut Vec<u16>) {
    let Shape { kind, n_chars } = measured.shape;
    match measured.text {
        Text::Wide(u) | Text::Pairs(u) => out.extend_from_slice(u),
        Text::Bytes(u) => out.extend(u.iter().map(|&b| u16::from(b))),
        Text::Utf8(u) if kind <= Kind::Ucs2 => {
            out.reserve(n_chars);
            let spare = &mut out.spare_capacity_mut()[..n_chars];
            let is_whole = bulk::valid_utf8_to_utf16::<true>(u, spare);
            assert!(is_whole, "{}", MalformedKind::Changed);
            // SAFETY: n_chars units were written behind the length, inside the capacity.
            unsafe { out.set_len(out.len() + n_chars) };
        }
        Text::Utf8(u) => {
            out.extend(scalar::utf16_of(scalar::chars_of(u)).map(|u| u as u16));
        }
        text => out.extend(scalar::utf16_of(text.code_points()).map(|u| u as u16)),
    }
}

impl<'a> Text<'a> {
    fn code_points(self) -> impl Iterator<Item = u32> + 'a {
        scalar::lossy(match self {
            Text::Bytes(u) => Units::Latin1(u),
            Text::Utf8(u) => Units::Utf8(u),
            Text::Wide(u) => Units::Ucs2(u),
            Text::Pairs(u) => Units::Utf16(u),
            Text::Ucs4(u) => Units::Utf32(u),
            Text::Lossy(units) => units,
        })
    }
}

/// The bytes of each unit of a place.
fn as_bytes<U, const W: usize>(out: &mut [MaybeUninit<U>]) -> &mut [[MaybeUninit<u8>; W]] {
    const { assert!(size_of::<U>() == W) };
    // SAFETY: as many bytes, looked at above, of no alignment; MaybeUninit asks nothing of its contents.
    unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len()) }
}

/// Copies units that match already.
#[inline]
fn copy<U: Copy>(src: &[U], out: &mut [MaybeUninit<U>]) {
    assert_eq!(src.len(), out.len(), "the data area is of another shape");
    // SAFETY: both have the same length, checked above; out is borrowed mutably, so they do not overlap; every bit
    // pattern of a MaybeUninit is fine.
    unsafe {
        std::ptr::copy_nonoverlapping(src.as_ptr(), out.as_mut_ptr().cast::<U>(), src.len());
    }
}
