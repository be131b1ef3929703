//! Keys that were made before, and which one is likely to follow which.

use std::ptr::{null, null_mut};

use pyo3::ffi;
use pyo3::prelude::*;

/// Keys that are kept.
const SLOTS: usize = 512;

/// No slot.
pub(super) const NONE: u16 = u16::MAX;

/// A key, and what was learnt of it.
#[derive(Clone, Copy)]
struct Slot {
    /// A `str` with a reference of ours that knows its hash, or null.
    key: *mut ffi::PyObject,
    /// Its characters in UTF-8: those of the `str` where it is ASCII, or the place in [`Keys::others`].
    text: *const u8,
    len: u32,
    hash: u32,
    /// The key that last came behind it.
    behind: u16,
    /// The first key of the object, or list of objects, that was last its value.
    first: u16,
    is_ascii: bool,
}

/// Slots that a key may be in. With one alone, a few of a hundred keys would drive each other out time and again.
const WAYS: usize = 4;

/// A table of keys by their hash.
pub(super) struct Keys {
    slots: Box<[Slot]>,
    /// The UTF-8 of those that are not ASCII.
    others: Box<[Box<[u8]>]>,
}

impl Keys {
    /// The slot of no key: what is learnt of an object that is no key's value.
    pub(super) const ROOT: u16 = SLOTS as u16;

    pub(super) fn new() -> Keys {
        let empty = Slot {
            key: null_mut(),
            text: null(),
            len: 0,
            hash: 0,
            behind: NONE,
            first: NONE,
            is_ascii: true,
        };
        Keys {
            slots: vec![empty; SLOTS + 1].into_boxed_slice(),
            others: vec![Box::default(); SLOTS].into_boxed_slice(),
        }
    }

    /// The slot of a key, where it is there; else the one that it may take.
    #[inline(always)]
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> Result<u16, u16> {
        let first = (hash >> 8) as usize % SLOTS / WAYS * WAYS;
        for at in first..first + WAYS {
            let at = at as u16;
            if self.slots[usize::from(at)].hash == hash && self.text(at).is_some_and(&is_it) {
                return Ok(at);
            }
        }
        let free = (first..first + WAYS).find(|&at| self.slots[at].key.is_null());
        Err(free.unwrap_or(first + (hash >> 4) as usize % WAYS) as u16)
    }

    /// The characters of the key in a slot, where there is one.
    #[inline(always)]
    pub(super) fn text(&self, at: u16) -> Option<&[u8]> {
        let slot = self.slots.get(usize::from(at))?;
        if slot.key.is_null() {
            return None;
        }
        // SAFETY: the data of a `str` that the slot holds, or of `others`, which changes with the slot alone; borrowed as long as
        // the table.
        Some(unsafe { std::slice::from_raw_parts(slot.text, slot.len as usize) })
    }

    /// Whether the key in a slot is ASCII.
    #[inline(always)]
    pub(super) fn is_ascii(&self, at: u16) -> bool {
        self.slots[usize::from(at)].is_ascii
    }

    /// The key in a slot.
    ///
    /// # Panics
    /// Where there is none: a bug of the caller.
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, at: u16) -> Bound<'py, PyAny> {
        let key = self.slots[usize::from(at)].key;
        assert!(!key.is_null());
        // SAFETY: a `str` that the slot holds.
        unsafe { Bound::from_borrowed_ptr(py, key) }
    }

    /// Puts a key into a slot: the `str` of this UTF-8.
    #[cold]
    #[inline(never)]
    pub(super) fn set(
        &mut self,
        at: u16,
        hash: u32,
        text: &[u8],
        key: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = key.py();
        // SAFETY: attached. A `str` that was just made; from now on it knows its hash. The one before is let go, which
        // runs no foreign code.
        unsafe {
            if ffi::PyObject_Hash(key.as_ptr()) == -1 {
                return Err(PyErr::fetch(py));
            }
            let slot = &mut self.slots[usize::from(at)];
            let before = slot.key;
            slot.key = key.clone().into_ptr();
            slot.hash = hash;
            slot.is_ascii = text.is_ascii();
            slot.len = text.len() as u32;
            if slot.is_ascii {
                assert_eq!(
                    ffi::PyUnicode_GET_LENGTH(slot.key).unsigned_abs(),
                    text.len()
                );
                slot.text = ffi::PyUnicode_DATA(slot.key).cast();
            } else {
                let other = &mut self.others[usize::from(at)];
                *other = text.into();
                slot.text = other.as_ptr();
            }
            ffi::Py_XDECREF(before);
        }
        Ok(())
    }

    /// The key that is likely behind another.
    #[inline(always)]
    pub(super) fn behind(&self, at: u16) -> u16 {
        self.slots[usize::from(at)].behind
    }

    /// The key that is likely the first in the value of another.
    #[inline(always)]
    pub(super) fn first(&self, owner: u16) -> u16 {
        self.slots[usize::from(owner)].first
    }

    /// Learns which key came behind `last`, or first in the value of `owner`.
    #[inline(always)]
    pub(super) fn learn(&mut self, last: u16, owner: u16, at: u16) {
        match self.slots.get_mut(usize::from(last)) {
            Some(slot) => slot.behind = at,
            None => self.slots[usize::from(owner)].first = at,
        }
    }

    /// Lets all of them go.
    pub(super) fn clear(&mut self, _attached: Python<'_>) {
        for slot in &mut self.slots {
            let key = std::mem::replace(&mut slot.key, null_mut());
            // SAFETY: null or a `str` that the slot held; attached.
            unsafe { ffi::Py_XDECREF(key) };
        }
    }
}
