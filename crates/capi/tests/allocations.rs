//! Tests that no function allocates memory. The first call in a process is an exception, because it
//! reads an environment variable.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use onecopy::abi::*;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does all the work. The counter does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the arguments are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the arguments are passed on unchanged.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn call_all(utf16: &[u16], utf8: &[u8], capacity: usize, replacement: u32) {
    let (mut bytes, mut units) = ([0_u8; 8192], [0_u16; 8192]);
    let (p, q) = (bytes.as_mut_ptr(), units.as_mut_ptr());
    let (wide, n_units) = (utf16.as_ptr(), utf16.len());
    let (narrow, n) = (utf8.as_ptr(), utf8.len());
    // SAFETY: the sources are slices, and no destination is smaller than its stated capacity.
    unsafe {
        onecopy_utf8_len_from_utf16(wide, n_units, replacement);
        onecopy_utf16_to_utf8(wide, n_units, p, capacity, replacement);
        onecopy_bson_string(wide, n_units, p, capacity, replacement);
        onecopy_utf16_len_from_utf8(narrow, n, replacement);
        onecopy_utf8_to_utf16(narrow, n, q, capacity, replacement);
        onecopy_utf8_to_latin1(narrow, n, p, capacity);
        onecopy_latin1_to_utf8(narrow, n, p, capacity);
        onecopy_utf16_to_utf8_at(wide, 0, n_units, p, 0, capacity, replacement);
        onecopy_utf8_to_utf16_at(narrow, 0, n, q, 0, capacity, replacement);
        onecopy_utf8_to_latin1_at(narrow, 0, n, p, 0, capacity);
        onecopy_latin1_to_utf8_at(narrow, 0, n, p, 0, capacity);
        onecopy_utf8_find_malformed(narrow, n);
        onecopy_utf8_ascii_prefix(narrow, n);
    }
}

#[test]
fn nothing_is_allocated() {
    let texts = [
        "a".repeat(1000),
        "é漢😀 ".repeat(200),
        "ж".repeat(900),
        String::new(),
    ];
    let utf16: Vec<Vec<u16>> = texts
        .iter()
        .map(|t| t.encode_utf16().chain([0xD800, 0x61]).collect())
        .collect();
    let utf8: Vec<Vec<u8>> = texts
        .iter()
        .map(|t| [t.as_bytes(), b"\xE4\xBD", t.as_bytes()].concat())
        .collect();
    call_all(&utf16[0], &utf8[0], 8192, 0);
    let before = ALLOCATIONS.with(Cell::get);
    for (utf16, utf8) in utf16.iter().zip(&utf8) {
        for capacity in [0, 1, 900, 4000, 8192] {
            for replacement in [0, 0x3F, 0xFFFD, 0xD800] {
                call_all(utf16, utf8, capacity, replacement);
                call_all(
                    &utf16[..utf16.len() - 2],
                    &utf8[..utf8.len() / 2 - 1],
                    capacity,
                    replacement,
                );
            }
        }
    }
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
    // The counter itself works.
    drop(std::hint::black_box(vec![1_u8]));
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1);
}
