//! `Keys`: a cache of the keys of JSON and BSON objects. It also predicts the next key of an
//! object.

use std::ptr::{null, null_mut};

use pyo3::ffi;
use pyo3::prelude::*;

const SLOTS: usize = 512;

/// The index for "no slot".
pub(super) const NONE: u16 = u16::MAX;

/// A cached key, and predictions of the keys after it.
#[derive(Clone, Copy)]
struct KeySlot {
    /// An owned `str` with a computed hash; null if the slot is empty.
    key: *mut ffi::PyObject,
    /// The address of the key's UTF-8: in the `str` if it is ASCII, otherwise in [`Keys::others`].
    text: *const u8,
    len: u32,
    hash: u32,
    /// The slot of the key that last followed this key.
    likely_next: u16,
    /// The slot of the predicted first key of an object in this key's value.
    first: u16,
    is_ascii: bool,
}

/// The number of slots in which a key may be stored.
const WAYS: usize = 4;

/// A hash table of keys.
pub(super) struct Keys {
    slots: Box<[KeySlot]>,
    /// The UTF-8 of keys that are not ASCII, by slot.
    others: Box<[Box<[u8]>]>,
}

impl Keys {
    /// The slot number for an object without an outer key, such as the outermost object.
    pub(super) const ROOT: u16 = SLOTS as u16;

    pub(super) fn new() -> Keys {
        let empty = KeySlot {
            key: null_mut(),
            text: null(),
            len: 0,
            hash: 0,
            likely_next: NONE,
            first: NONE,
            is_ascii: true,
        };
        Keys {
            slots: vec![empty; SLOTS + 1].into_boxed_slice(),
            others: vec![Box::default(); SLOTS].into_boxed_slice(),
        }
    }

    /// Returns the slot of the key with this hash for which `is_it` is `true`. Otherwise returns
    /// `Err` with the slot for a new key.
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

    /// Returns the UTF-8 of the key in a slot, if any.
    #[inline(always)]
    pub(super) fn text(&self, at: u16) -> Option<&[u8]> {
        let slot = self.slots.get(usize::from(at))?;
        if slot.key.is_null() {
            return None;
        }
        // SAFETY: the data of the slot's `str`, or of `others`, which changes only with the slot.
        // It is borrowed as long as the table.
        Some(unsafe { std::slice::from_raw_parts(slot.text, slot.len as usize) })
    }

    /// Returns `true` if the key in a slot is ASCII.
    #[inline(always)]
    pub(super) fn is_ascii(&self, at: u16) -> bool {
        self.slots[usize::from(at)].is_ascii
    }

    /// Returns the `str` of the key in a slot.
    ///
    /// # Panics
    /// If the slot is empty (a bug of the caller).
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, at: u16) -> Bound<'py, PyAny> {
        let key = self.slots[usize::from(at)].key;
        assert!(!key.is_null());
        // SAFETY: a `str` that the slot holds.
        unsafe { Bound::from_borrowed_ptr(py, key) }
    }

    /// Stores a key in the slot `at`, and releases the slot's previous key. `text` is the UTF-8 of
    /// `key`.
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
        key.hash()?; // which the `str` caches
        let slot = &mut self.slots[usize::from(at)];
        let before = std::mem::replace(&mut slot.key, key.clone().into_ptr());
        slot.hash = hash;
        slot.is_ascii = text.is_ascii();
        slot.len = text.len() as u32;
        if slot.is_ascii {
            // SAFETY: a `str` that the slot holds.
            let (n, data) = unsafe {
                let n = ffi::PyUnicode_GET_LENGTH(slot.key).unsigned_abs();
                (n, ffi::PyUnicode_DATA(slot.key).cast())
            };
            assert_eq!(n, text.len());
            slot.text = data;
        } else {
            let other = &mut self.others[usize::from(at)];
            *other = text.into();
            slot.text = other.as_ptr();
        }
        // SAFETY: null or a `str` that the slot held, which runs no foreign code when it is freed.
        drop(unsafe { Bound::from_owned_ptr_or_opt(py, before) });
        Ok(())
    }

    /// Predicts the key after the key in slot `at`. Returns its slot, or [`NONE`].
    #[inline(always)]
    pub(super) fn likely_next(&self, at: u16) -> u16 {
        self.slots[usize::from(at)].likely_next
    }

    /// Predicts the first key of an object in the value of the key in slot `owner`. Returns its
    /// slot, or [`NONE`].
    #[inline(always)]
    pub(super) fn first(&self, owner: u16) -> u16 {
        self.slots[usize::from(owner)].first
    }

    /// Records that the key in slot `at` followed the key in slot `last`. If `last` is [`NONE`],
    /// records the first key of an object in the value of the key in slot `owner`.
    #[inline(always)]
    pub(super) fn learn(&mut self, last: u16, owner: u16, at: u16) {
        match self.slots.get_mut(usize::from(last)) {
            Some(slot) => slot.likely_next = at,
            None => self.slots[usize::from(owner)].first = at,
        }
    }

    /// Releases all keys, so that all slots are empty.
    pub(super) fn clear(&mut self, _attached: Python<'_>) {
        for slot in &mut self.slots {
            let key = std::mem::replace(&mut slot.key, null_mut());
            // SAFETY: null or a `str` that the slot held; attached.
            unsafe { ffi::Py_XDECREF(key) };
        }
    }
}
