//! `StringCache`: a cache of recent short strings of a JSON or BSON document, so that equal strings
//! share one `str`.
//!
//! The strings of a document are often repeated, and a lookup takes half of the time of creating a
//! `str`. If few strings are repeated, the next strings are created without a lookup.

use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// The number of slots for strings.
const SLOTS: usize = 256;
/// The maximum size of a cached string, in bytes.
pub(super) const MOST_BYTES: usize = 32;
/// How often the cache decides whether it is worthwhile: after this number of strings, the hits
/// (successful lookups) are counted. If there were fewer than [`LEAST_HITS`], the next [`REST`]
/// strings are created without a lookup.
const LOOKS: u32 = 256;
const LEAST_HITS: u32 = 48;
const REST: u32 = 6000;

/// A cached string.
#[derive(Clone, Copy)]
struct StringSlot {
    hash: u32,
    len: u32,
    /// The string, as an owned reference to an ASCII `str`; null if the slot is empty.
    value: *mut ffi::PyObject,
    text: *const u8,
}

/// The cached strings of one document.
pub(super) struct StringCache {
    slots: Box<[StringSlot]>,
    /// The indices of the slots that are not empty.
    used: Vec<u8>,
    /// The number of strings until the cache next decides whether strings are looked up.
    n_left: u32,
    n_hits: u32,
    is_looking: bool,
    /// The index of the slot that the most recent successful lookup has found.
    last: u8,
}

impl StringCache {
    pub(super) fn new() -> StringCache {
        let empty = StringSlot {
            hash: 0,
            len: 0,
            value: null_mut(),
            text: std::ptr::null(),
        };
        StringCache {
            slots: vec![empty; SLOTS].into_boxed_slice(),
            used: Vec::with_capacity(SLOTS),
            n_left: LOOKS,
            n_hits: 0,
            is_looking: true,
            last: 0,
        }
    }

    /// Returns the same string as the most recent successful lookup, if `is_it` returns `true` for
    /// it, otherwise `None`.
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

    /// Returns `true` if the next string should be looked up. The caller must call this function
    /// once for each string, because each call counts one string.
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

    /// Returns the cached string with this hash, if `is_it` returns `true` for its characters,
    /// otherwise `None`.
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

    /// Caches an ASCII `str` with the hash `hash`, replacing the previous string in its slot.
    #[inline(always)]
    pub(super) fn put(&mut self, hash: u32, value: &Bound<'_, PyAny>) {
        let at = hash as usize % SLOTS;
        let slot = &mut self.slots[at];
        // SAFETY: attached; a `str`, whose data does not move as long as it is alive, which the
        // slot's reference ensures. The one before is released, which runs no foreign code.
        unsafe {
            let before = slot.value;
            *slot = StringSlot {
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

    /// Removes all strings from the cache.
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

/// Returns a hash of a short string, computed from its length and from at most eight bytes each at
/// its start, middle and end.
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
