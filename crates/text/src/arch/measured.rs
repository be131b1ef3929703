//! [`Measured`]: validated and measured text, ready to be written into a `str`.

use std::mem::MaybeUninit;

use super::dispatch::{
    count_utf16, find_high, is_ascii, is_utf16, narrow_u16, scan_u16, shape_of_utf8,
    valid_utf8_to_latin1, valid_utf8_to_ucs4, valid_utf8_to_utf16, valid_utf16_to_ucs4, widen,
    with_kernels,
};
use super::family::LargestUnit;
use super::memory::written;
use super::scalar;
use crate::new_object::StrData;
use crate::validate::find_malformed;
use crate::{Kind, Malformed, MalformedKind, Policy, Shape, Units};

/// Validated and measured text. [`measure`] creates it.
///
/// The value borrows the text, so the text cannot change. For memory that other threads write to,
/// use [`Measured::write_volatile`].
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    text: MeasuredForm<'a>,
    shape: Shape,
}

/// A measured text. The variant determines how the text is written.
#[derive(Clone, Copy, Debug)]
enum MeasuredForm<'a> {
    /// ASCII or Latin-1: each byte is a character.
    Bytes(&'a [u8]),
    /// Valid UTF-8.
    Utf8(&'a [u8]),
    /// 16-bit units without surrogates.
    Wide(&'a [u16]),
    /// Valid UTF-16 with surrogate pairs.
    Pairs(&'a [u16]),
    /// 32-bit units.
    Ucs4(&'a [u32]),
    /// Malformed text. Its malformed sequences are written as U+FFFD.
    Lossy(Units<'a>),
}

/// Validates `units` and determines the narrowest `str` for the text.
///
/// Copies: none.
///
/// # Errors
/// Returns [`Malformed`] for malformed text under [`Policy::Strict`].
#[inline]
pub fn measure(units: Units<'_>, policy: Policy) -> Result<Measured<'_>, Malformed> {
    match units {
        Units::Utf8(u) | Units::Latin1(u) if is_ascii(u) => Ok(Measured {
            text: MeasuredForm::Bytes(u),
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
                text: MeasuredForm::Wide(u),
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
        Units::Latin1(u) => return measured(MeasuredForm::Bytes(u), Kind::Latin1, u.len()),
        Units::Utf8(u) => {
            if let Some(Shape { kind, n_chars }) = shape_of_utf8(u) {
                return measured(MeasuredForm::Utf8(u), kind, n_chars);
            }
        }
        Units::Utf16(u) => {
            if is_utf16(u) {
                // The text has surrogates. Only one half of each pair is counted.
                let n_chars = count_utf16(u);
                return measured(MeasuredForm::Pairs(u), Kind::Ucs4, n_chars);
            }
        }
        Units::Ucs2(_) => {}
        Units::Utf32(u) => {
            let (or, bad) = scalar::scan_u32(u);
            if !bad {
                return measured(MeasuredForm::Ucs4(u), Kind::of(or), u.len());
            }
        }
    }
    if policy != Policy::Replace {
        return Err(find_malformed(units).unwrap_or(Malformed::CHANGED));
    }
    let (mut or, mut n_chars) = (0, 0);
    for c in scalar::lossy(units) {
        or |= c;
        n_chars += 1;
    }
    measured(MeasuredForm::Lossy(units), Kind::of(or), n_chars)
}

impl Measured<'_> {
    /// Returns the kind and length of the `str`, for CPython's `PyUnicode_New`.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the size in bytes of the original text.
    #[inline]
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        match self.text {
            MeasuredForm::Bytes(u) => u.len(),
            MeasuredForm::Utf8(u) => u.len(),
            MeasuredForm::Wide(u) | MeasuredForm::Pairs(u) => u.len() * 2,
            MeasuredForm::Ucs4(u) => u.len() * 4,
            MeasuredForm::Lossy(units) => units.len_bytes(),
        }
    }

    /// Returns `true` if the `str` has the same units as the text. [`Measured::write`] then only
    /// copies.
    #[inline]
    #[must_use]
    pub fn is_copied(&self) -> bool {
        match self.text {
            MeasuredForm::Bytes(_) => true,
            MeasuredForm::Wide(_) => self.shape.kind == Kind::Ucs2,
            MeasuredForm::Ucs4(_) => self.shape.kind == Kind::Ucs4,
            MeasuredForm::Utf8(_) | MeasuredForm::Pairs(_) | MeasuredForm::Lossy(_) => false,
        }
    }

    /// Writes the text into the data area of a `str` made for [`Measured::shape`]. `data` excludes
    /// the terminating NUL.
    ///
    /// Copies: the text is copied once.
    ///
    /// # Panics
    /// Panics if `data` is not `n_chars` long, if its units are narrower than the kind, or if the
    /// text has changed.
    #[inline]
    pub fn write(&self, data: StrData<'_>) {
        match (self.text, data) {
            (MeasuredForm::Bytes(u), StrData::One(out)) => copy(u, out),
            (MeasuredForm::Wide(u), StrData::One(out)) => {
                assert!(out.len() == u.len() && self.shape.kind <= Kind::Latin1);
                narrow_u16(u, out);
            }
            (MeasuredForm::Wide(u), StrData::Two(out)) => copy(u, out),
            (_, data) => {
                assert!(
                    self.write_slowly(data),
                    "the text is longer, shorter or wider than the shape says"
                );
            }
        }
    }

    /// Writes the text as [`Measured::write`] does, but the text may have changed since it was
    /// measured.
    ///
    /// # Errors
    /// Returns [`MalformedKind::Changed`] if the result does not match the measured shape. A
    /// matching result may still mix old and new contents of the memory.
    ///
    /// # Panics
    /// Panics if `data` is not `n_chars` long, or if its units are narrower than the kind.
    #[inline]
    pub fn write_volatile(&self, mut data: StrData<'_>) -> Result<(), Malformed> {
        let Shape { kind, .. } = self.shape;
        let here = data.reborrow();
        let is_whole = match self.text {
            MeasuredForm::Bytes(_) | MeasuredForm::Wide(_) => {
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

    /// Writes the text in the rarer cases. Returns `true` if the text fills `data` exactly.
    #[inline(never)]
    fn write_slowly(&self, data: StrData<'_>) -> bool {
        let Shape { kind, n_chars } = self.shape;
        match (self.text, data) {
            (MeasuredForm::Utf8(u), StrData::One(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Latin1);
                valid_utf8_to_latin1(u, out) == Some(n_chars)
            }
            (MeasuredForm::Utf8(u), StrData::Two(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Ucs2);
                valid_utf8_to_utf16::<false>(u, out) == Some(n_chars)
            }
            (MeasuredForm::Utf8(u), StrData::Four(out)) => {
                assert!(out.len() == n_chars);
                valid_utf8_to_ucs4(u, out) == Some(n_chars)
            }
            (MeasuredForm::Pairs(u), StrData::Four(out)) => {
                assert!(out.len() == n_chars);
                valid_utf16_to_ucs4(u, out) == Some(n_chars)
            }
            (MeasuredForm::Ucs4(u), StrData::One(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Latin1);
                out.iter_mut().zip(u).for_each(|(to, &c)| {
                    to.write(c as u8);
                });
                true
            }
            (MeasuredForm::Ucs4(u), StrData::Two(out)) => {
                assert!(out.len() == n_chars && kind <= Kind::Ucs2);
                out.iter_mut().zip(u).for_each(|(to, &c)| {
                    to.write(c as u16);
                });
                true
            }
            (MeasuredForm::Ucs4(u), StrData::Four(out)) => {
                copy(u, out);
                true
            }
            // A part of a larger text that needs wider units.
            (MeasuredForm::Bytes(u), StrData::Two(out)) => {
                widen::<2, false>(u, as_bytes(out));
                true
            }
            (MeasuredForm::Bytes(u), StrData::Four(out)) => {
                widen::<4, false>(u, as_bytes(out));
                true
            }
            // Malformed text, and parts of another width than `data`, are rare.
            (text, StrData::One(out)) => is_filled(text, out),
            (text, StrData::Two(out)) => is_filled(text, out),
            (text, StrData::Four(out)) => is_filled(text, out),
        }
    }
}

/// Returns `true` if `kind` is the narrowest kind for `data`. If `CODE_POINTS` is `true`, 32-bit
/// units are not validated.
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

/// The number of units per iteration of a scan.
const PART_UNITS: usize = 256;

/// Appends measured text to `out` as UTF-16.
pub(crate) fn append_utf16(measured: &Measured<'_>, out: &mut Vec<u16>) {
    let Shape { kind, n_chars } = measured.shape;
    match measured.text {
        MeasuredForm::Wide(u) | MeasuredForm::Pairs(u) => out.extend_from_slice(u),
        MeasuredForm::Bytes(u) => out.extend(u.iter().map(|&b| u16::from(b))),
        MeasuredForm::Utf8(u) if kind <= Kind::Ucs2 => {
            out.reserve(n_chars);
            let spare = &mut out.spare_capacity_mut()[..n_chars];
            let made = valid_utf8_to_utf16::<true>(u, spare);
            assert_eq!(made, Some(n_chars), "{}", MalformedKind::Changed);
            // SAFETY: n_chars units were written after the length, inside the capacity.
            unsafe { out.set_len(out.len() + n_chars) };
        }
        MeasuredForm::Utf8(u) => {
            out.extend(scalar::utf16_of(scalar::chars_of(u)).map(|u| u as u16));
        }
        text => out.extend(scalar::utf16_of(text.code_points()).map(|u| u as u16)),
    }
}

impl<'a> MeasuredForm<'a> {
    fn code_points(self) -> impl Iterator<Item = u32> + 'a {
        scalar::lossy(match self {
            MeasuredForm::Bytes(u) => Units::Latin1(u),
            MeasuredForm::Utf8(u) => Units::Utf8(u),
            MeasuredForm::Wide(u) => Units::Ucs2(u),
            MeasuredForm::Pairs(u) => Units::Utf16(u),
            MeasuredForm::Ucs4(u) => Units::Utf32(u),
            MeasuredForm::Lossy(units) => units,
        })
    }
}

/// Writes the text one character at a time. Returns `true` if it fills `out` exactly.
fn is_filled<U: TryFrom<u32>>(text: MeasuredForm<'_>, out: &mut [MaybeUninit<U>]) -> bool {
    scalar::fill(text.code_points(), out) == Some(out.len())
}

/// Returns the units of `out` as arrays of `W` bytes.
fn as_bytes<U, const W: usize>(out: &mut [MaybeUninit<U>]) -> &mut [[MaybeUninit<u8>; W]] {
    const { assert!(size_of::<U>() == W) };
    // SAFETY: the arrays have the same total size and need no alignment. `MaybeUninit` needs no
    // initialised contents.
    unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len()) }
}

/// Copies `src` to `out`, which must have the same length.
#[inline]
fn copy<U: Copy>(src: &[U], out: &mut [MaybeUninit<U>]) {
    assert_eq!(src.len(), out.len(), "the data area has another shape");
    // SAFETY: both slices have the same length, checked above. `out` is borrowed mutably, so they
    // do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(src.as_ptr(), out.as_mut_ptr().cast::<U>(), src.len());
    }
}
