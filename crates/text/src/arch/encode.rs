//! Text to UTF-8, in bulk: our kernels, simdutf's where those are none, and the scalar twin where `ONECOPY_KERNEL=scalar` asks
//! for it and under Miri. The one place that chooses between them.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::bulk::{is_avx512, no_simdutf, utf16_error_near};
use super::scalar;
use crate::{Units, naive};

/// Bytes of the UTF-16 text as UTF-8, where it is well-formed; else some number.
pub(crate) fn utf8_len_from_utf16(src: &[u16]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::measure::wide(src).0 };
    }
    if no_simdutf() {
        return scalar::lossy(Units::Utf16(src)).map(utf8_len_of).sum();
    }
    simdutf::utf8_length_from_utf16(src)
}

/// Bytes of the Latin-1 text as UTF-8.
pub(crate) fn utf8_len_from_latin1(src: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::measure::latin1(src) };
    }
    if no_simdutf() {
        return src.len() + src.iter().filter(|&&b| b >= 0x80).count();
    }
    simdutf::utf8_length_from_latin1(src)
}

/// Bytes of the text as UTF-8; `None` where it is malformed.
#[inline]
pub(crate) fn valid_utf8_len(units: Units<'_>) -> Option<usize> {
    match units {
        Units::Latin1(u) => Some(utf8_len_from_latin1(u)),
        Units::Utf8(u) => crate::is_utf8(u).then_some(u.len()),
        #[cfg(target_arch = "x86_64")]
        Units::Ucs2(u) | Units::Utf16(u) if is_avx512() => {
            // SAFETY: AVX-512 is there.
            let (n, found) = unsafe { avx512::measure::wide(u) };
            let is_well_formed = !found
                // SAFETY: AVX-512 is there.
                || (matches!(units, Units::Utf16(_)) && unsafe { avx512::measure::is_utf16(u) });
            is_well_formed.then_some(n)
        }
        Units::Utf16(u) => utf16_error_near(u)
            .is_none()
            .then(|| utf8_len_from_utf16(u)),
        Units::Ucs2(u) => (!super::scan_u16(u).surrogate).then(|| utf8_len_from_utf16(u)),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 is there.
        Units::Utf32(u) if is_avx512() => unsafe { avx512::measure::ucs4(u) },
        Units::Utf32(u) => (!scalar::scan_u32(u).1).then(|| utf8_len_from_utf32(u)),
    }
}

/// Bytes of a code point in UTF-8.
#[inline]
pub(crate) fn utf8_len_of(c: u32) -> usize {
    1 + usize::from(c >= 0x80) + usize::from(c >= 0x800) + usize::from(c >= 0x1_0000)
}

/// UTF-16 to UTF-8, validated on the way. `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is shorter than 3 bytes a unit: a bug of the caller.
#[inline]
pub(crate) fn utf16_to_utf8(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    assert!(out.len() / 3 >= src.len());
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there; no unit gives more than 3 bytes, so out takes the text.
        return unsafe { avx512::encode::wide::<true>(src, out.as_mut_ptr().cast(), out.len()) };
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    // SAFETY: src is readable for its length; no unit gives more than 3 bytes, so out takes the text.
    let result = unsafe {
        simdutf::convert_utf16_to_utf8_with_errors(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    };
    (result.error == simdutf::ErrorCode::Success).then_some(result.count)
}

/// As [`utf16_to_utf8`] with as much room as the text needs and no more: it is measured first, a pass more.
///
/// # Panics
/// Where the text is well-formed and `out` too short: a bug of the caller.
pub(crate) fn utf16_to_utf8_exact(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        let n =
            // SAFETY: AVX-512 is there; out is as long as is said, and borrowed mutably.
            unsafe { avx512::encode::wide::<true>(src, out.as_mut_ptr().cast(), out.len()) };
        assert!(
            n.is_some() || utf16_error_near(src).is_some(),
            "the room is too short"
        );
        return n;
    }
    if utf16_error_near(src).is_some() {
        return None;
    }
    assert!(out.len() >= utf8_len_from_utf16(src));
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    // SAFETY: src was validated, and out takes the length that simdutf gave for it.
    Some(unsafe {
        simdutf::convert_valid_utf16_to_utf8(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    })
}

/// Latin-1 to UTF-8.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
#[inline]
pub(crate) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there; out is as long as is said, and borrowed mutably.
        let n = unsafe { avx512::encode::latin1(src, out.as_mut_ptr().cast(), out.len()) };
        return n.expect("the room is too short");
    }
    assert!(out.len() / 2 >= src.len() || out.len() >= utf8_len_from_latin1(src));
    if no_simdutf() {
        return scalar_to_utf8(Units::Latin1(src), out).expect("Latin-1 has no malformed text");
    }
    // SAFETY: src is readable for its length; out takes the text, checked above.
    unsafe { simdutf::convert_latin1_to_utf8(src.as_ptr(), src.len(), out.as_mut_ptr().cast()) }
}

/// UTF-32 to UTF-8, validated on the way, by our own loop: simdutf's is slower than CPython's on emoji.
/// `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
pub(crate) fn utf32_to_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there; out is as long as is said, and borrowed mutably.
        let n = unsafe { avx512::encode::ucs4(src, out.as_mut_ptr().cast(), out.len()) };
        assert!(
            n.is_some() || scalar::scan_u32(src).1,
            "the room is too short"
        );
        return n;
    }
    if scalar::scan_u32(src).1 {
        return None;
    }
    assert!(out.len() / 4 >= src.len() || out.len() >= utf8_len_from_utf32(src));
    let dst = out.as_mut_ptr().cast::<u8>();
    let mut n = 0;
    for &c in src {
        // SAFETY: all of src are scalar values, and out takes their lengths in UTF-8 (checked above).
        n += unsafe { scalar::write_utf8(c, dst.add(n)) };
    }
    Some(n)
}

/// UTF-32 to the body of a JSON string, validated on the way. `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
pub(crate) fn utf32_to_json(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    if scalar::scan_u32(src).1 {
        return None;
    }
    assert!(out.len() / 6 >= src.len() || out.len() >= json_len_from_utf32(src));
    let dst = out.as_mut_ptr().cast::<u8>();
    let mut n = 0;
    for &c in src {
        if scalar::is_escape(c) {
            let escape = scalar::escape(c as u8);
            for &b in escape.as_slice() {
                // SAFETY: out takes the escapes of all of src (checked above).
                unsafe { dst.add(n).write(b) };
                n += 1;
            }
        } else {
            // SAFETY: all of src are scalar values, and out takes their lengths in UTF-8 (checked above).
            n += unsafe { scalar::write_utf8(c, dst.add(n)) };
        }
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
                utf8_len_of(c)
            }
        })
        .sum()
}

/// Bytes of the UTF-32 text as UTF-8, where it is well-formed; else some number.
pub(crate) fn utf8_len_from_utf32(src: &[u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512()
        // SAFETY: AVX-512 is there.
        && let Some(n) = unsafe { avx512::measure::ucs4(src) }
    {
        return n;
    }
    src.iter().map(|&c| utf8_len_of(c)).sum()
}

/// The twin of the conversions above.
fn scalar_to_utf8(units: Units<'_>, out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let mut n = 0;
    for c in naive::code_points(units) {
        let c = char::from_u32(c.ok()?).expect("the naive decoder gives scalar values");
        for b in c.encode_utf8(&mut [0; 4]).bytes() {
            out[n].write(b);
            n += 1;
        }
    }
    Some(n)
}
