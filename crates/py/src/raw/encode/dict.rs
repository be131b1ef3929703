//! Reads the members of a `dict` directly from memory, faster than `PyDict_Next`.
//!
//! A `dict` has a table of entries in insertion order; deleted entries have no value. Two layouts
//! are read: CPython 3.10, and 3.11 to 3.15. At import, [`is_known`] compares the members with
//! those of `PyDict_Next`. Other interpreters, and dicts with shared keys, use `PyDict_Next`.

#[cfg(not(Py_GIL_DISABLED))]
use std::mem::offset_of;

use pyo3::ffi;
use pyo3::prelude::*;

/// Offsets in the struct of a `dict`'s keys, in bytes. `N` is the number of entries, and `INDICES`
/// the hash index.
#[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
const LOG2_INDEX_BYTES: usize = 9;
#[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
const N: usize = 24;
#[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
const INDICES: usize = 32;

/// The entries (keys and values) of a `dict`, an array in CPython's hash table.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    /// The address of the first key; null if `PyDict_Next` must be used.
    first: *mut *mut ffi::PyObject,
    /// The distance from one key to the next, in units of the pointer size. A value follows its
    /// key.
    stride: usize,
    n: usize,
}

/// Returns the number of members of a `dict`.
///
/// # Safety
/// The object must be a live `dict`.
#[inline(always)]
pub(super) unsafe fn len(dict: *mut ffi::PyObject) -> isize {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `dict`.
    unsafe {
        (*dict.cast::<ffi::PyDictObject>()).ma_used
    }
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: a `dict`.
    unsafe {
        ffi::PyDict_Size(dict)
    }
}

/// Returns the address of a `dict`'s table of entries, only for a prefetch.
///
/// # Safety
/// The same requirements as for [`len`].
#[inline(always)]
pub(super) unsafe fn table(dict: *mut ffi::PyObject) -> *const i8 {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `dict`.
    unsafe {
        (*dict.cast::<ffi::PyDictObject>()).ma_keys.cast()
    }
    #[cfg(Py_GIL_DISABLED)]
    dict.cast_const().cast()
}

/// Returns the entries of a `dict`. They are valid until the `dict` changes.
///
/// # Safety
/// The same requirements as for [`len`].
#[inline(always)]
pub(super) unsafe fn entries(dict: *mut ffi::PyObject) -> Entries {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `dict` of the layout that `is_known` has compared. Values follow their keys, or are
    // null.
    unsafe {
        const VALUES: usize = offset_of!(ffi::PyDictObject, ma_keys) + size_of::<usize>();
        let is_split = *dict.byte_add(VALUES).cast::<usize>() != 0;
        if is_split {
            return Entries::ASK;
        }
        table_entries((*dict.cast::<ffi::PyDictObject>()).ma_keys.cast())
    }
    #[cfg(Py_GIL_DISABLED)]
    {
        let _ = dict;
        Entries::ASK
    }
}

/// Returns the entries of a `dict`'s table in CPython 3.11 or later.
///
/// # Safety
/// `keys` must be the table of a live `dict` in the layout that `is_known` has checked.
#[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
#[inline(always)]
unsafe fn table_entries(keys: *mut u8) -> Entries {
    const KIND: usize = 10;
    // SAFETY: the header has these fields; after it is the index, and after that are the entries.
    let (kind, n, first) = unsafe {
        let n_index_bytes = 1_usize << *keys.add(LOG2_INDEX_BYTES);
        let first = keys.add(INDICES + n_index_bytes);
        (
            *keys.add(KIND),
            *keys.add(N).cast::<usize>(),
            first.cast::<*mut ffi::PyObject>(),
        )
    };
    let (first, stride) = match kind {
        // An entry is a hash, a key and a value.
        0 => (first.wrapping_add(1), 3),
        // If all keys are `str`, an entry is a key and a value.
        1 => (first, 2),
        _ => return Entries::ASK,
    };
    Entries { first, stride, n }
}

/// Returns the entries of a `dict`'s table in CPython 3.10.
///
/// # Safety
/// `keys` must be the table of a live `dict` in the layout that `is_known` has checked.
#[cfg(not(any(Py_3_11, Py_GIL_DISABLED)))]
#[inline(always)]
unsafe fn table_entries(keys: *mut u8) -> Entries {
    const SIZE: usize = 8;
    const N: usize = 32;
    const INDICES: usize = 40;
    // SAFETY: the header has these fields.
    let (size, n) = unsafe {
        (
            *keys.add(SIZE).cast::<usize>(),
            *keys.add(N).cast::<usize>(),
        )
    };
    let width = match size {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    };
    let first = keys.wrapping_add(INDICES + size * width);
    Entries {
        first: first.cast::<*mut ffi::PyObject>().wrapping_add(1),
        stride: 3,
        n,
    }
}

/// Returns the index of a key among the shared keys of a class. Keys are compared by address.
///
/// # Safety
/// `keys` must be null, or the shared keys of a live class.
#[cold]
pub(super) unsafe fn index_of(
    keys: *const std::ffi::c_void,
    key: *mut ffi::PyObject,
) -> Option<usize> {
    #[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
    // SAFETY: keys that are shared are all `str`, as in `entries`.
    unsafe {
        if keys.is_null() {
            return None;
        }
        let keys = keys.cast::<u8>();
        let indices = 1_usize << *keys.add(LOG2_INDEX_BYTES);
        let first = keys.add(INDICES + indices).cast::<*mut ffi::PyObject>();
        let n = *keys.add(N).cast::<usize>();
        (0..n).find(|i| *first.add(2 * i) == key)
    }
    #[cfg(not(all(Py_3_11, not(Py_GIL_DISABLED))))]
    {
        let _ = (keys, key);
        None
    }
}

impl Entries {
    const ASK: Entries = Entries {
        first: std::ptr::null_mut(),
        stride: 0,
        n: 0,
    };

    /// Iterates over the values of the first `n_max` entries. A deleted value is null. Empty if
    /// `PyDict_Next` must be used.
    ///
    /// # Safety
    /// The `dict` must not have changed since [`entries`].
    #[inline(always)]
    pub(super) unsafe fn values(self, n_max: usize) -> impl Iterator<Item = *mut ffi::PyObject> {
        // SAFETY: inside of the table; a value follows its key.
        (0..self.n.min(n_max)).map(move |i| unsafe { *self.first.add(i * self.stride + 1) })
    }

    /// Returns the next member from index `at` on, and sets `at` to the index after it.
    ///
    /// # Safety
    /// `self` must be the [`entries`] of `dict`, which must not have changed since.
    #[inline(always)]
    pub(super) unsafe fn next(
        self,
        dict: *mut ffi::PyObject,
        at: &mut isize,
    ) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        if self.first.is_null() {
            // SAFETY: a `dict`, as the caller guarantees.
            return unsafe { next_by_api(dict, at) };
        }
        let mut i = at.unsigned_abs();
        while i < self.n {
            // SAFETY: inside of the table. An entry has a key and a value; the value is null if
            // deleted.
            let (key, value) = unsafe {
                let entry = self.first.add(i * self.stride);
                (*entry, *entry.add(1))
            };
            i += 1;
            if !value.is_null() {
                *at = i as isize;
                return Some((key, value));
            }
        }
        None
    }
}

/// Implements [`Entries::next`] with `PyDict_Next`, for any layout.
///
/// # Safety
/// The same requirements as for [`len`].
#[inline(never)]
unsafe fn next_by_api(
    dict: *mut ffi::PyObject,
    at: &mut isize,
) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
    let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a `dict`; both are borrowed from it.
    let found = unsafe { ffi::PyDict_Next(dict, at, &raw mut key, &raw mut value) };
    (found != 0).then_some((key, value))
}

/// Returns `true` if dicts have the expected memory layout.
pub(super) fn is_known(py: Python<'_>) -> PyResult<bool> {
    let globals = pyo3::types::PyDict::new(py);
    let code = c"
class C:
    def __init__(self): self.a, self.b = 1, 2
samples = [{}, {'a': 1}, {'a': 1, 2: 3}, {i: i for i in range(7)}, {str(i): i for i in range(300)}]
samples += [dict.fromkeys(range(44000)), C().__dict__, dict(C().__dict__)]
deleted = {str(i): i for i in range(9)}
del deleted['0'], deleted['4'], deleted['8']
samples += [deleted, dict.fromkeys('abc'), dict(x=1)]
";
    py.run(code, Some(&globals), None)?;
    let samples = globals.get_item("samples")?;
    for sample in samples
        .into_iter()
        .flat_map(|list| list.try_iter().into_iter().flatten())
    {
        let sample = sample?;
        let dict = sample.as_ptr();
        // SAFETY: a `dict` that we hold. In another layout, this reads other memory of the
        // interpreter. The tables are larger than the part that is read before the first
        // difference.
        unsafe {
            let read = entries(dict);
            let (mut at, mut api_at) = (0, 0);
            if len(dict) != ffi::PyDict_Size(dict) {
                return Ok(false);
            }
            loop {
                let (found, expected) = (read.next(dict, &mut at), next_by_api(dict, &mut api_at));
                if found != expected || (found.is_some() && at != api_at) {
                    return Ok(false);
                }
                if found.is_none() {
                    break;
                }
            }
        }
    }
    Ok(true)
}
