//! Loads objects into the L1 cache before they are written. The objects of a list are often not in
//! the order of their addresses.
//!
//! A prefetch cannot fail at any address. Without a prefetch instruction, these functions do
//! nothing.

use pyo3::ffi;

use super::builtin_types;
use super::dict;

/// While item `i` is written, item `i + OBJECTS` is prefetched. Its first two cache lines contain
/// its type and size.
const OBJECTS: usize = 8;
/// While row `i` is written, the table of the `dict` in row `i + ENTRIES` is prefetched.
const ENTRIES: usize = 4;
/// While row `i` is written, the values of row `i + VALUES` are prefetched.
const VALUES: usize = 2;
/// The number of prefetched cache lines of a table. They contain about ten entries.
const TABLE_LINES: usize = 4;
/// The number of prefetched values of a row. The processor prefetches later values itself.
const ROW_VALUES: usize = 12;
/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches the object that is [`OBJECTS`] items after `items[at]`.
#[inline(always)]
pub(super) fn fetch_object(items: &[*mut ffi::PyObject], at: usize) {
    if let Some(&later) = items.get(at + OBJECTS) {
        lines::<2>(later.cast());
    }
}

/// Prefetches the table of row `at + ENTRIES`, and the values of row `at + VALUES`. The rows are
/// dicts, lists or tuples.
///
/// # Safety
/// The items must be alive.
#[inline(always)]
pub(super) unsafe fn fetch_rows(items: &[*mut ffi::PyObject], at: usize) {
    // SAFETY: alive, as the caller guarantees, and read as what they are by the flags of their
    // types.
    unsafe {
        if let Some(&later) = items.get(at + ENTRIES) {
            if ffi::PyDict_Check(later) != 0 {
                lines::<TABLE_LINES>(dict::table(later));
            } else if ffi::PyList_Check(later) != 0 {
                lines::<1>((*later.cast::<ffi::PyListObject>()).ob_item.cast());
            }
        }
        let Some(&later) = items.get(at + VALUES) else {
            return;
        };
        if ffi::PyDict_Check(later) != 0 {
            for value in dict::entries(later).values(ROW_VALUES) {
                lines::<2>(value.cast());
            }
        } else if ffi::PyTuple_Check(later) != 0 || ffi::PyList_Check(later) != 0 {
            let is_list = ffi::PyList_Check(later) != 0;
            for &value in builtin_types::items(later, is_list).iter().take(ROW_VALUES) {
                lines::<2>(value.cast());
            }
        }
    }
}

/// Prefetches `N` consecutive cache lines, starting at `place`.
#[inline(always)]
fn lines<const N: usize>(place: *const i8) {
    for i in 0..N {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: part of every x86-64; a fetch reads nothing, wherever it points.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(i * LINE));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (place, i);
    }
}
