//! The members of a `dict`, read in place: `PyDict_Next` costs as much as a short text.
//!
//! A `dict` is a table of entries in the order in which they were made (PEP 468's, CPython's `Objects/dictobject.c`); those that
//! were deleted have no value. The layout is that of CPython 3.10, and of 3.11 to 3.15. [`is_known`] compares what is read with
//! `PyDict_Next` once, when the module is imported; other interpreters, and dicts that share their keys with others, are gone
//! through by that.

#[cfg(not(Py_GIL_DISABLED))]
use std::mem::offset_of;

use pyo3::ffi;
use pyo3::prelude::*;

/// Bytes into a table of keys, as CPython 3.11 to 3.15 have them: the binary logarithm of the size of its index, how many entries it
/// has, and the index.
#[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
const LOG2_INDEX_BYTES: usize = 9;
#[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
const N: usize = 24;
#[cfg(all(Py_3_11, not(Py_GIL_DISABLED)))]
const INDICES: usize = 32;

/// The entries of a `dict`.
#[derive(Clone, Copy)]
pub(super) struct Entries {
    /// The key of the first entry; null where `PyDict_Next` has to be asked.
    first: *mut *mut ffi::PyObject,
    /// Pointers from one key to the next; a value follows its key.
    stride: usize,
    n: usize,
}

/// How many members a `dict` has.
///
/// # Safety
/// It is one, alive (so for all below).
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

/// Where the table of entries begins, to be fetched.
///
/// # Safety
/// As [`len`].
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

/// Where the entries are, until the `dict` is changed.
///
/// # Safety
/// As [`len`].
#[inline(always)]
pub(super) unsafe fn entries(dict: *mut ffi::PyObject) -> Entries {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `dict` of the layout that `is_known` has looked at.
    unsafe {
        let header = dict.cast::<ffi::PyDictObject>();
        let keys = (*header).ma_keys.cast::<u8>();
        let is_split = *dict
            .byte_add(offset_of!(ffi::PyDictObject, ma_keys) + size_of::<usize>())
            .cast::<usize>()
            != 0;
        if is_split {
            return Entries::ASK;
        }
        #[cfg(Py_3_11)]
        {
            const KIND: usize = 10;
            let indices = 1_usize << *keys.add(LOG2_INDEX_BYTES);
            let first = keys.add(INDICES + indices).cast::<*mut ffi::PyObject>();
            let n = *keys.add(N).cast::<usize>();
            match *keys.add(KIND) {
                // A hash, a key, a value.
                0 => Entries {
                    first: first.add(1),
                    stride: 3,
                    n,
                },
                // Keys that are all `str`: a key and a value.
                1 => Entries {
                    first,
                    stride: 2,
                    n,
                },
                _ => Entries::ASK,
            }
        }
        #[cfg(not(Py_3_11))]
        {
            const SIZE: usize = 8;
            const N: usize = 32;
            const INDICES: usize = 40;
            let size = *keys.add(SIZE).cast::<usize>();
            let width = match size {
                0..=0xFF => 1,
                0x100..=0xFFFF => 2,
                0x1_0000..=0xFFFF_FFFF => 4,
                _ => 8,
            };
            let first = keys
                .add(INDICES + size * width)
                .cast::<*mut ffi::PyObject>();
            Entries {
                first: first.add(1),
                stride: 3,
                n: *keys.add(N).cast::<usize>(),
            }
        }
    }
    #[cfg(Py_GIL_DISABLED)]
    {
        let _ = dict;
        Entries::ASK
    }
}

/// The index of a key among those that the instances of a class share, by its own object.
///
/// # Safety
/// `keys` are those of a class that is alive, or null.
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

    /// The first values, as many as that at the most; null for one that was deleted. None where `PyDict_Next` has to be asked.
    ///
    /// # Safety
    /// The `dict` was not changed since.
    #[inline(always)]
    pub(super) unsafe fn values(self, n_max: usize) -> impl Iterator<Item = *mut ffi::PyObject> {
        // SAFETY: the duty of the caller.
        unsafe { self.values_from(0, n_max) }
    }

    /// As [`Entries::values`], from the one at `from` on.
    ///
    /// # Safety
    /// As [`Entries::values`].
    #[inline(always)]
    pub(super) unsafe fn values_from(
        self,
        from: usize,
        n_max: usize,
    ) -> impl Iterator<Item = *mut ffi::PyObject> {
        let end = self.n.min(from.saturating_add(n_max));
        // SAFETY: inside of the table; a value follows its key.
        (from..end).map(move |i| unsafe { *self.first.add(i * self.stride + 1) })
    }

    /// The first member at `at` or behind it; moves `at` behind that.
    ///
    /// # Safety
    /// These are the entries of `dict`, which was not changed since.
    #[inline(always)]
    pub(super) unsafe fn next(
        self,
        dict: *mut ffi::PyObject,
        at: &mut isize,
    ) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        if self.first.is_null() {
            // SAFETY: a `dict`, by the caller's word.
            return unsafe { ask(dict, at) };
        }
        let mut i = at.unsigned_abs();
        while i < self.n {
            // SAFETY: inside of the table; an entry has a key and, behind it, a value, which is null if it was deleted.
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

/// As [`Entries::next`], of any `dict`.
///
/// # Safety
/// As [`len`].
#[inline(never)]
unsafe fn ask(
    dict: *mut ffi::PyObject,
    at: &mut isize,
) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
    let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: a `dict`; both are borrowed from it.
    let found = unsafe { ffi::PyDict_Next(dict, at, &raw mut key, &raw mut value) };
    (found != 0).then_some((key, value))
}

/// Whether dicts are laid out as [`entries`] reads them.
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
        // SAFETY: a `dict` that we hold. Where the layout is another one, this reads memory of the interpreter that holds other
        // things: the tables are larger than what is read before the first difference.
        unsafe {
            let read = entries(dict);
            let (mut at, mut asked_at) = (0, 0);
            if len(dict) != ffi::PyDict_Size(dict) {
                return Ok(false);
            }
            loop {
                let (found, asked) = (read.next(dict, &mut at), ask(dict, &mut asked_at));
                if found != asked || (found.is_some() && at != asked_at) {
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
