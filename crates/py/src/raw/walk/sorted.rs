//! The members of a `dict` in the order of their keys.

use std::cmp::Ordering;

use onecopy_text::Units;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::dict;
use super::object::{self, Kind};

/// A list of the keys and values of a `dict` in turn, by the code points of the keys; `None` if a
/// key is not of `str` itself, or the `dict` changed.
///
/// # Errors
/// If there is no memory.
///
/// # Safety
/// `dict` is a `dict` that the caller holds. Python code may run (the collector of garbage).
pub(super) unsafe fn pairs<'py>(
    py: Python<'py>,
    dict: *mut ffi::PyObject,
) -> PyResult<Option<Bound<'py, PyList>>> {
    // SAFETY: attached, and the `dict` is held. Nothing runs after the list was made, so what it
    // borrows stays alive until it has references; a list of which items are missing may be
    // dropped.
    unsafe {
        let n = dict::len(dict).cast_unsigned();
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(2 * n as isize))?;
        let list = list.cast_into_unchecked::<PyList>();
        let Some(members) = members(dict, n) else {
            return Ok(None);
        };
        let objects = members.iter().flat_map(|&(key, value)| [key, value]);
        for (at, object) in objects.enumerate() {
            ffi::PyList_SET_ITEM(list.as_ptr(), at as isize, ffi::Py_NewRef(object));
        }
        Ok(Some(list))
    }
}

/// The `n` keys and values, sorted.
///
/// # Safety
/// `dict` is a `dict` that is alive; no code runs as long as the members are used.
unsafe fn members(
    dict: *mut ffi::PyObject,
    n: usize,
) -> Option<Vec<(*mut ffi::PyObject, *mut ffi::PyObject)>> {
    let mut members = Vec::with_capacity(n);
    // SAFETY: the duties are the caller's.
    unsafe {
        let entries = dict::entries(dict);
        let mut at = 0;
        while let Some((key, value)) = entries.next(dict, &mut at) {
            if object::kind(key) != Kind::Str {
                return None;
            }
            members.push((key, value));
        }
        // Keys of one `dict` are never equal.
        members.sort_unstable_by(|&(a, _), &(b, _)| compare(a, b));
    }
    (members.len() == n).then_some(members)
}

/// Compares by code points.
///
/// # Safety
/// Both are objects of `str` itself, and alive.
unsafe fn compare(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> Ordering {
    // SAFETY: the duties are the caller's.
    unsafe {
        if let (Some(a), Some(b)) = (object::ascii(a), object::ascii(b)) {
            return a.cmp(b);
        }
        match (object::text(a), object::text(b)) {
            (Some((Units::Latin1(a), _)), Some((Units::Latin1(b), _))) => a.cmp(b),
            (Some((Units::Ucs2(a), _)), Some((Units::Ucs2(b), _))) => a.cmp(b),
            // No error is possible: both are `str`.
            _ => ffi::PyUnicode_Compare(a, b).cmp(&0),
        }
    }
}
