//! Helpers of the fuzz targets: arbitrary bytes as text in each encoding, and comparisons with the
//! reference implementations.

pub mod exchange;
mod kernels;
#[cfg(feature = "python")]
pub mod python;
#[cfg(feature = "python")]
mod writer;

use std::mem::MaybeUninit;

pub use kernels::{check_kernels, long};
use onecopy_text::convert::{StrData, to_json_body, to_utf8, to_utf16};
use onecopy_text::{ConvertError, Kind, Malformed, Policy, Units, find_malformed, measure, naive, utf8_len};

pub const POLICIES: [Policy; 2] = [Policy::Strict, Policy::Replace];

/// Divides a text at U+0001 into `N` parts; missing parts are empty. Seeds of targets with several
/// texts are therefore readable files.
pub fn parts<const N: usize>(text: &str) -> [&str; N] {
    let mut parts = text.splitn(N, '\u{1}');
    [(); N].map(|()| parts.next().unwrap_or_default())
}

/// Converts the bytes to 16-bit units, in a vector with the alignment of these units.
pub fn wide(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect()
}

/// Converts the bytes to 32-bit units of 3 bytes each, so that most are near the range of code
/// points.
pub fn wider(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(3).map(|b| u32::from_le_bytes([b[0], b[1], b[2] & 0x1F, 0])).collect()
}

/// Compares a result and the contents of its sink, which was empty before, with the reference
/// implementation's result.
pub fn same(
    got: Result<usize, ConvertError>,
    sink: &[u8],
    expected: Result<Vec<u8>, Malformed>,
) {
    match expected {
        Ok(expected) => {
            assert_eq!(got, Ok(expected.len()));
            assert_eq!(sink, expected);
        }
        Err(e) => {
            assert_eq!(got, Err(ConvertError::Malformed(e)));
            assert!(sink.is_empty());
        }
    }
}

/// Compares validation, lengths, and conversions to UTF-8, UTF-16 and `str` with the reference
/// implementations.
pub fn check(units: Units<'_>) {
    assert_eq!(find_malformed(units), naive::find_malformed(units));
    for policy in POLICIES {
        let mut sink = Vec::new();
        let got = to_utf8(units, policy, &mut sink);
        let expected = naive::to_utf8(units, policy);
        if policy == Policy::Replace {
            assert_eq!(expected.as_ref().map(Vec::len), Ok(utf8_len(units)));
        }
        same(got, &sink, expected);

        let mut out = Vec::new();
        let got = to_utf16(units, policy, &mut out);
        match naive::to_utf16(units, policy) {
            Ok(expected) => assert_eq!((got, &out), (Ok(expected.len()), &expected)),
            Err(e) => assert_eq!((got, out), (Err(ConvertError::Malformed(e)), vec![])),
        }
        check_str(units, policy);
    }
}

fn check_str(units: Units<'_>, policy: Policy) {
    let measured = measure(units, policy);
    assert_eq!(measured.map(|m| m.shape()), naive::shape(units, policy));
    let Ok(measured) = measured else { return };
    let shape = measured.shape();
    let n = shape.n_chars;
    // Boxes have the exact length, so that the sanitizer detects a write past the end.
    let got: Vec<u32> = match shape.kind {
        Kind::Ascii | Kind::Latin1 => {
            let mut place = vec![MaybeUninit::new(0xA5_u8); n].into_boxed_slice();
            measured.write(StrData::One(&mut place));
            // SAFETY: all were initialised when the box was made.
            place.iter().map(|u| u32::from(unsafe { u.assume_init() })).collect()
        }
        Kind::Ucs2 => {
            let mut place = vec![MaybeUninit::new(0xA5A5_u16); n].into_boxed_slice();
            measured.write(StrData::Two(&mut place));
            // SAFETY: all were initialised when the box was made.
            place.iter().map(|u| u32::from(unsafe { u.assume_init() })).collect()
        }
        Kind::Ucs4 => {
            let mut place = vec![MaybeUninit::new(0xA5A5_A5A5_u32); n].into_boxed_slice();
            measured.write(StrData::Four(&mut place));
            // SAFETY: all were initialised when the box was made.
            place.iter().map(|u| unsafe { u.assume_init() }).collect()
        }
    };
    assert_eq!(Ok(got), naive::decode(units, policy));
}

/// Compares the conversion to the body of a JSON string with the reference implementation.
pub fn check_json(units: Units<'_>) {
    for policy in POLICIES {
        let mut sink = Vec::new();
        let got = to_json_body(units, policy, &mut sink);
        same(got, &sink, naive::to_json_body(units, policy));
    }
}
