//! Short strings that were made before in the same document: equal ones share a `str`.
//!
//! Documents say the same words time and again, and to find one costs half of what it costs to make it. Where they do not,
//! looking is given up for a while.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// Strings that are remembered.
const SLOTS: usize = 256;
/// The longest that is worth while.
pub(super) const MOST_BYTES: usize = 32;
/// Looks in a row, of which so many must be good, or else as many strings are made without a look.
const LOOKS: u32 = 256;
const LEAST_HITS: u32 = 48;
const REST: u32 = 6000;

/// A string by its hash.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    len: u32,
    /// A `str` of ASCII with a reference of ours, or null.
    value: *mut ffi::PyObject,
    text: *const u8,
}

/// The strings of one document.
pub(super) struct Values {
    slots: Box<[Slot]>,
    /// The slots that are not empty.
    used: Vec<u8>,
    /// Looks, or strings without a look, until this is thought over.
    n_left: u32,
    n_hits: u32,
    is_looking: bool,
    /// The slot that was found last.
    last: u8,
}

impl Values {
    pub(super) fn new() -> Values {
        let empty = Slot {
            hash: 0,
            len: 0,
            value: null_mut(),
            text: std::ptr::null(),
        };
        Values {
            slots: vec![empty; SLOTS].into_boxed_slice(),
            used: Vec::with_capacity(SLOTS),
            n_left: LOOKS,
            n_hits: 0,
            is_looking: true,
            last: 0,
        }
    }

    /// The string that was found last, if `is_it`.
    #[inline(always)]
    pub(super) fn last<'py>(
        &mut self,
        py: Python<'py>,
        is_it: impl FnOnce(&[u8]) -> bool,
    ) -> Option<Bound<'py, PyAny>> {
        let slot = &self.slots[usize::from(self.last)];
        if slot.value.is_null() {
            return None;
        }
        // SAFETY: as for `find`.
        unsafe {
            if !is_it(std::slice::from_raw_parts(slot.text, slot.len as usize)) {
                return None;
            }
            self.n_hits += 1;
            Some(Bound::from_borrowed_ptr(py, slot.value))
        }
    }

    /// Whether to look for the next string.
    #[inline(always)]
    pub(super) fn is_worth_while(&mut self) -> bool {
        self.n_left -= 1;
        if self.n_left == 0 {
            self.think_over();
        }
        self.is_looking
    }

    #[cold]
    #[inline(never)]
    fn think_over(&mut self) {
        self.is_looking = !self.is_looking || self.n_hits >= LEAST_HITS;
        self.n_left = if self.is_looking { LOOKS } else { REST };
        self.n_hits = 0;
    }

    /// The string with this hash, where it is known and `is_it`.
    #[inline(always)]
    pub(super) fn find<'py>(
        &mut self,
        py: Python<'py>,
        hash: u32,
        is_it: impl FnOnce(&[u8]) -> bool,
    ) -> Option<Bound<'py, PyAny>> {
        let slot = &self.slots[hash as usize % SLOTS];
        if slot.hash != hash || slot.value.is_null() {
            return None;
        }
        // SAFETY: the data of a `str` that the slot holds; attached.
        unsafe {
            if !is_it(std::slice::from_raw_parts(slot.text, slot.len as usize)) {
                return None;
            }
            self.n_hits += 1;
            let found = Bound::from_borrowed_ptr(py, slot.value);
            self.last = (hash as usize % SLOTS) as u8;
            Some(found)
        }
    }

    /// Remembers a `str` of ASCII.
    #[inline(always)]
    pub(super) fn put(&mut self, hash: u32, value: &Bound<'_, PyAny>) {
        let at = hash as usize % SLOTS;
        let slot = &mut self.slots[at];
        // SAFETY: attached; a `str`, whose data stays where it is as long as it lives, which the slot's reference is for. The
        // one before is let go, which runs no foreign code.
        unsafe {
            let before = slot.value;
            *slot = Slot {
                hash,
                len: ffi::PyUnicode_GET_LENGTH(value.as_ptr()) as u32,
                value: value.clone().into_ptr(),
                text: ffi::PyUnicode_DATA(value.as_ptr()).cast(),
            };
            if before.is_null() {
                self.used.push(at as u8);
            } else {
                ffi::Py_DECREF(before);
            }
        }
    }

    /// Forgets all of them.
    #[inline]
    pub(super) fn clear(&mut self, _attached: Python<'_>) {
        for at in self.used.drain(..) {
            let value = std::mem::replace(&mut self.slots[usize::from(at)].value, null_mut());
            // SAFETY: null or a `str` that the slot held; attached.
            unsafe { ffi::Py_XDECREF(value) };
        }
        (self.is_looking, self.n_left, self.n_hits) = (true, LOOKS, 0);
    }
}

/// A number that most short texts have for themselves: of their ends and their middle.
#[inline(always)]
pub(crate) fn hash(text: &[u8]) -> u32 {
    let n = text.len();
    let mixed = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let middle = text[(n - 8) / 2..].first_chunk().expect("8 bytes and more");
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        first ^ last.rotate_left(23) ^ u64::from_le_bytes(*middle).rotate_left(41)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
    } else {
        let at = |i: usize| u64::from(text.get(i).copied().unwrap_or(0));
        at(0) | at(1) << 8 | at(2) << 16
    };
    let mixed = (mixed ^ (n as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32
}
