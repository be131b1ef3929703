//! Tests that another thread may write to a source while a function reads it: the function writes
//! nothing past the capacity of its destination, and returns a result that the header describes.

#[path = "../../text/tests/support/skips.rs"]
mod skips;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use std::thread;

use onecopy::abi::*;
use onecopy::result_code::ONECOPY_NO_ROOM as NO_ROOM;
use onecopy_text::{Kernel, kernel};
use skips::can_test;

const CANARY: u8 = 0xA5;
/// The number of guard bytes on each side of a destination.
const GUARD_BYTES: usize = 256;

/// A source of 16-bit units that one thread writes to while other threads read them.
struct Shared(Vec<AtomicU16>);

impl Shared {
    fn new(n_units: usize) -> Shared {
        Shared((0..n_units).map(|_| AtomicU16::new(0)).collect())
    }

    fn units(&self) -> *const u16 {
        self.0.as_ptr().cast()
    }

    fn bytes(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Overwrites the units with one of `texts` after the other, each from another index on, until
    /// `is_done` is `true`.
    fn write_until(&self, texts: &[Vec<u16>], is_done: &AtomicBool) {
        let mut round = 0_usize;
        while !is_done.load(Relaxed) {
            round = round.wrapping_add(1);
            let text = &texts[round % texts.len()];
            let from = round.wrapping_mul(997) % self.0.len();
            for (to, &unit) in self.0.iter().zip(text).skip(from) {
                to.store(unit, Relaxed);
            }
        }
    }
}

/// Returns texts of `n_units` units each: UTF-16 and UTF-8 of several scripts, and units that are
/// malformed in both encodings.
fn texts(n_units: usize) -> Vec<Vec<u16>> {
    let mut texts = Vec::new();
    for unit in ["a", "é", "Ж", "東", "😀", "ab東é😀"] {
        texts.push(unit.encode_utf16().cycle().take(n_units).collect());
        let bytes: Vec<u8> = unit.bytes().cycle().take(2 * n_units).collect();
        texts.push(
            bytes
                .chunks(2)
                .map(|b| u16::from_le_bytes([b[0], b[1]]))
                .collect(),
        );
    }
    texts.extend([0x8080, 0xF0F0, 0xE0E0, 0xD83D, 0xDE00].map(|unit| vec![unit; n_units]));
    texts
}

/// Calls `call` with a destination of `capacity` units between two guards. Checks that the guards
/// are unchanged, and that the result is a count, an index in the source or [`NO_ROOM`].
fn call<T: Copy>(n_source: usize, capacity: usize, call: impl FnOnce(*mut T, usize) -> i64) {
    let mut memory = vec![CANARY; 2 * GUARD_BYTES + capacity * size_of::<T>()];
    let end = GUARD_BYTES + capacity * size_of::<T>();
    // SAFETY: inside of the memory, which is aligned for more than these units.
    let to = unsafe { memory.as_mut_ptr().add(GUARD_BYTES) };
    let answer = call(to.cast(), capacity);
    let guards = memory[..GUARD_BYTES].iter().chain(&memory[end..]);
    assert!(
        guards.copied().all(|b| b == CANARY),
        "written outside of {capacity} units"
    );
    let is_count = (0..=capacity as i64).contains(&answer);
    let is_place = (-1 - n_source as i64..0).contains(&answer);
    assert!(
        is_count || is_place || answer == NO_ROOM,
        "{answer} of {capacity}"
    );
}

/// Calls each function `n_rounds` times while another thread writes to its source.
fn race(n_units: usize, n_rounds: usize) {
    let shared = Shared::new(n_units);
    let is_done = AtomicBool::new(false);
    let texts = texts(n_units);
    let n_bytes = 2 * n_units;
    let (units, bytes) = (shared.units() as usize, shared.bytes() as usize);
    thread::scope(|scope| {
        scope.spawn(|| shared.write_until(&texts, &is_done));
        let calls = scope.spawn(|| {
            let (units, bytes) = (units as *const u16, bytes as *const u8);
            for round in 0..n_rounds {
                let replacement = [0, '?' as u32, 0xFFFD, 0x1_F600][round % 4];
                let share = [0, 1, 2, 3, 4, 5, 6, 10][round % 8];
                // SAFETY: the source is readable for its length, and each destination is writable
                // for its capacity.
                unsafe {
                    let n = onecopy_utf8_len_from_utf16(units, n_units, replacement);
                    // The size for a caller that measures first, and other sizes.
                    for capacity in [n.max(0) as usize, 3 * n_units * share / 6] {
                        call(n_units, capacity, |dst, capacity| {
                            onecopy_utf16_to_utf8(units, n_units, dst, capacity, replacement)
                        });
                        call(n_units, capacity, |dst, capacity| {
                            onecopy_bson_string(units, n_units, dst, capacity, replacement)
                        });
                        call(n_bytes, capacity, |dst, capacity| {
                            onecopy_latin1_to_utf8(bytes, n_bytes, dst, capacity)
                        });
                    }
                    let n = onecopy_utf16_len_from_utf8(bytes, n_bytes, replacement);
                    for capacity in [n.max(0) as usize, n_bytes * share / 6] {
                        call(n_bytes, capacity, |dst, capacity| {
                            onecopy_utf8_to_utf16(bytes, n_bytes, dst, capacity, replacement)
                        });
                        call(n_bytes, capacity, |dst, capacity| {
                            onecopy_utf8_to_latin1(bytes, n_bytes, dst, capacity)
                        });
                    }
                    let at = onecopy_utf8_find_malformed(bytes, n_bytes);
                    assert!((0..=n_bytes as i64).contains(&at), "{at}");
                    let at = onecopy_utf8_ascii_prefix(bytes, n_bytes);
                    assert!((0..=n_bytes as i64).contains(&at), "{at}");
                }
            }
        });
        let done = calls.join();
        is_done.store(true, Relaxed);
        assert!(done.is_ok(), "a call failed, of {n_units} units");
    });
}

#[test]
fn a_source_that_changes_is_never_written_past_a_capacity() {
    for (n_units, n_rounds) in [
        (7, 4000),
        (15, 4000),
        (50, 4000),
        (2048, 1500),
        (32_768, 60),
    ] {
        race(n_units, n_rounds);
    }
}

/// Runs this test under every kernel. Each kernel needs its own process, because a process chooses
/// its kernel only once.
#[test]
fn every_kernel_stays_inside_of_its_capacity() {
    for (ours, theirs) in [
        ("scalar", "fallback"),
        ("sse2", "westmere"),
        ("sse2", "haswell"),
        ("avx2", "haswell"),
    ] {
        if ours == "avx2" && !can_test(ours, kernel() >= Kernel::Avx2) {
            continue; // simdutf does not check that the processor has what it is forced to use
        }
        let out = Command::new(std::env::current_exe().expect("a test has a path"))
            .arg("a_source_that_changes_is_never")
            .env("ONECOPY_KERNEL", ours)
            .env("SIMDUTF_FORCE_IMPLEMENTATION", theirs)
            .output()
            .expect("the test program runs");
        let output = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{ours}, {theirs}:\n{output}");
        assert!(output.contains("1 passed"), "{ours}, {theirs}:\n{output}");
    }
}
