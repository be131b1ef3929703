//! What is written soon, fetched into the first cache meanwhile: objects stand in memory by their sizes, not in the order of a list,
//! and a processor that goes from one to the next waits for each.
//!
//! A fetch reads nothing and fails nowhere, wherever it points. Where there is none for the processor, these do nothing.

use pyo3::ffi;

use super::dict;
use super::object::{self, Kind};

/// How many items ahead an object is fetched, by its first two lines: what follows finds its type and its size there.
const OBJECTS: usize = 8;
/// How many rows ahead the entries of a `dict` are.
const ENTRIES: usize = 4;
/// How many rows ahead the values are.
const VALUES: usize = 2;
/// Lines of a table of entries: those of ten.
const TABLE_LINES: usize = 4;
/// Values of a row: of wide ones the processor has those behind it in time.
const ROW_VALUES: usize = 12;
/// Members of a `dict` behind one that is gone into: dicts among them are gone into later.
const SIBLINGS: usize = 2;
/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Fetches an object behind `items[at]`.
#[inline(always)]
pub(super) fn fetch_object(items: &[*mut ffi::PyObject], at: usize) {
    if let Some(&later) = items.get(at + OBJECTS) {
        lines::<2>(later.cast());
    }
}

/// Fetches what rows after `items[at]` hold: the table of one that is a `dict` or a list, and the values of one before it, whose
/// table is there by now. Others are passed over. Derived classes count as their base.
///
/// # Safety
/// The items are alive.
#[inline(always)]
pub(super) unsafe fn fetch_rows(items: &[*mut ffi::PyObject], at: usize) {
    // SAFETY: alive, by the caller's word, and read as what they are by the flags of their types.
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
            for &value in object::items(later, is_list).iter().take(ROW_VALUES) {
                lines::<2>(value.cast());
            }
        }
    }
}

/// Fetches the values of a `dict` that is gone into now: its table has been waited for, and they are waited for together.
///
/// # Safety
/// `dict` is one, and alive.
#[inline(always)]
pub(super) unsafe fn fetch_values(dict: *mut ffi::PyObject) {
    // SAFETY: alive, by the caller's word.
    unsafe {
        for value in dict::entries(dict).values(ROW_VALUES) {
            lines::<2>(value.cast());
        }
    }
}

/// Fetches the entries of the dicts among the next members behind `at`: one before them is gone into, and they are written after all that
/// it holds.
///
/// # Safety
/// The entries are those of a `dict` that was not changed since.
#[inline(always)]
pub(super) unsafe fn fetch_tables(entries: dict::Entries, at: isize) {
    // SAFETY: the duty of the caller; each value is alive, and read as what it is.
    unsafe {
        for value in entries.values_from(at.unsigned_abs(), SIBLINGS) {
            if !value.is_null() && object::kind(value) == Kind::Dict {
                lines::<TABLE_LINES>(dict::table(value));
            }
        }
    }
}

/// Fetches lines of the cache, the first of them at `place`.
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
