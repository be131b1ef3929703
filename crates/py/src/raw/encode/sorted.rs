//! The members of a `dict`, sorted by their keys: in place for a short `dict`, otherwise in a list.

use std::cmp::Ordering;

use onecopy_text::Units;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::builtin_types::{self, ObjectKind};
use super::dict::{self, Entries};

/// The largest number of members that are sorted in place.
const MOST_SORTED: usize = 32;

/// The positions of the members of a `dict`, in the order of their keys.
#[derive(Clone, Copy, Debug)]
struct Order {
    positions: [u8; MOST_SORTED],
    n: usize,
}

/// The keys of the `dict` that was sorted last, and their order. Dicts with the same keys, such as
/// the rows of a table, are sorted only once. It is valid until Python code runs, which might free
/// the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentOrder {
    keys: [*mut ffi::PyObject; MOST_SORTED],
    positions: [u8; MOST_SORTED],
    order: Order,
}

impl RecentOrder {
    pub(super) const NONE: RecentOrder = RecentOrder {
        keys: [std::ptr::null_mut(); MOST_SORTED],
        positions: [0; MOST_SORTED],
        order: Order {
            positions: [0; MOST_SORTED],
            n: 0,
        },
    };

    /// Forgets the order.
    pub(super) fn clear(&mut self) {
        self.order.n = 0;
    }
}

/// The members of a `dict` of up to [`MOST_SORTED`] members whose keys are exactly `str`, in the
/// order of the code points of the keys.
#[derive(Clone, Copy)]
pub(super) struct SortedMembers {
    dict: *mut ffi::PyObject,
    entries: Entries,
    order: Order,
}

impl SortedMembers {
    /// Sorts the members of a `dict`. Returns `None` if it has too many members, or a key that is
    /// not exactly a `str`.
    ///
    /// # Safety
    /// `dict` must be a live `dict`. No Python code may have run since `recent` was used last or
    /// cleared, and none may run while the result is used.
    pub(super) unsafe fn of(
        dict: *mut ffi::PyObject,
        recent: &mut RecentOrder,
    ) -> Option<SortedMembers> {
        // SAFETY: the caller guarantees the requirements.
        let entries = unsafe { dict::entries(dict) };
        let (mut keys, mut positions) = ([std::ptr::null_mut(); MOST_SORTED], [0; MOST_SORTED]);
        let (mut n, mut at) = (0, 0);
        loop {
            let before = at;
            // SAFETY: the caller guarantees the requirements; a key is alive.
            unsafe {
                let Some((key, _)) = entries.next(dict, &mut at) else {
                    break;
                };
                if builtin_types::kind(key) != ObjectKind::Str {
                    return None;
                }
                *keys.get_mut(n)? = key;
            }
            positions[n] = u8::try_from(before).ok()?;
            n += 1;
        }
        if n == 0 || recent.order.n != n || recent.keys != keys || recent.positions != positions {
            let mut sorted: [u8; MOST_SORTED] = std::array::from_fn(|i| i as u8);
            // SAFETY: keys of the `dict`, which are `str`. Keys of one `dict` are never equal, so
            // the sort need not be stable.
            sorted[..n].sort_unstable_by(|&a, &b| unsafe {
                compare(keys[usize::from(a)], keys[usize::from(b)])
            });
            *recent = RecentOrder {
                keys,
                positions,
                order: Order {
                    positions: sorted.map(|i| positions[usize::from(i)]),
                    n,
                },
            };
        }
        Some(SortedMembers {
            dict,
            entries,
            order: recent.order,
        })
    }

    /// Sorts the members of a `dict`, as [`SortedMembers::of`] does if there is no recent order.
    ///
    /// # Safety
    /// `dict` must be a live `dict`, and no Python code may run while the result is used.
    pub(super) unsafe fn without_recent(dict: *mut ffi::PyObject) -> Option<SortedMembers> {
        let mut recent = RecentOrder::NONE;
        // SAFETY: the caller guarantees the requirements.
        unsafe { SortedMembers::of(dict, &mut recent) }
    }

    /// Returns the key and value of the member with index `at`, and increments `at`.
    ///
    /// # Safety
    /// The `dict` must be alive, and must not have changed since it was sorted.
    #[inline(always)]
    pub(super) unsafe fn next(
        &self,
        at: &mut isize,
    ) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let positions = &self.order.positions[..self.order.n];
        let mut position = isize::from(*positions.get(at.cast_unsigned())?);
        *at += 1;
        // SAFETY: the caller guarantees the requirements.
        unsafe { self.entries.next(self.dict, &mut position) }
    }
}

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
