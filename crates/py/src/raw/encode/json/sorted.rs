//! Lists the members of a `dict`, sorted by their keys.

use std::cmp::Ordering;

use onecopy_text::Units;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::raw::encode::builtin_types::{self, ObjectKind};
use crate::raw::encode::dict;

/// Returns a list in which the keys and values of a `dict` alternate, sorted by the code points of
/// the keys. Returns `None` if a key is not of exactly the class `str`, or if the allocation of the
/// list ran Python code that changed the number of entries.
///
/// # Errors
/// The `MemoryError` of a failed allocation.
///
/// # Safety
/// `dict` must be a `dict` to which the caller holds a reference. The garbage collector may run,
/// and therefore any Python code.
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

/// Returns the `n` key-value pairs of a `dict`, sorted by key. Returns `None` if a key is not of
/// exactly the class `str`, or if the `dict` does not have `n` entries.
///
/// # Safety
/// `dict` must be a live `dict`, and no Python code may run while the members are used.
unsafe fn members(
    dict: *mut ffi::PyObject,
    n: usize,
) -> Option<Vec<(*mut ffi::PyObject, *mut ffi::PyObject)>> {
    let mut members = Vec::with_capacity(n);
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        let entries = dict::entries(dict);
        let mut at = 0;
        while let Some((key, value)) = entries.next(dict, &mut at) {
            if builtin_types::kind(key) != ObjectKind::Str {
                return None;
            }
            members.push((key, value));
        }
        // Keys of one `dict` are never equal, so the sort need not be stable.
        members.sort_unstable_by(|&(a, _), &(b, _)| compare(a, b));
    }
    (members.len() == n).then_some(members)
}

/// Compares two `str` objects by their code points.
///
/// # Safety
/// Both must be live objects of exactly the type `str`.
unsafe fn compare(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> Ordering {
    // SAFETY: the caller guarantees the requirements.
    unsafe {
        if let (Some(a), Some(b)) = (builtin_types::ascii(a), builtin_types::ascii(b)) {
            return a.cmp(b);
        }
        match (builtin_types::text(a), builtin_types::text(b)) {
            (Some((Units::Latin1(a), _)), Some((Units::Latin1(b), _))) => a.cmp(b),
            (Some((Units::Ucs2(a), _)), Some((Units::Ucs2(b), _))) => a.cmp(b),
            // No exception is possible, because both are `str`.
            _ => ffi::PyUnicode_Compare(a, b).cmp(&0),
        }
    }
}
