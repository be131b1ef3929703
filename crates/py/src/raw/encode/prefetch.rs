//! Loads objects into the L1 cache before they are written. The processor does not do that itself,
//! because the objects of a list are often not in the order of their addresses.
//!
//! A prefetch cannot fail, whatever its address. On a processor without a prefetch instruction,
//! these functions do nothing.

use pyo3::ffi;

use super::builtin_types::{self, ObjectKind};
use super::dict;

/// While an item of a list is written, the object this many items later is prefetched: its first
/// two cache lines, which contain its type and its size.
const OBJECTS: usize = 8;
/// While a row is written, the table of entries of the `dict` this many rows later is prefetched.
const ENTRIES: usize = 4;
/// While a row is written, the values of the row this many rows later are prefetched.
const VALUES: usize = 2;
/// The number of cache lines that are prefetched of a table of entries: those of ten entries.
const TABLE_LINES: usize = 4;
/// The number of values of a row that are prefetched. The processor itself prefetches the values of
/// wider rows.
const ROW_VALUES: usize = 12;
/// The number of dicts whose tables are prefetched when the encoder enters the member before them.
const SIBLINGS: usize = 2;
/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches the object that is [`OBJECTS`] items after `items[at]`.
#[inline(always)]
pub(super) fn fetch_object(items: &[*mut ffi::PyObject], at: usize) {
    if let Some(&later) = items.get(at + OBJECTS) {
        lines::<2>(later.cast());
    }
}

/// Prefetches the contents of two rows after `items[at]`. Of the row [`ENTRIES`] rows later, its
/// table is prefetched if it is a `dict` or a list. Of the row [`VALUES`] rows later, whose table
/// was prefetched before, the values are prefetched. Objects other than dicts, lists and tuples are
/// skipped. An instance of a derived class counts as its base class.
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

/// Prefetches all values of a `dict` that is being entered.
///
/// # Safety
/// `dict` must be a live `dict`.
#[inline(always)]
pub(super) unsafe fn fetch_values(dict: *mut ffi::PyObject) {
    // SAFETY: alive, as the caller guarantees.
    unsafe {
        for value in dict::entries(dict).values(ROW_VALUES) {
            lines::<2>(value.cast());
        }
    }
}

/// Examines the next [`SIBLINGS`] members, from position `at` on, and prefetches the tables of
/// those that are dicts. These members are written after the member that is being entered.
///
/// # Safety
/// The entries must be those of a `dict` that has not changed since.
#[inline(always)]
pub(super) unsafe fn fetch_tables(entries: dict::Entries, at: isize) {
    // SAFETY: the caller guarantees the requirements; each value is alive, and read as what it is.
    unsafe {
        for value in entries.values_from(at.unsigned_abs(), SIBLINGS) {
            if !value.is_null() && builtin_types::kind(value) == ObjectKind::Dict {
                lines::<TABLE_LINES>(dict::table(value));
            }
        }
    }
}

/// Prefetches `N` cache lines, the first one at `place`.
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
