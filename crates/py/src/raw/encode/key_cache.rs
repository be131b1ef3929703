//! A cache of encoded keys. Rows usually have the same `str` objects as keys, so each is encoded
//! once.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi;

/// The maximum size of a cached key in bytes, with quotes and colon (JSON) or tag and NUL (BSON).
const MOST_BYTES: usize = 40;

/// The number of slots. The address of a key determines its slot.
const PLACES: usize = 128;

#[derive(Clone, Copy)]
struct KeyCacheSlot {
    key: *mut ffi::PyObject,
    /// The number of the [`KeyCache`]. A slot with another number is invalid.
    encoder: u64,
    len: usize,
    text: [u8; MOST_BYTES],
}

thread_local! {
    /// The slots of this thread's previous encoder. The next encoder reuses the allocation, but not
    /// the keys.
    static PLACES_LEFT: Cell<Option<Box<[KeyCacheSlot; PLACES]>>> = const { Cell::new(None) };
}

/// The number of the next [`KeyCache`]. A cleared cache gets a new number, which makes its old
/// slots invalid.
static ENCODERS: AtomicU64 = AtomicU64::new(1);

/// The cached keys of one encoder, by the address of the `str`. Python code might free a `str`, so
/// the cache is then cleared.
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

    /// Returns the encoded bytes of a cached key, and their number.
    #[inline(always)]
    pub(super) fn get(&self, key: *mut ffi::PyObject) -> Option<(&[u8; MOST_BYTES], usize)> {
        let place = &self.places.as_ref()?[place_of(key)];
        (place.key == key && place.encoder == self.encoder).then_some((&place.text, place.len))
    }

    /// Caches `text`, the encoded bytes of `key`. The first call only allocates the slots.
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

    /// Allocates the slots, or reuses those of the previous encoder.
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

    /// Clears the cache. Must be called after Python code, which may have freed a key.
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
