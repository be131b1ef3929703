//! Compares the float writers with the library `zmij`. The standard library is no reference: it
//! does not round ties to even.

use super::{FLOAT_BYTES, put, put_float, put_float32, put_of_float32};
use crate::arch::dispatch::with_kernels;
#[cfg(target_arch = "x86_64")]
use crate::arch::family::with_avx2;
use crate::arch::family::{Kernels, Work};
use crate::sink::ByteSink;

/// Writes a float as JSON with the kernels of one family. The output is the text, or `None`.
struct Written(f64);

impl Work for Written {
    type Output = Option<String>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Option<String> {
        // SAFETY: the buffer has more than `FLOAT_BYTES` bytes.
        written(|out| unsafe { kernels.json_float(self.0, out) })
    }
}

fn written(write: impl FnOnce(*mut u8) -> Option<*mut u8>) -> Option<String> {
    const CANARY: u8 = 0xA5;
    let mut buffer = [CANARY; FLOAT_BYTES + 8];
    let end = write(buffer.as_mut_ptr()).map(|end| end as usize - buffer.as_ptr() as usize);
    let canaries = end.map_or(0, |_| FLOAT_BYTES);
    assert!(buffer[canaries..].iter().all(|&b| b == CANARY));
    end.map(|end| String::from_utf8(buffer[..end].to_vec()).expect("ASCII"))
}

/// Writes a 32-bit float as JSON with the kernels of one family. The output is the text, or `None`.
struct Written32(f32);

impl Work for Written32 {
    type Output = Option<String>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Option<String> {
        // SAFETY: the buffer has more than `FLOAT_BYTES` bytes.
        written(|out| unsafe { kernels.json_float32(self.0, out) })
    }
}

/// Asserts that all writers of 32-bit floats write the expected text. Returns `true` if the writers
/// support `value`.
fn check_32(value: f32) -> bool {
    let is_for_us = value.abs() >= 1.0 / 65_536.0 && value.abs() < (1_u32 << 23) as f32;
    let expected = is_for_us.then(|| zmij::Buffer::new().format(value).to_owned());
    let vector = with_kernels(Written32(value));
    assert!(
        vector.is_none() || vector == expected,
        "{vector:?} {value:e}"
    );
    #[cfg(target_arch = "x86_64")]
    if let Some(vector) = with_avx2(Written32(value)) {
        assert_eq!(vector, expected, "{value:e} by AVX2");
    }
    // SAFETY: the buffer has more than `FLOAT_BYTES` bytes.
    let reference = written(|out| unsafe { put_of_float32(value, out) });
    assert_eq!(reference, expected, "{value:e} by the reference");
    let mut sink = Vec::new();
    let mut window = sink.window(FLOAT_BYTES).expect("memory");
    assert_eq!(put_float32(value, &mut window), is_for_us);
    drop(window);
    assert_eq!(sink, expected.unwrap_or_default().as_bytes(), "{value:e}");
    is_for_us
}

#[test]
fn floats_of_32_bits_are_shortest_at_powers_of_two_and_between() {
    let mut n_written = 0;
    for exponent in 0..256 {
        // The first and last 300 fractions of each power of two, and every 997th.
        let fractions = (0..300)
            .chain((0x80_0000 - 300)..0x80_0000)
            .chain((exponent..0x80_0000).step_by(997));
        for fraction in fractions {
            let value = f32::from_bits(exponent << 23 | fraction);
            n_written += usize::from(check_32(value));
            if fraction % 16 == 0 {
                check_32(-value);
            }
        }
    }
    assert!(n_written > 300_000, "{n_written}");
}

#[test]
fn floats_of_32_bits_next_to_short_decimals_are_shortest() {
    for power in -8..8 {
        for digits in (1..2_000).chain([12_345, 99_999, 123_456, 999_999]) {
            let bits = (f64::from(digits) * 10_f64.powi(power)) as f32;
            for k in -2..=2 {
                check_32(f32::from_bits(bits.to_bits().wrapping_add_signed(k)));
            }
        }
    }
}

/// Asserts that all writers of 64-bit floats write the expected text. Returns `true` if the writers
/// support `value`.
fn check(value: f64) -> bool {
    let is_for_us = value.abs() >= 1.0 / 65_536.0 && value.abs() < (1_u64 << 52) as f64;
    let expected = is_for_us.then(|| zmij::Buffer::new().format(value).to_owned());
    let vector = with_kernels(Written(value));
    assert!(
        vector.is_none() || vector == expected,
        "{vector:?} {value:e}"
    );
    #[cfg(target_arch = "x86_64")]
    if let Some(vector) = with_avx2(Written(value)) {
        assert_eq!(vector, expected, "{value:e} by AVX2");
    }
    // SAFETY: the buffer has more than `FLOAT_BYTES` bytes.
    let scalar = written(|out| unsafe { put(value, out) });
    assert_eq!(scalar, expected, "{value:e} by the scalar implementation");
    let mut sink = Vec::new();
    let mut window = sink.window(FLOAT_BYTES).expect("memory");
    assert_eq!(put_float(value, &mut window), is_for_us);
    drop(window);
    assert_eq!(sink, expected.unwrap_or_default().as_bytes(), "{value:e}");
    is_for_us
}

fn neighbours(value: f64) -> impl Iterator<Item = f64> {
    let bits = value.to_bits();
    (0..=32)
        .flat_map(move |k| [bits + k, bits.wrapping_sub(k)])
        .map(f64::from_bits)
}

#[test]
fn powers_of_two_and_their_neighbours_are_shortest() {
    for exponent in 0..2047 {
        for value in neighbours(f64::from_bits(exponent << 52)) {
            check(value);
            check(-value);
        }
    }
}

#[test]
fn decimals_of_few_digits_and_their_neighbours_are_shortest() {
    for power in -8..18 {
        let ten = 10_f64.powi(power);
        for digits in (1..100).chain([101, 999, 1_001, 12_345, 99_999, 123_456_789]) {
            neighbours(f64::from(digits) * ten).for_each(|value| {
                check(value);
            });
        }
    }
}

#[test]
fn floats_between_two_decimals_are_rounded_to_even() {
    for whole in [1_u64 << 50, 1 << 51, (1 << 51) + 12_345, (1 << 49) + 1] {
        for i in 0..2_000 {
            for parts in [1.0, 2.0, 4.0, 8.0, 16.0] {
                check(whole as f64 / parts + f64::from(i) / (8.0 * parts));
            }
        }
    }
}

#[test]
fn zero_and_floats_of_other_magnitudes_are_not_written() {
    for value in [
        0.0,
        f64::NAN,
        f64::INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
    ] {
        assert!(!check(value) && !check(-value));
    }
}

/// Checks `n` random floats. Returns how many of them the writers support.
fn random(n: u64) -> u64 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut n_written = 0;
    for i in 0..n {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(i | 1);
        let mixed = state ^ state >> 29;
        let exponent = 1023 - 17 + (mixed >> 52) % 70;
        let usual =
            f64::from_bits((mixed & (1 << 63)) | (exponent << 52) | (mixed & ((1 << 52) - 1)));
        let digits = 10_u64.pow((state >> 60) as u32 + 1);
        let places = 10_f64.powi((state >> 50) as i32 & 15);
        for value in [
            usual,
            f64::from_bits(state),
            (mixed % digits) as f64 / places,
        ] {
            n_written += u64::from(check(value));
        }
    }
    n_written
}

#[test]
fn floats_of_any_bits_are_shortest() {
    assert!(random(200_000) > 200_000);
}

/// Checks 100 million random floats. Run this ignored test after a change of a float writer.
#[test]
#[ignore = "takes a minute in release, many without"]
fn a_hundred_million_floats_are_shortest() {
    random(50_000_000);
}

/// Checks all 32-bit floats from 2^-16 up to 2^23. Run this ignored test after a change of a float
/// writer.
#[test]
#[ignore = "takes a minute in release, many without"]
fn all_floats_of_32_bits_are_shortest() {
    for bits in (127 - 16) << 23..(127 + 23) << 23 {
        let value = f32::from_bits(bits);
        // SAFETY: the buffer has more than `FLOAT_BYTES` bytes.
        let ours = written(|out| unsafe { put_of_float32(value, out) });
        assert_eq!(ours.as_deref(), Some(zmij::Buffer::new().format(value)));
    }
}
