//! Short texts, the size of a cell: looked at in a vector or two, and nothing of what was seen passes through memory.
//!
//! They do what [`measure`](crate::measure) and [`Measured::write`](crate::Measured::write) do for any text. Each step is
//! inlined into the caller, so that a cell pays for its kernels and nothing else.

use std::mem::MaybeUninit;

use super::{Kernel, kernel, narrow_u16, scan_u16};
use crate::{Kind, Shape};

/// Units of UTF-16 that a cell has at most.
const MOST_UNITS: usize = 64;
/// Bytes of UTF-8 that a cell has at most.
const MOST_BYTES: usize = 128;

/// A short text in UTF-16 without surrogates.
#[derive(Clone, Copy, Debug)]
pub struct Utf16Cell<'a> {
    units: &'a [u16],
    kind: Kind,
}

impl<'a> Utf16Cell<'a> {
    /// The text, looked at; `None` for a longer one and for one with surrogates.
    #[inline]
    #[must_use]
    pub fn of(units: &'a [u16]) -> Option<Utf16Cell<'a>> {
        if units.len() > MOST_UNITS {
            return None;
        }
        let scan = if is_avx512() {
            scan_by_avx512(units)
        } else {
            scan_u16(units)
        };
        let kind = scan.kind;
        (!scan.surrogate).then_some(Utf16Cell { units, kind })
    }

    /// What `PyUnicode_New` needs.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            kind: self.kind,
            n_chars: self.units.len(),
        }
    }

    /// Writes a text of kind 1.
    ///
    /// # Panics
    /// Where `out` has another length or the text another kind: a bug of the caller (so for all below).
    #[inline]
    pub fn write_one(&self, out: &mut [MaybeUninit<u8>]) {
        assert!(out.len() == self.units.len() && self.kind <= Kind::Latin1);
        #[cfg(target_arch = "x86_64")]
        if is_avx512() {
            // SAFETY: AVX-512 is there; out takes a byte for each unit and is borrowed mutably.
            return unsafe { super::avx512::narrow_u16(self.units, out.as_mut_ptr().cast()) };
        }
        // SAFETY: out takes a byte for each unit and is borrowed mutably.
        unsafe { narrow_u16(self.units, out.as_mut_ptr().cast()) }
    }

    /// Writes a text of kind 2.
    #[inline]
    pub fn write_two(&self, out: &mut [MaybeUninit<u16>]) {
        assert!(out.len() == self.units.len());
        // SAFETY: as many units, checked above; out is borrowed mutably; any bits are a good MaybeUninit.
        unsafe {
            let to = out.as_mut_ptr().cast::<u16>();
            std::ptr::copy_nonoverlapping(self.units.as_ptr(), to, self.units.len());
        }
    }
}

/// A short text in UTF-16 that may have pairs, where the kernels for 64-byte vectors run.
#[derive(Clone, Copy, Debug)]
pub struct PairsCell<'a> {
    units: &'a [u16],
    n_chars: usize,
}

impl<'a> PairsCell<'a> {
    /// The text, counted; `None` for a longer one, and where other kernels run.
    #[inline]
    #[must_use]
    pub fn of(units: &'a [u16]) -> Option<PairsCell<'a>> {
        if units.len() > MOST_UNITS || !is_avx512() {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: AVX-512 is there.
            let n_chars = unsafe { super::avx512::utf16::count(units) };
            Some(PairsCell { units, n_chars })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// What `PyUnicode_New` needs, for a text with pairs.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            kind: Kind::Ucs4,
            n_chars: self.n_chars,
        }
    }

    /// Writes the text; `false` where it is malformed, and then anything.
    ///
    /// # Panics
    /// As [`Utf16Cell::write_one`].
    #[inline]
    #[must_use]
    pub fn write_four(&self, out: &mut [MaybeUninit<u32>]) -> bool {
        assert!(out.len() == self.n_chars);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 is there (`of`); out has a unit for each that is no second half.
        return unsafe {
            let to = out.as_mut_ptr().cast();
            super::avx512::utf16::to_ucs4(self.units, to, self.n_chars)
        };
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

/// Writes short Latin-1 as UTF-16; `false`, and nothing written, for a longer text and where other kernels run.
///
/// # Panics
/// Where `out` has another length: a bug of the caller (so below).
#[inline]
#[must_use]
pub fn widen_cell(units: &[u8], out: &mut [MaybeUninit<u16>]) -> bool {
    assert!(units.len() == out.len());
    if units.len() > MOST_UNITS || !is_avx512() {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: AVX-512 is there; out takes a unit for each byte and is borrowed mutably.
    unsafe {
        super::avx512::widen_u8(units, out.as_mut_ptr().cast());
    }
    true
}

/// Copies short 16-bit units without surrogates; `false`, and anything written, for others and where other kernels run.
#[inline]
#[must_use]
pub fn copy_cell(units: &[u16], out: &mut [MaybeUninit<u16>]) -> bool {
    assert!(units.len() == out.len());
    if units.len() > MOST_UNITS || !is_avx512() {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: AVX-512 is there; out takes a unit for each unit and is borrowed mutably.
    return unsafe { super::avx512::copy_bmp(units, out.as_mut_ptr().cast()) } == units.len();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// A short well-formed text in UTF-8, where the kernels for 64-byte vectors run.
#[derive(Clone, Copy, Debug)]
pub struct Utf8Cell<'a> {
    bytes: &'a [u8],
    shape: Shape,
}

impl<'a> Utf8Cell<'a> {
    /// The text, looked at; `None` for a longer one, a malformed one, and where other kernels run.
    #[inline]
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Option<Utf8Cell<'a>> {
        if bytes.len() > MOST_BYTES || !is_avx512() {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        {
            // SAFETY: AVX-512 is there.
            let (kind, n_chars) = unsafe { super::avx512::utf8::measure(bytes) }?;
            let shape = Shape { kind, n_chars };
            Some(Utf8Cell { bytes, shape })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// What `PyUnicode_New` needs.
    #[inline]
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Writes a text of kind 1.
    ///
    /// # Panics
    /// As [`Utf16Cell::write_one`] (so for all below).
    #[inline]
    pub fn write_one(&self, out: &mut [MaybeUninit<u8>]) {
        let Shape { kind, n_chars } = self.shape;
        assert!(out.len() == n_chars && kind <= Kind::Latin1);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 is there (`of`); well-formed, of this kind, and out has a unit for each character.
        unsafe {
            let to = out.as_mut_ptr().cast();
            super::avx512::utf8::to_latin1::<false>(self.bytes, to, n_chars);
        }
    }

    /// Writes a text of kind 2.
    #[inline]
    pub fn write_two(&self, out: &mut [MaybeUninit<u16>]) {
        let Shape { kind, n_chars } = self.shape;
        assert!(out.len() == n_chars && kind <= Kind::Ucs2);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 is there (`of`); well-formed, of this kind, and out has a unit for each character.
        unsafe {
            let to = out.as_mut_ptr().cast();
            super::avx512::utf8::to_ucs2::<false>(self.bytes, to, n_chars);
        }
    }

    /// Writes a text of kind 4.
    #[inline]
    pub fn write_four(&self, out: &mut [MaybeUninit<u32>]) {
        let n_chars = self.shape.n_chars;
        assert!(out.len() == n_chars);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 is there (`of`); well-formed, and out has a unit for each character.
        unsafe {
            let to = out.as_mut_ptr().cast();
            super::avx512::utf8::to_ucs4::<false>(self.bytes, to, n_chars);
        }
    }
}

#[inline(always)]
fn is_avx512() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri))) && kernel() == Kernel::Avx512
}

/// Only where [`is_avx512`].
#[inline(always)]
fn scan_by_avx512(units: &[u16]) -> super::Scan16 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: AVX-512 is there, as the caller has asked.
    return unsafe { super::avx512::scan_u16(units) };
    #[cfg(not(target_arch = "x86_64"))]
    scan_u16(units)
}
