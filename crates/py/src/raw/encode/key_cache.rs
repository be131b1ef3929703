//! `KeyCache`: the encoded bytes of recently used keys. The rows of a table usually have the same
//! `str` objects as keys, so each key is encoded only once.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi;

/// The maximum size of a cached key in its encoded form, in bytes. This form includes the quotes
/// and the colon of JSON, or the tag byte and the NUL of BSON.
const MOST_BYTES: usize = 40;

/// The number of slots. The slot of a key is determined by the key's address.
const PLACES: usize = 128;

#[derive(Clone, Copy)]
struct KeyCacheSlot {
    key: *mut ffi::PyObject,
    /// The number of the [`KeyCache`] when the key was cached. The slot is valid only while the
    /// cache still has this number.
    encoder: u64,
    len: usize,
    text: [u8; MOST_BYTES],
}

thread_local! {
    /// The slots of the encoder that this thread used last. The next encoder reuses the memory of
    /// these slots, but not their keys: each slot contains the number of the encoder that wrote it.
    static PLACES_LEFT: Cell<Option<Box<[KeyCacheSlot; PLACES]>>> = const { Cell::new(None) };
}

/// The number of the next [`KeyCache`]. Numbers are unique in the process. When a cache is cleared,
/// it gets a new number, so that its old slots are ignored.
static ENCODERS: AtomicU64 = AtomicU64::new(1);

/// The cached keys of one encoder. A key is identified by the address of its `str`. The cache is
/// cleared when Python code runs, because such code might free the `str`.
pub(super) struct KeyCache {
    places: Option<Box<[KeyCacheSlot; PLACES]>>,
    encoder: u64,
}

impl KeyCache {
    pub(super) const fn new() -> KeyCache {
        KeyCache {
            places: None,
            encoder: 0,
        }
    }

    /// Returns the encoded bytes of a cached key, as an array and the number of bytes in it.
    /// Returns `None` if the key is not cached.
    #[inline(always)]
    pub(super) fn get(&self, key: *mut ffi::PyObject) -> Option<(&[u8; MOST_BYTES], usize)> {
        let place = &self.places.as_ref()?[place_of(key)];
        (place.key == key && place.encoder == self.encoder).then_some((&place.text, place.len))
    }

    /// Caches `text`, the encoded bytes of `key`. Does not cache more than [`MOST_BYTES`] bytes.
    /// The first call only allocates the slots, and caches nothing.
    #[inline(always)]
    pub(super) fn keep(&mut self, key: *mut ffi::PyObject, text: &[u8]) {
        if text.len() > MOST_BYTES {
            return;
        }
        let Some(places) = &mut self.places else {
            return self.begin();
        };
        let place = &mut places[place_of(key)];
        place.key = key;
        place.encoder = self.encoder;
        place.len = text.len();
        place.text[..text.len()].copy_from_slice(text);
    }

    /// Allocates the slots, or reuses those of the encoder that this thread used last. It is called
    /// for the encoder's first key.
    #[cold]
    fn begin(&mut self) {
        let left = PLACES_LEFT.take();
        self.places = Some(left.unwrap_or_else(|| {
            let none = KeyCacheSlot {
                key: std::ptr::null_mut(),
                encoder: 0,
                len: 0,
                text: [0; MOST_BYTES],
            };
            Box::new([none; PLACES])
        }));
        self.forget();
    }

    /// Clears the cache. Must be called after Python code has run, because such code may have freed
    /// a key.
    pub(super) fn forget(&mut self) {
        self.encoder = ENCODERS.fetch_add(1, Relaxed);
    }
}

impl Drop for KeyCache {
    fn drop(&mut self) {
        if let Some(places) = self.places.take() {
            PLACES_LEFT.set(Some(places));
        }
    }
}

#[inline(always)]
fn place_of(key: *mut ffi::PyObject) -> usize {
    let address = key as usize;
    (address >> 4 ^ address >> 11) % PLACES
}
