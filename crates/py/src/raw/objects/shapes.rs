//! `Shapes`: a cache of dicts. A copy of a cached dict is faster than a new dict with the same
//! keys.
//!
//! A shape is a list of keys. When a shape occurs again, a dict with its keys is cached. Later
//! dicts are copies of this dict by `PyDict_Copy`, with new values.
//!
//! The values are written directly into the table of the copy, in the layout of CPython 3.10 to
//! 3.13. With another layout, keys are inserted one by one.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// The number of slots for cached shapes. A shape is a list of keys.
const SHAPES: usize = 64;
/// The number of consecutive slots in which a shape (a list of keys) may be stored.
const WAYS: usize = 4;
/// The number of attempts to store another shape before a used slot is replaced.
const CREDIT: u8 = 8;
/// The minimum number of keys of a cached shape.
const LEAST_KEYS: usize = 2;
/// The maximum number of keys of a cached shape, which limits the memory.
const MOST_KEYS: usize = 48;

/// A cached shape (a list of keys). `tag` is its hash.
#[derive(Clone, Copy)]
struct ShapeSlot {
    tag: u64,
    n_keys: u32,
    credit: u8,
    /// An owned dict with the keys of the shape and None values; null after the first occurrence.
    template: *mut ffi::PyObject,
    /// The offset of the entries in the table of `template`, in bytes.
    entries_at: usize,
}

/// A cache of shapes (lists of keys), each with a dict after its second occurrence.
pub(super) struct Shapes {
    shapes: Box<[ShapeSlot]>,
    /// `true` while all examined dicts had the expected memory layout.
    is_known: bool,
}

/// An entry of a dict's table: a key and its value.
#[repr(C)]
struct ShapeEntry {
    #[cfg(not(Py_3_11))]
    hash: ffi::Py_hash_t,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
}

impl Shapes {
    pub(super) fn new() -> Shapes {
        let none = ShapeSlot {
            tag: 0,
            n_keys: 0,
            credit: 0,
            template: null_mut(),
            entries_at: 0,
        };
        Shapes {
            shapes: vec![none; SHAPES].into_boxed_slice(),
            is_known: cfg!(not(any(Py_3_14, Py_GIL_DISABLED))),
        }
    }

    /// Creates a dict from `items`, with alternating keys and values. On success, the dict owns the
    /// references. Returns `None` if no dict with these keys is cached or the allocation fails.
    ///
    /// # Safety
    /// The GIL must be held. Each item must be an object with an owned reference, and each key a
    /// `str`. `has_container` must be `true` if a value may contain other objects.
    #[inline(always)]
    pub(super) unsafe fn copy<'py>(
        &mut self,
        py: Python<'py>,
        items: &[*mut ffi::PyObject],
        has_container: bool,
    ) -> Option<Bound<'py, PyAny>> {
        let n_keys = items.len() / 2;
        if !(LEAST_KEYS..=MOST_KEYS).contains(&n_keys) || !self.is_known {
            return None;
        }
        let pairs = items.as_chunks::<2>().0;
        let mut tag = n_keys as u64;
        for &[key, _] in pairs {
            tag = tag.rotate_left(7) ^ (key.addr() as u64 >> 4);
        }
        tag = tag.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let ways = &mut self.shapes[(tag >> 60) as usize * WAYS..][..WAYS];
        let known = ways.iter_mut().find(|shape| {
            shape.tag == tag && shape.n_keys as usize == n_keys && !shape.template.is_null()
        });
        let Some(shape) = known else {
            // SAFETY: the caller guarantees the requirements.
            unsafe { self.learn(py, tag, pairs) };
            return None;
        };
        shape.credit = CREDIT;
        let shape = *shape;
        // SAFETY: the template is a dict of `n_keys` entries at the positions that `learn` has
        // checked. A copy has its own table in the same layout. The copy refers to its keys, so our
        // references are released. Its values are None, and are replaced by ours.
        unsafe {
            let entries = entries_of(shape.template, shape.entries_at);
            let is_same =
                |(i, &[key, _]): (usize, &[*mut ffi::PyObject; 2])| (*entries.add(i)).key == key;
            if !pairs.iter().enumerate().all(is_same) {
                self.learn(py, tag, pairs);
                return None;
            }
            let made = ffi::PyDict_Copy(shape.template);
            if made.is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            let entries = entries_of(made, shape.entries_at);
            for (i, &[key, value]) in pairs.iter().enumerate() {
                let entry = entries.add(i);
                debug_assert!((*entry).key == key && (*entry).value == ffi::Py_None());
                (*entry).value = value;
                ffi::Py_DECREF(key);
            }
            drop_nones(n_keys);
            if has_container {
                // The template has plain values, so the garbage collector does not track its copy.
                ffi::PyObject_GC_Track(made.cast());
            }
            Some(Bound::from_owned_ptr(py, made))
        }
    }

    /// Records a new dict with the keys of `pairs`. Caches such a dict when these keys occur again.
    ///
    /// # Safety
    /// The same requirements as for [`Shapes::copy`].
    #[cold]
    #[inline(never)]
    unsafe fn learn(&mut self, _py: Python<'_>, tag: u64, pairs: &[[*mut ffi::PyObject; 2]]) {
        let ways = &mut self.shapes[(tag >> 60) as usize * WAYS..][..WAYS];
        let Some(at) = (0..WAYS)
            .find(|&i| ways[i].tag == tag)
            .or_else(|| (0..WAYS).find(|&i| ways[i].credit == 0))
        else {
            return ways.iter_mut().for_each(|shape| shape.credit -= 1);
        };
        let shape = &mut ways[at];
        let before = std::mem::replace(&mut shape.template, null_mut());
        let is_again = shape.tag == tag && before.is_null();
        (shape.tag, shape.n_keys) = (tag, pairs.len() as u32);
        // SAFETY: null, or a dict that we hold, of `str` and None: no foreign code runs.
        unsafe { ffi::Py_XDECREF(before) };
        if !is_again {
            return;
        }
        // SAFETY: a fresh dict of `str`, which run no foreign code.
        unsafe {
            let template = ffi::PyDict_New();
            if template.is_null() {
                return ffi::PyErr_Clear();
            }
            for &[key, _] in pairs {
                if ffi::PyDict_SetItem(template, key, ffi::Py_None()) != 0 {
                    ffi::Py_DECREF(template);
                    return ffi::PyErr_Clear();
                }
            }
            let n_keys = ffi::PyDict_Size(template).unsigned_abs();
            if n_keys == pairs.len() {
                if let Some(entries_at) = find_entries(template, pairs) {
                    (shape.template, shape.entries_at) = (template, entries_at);
                    return;
                }
                self.is_known = false;
            }
            // A key occurs twice, or the table has another layout.
            ffi::Py_DECREF(template);
        }
    }

    pub(super) fn clear(&mut self, _attached: Python<'_>) {
        for shape in &mut self.shapes {
            let template = std::mem::replace(&mut shape.template, null_mut());
            // SAFETY: null or a dict that we hold; attached.
            unsafe { ffi::Py_XDECREF(template) };
        }
    }
}

/// Returns the address of the first entry in a dict's table. `entries_at` is its offset in bytes.
///
/// # Safety
/// `dict` must have a table whose entries are at this offset.
#[inline(always)]
unsafe fn entries_of(dict: *mut ffi::PyObject, entries_at: usize) -> *mut ShapeEntry {
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        let table = (*dict.cast::<ffi::PyDictObject>()).ma_keys;
        table.byte_add(entries_at).cast()
    }
}

/// Returns the offset of the entries in a dict's table, in bytes. Returns `None` if the entries are
/// not the keys of `pairs` with None values.
///
/// # Safety
/// `dict` must have one key for each pair, and all keys must be `str`.
unsafe fn find_entries(
    dict: *mut ffi::PyObject,
    pairs: &[[*mut ffi::PyObject; 2]],
) -> Option<usize> {
    // SAFETY: the table has a header, then indices, then entries (CPython's `pycore_dict.h`; 3.10:
    // `dict-common.h`). It has at least one entry for each key.
    unsafe {
        let dict = dict.cast::<ffi::PyDictObject>();
        if !(*dict).ma_values.is_null() {
            return None;
        }
        let table = (*dict).ma_keys.cast::<u8>();
        #[cfg(Py_3_11)]
        let entries_at = {
            // The table has the reference count, then one byte for each of: log2 of the size, log2
            // of the indices' size in bytes, kind.
            let (log2_bytes, kind) = (table.add(9).read(), table.add(10).read());
            if kind != 1 || log2_bytes > 12 {
                return None;
            }
            32 + (1_usize << log2_bytes)
        };
        #[cfg(not(Py_3_11))]
        let entries_at = {
            // The table begins with the reference count, size, a function, and two counts.
            let size = table.add(8).cast::<isize>().read();
            if !(8..=0xFF).contains(&size) {
                return None;
            }
            40 + size.unsigned_abs()
        };
        let entries = table.add(entries_at).cast::<ShapeEntry>();
        let is_good = |(i, &[key, _]): (usize, &[*mut ffi::PyObject; 2])| {
            (*entries.add(i)).key == key && (*entries.add(i)).value == ffi::Py_None()
        };
        pairs.iter().enumerate().all(is_good).then_some(entries_at)
    }
}

/// Releases `n` owned references to None.
///
/// # Safety
/// The references must be owned, and the GIL must be held.
#[inline(always)]
unsafe fn drop_nones(n: usize) {
    // From 3.12 on, references to None are not counted.
    #[cfg(not(Py_3_12))]
    // SAFETY: the caller guarantees the requirements: others are left.
    unsafe {
        (*ffi::Py_None()).ob_refcnt -= n as ffi::Py_ssize_t;
    }
    #[cfg(Py_3_12)]
    let _ = n;
}
