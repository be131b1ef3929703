//! Loads objects into the L1 cache before they are written. The processor's own prefetcher does
//! not, because the objects of a list are often not in the order of their addresses.
//!
//! A prefetch cannot fail, whatever its address. On a processor without a prefetch instruction,
//! these functions do nothing.

use pyo3::ffi;

use super::builtin_types;
use super::dict;

/// The distance at which objects are prefetched, in items: while item `i` of a list is written,
/// item `i + OBJECTS` is prefetched. Its first two cache lines are loaded, which contain its type
/// and size.
const OBJECTS: usize = 8;
/// The distance at which tables of entries are prefetched, in rows: while row `i` is written, the
/// table of the `dict` in row `i + ENTRIES` is prefetched.
const ENTRIES: usize = 4;
/// The distance at which values are prefetched, in rows: while row `i` is written, the values of
/// row `i + VALUES` are prefetched.
const VALUES: usize = 2;
/// The number of cache lines that are prefetched at the start of a `dict`'s table of entries. They
/// contain about ten entries.
const TABLE_LINES: usize = 4;
/// The number of values at the start of a row that the encoder prefetches with instructions. The
/// later values of the row are prefetched by the processor itself.
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

/// Prefetches data of two later rows. For row `at + ENTRIES`, if it is a `dict` or a list,
/// prefetches the table of pointers to its values. For row `at + VALUES`, if it is a `dict`, list
/// or tuple, prefetches the values. Instances of classes derived from these three types are treated
/// alike.
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
