//! `Keys`: a cache of the keys of JSON and BSON objects. For each key, the cache also records the
//! key that followed it most recently, and predicts that this key will follow it again.

use std::ptr::{null, null_mut};

use pyo3::ffi;
use pyo3::prelude::*;

const SLOTS: usize = 512;

/// The index for "no slot".
pub(super) const NONE: u16 = u16::MAX;

/// A cached key, and the slots of the keys that are predicted to follow it.
#[derive(Clone, Copy)]
struct KeySlot {
    /// The key: an owned reference to a `str` whose hash is already computed; null if the slot is
    /// empty.
    key: *mut ffi::PyObject,
    /// The address of the key's UTF-8: the characters of the `str` if it is ASCII, otherwise the
    /// bytes in [`Keys::others`].
    text: *const u8,
    len: u32,
    hash: u32,
    /// The slot of the key that followed this key in the most recent object that contains it.
    likely_next: u16,
    /// For a key whose value is an object, or a list of objects: the slot of the first key of the
    /// most recent such object.
    first: u16,
    is_ascii: bool,
}

/// The number of slots in which a key may be stored. With only one such slot, some keys of a
/// document with a hundred keys would repeatedly evict each other.
const WAYS: usize = 4;

/// A hash table of keys. The hash of a key determines the slots in which it may be stored.
pub(super) struct Keys {
    slots: Box<[KeySlot]>,
    /// The UTF-8 of the keys that are not ASCII, indexed by slot.
    others: Box<[Box<[u8]>]>,
}

impl Keys {
    /// The number that is used instead of a slot for an object that is not in the value of a key,
    /// such as the outermost object. It is one more than the last index of a slot.
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

    /// Returns the slot of the cached key that has this hash and for which `is_it` returns `true`.
    /// If no such key is cached, returns `Err` with the slot in which the key may be stored.
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

    /// Returns the UTF-8 of the key in a slot; `None` if the slot is empty.
    #[inline(always)]
    pub(super) fn text(&self, at: u16) -> Option<&[u8]> {
        let slot = self.slots.get(usize::from(at))?;
        if slot.key.is_null() {
            return None;
        }
        // SAFETY: the data of a `str` that the slot refers to, or of `others`, which changes only
        // with the slot; borrowed as long as the table.
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
    /// If the slot is empty, which is a bug of the caller.
    #[inline(always)]
    pub(super) fn get<'py>(&self, py: Python<'py>, at: u16) -> Bound<'py, PyAny> {
        let key = self.slots[usize::from(at)].key;
        assert!(!key.is_null());
        // SAFETY: a `str` that the slot holds.
        unsafe { Bound::from_borrowed_ptr(py, key) }
    }

    /// Stores a key in the slot `at`, and releases the previous key of this slot. `key` is the
    /// `str`, and `text` is its UTF-8.
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

    /// Returns the slot of the key that will probably follow the key in slot `at`, because it
    /// followed that key most recently. Returns [`NONE`] if no key has followed it yet.
    #[inline(always)]
    pub(super) fn likely_next(&self, at: u16) -> u16 {
        self.slots[usize::from(at)].likely_next
    }

    /// For a key whose value is an object, or a list of objects: returns the slot of the first key
    /// of the most recent such object. `owner` is the slot of the outer key. Returns [`NONE`] if
    /// there was no such object.
    #[inline(always)]
    pub(super) fn first(&self, owner: u16) -> u16 {
        self.slots[usize::from(owner)].first
    }

    /// Records that the key in slot `at` followed the key in slot `last`, to predict the keys of
    /// later objects. If `last` is [`NONE`], the key in slot `at` was the first key of an object,
    /// and this object was in the value of the key in slot `owner`.
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
