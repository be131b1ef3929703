//! The members of a `dict`, sorted by key.

use std::cmp::Ordering;

use onecopy_text::Units;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::builtin_types::{self, ObjectKind};
use super::dict::{self, Entries};

/// The maximum number of members for a sort in place.
const MOST_SORTED: usize = 32;

/// The positions of members in the order of their keys.
#[derive(Clone, Copy, Debug)]
struct Order {
    positions: [u8; MOST_SORTED],
    n: usize,
}

/// The keys of the last sorted `dict`, and their order. Rows with the same keys are sorted once.
/// Python code makes the order invalid, because it might free the keys.
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

    pub(super) fn clear(&mut self) {
        self.order.n = 0;
    }
}

/// The members of a `dict` with at most [`MOST_SORTED`] `str` keys, sorted by code points.
#[derive(Clone, Copy)]
pub(super) struct SortedMembers {
    dict: *mut ffi::PyObject,
    entries: Entries,
    order: Order,
}

impl SortedMembers {
    /// Sorts the members of a `dict`. `None` if it has too many, or if a key is not exactly a
    /// `str`.
    ///
    /// # Safety
    /// `dict` must be a live `dict`. No Python code may have run since the last use of `recent`, or
    /// run while the result is used.
    pub(super) unsafe fn of(
        dict: *mut ffi::PyObject,
        recent: &mut RecentOrder,
    ) -> Option<SortedMembers> {
        // SAFETY: as the caller guarantees.
        let entries = unsafe { dict::entries(dict) };
        let (mut keys, mut positions) = ([std::ptr::null_mut(); MOST_SORTED], [0; MOST_SORTED]);
        let (mut n, mut at) = (0, 0);
        loop {
            let before = at;
            // SAFETY: as the caller guarantees. A key is alive.
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
            // SAFETY: keys of the `dict`, which are `str`. An unstable sort is sufficient, because
            // keys are never equal.
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

    /// Same as [`SortedMembers::of`], without a recent order.
    ///
    /// # Safety
    /// `dict` must be a live `dict`. No Python code may run while the result is used.
    pub(super) unsafe fn without_recent(dict: *mut ffi::PyObject) -> Option<SortedMembers> {
        let mut recent = RecentOrder::NONE;
        // SAFETY: as the caller guarantees.
        unsafe { SortedMembers::of(dict, &mut recent) }
    }

    /// Same as [`SortedMembers::of`]. `None` also if the keys do not have this `fingerprint`, because
    /// Python code has changed them.
    ///
    /// # Safety
    /// The requirements of [`SortedMembers::of`] apply.
    pub(super) unsafe fn of_unchanged(
        dict: *mut ffi::PyObject,
        fingerprint: usize,
        recent: &mut RecentOrder,
    ) -> Option<SortedMembers> {
        // SAFETY: as the caller guarantees.
        unsafe {
            let members = SortedMembers::of(dict, recent)?;
            (members.fingerprint() == fingerprint).then_some(members)
        }
    }

    /// Returns a hash of the addresses of the keys, in order.
    ///
    /// # Safety
    /// The `dict` must be alive, and unchanged since the sort.
    pub(super) unsafe fn fingerprint(&self) -> usize {
        let (mut at, mut hash) = (0, self.order.n);
        // SAFETY: as the caller guarantees.
        while let Some((key, _)) = unsafe { self.next(&mut at) } {
            hash = hash.rotate_left(7) ^ key.addr();
        }
        hash
    }

    /// Returns the key and value at index `at`, and increments `at`.
    ///
    /// # Safety
    /// The `dict` must be alive, and unchanged since the sort.
    #[inline(always)]
    pub(super) unsafe fn next(
        &self,
        at: &mut isize,
    ) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let positions = &self.order.positions[..self.order.n];
        let mut position = isize::from(*positions.get(at.cast_unsigned())?);
        *at += 1;
        // SAFETY: as the caller guarantees.
        unsafe { self.entries.next(self.dict, &mut position) }
    }
}

/// Returns a list of alternating keys and values, sorted by key. `None` if a key is not exactly a
/// `str`, or if the `dict` was changed meanwhile.
///
/// # Errors
/// The `MemoryError` of a failed allocation.
///
/// # Safety
/// The caller must hold a reference to `dict`. Any Python code may run, through the garbage
/// collector.
pub(super) unsafe fn pairs<'py>(
    py: Python<'py>,
    dict: *mut ffi::PyObject,
) -> PyResult<Option<Bound<'py, PyList>>> {
    // SAFETY: attached, and the caller holds the `dict`. No code runs after the allocation of the
    // list, so borrowed items stay alive. An incomplete list may be dropped.
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

/// Returns the `n` key-value pairs of a `dict`, sorted by key. `None` if a key is not exactly a
/// `str`, or if `dict` has another size.
///
/// # Safety
/// `dict` must be a live `dict`. No Python code may run while the members are used.
unsafe fn members(
    dict: *mut ffi::PyObject,
    n: usize,
) -> Option<Vec<(*mut ffi::PyObject, *mut ffi::PyObject)>> {
    let mut members = Vec::with_capacity(n);
    // SAFETY: as the caller guarantees.
    unsafe {
        let entries = dict::entries(dict);
        let mut at = 0;
        while let Some((key, value)) = entries.next(dict, &mut at) {
            if builtin_types::kind(key) != ObjectKind::Str {
                return None;
            }
            members.push((key, value));
        }
        // An unstable sort is sufficient, because keys are never equal.
        members.sort_unstable_by(|&(a, _), &(b, _)| compare(a, b));
    }
    (members.len() == n).then_some(members)
}

/// Compares two `str` objects by their code points.
///
/// # Safety
/// Both must be live objects of exactly the type `str`.
unsafe fn compare(a: *mut ffi::PyObject, b: *mut ffi::PyObject) -> Ordering {
    // SAFETY: as the caller guarantees.
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
