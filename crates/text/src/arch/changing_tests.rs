//! Tests of a text that another thread changes between two passes of a conversion. The conversion
//! must write nothing outside of its buffer. A new `str` must have the narrowest kind for its
//! characters.
//!
//! The functions of `dispatch` are tested in a separate process for each kernel family.

use std::mem::MaybeUninit;
use std::process::Command;

use super::dispatch::{
    count_utf16, latin1_to_utf8, ordered_utf16_to_ucs4, utf8_len_from_units, utf8_to_latin1,
    utf8_to_ucs4, utf8_to_utf16, utf16_to_ucs4, utf16_to_utf8, valid_utf8_to_latin1,
    valid_utf8_to_ucs4, valid_utf8_to_utf16, valid_utf16_to_ucs4,
};
use super::skips::can_test;
use super::test_texts::texts;
use super::{decode, encode, scalar};
use crate::convert::within;
use crate::{Kernel, kernel};

mod made;

/// Returns the lengths of the tested texts in units.
fn lengths() -> impl Iterator<Item = usize> {
    (0..36)
        .chain([47, 48, 63, 64, 65, 95, 127, 128, 129, 191, 256, 257, 513])
        .chain([1024, 1999, 4100])
}

/// A type of code units. The tests write `CANARY` before and after each output buffer.
trait Canary: Copy + PartialEq + std::fmt::Debug {
    const CANARY: Self;
}
impl Canary for u8 {
    const CANARY: u8 = 0xA5;
}
impl Canary for u16 {
    const CANARY: u16 = 0xA5A5;
}
impl Canary for u32 {
    const CANARY: u32 = 0xA5A5_A5A5;
}

/// A destination of `n` units between canaries. Dropping the buffer checks the canaries.
struct GuardedBuffer<U: Canary> {
    memory: Vec<U>,
    from: usize,
    n: usize,
}

impl<U: Canary> GuardedBuffer<U> {
    fn new(n: usize) -> GuardedBuffer<U> {
        let from = 65 + n % 17;
        let memory = vec![U::CANARY; from + n + 256];
        GuardedBuffer { memory, from, n }
    }

    fn out(&mut self) -> &mut [MaybeUninit<U>] {
        let units = &mut self.memory[self.from..][..self.n];
        // SAFETY: the layout is the same, and the tests write only units.
        unsafe { std::slice::from_raw_parts_mut(units.as_mut_ptr().cast(), units.len()) }
    }

    fn units(&self) -> &[U] {
        &self.memory[self.from..][..self.n]
    }
}

impl<U: Canary> Drop for GuardedBuffer<U> {
    fn drop(&mut self) {
        let (before, rest) = self.memory.split_at(self.from);
        let is_whole = before
            .iter()
            .chain(&rest[self.n..])
            .all(|u| *u == U::CANARY);
        if !std::thread::panicking() {
            assert!(is_whole, "written outside of {} units", self.n);
        }
    }
}

/// Calls `convert` with an output buffer of `n` units. Asserts that `convert` returns at most `n`.
fn into<U: Canary>(n: usize, convert: impl FnOnce(&mut [MaybeUninit<U>]) -> Option<usize>) {
    let mut buffer = GuardedBuffer::new(n);
    if let Some(made) = convert(buffer.out()) {
        assert!(made <= n);
    }
}

/// Returns texts of `n` units in several scripts, and mostly malformed texts of the units in `odd`.
/// `pad` fills short texts.
fn variants<U: Copy>(n: usize, encode: impl Fn(&str) -> Vec<U>, odd: &[U], pad: U) -> Vec<Vec<U>> {
    let mut all: Vec<Vec<U>> = Vec::new();
    for text in texts(n) {
        let mut units = Vec::new();
        for c in text.chars() {
            let more = encode(c.encode_utf8(&mut [0; 4]));
            if units.len() + more.len() > n {
                break;
            }
            units.extend(more);
        }
        units.resize(n, pad);
        all.push(units);
    }
    for i in 0..odd.len() {
        all.push(vec![odd[i]; n]);
        // Texts of two units: one unit in each half of the text, or mixed.
        let next = odd[(i + 1) % odd.len()];
        all.push(
            (0..n)
                .map(|at| if at < n / 2 { odd[i] } else { next })
                .collect(),
        );
        all.push(
            (0..n)
                .map(|at| if at % 3 == 0 { odd[i] } else { next })
                .collect(),
        );
    }
    all
}

fn utf8_variants(n: usize) -> Vec<Vec<u8>> {
    let odd = [b'a', 0x80, 0xBF, 0xC3, 0xE4, 0xF0, 0xFF];
    variants(n, |c| c.as_bytes().to_vec(), &odd, b'z')
}

fn utf16_variants(n: usize) -> Vec<Vec<u16>> {
    let odd = [0x61, 0xE9, 0x416, 0x6771, 0xD83D, 0xDE00, 0xFFFF];
    variants(n, |c| c.encode_utf16().collect(), &odd, 0x7A)
}

fn bytes_of(units: &[u16]) -> Vec<[u8; 2]> {
    units.iter().map(|u| u.to_ne_bytes()).collect()
}

/// Returns the buffer sizes to test: all and half of the output length of each text.
fn sizes<T>(texts: &[Vec<T>], of: impl Fn(&[T]) -> usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = texts.iter().map(|text| of(text)).collect();
    sizes.extend(sizes.iter().map(|n| n / 2).collect::<Vec<_>>());
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_of_utf8_write_no_more_units_than_they_are_given() {
    use super::{avx2, avx512};
    let has_avx2 = can_test("avx2", kernel() >= Kernel::Avx2);
    let has_avx512 = can_test("avx512", kernel() == Kernel::Avx512);
    for len in lengths() {
        let texts = utf8_variants(len);
        let starts = |text: &[u8]| scalar::scan_utf8(text).n_chars;
        let units = |text: &[u8]| starts(text) + text.iter().filter(|&&b| b >= 0xF0).count();
        for text in &texts {
            for &n in &sizes(&texts, starts) {
                if has_avx2 {
                    // SAFETY: AVX2 is available, and the destination has `n` units.
                    unsafe {
                        use avx2::utf8::{to_latin1, to_latin1_checked, to_ucs4};
                        into(n, |p| to_latin1(text, p));
                        into(n, |p| to_latin1_checked(text, p));
                        into(n, |p| to_ucs4(text, p));
                    }
                }
                if has_avx512 {
                    // SAFETY: AVX-512 is available.
                    unsafe {
                        use avx512::utf8::{to_latin1, to_ucs4};
                        into(n, |p| to_latin1::<true>(text, p));
                        into(n, |p| to_latin1::<false>(text, p));
                        into(n, |p| to_ucs4::<true>(text, p));
                        into(n, |p| to_ucs4::<false>(text, p));
                    }
                }
            }
            for &n in &sizes(&texts, units) {
                macro_rules! to_utf16 {
                    ($family:ident) => {
                        // SAFETY: the family is available.
                        unsafe {
                            use $family::utf8::to_utf16;
                            into(n, |p| to_utf16::<true, true>(text, p));
                            into(n, |p| to_utf16::<false, true>(text, p));
                            into(n, |p| to_utf16::<true, false>(text, p));
                            into(n, |p| to_utf16::<false, false>(text, p));
                        }
                    };
                }
                if has_avx2 {
                    to_utf16!(avx2);
                }
                if has_avx512 {
                    to_utf16!(avx512);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_of_wide_units_write_no_more_than_they_are_given() {
    use super::{avx2, avx512};
    let has_avx2 = can_test("avx2", kernel() >= Kernel::Avx2);
    let has_avx512 = can_test("avx512", kernel() == Kernel::Avx512);
    for len in lengths() {
        let texts = utf16_variants(len);
        for text in &texts {
            let bytes = bytes_of(text);
            let ucs4: Vec<u32> = text.iter().map(|&u| u32::from(u) * 17).collect();
            let latin1: Vec<u8> = text.iter().map(|&u| u as u8).collect();
            for &n in &sizes(&texts, scalar::count_utf16) {
                if has_avx2 {
                    // SAFETY: AVX2 is available, and the destination has `n` units.
                    into(n, |p| unsafe { avx2::utf16::to_ucs4(text, p) });
                }
                if has_avx512 {
                    // SAFETY: AVX-512 is available.
                    unsafe {
                        use avx512::utf16::{to_ucs4, to_ucs4_ordered};
                        into(n, |p| to_ucs4(text, p));
                        into(n, |p| to_ucs4_ordered::<true>(&bytes, p));
                    }
                }
            }
            for &n in &sizes(&texts, |text| scalar::utf8_len_of_wide(text).0) {
                macro_rules! encoders {
                    ($family:ident) => {
                        // SAFETY: the family is available.
                        unsafe {
                            use $family::encode::{latin1 as narrow, ucs4 as planes, wide};
                            into(n, |p| wide(text, p));
                            into(n, |p| planes(&ucs4, p));
                            into(n, |p| narrow(&latin1, p));
                        }
                    };
                }
                if has_avx2 {
                    encoders!(avx2);
                }
                if has_avx512 {
                    encoders!(avx512);
                    // SAFETY: AVX-512 is available.
                    into(n - n % 2, |p| unsafe {
                        avx512::cell_encode::store_all_pairs::<false>(&ucs4, p.as_chunks_mut().0);
                        Some(n - n % 2)
                    });
                }
                into(n, |p| scalar::ucs4_to_utf8(&ucs4, p));
            }
        }
    }
}

#[test]
fn changed_text_of_utf8_stays_inside_of_its_destination() {
    for len in lengths() {
        let texts = utf8_variants(len);
        let sizes = sizes(&texts, |text| {
            encode::valid_utf16_len(text).unwrap_or_else(|| scalar::scan_utf8(text).n_chars)
        });
        for text in &texts {
            for &n in &sizes {
                into(n, |out| valid_utf8_to_latin1(text, out));
                into(n, |out| valid_utf8_to_utf16::<true>(text, out));
                into(n, |out| valid_utf8_to_utf16::<false>(text, out));
                into(n, |out| valid_utf8_to_ucs4(text, out));
                into(n, |out| utf8_to_latin1(text, out));
                into(n, |out| utf8_to_utf16::<true>(text, out));
                into(n, |out| utf8_to_utf16::<false>(text, out));
                into(n, |out| utf8_to_ucs4(text, out));
                into(n, |out| decode::utf8_to_utf16_within(text, out));
                into(n, |out| decode::utf8_to_latin1_within(text, out));
                into(n, |out| within::utf8_to_utf16(text, Some('?'), out).ok());
            }
        }
    }
}

#[test]
fn changed_text_of_wide_units_stays_inside_of_its_destination() {
    for len in lengths() {
        let texts = utf16_variants(len);
        let counts = sizes(&texts, count_utf16);
        let utf8_sizes = sizes(&texts, |text| utf8_len_from_units(text).0);
        for text in &texts {
            let bytes = bytes_of(text);
            for &n in &counts {
                into(n, |out| valid_utf16_to_ucs4(text, out));
                into(n, |out| utf16_to_ucs4(text, out));
                into(n, |out| ordered_utf16_to_ucs4::<false>(&bytes, out));
                into(n, |out| ordered_utf16_to_ucs4::<true>(&bytes, out));
            }
            let latin1: Vec<u8> = text.iter().map(|&u| u as u8).collect();
            for &n in &utf8_sizes {
                into(n, |out| utf16_to_utf8(text, out));
                into(n, |out| latin1_to_utf8(&latin1, out));
                into(n, |out| {
                    within::utf16_to_utf8(text, Some('\u{1F600}'), out).ok()
                });
            }
        }
    }
}

/// Runs the tests with `changed_text` in their names once for each kernel family. A process selects
/// its kernel family only once.
#[test]
#[cfg_attr(miri, ignore = "Miri starts no processes, and knows one kernel")]
fn every_kernel_stays_inside_of_its_destination() {
    for (ours, theirs) in [
        ("scalar", "fallback"),
        ("sse2", "fallback"),
        ("sse2", "westmere"),
        ("sse2", "haswell"),
        ("avx2", "haswell"),
        ("avx512", "icelake"),
    ] {
        if ours == "avx512" && !can_test(ours, kernel() == Kernel::Avx512) {
            continue; // simdutf does not check that the processor supports the forced kernels
        }
        let out = Command::new(std::env::current_exe().expect("a test has a path"))
            // The names of the tests of `dispatch` start with `changed_text`.
            .arg("changed_text")
            .env("ONECOPY_KERNEL", ours)
            .env("SIMDUTF_FORCE_IMPLEMENTATION", theirs)
            .output()
            .expect("the test program runs");
        let output = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{ours}, {theirs}:\n{output}");
        assert!(output.contains("5 passed"), "{ours}, {theirs}:\n{output}");
    }
}
