//! Texts that change between two passes: each conversion is given a destination of the size that
//! another text of the same length needs. Nothing is written outside of it, and a `str` is
//! canonical or is not made.
//!
//! The kernels of the families are called directly, then the functions that choose between them,
//! under each family in a process of its own. Conversions that allocate between their passes are
//! given a text that changes at that moment.

use std::mem::MaybeUninit;
use std::process::Command;

use super::skips::can_test;
use super::texts::texts;
use super::{bulk, decode, encode, ordered, scalar};
use crate::convert::within;
use crate::{Kernel, kernel};

mod made;

/// Units of each text.
fn lengths() -> impl Iterator<Item = usize> {
    (0..36)
        .chain([47, 48, 63, 64, 65, 95, 127, 128, 129, 191, 256, 257, 513])
        .chain([1024, 1999, 4100])
}

/// A unit that is written on both sides of each destination.
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

/// A destination of `n` units with canaries on both sides, which are looked at when it is dropped.
struct Guarded<U: Canary> {
    memory: Vec<U>,
    from: usize,
    n: usize,
}

impl<U: Canary> Guarded<U> {
    fn new(n: usize) -> Guarded<U> {
        let from = 65 + n % 17;
        let memory = vec![U::CANARY; from + n + 256];
        Guarded { memory, from, n }
    }

    fn out(&mut self) -> &mut [MaybeUninit<U>] {
        let units = &mut self.memory[self.from..][..self.n];
        // SAFETY: the layout is the same, and the tests put nothing there but units.
        unsafe { std::slice::from_raw_parts_mut(units.as_mut_ptr().cast(), units.len()) }
    }

    fn units(&self) -> &[U] {
        &self.memory[self.from..][..self.n]
    }
}

impl<U: Canary> Drop for Guarded<U> {
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

/// Converts into `n` units; how many were written is at most that.
fn into<U: Canary>(n: usize, convert: impl FnOnce(&mut [MaybeUninit<U>]) -> Option<usize>) {
    let mut place = Guarded::new(n);
    if let Some(made) = convert(place.out()) {
        assert!(made <= n);
    }
}

/// As [`into`], of conversions that fill all or fail.
fn fills<U: Canary>(n: usize, convert: impl FnOnce(&mut [MaybeUninit<U>]) -> bool) {
    into(n, |out| convert(out).then_some(n));
}

/// Texts of `n` units each: of each script, and of units that no text has.
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
        // Two kinds of units, half of each.
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

/// Sizes that texts of this length have in units; each is a destination for all of them.
fn sizes<T>(texts: &[Vec<T>], of: impl Fn(&[T]) -> usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = texts.iter().map(|text| of(text)).collect();
    sizes.extend(sizes.iter().map(|n| n / 2).collect::<Vec<_>>());
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// As [`into`], of kernels, which are given where the destination begins.
#[cfg(target_arch = "x86_64")]
fn at<U: Canary>(n: usize, kernel: impl FnOnce(*mut U) -> Option<usize>) {
    into::<U>(n, |out| kernel(out.as_mut_ptr().cast()));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_of_utf8_write_no_more_units_than_they_are_given() {
    use super::{avx2, avx512};
    for len in lengths() {
        let texts = utf8_variants(len);
        let starts = |text: &[u8]| scalar::scan_utf8(text).n_chars;
        let units = |text: &[u8]| starts(text) + text.iter().filter(|&&b| b >= 0xF0).count();
        for text in &texts {
            for &n in &sizes(&texts, starts) {
                if kernel() >= Kernel::Avx2 {
                    // SAFETY: AVX2 is there; the destination has n units (so below).
                    unsafe {
                        use avx2::utf8::{to_latin1, to_latin1_checked, to_ucs4};
                        at(n, |p| to_latin1(text, p, n));
                        at(n, |p| to_latin1_checked(text, p, n));
                        at(n, |p| to_ucs4(text, p, n));
                    }
                }
                if kernel() >= Kernel::Avx512 {
                    // SAFETY: AVX-512 is there.
                    unsafe {
                        use avx512::utf8::{to_latin1, to_ucs4};
                        at(n, |p| to_latin1::<true>(text, p, n));
                        at(n, |p| to_latin1::<false>(text, p, n));
                        at(n, |p| to_ucs4::<true>(text, p, n));
                        at(n, |p| to_ucs4::<false>(text, p, n));
                    }
                }
            }
            for &n in &sizes(&texts, units) {
                macro_rules! to_utf16 {
                    ($family:ident) => {
                        // SAFETY: the family is there.
                        unsafe {
                            use $family::utf8::to_utf16;
                            at(n, |p| to_utf16::<true, true>(text, p, n));
                            at(n, |p| to_utf16::<false, true>(text, p, n));
                            at(n, |p| to_utf16::<true, false>(text, p, n));
                            at(n, |p| to_utf16::<false, false>(text, p, n));
                        }
                    };
                }
                if kernel() >= Kernel::Avx2 {
                    to_utf16!(avx2);
                }
                if kernel() >= Kernel::Avx512 {
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
    for len in lengths() {
        let texts = utf16_variants(len);
        for text in &texts {
            let bytes = bytes_of(text);
            let ucs4: Vec<u32> = text.iter().map(|&u| u32::from(u) * 17).collect();
            let latin1: Vec<u8> = text.iter().map(|&u| u as u8).collect();
            for &n in &sizes(&texts, scalar::count_utf16) {
                if kernel() >= Kernel::Avx2 {
                    // SAFETY: AVX2 is there; the destination has n units (so below).
                    at(n, |p| unsafe { avx2::utf16::to_ucs4(text, p, n) });
                }
                if kernel() >= Kernel::Avx512 {
                    // SAFETY: AVX-512 is there.
                    unsafe {
                        use avx512::utf16::{to_ucs4, to_ucs4_ordered};
                        at(n, |p| to_ucs4(text, p, n));
                        at(n, |p| to_ucs4_ordered::<true>(&bytes, p, n));
                    }
                }
            }
            for &n in &sizes(&texts, |text| scalar::utf8_len_of_wide(text).0) {
                macro_rules! encoders {
                    ($family:ident) => {
                        // SAFETY: the family is there.
                        unsafe {
                            use $family::encode::{latin1 as narrow, ucs4 as planes, wide};
                            at(n, |p| wide(text, p, n));
                            at(n, |p| planes(&ucs4, p, n));
                            at(n, |p| narrow(&latin1, p, n));
                        }
                    };
                }
                if kernel() >= Kernel::Avx2 {
                    encoders!(avx2);
                }
                if kernel() >= Kernel::Avx512 {
                    encoders!(avx512);
                    // SAFETY: AVX-512 is there.
                    at(n, |p| unsafe {
                        avx512::cell_encode::store_all_pairs::<false>(p, n, &ucs4);
                        Some(n)
                    });
                }
                // SAFETY: the destination has n bytes.
                at(n, |p| unsafe { scalar::write_all_utf8(&ucs4, p, n) });
            }
        }
    }
}

#[test]
fn changed_text_of_utf8_stays_inside_of_its_destination() {
    for len in lengths() {
        let texts = utf8_variants(len);
        let sizes = sizes(&texts, |text| {
            decode::valid_utf16_len(text).unwrap_or_else(|| scalar::scan_utf8(text).n_chars)
        });
        for text in &texts {
            for &n in &sizes {
                fills(n, |out| bulk::valid_utf8_to_latin1(text, out));
                fills(n, |out| bulk::valid_utf8_to_utf16::<true>(text, out));
                fills(n, |out| bulk::valid_utf8_to_utf16::<false>(text, out));
                fills(n, |out| bulk::valid_utf8_to_utf32(text, out));
                into(n, |out| decode::utf8_to_utf16_within(text, out));
                into(n, |out| decode::utf8_to_latin1_within(text, out));
                into(n, |out| within::utf8_to_utf16(text, Some('?'), out).ok());
                if bulk::checks_while_decoding() {
                    fills(n, |out| bulk::utf8_to_latin1_checked(text, out));
                    fills(n, |out| bulk::utf8_to_ucs2_checked(text, out));
                    fills(n, |out| bulk::utf8_to_ucs4_checked::<false>(text, out));
                    fills(n, |out| bulk::utf8_to_ucs4_checked::<true>(text, out));
                }
            }
        }
    }
}

#[test]
fn changed_text_of_wide_units_stays_inside_of_its_destination() {
    for len in lengths() {
        let texts = utf16_variants(len);
        let counts = sizes(&texts, bulk::count_utf16);
        let utf8_sizes = sizes(&texts, encode::utf8_len_from_utf16);
        for text in &texts {
            let bytes = bytes_of(text);
            for &n in &counts {
                fills(n, |out| bulk::valid_utf16_to_utf32(text, out));
                fills(n, |out| bulk::utf16_to_ucs4_checked::<false>(text, out));
                fills(n, |out| bulk::utf16_to_ucs4_checked::<true>(text, out));
                fills(n, |out| ordered::utf16_to_ucs4::<false>(&bytes, out));
                fills(n, |out| ordered::utf16_to_ucs4::<true>(&bytes, out));
            }
            let latin1: Vec<u8> = text.iter().map(|&u| u as u8).collect();
            for &n in &utf8_sizes {
                into(n, |out| encode::utf16_to_utf8_exact(text, out));
                into(n, |out| encode::utf16_to_utf8_within(text, out));
                into(n, |out| encode::latin1_to_utf8_within(&latin1, out));
                into(n, |out| {
                    within::utf16_to_utf8(text, Some('\u{1F600}'), out).ok()
                });
            }
        }
    }
}

/// The tests above under each family of kernels: in processes of their own, because the choice is
/// made once.
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
            continue; // simdutf does not check that the processor has what it is forced to use
        }
        let out = Command::new(std::env::current_exe().expect("a test has a path"))
            // The names of those of the functions that choose begin so.
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
