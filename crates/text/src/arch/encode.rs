//! Text to UTF-8, in bulk: our kernels, simdutf's where those are none, and the scalar twin where `ONECOPY_KERNEL=scalar` asks
//! for it and under Miri. The one place that chooses between them.
//!
//! No function writes past its destination, whatever the text holds: it may have changed since it
//! was measured. Our kernels know the end of the destination; simdutf's are given parts of the text
//! whose longest result fits, or private copies.

use std::mem::MaybeUninit;

use super::bulk::is_utf16;
use super::kernel::no_simdutf;
#[cfg(target_arch = "x86_64")]
use super::kernel::{is_avx2, is_avx512};
use super::private::{Encoded, by_private_parts};
use super::validity::is_utf8;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use super::{is_ascii, scalar};
use crate::{Units, naive};

/// Runs our kernel on wide vectors, of a module and name that both families have; `None` where none of them runs.
macro_rules! by_vectors {
    ($module:ident, $name:ident($($arg:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if is_avx512() {
            // SAFETY: AVX-512 is there. A place that is passed is as long as is said, and borrowed mutably: the kernels
            // write no further (so for AVX2).
            Some(unsafe { avx512::$module::$name($($arg),*) })
        } else if is_avx2() {
            // SAFETY: AVX2 is there, and the kernels write no further than the place here too.
            Some(unsafe { avx2::$module::$name($($arg),*) })
        } else {
            None
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }};
}

/// Bytes of 16-bit units as UTF-8, each half of a pair 2, and whether there is a surrogate.
fn measure_wide(src: &[u16]) -> (usize, bool) {
    by_vectors!(measure, wide(src)).unwrap_or_else(|| scalar::utf8_len_of_wide(src))
}

/// Bytes of 32-bit units as UTF-8; `None` where one is malformed.
fn measure_ucs4(src: &[u32]) -> Option<usize> {
    by_vectors!(measure, ucs4(src)).unwrap_or_else(|| scalar::utf8_len_of_ucs4(src))
}

/// Bytes of the UTF-16 text as UTF-8, where it is well-formed; else some number.
pub(crate) fn utf8_len_from_utf16(src: &[u16]) -> usize {
    measure_wide(src).0
}

/// Bytes of the Latin-1 text as UTF-8.
pub(crate) fn utf8_len_from_latin1(src: &[u8]) -> usize {
    by_vectors!(measure, latin1(src)).unwrap_or_else(|| scalar::utf8_len_of_latin1(src))
}

/// Bytes of the text as UTF-8; `None` where it is malformed.
#[inline]
pub(crate) fn valid_utf8_len(units: Units<'_>) -> Option<usize> {
    match units {
        Units::Latin1(u) => Some(utf8_len_from_latin1(u)),
        Units::Utf8(u) => (is_ascii(u) || is_utf8(u)).then_some(u.len()),
        Units::Utf16(u) => match measure_wide(u) {
            (n, found) if !found || is_utf16(u) => Some(n),
            _ => None,
        },
        Units::Ucs2(u) => match measure_wide(u) {
            (n, false) => Some(n),
            _ => None,
        },
        Units::Utf32(u) => measure_ucs4(u),
    }
}

/// UTF-16 to UTF-8, validated on the way. `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is shorter than 3 bytes a unit: a bug of the caller.
#[inline]
pub(crate) fn utf16_to_utf8(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    assert!(out.len() / 3 >= src.len());
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    if let Some(n) = by_vectors!(encode, wide(src, dst, room)) {
        return n;
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    let result =
        // SAFETY: src is readable for its length; no unit gives more than 3 bytes, so out takes the text.
        unsafe { simdutf::convert_utf16_to_utf8_with_errors(src.as_ptr(), src.len(), dst) };
    (result.error == simdutf::ErrorCode::Success).then_some(result.count)
}

/// As [`utf16_to_utf8`] into as many bytes as the text had when it was measured. `None` also where
/// it has changed since.
pub(crate) fn utf16_to_utf8_exact(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast(), out.len());
    if let Some(n) = by_vectors!(encode, wide(src, dst, capacity)) {
        return n;
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    if !is_utf16(src) {
        return None;
    }
    let whole = |part: &[u16]| match part {
        [.., 0xD800..0xDC00] => part.len() - 1,
        _ => part.len(),
    };
    let (rest, n) = by_parts(src, out, 3, whole, |part, dst| {
        // SAFETY: `dst` takes 3 bytes for each unit of the part, and a unit gives no more.
        unsafe { simdutf::convert_valid_utf16_to_utf8(part.as_ptr(), part.len(), dst) }
    });
    scalar_to_utf8(Units::Utf16(rest), &mut out[n..]).map(|more| n + more)
}

/// Converts by parts whose longest result fits into what is left of the destination, `most` bytes a
/// unit: `convert` does not know where that ends. `whole` gives the units of a part without the
/// start of a character. Returns the last few units, which are not converted, and how many bytes
/// were written.
fn by_parts<'s, U>(
    src: &'s [U],
    out: &mut [MaybeUninit<u8>],
    most: usize,
    whole: impl Fn(&[U]) -> usize,
    convert: impl Fn(&[U], *mut u8) -> usize,
) -> (&'s [U], usize) {
    const FEW: usize = 16;
    let (mut rest, mut n) = (src, 0);
    loop {
        let fitting = rest.len().min((out.len() - n) / most);
        if fitting <= FEW {
            return (rest, n);
        }
        let end = if fitting < rest.len() {
            whole(&rest[..fitting])
        } else {
            fitting
        };
        let (part, after) = rest.split_at(end);
        let made = convert(part, out[n..].as_mut_ptr().cast());
        debug_assert!(made <= most * part.len());
        n += made.min(most * part.len());
        rest = after;
    }
}

/// From so many units on a copy of the ASCII in front repays a call of its own: on 32-byte vectors the kernel for any text writes
/// ASCII at a third of the speed (75 and 27 ns for 1,000 units).
#[cfg(target_arch = "x86_64")]
const ASCII_UNITS: usize = 100;

/// UTF-16 to UTF-8, validated on the way, into a destination of any size. `None` where it is
/// malformed and where the destination is too short, and `out` holds anything then.
#[inline]
pub(crate) fn utf16_to_utf8_within(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_avx2() && src.len() >= ASCII_UNITS && out.len() >= src.len() {
        // SAFETY: out takes as many bytes as there are units, and is borrowed mutably, apart from src.
        let n = unsafe { super::narrow_up_to::<0x7F>(src, out.as_mut_ptr().cast()) };
        let (rest, place) = (&src[n..], &mut out[n..]);
        let (dst, room) = (place.as_mut_ptr().cast(), place.len());
        // SAFETY: AVX2 is there; the kernel writes no further than the place.
        return unsafe { avx2::encode::wide(rest, dst, room) }.map(|more| n + more);
    }
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    if let Some(n) = by_vectors!(encode, wide(src, dst, room)) {
        return n;
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    by_private_parts(Encoded::Utf16(src), out, |part, out| {
        match out.len() / 3 >= part.len() {
            true => utf16_to_utf8(part, out),
            false => utf16_to_utf8_exact(part, out),
        }
    })
}

/// Latin-1 to UTF-8, into a destination of any size. `None` where it is too short, and `out` holds
/// anything then.
#[inline]
pub(crate) fn latin1_to_utf8_within(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    if let Some(n) = by_vectors!(encode, latin1(src, dst, room)) {
        return n;
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Latin1(src), out);
    }
    let (rest, n) = by_parts(src, out, 2, <[u8]>::len, |part, dst| {
        // SAFETY: `dst` takes 2 bytes for each unit of the part, and a unit gives no more.
        unsafe { simdutf::convert_latin1_to_utf8(part.as_ptr(), part.len(), dst) }
    });
    scalar_to_utf8(Units::Latin1(rest), &mut out[n..]).map(|more| n + more)
}

/// Latin-1 that nobody writes to, to UTF-8.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
#[inline]
pub(crate) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
    latin1_to_utf8_within(src, out).expect("the destination is too short")
}

/// UTF-32 to UTF-8, validated on the way, never by simdutf, which is slower than CPython on emoji.
/// `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
pub(crate) fn utf32_to_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, capacity) = (out.as_mut_ptr().cast(), out.len());
    let made: Option<Option<usize>> = by_vectors!(encode, ucs4(src, dst, capacity));
    if let Some(n) = made {
        assert!(
            n.is_some() || scalar::scan_u32(src).1,
            "the destination is too short"
        );
        return n;
    }
    measure_ucs4(src)?;
    // SAFETY: `out` takes as many bytes as is said.
    let n = unsafe { scalar::write_all_utf8(src, dst, capacity) };
    assert!(n.is_some(), "the destination is too short");
    n
}

/// UTF-32 to the body of a JSON string, validated on the way. `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
pub(crate) fn utf32_to_json(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    if scalar::scan_u32(src).1 {
        return None;
    }
    let dst = out.as_mut_ptr().cast::<u8>();
    let mut n = 0;
    for &c in src {
        let escape = scalar::is_escape(c).then(|| scalar::escape(c as u8));
        let len = match &escape {
            Some(escape) => escape.as_slice().len(),
            None => scalar::utf8_len_of(c),
        };
        assert!(len <= out.len() - n, "the destination is too short");
        // SAFETY: so many bytes are left, checked above; an escape is memory of its own.
        unsafe {
            match &escape {
                Some(escape) => dst
                    .add(n)
                    .copy_from_nonoverlapping(escape.as_slice().as_ptr(), len),
                None => _ = scalar::write_utf8(c, dst.add(n)),
            }
        }
        n += len;
    }
    Some(n)
}

/// Bytes of the UTF-32 text as the body of a JSON string, where it is well-formed; else some number.
pub(crate) fn json_len_from_utf32(src: &[u32]) -> usize {
    src.iter()
        .map(|&c| {
            if scalar::is_escape(c) {
                scalar::escape(c as u8).as_slice().len()
            } else {
                scalar::utf8_len_of(c)
            }
        })
        .sum()
}

/// Bytes of the UTF-32 text as UTF-8, where it is well-formed; else some number.
pub(crate) fn utf8_len_from_utf32(src: &[u32]) -> usize {
    measure_ucs4(src).unwrap_or_else(|| src.iter().map(|&c| scalar::utf8_len_of(c)).sum())
}

/// The reference implementation of the conversions above; `None` also where the destination is too
/// short.
fn scalar_to_utf8(units: Units<'_>, out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let mut n = 0;
    for c in naive::code_points(units) {
        let c = char::from_u32(c.ok()?).expect("the naive decoder gives scalar values");
        for b in c.encode_utf8(&mut [0; 4]).bytes() {
            out.get_mut(n)?.write(b);
            n += 1;
        }
    }
    Some(n)
}
