//! Dicts with the same keys as one before.
//!
//! A dict for n keys is n look-ups and as many insertions, about 20 ns each. A copy of a dict that has the keys already
//! (`PyDict_Copy`) is a copy of its table in one piece; what is left is to put the values into it. So the dict of a shape that
//! was seen twice is kept, each of its values None, and copied from then on.
//!
//! The values are written where the table has them. Its layout is that of CPython 3.10 to 3.13, and looked at for each shape
//! before it is trusted; other interpreters insert one by one.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// Shapes that are kept.
const SHAPES: usize = 64;
/// Places that a shape may be in.
const WAYS: usize = 4;
/// How often others must ask in vain for the place of a shape that was just used.
const CREDIT: u8 = 8;
/// Keys that a shape has at least: fewer are inserted as fast.
const LEAST_KEYS: usize = 2;
/// Keys that a shape has at most: what is kept is bounded.
const MOST_KEYS: usize = 48;

/// A shape by a number that most lists of keys have for themselves.
#[derive(Clone, Copy)]
struct Shape {
    tag: u64,
    n_keys: u32,
    credit: u8,
    /// A dict of these keys with None for each value, and a reference of ours; null until the shape is seen again.
    template: *mut ffi::PyObject,
    /// Where its entries are from the start of its table.
    entries_at: usize,
}

/// The shapes that were seen.
pub(super) struct Shapes {
    shapes: Box<[Shape]>,
    /// Whether the tables are laid out as we know.
    is_known: bool,
}

/// A key and its value in a table.
#[repr(C)]
struct Entry {
    #[cfg(not(Py_3_11))]
    hash: ffi::Py_hash_t,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
}

impl Shapes {
    pub(super) fn new() -> Shapes {
        let none = Shape {
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

    /// A dict of these keys and values by turns, whose references go into it; `None` where the shape is not known, or there is
    /// no memory.
    ///
    /// # Safety
    /// Attached. Each is an object with a reference of ours, every other one a `str`; `has_container` is true where a value may
    /// hold others.
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
            // SAFETY: the duty of the caller.
            unsafe { self.learn(py, tag, pairs) };
            return None;
        };
        shape.credit = CREDIT;
        let shape = *shape;
        // SAFETY: the template is a dict of `n_keys` entries, which lie where `learn` has seen them; a copy has its
        // own table, laid out alike. Its keys get references by the copy, and ours are given up; its values are None, each with a
        // reference, and are replaced by ours.
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
                // A dict of plain values is not on the collector's list, and its copy is not.
                ffi::PyObject_GC_Track(made.cast());
            }
            Some(Bound::from_owned_ptr(py, made))
        }
    }

    /// Notes a shape, or makes its template where it was noted before.
    ///
    /// # Safety
    /// As [`Shapes::copy`].
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
            // A key stands in it twice, or the table is another one than we know.
            ffi::Py_DECREF(template);
        }
    }

    /// Lets all of them go.
    pub(super) fn clear(&mut self, _attached: Python<'_>) {
        for shape in &mut self.shapes {
            let template = std::mem::replace(&mut shape.template, null_mut());
            // SAFETY: null or a dict that we hold; attached.
            unsafe { ffi::Py_XDECREF(template) };
        }
    }
}

/// The start of a table's entries.
///
/// # Safety
/// A dict whose table has its entries there.
#[inline(always)]
unsafe fn entries_of(dict: *mut ffi::PyObject, entries_at: usize) -> *mut Entry {
    // SAFETY: the duty of the caller.
    unsafe {
        let table = (*dict.cast::<ffi::PyDictObject>()).ma_keys;
        table.byte_add(entries_at).cast()
    }
}

/// Where the entries of a dict's table are, if these are its keys and None the value of each.
///
/// # Safety
/// A dict with as many keys as there are pairs, all `str`.
unsafe fn find_entries(
    dict: *mut ffi::PyObject,
    pairs: &[[*mut ffi::PyObject; 2]],
) -> Option<usize> {
    // SAFETY: the table starts with a header, then come the indices, then the entries, by CPython's `pycore_dict.h`
    // (3.10: `dict-common.h`); of the entries there are at least as many as there are keys.
    unsafe {
        let dict = dict.cast::<ffi::PyDictObject>();
        if !(*dict).ma_values.is_null() {
            return None;
        }
        let table = (*dict).ma_keys.cast::<u8>();
        #[cfg(Py_3_11)]
        let entries_at = {
            // References, then a byte each: log2 of the size, log2 of the bytes of the indices, the kind of the table.
            let (log2_bytes, kind) = (table.add(9).read(), table.add(10).read());
            if kind != 1 || log2_bytes > 12 {
                return None;
            }
            32 + (1_usize << log2_bytes)
        };
        #[cfg(not(Py_3_11))]
        let entries_at = {
            // References, size, a function, and two counts.
            let size = table.add(8).cast::<isize>().read();
            if !(8..=0xFF).contains(&size) {
                return None;
            }
            40 + size.unsigned_abs()
        };
        let entries = table.add(entries_at).cast::<Entry>();
        let is_good = |(i, &[key, _]): (usize, &[*mut ffi::PyObject; 2])| {
            (*entries.add(i)).key == key && (*entries.add(i)).value == ffi::Py_None()
        };
        pairs.iter().enumerate().all(is_good).then_some(entries_at)
    }
}

/// Gives up so many references to None.
///
/// # Safety
/// They are ours; attached.
#[inline(always)]
unsafe fn drop_nones(n: usize) {
    // From 3.12 on nobody counts them.
    #[cfg(not(Py_3_12))]
    // SAFETY: the duty of the caller: others are left.
    unsafe {
        (*ffi::Py_None()).ob_refcnt -= n as ffi::Py_ssize_t;
    }
    #[cfg(Py_3_12)]
    let _ = n;
}
