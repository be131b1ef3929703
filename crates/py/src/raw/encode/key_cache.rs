//! `KeyCache`: the encoded bytes of recent keys. The rows of a table usually have the same `str`
//! objects as keys, so each key is encoded only once.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi;

/// The largest size of the encoded bytes of a cached key, in bytes. They include the quotes and the
/// colon of JSON, or the tag byte and the NUL of BSON.
const MOST_BYTES: usize = 40;

/// The number of slots. The address of a key determines its slot.
const PLACES: usize = 128;

/// A cached key.
#[derive(Clone, Copy)]
struct KeyCacheSlot {
    key: *mut ffi::PyObject,
    /// The number that the [`KeyCache`] had when the key was cached. The slot is valid only while
    /// the cache has this number.
    encoder: u64,
    len: usize,
    text: [u8; MOST_BYTES],
}

thread_local! {
    /// The slots of this thread's last encoder. The next encoder uses the memory of these slots,
    /// and ignores their contents, because they have the number of the previous encoder.
    static PLACES_LEFT: Cell<Option<Box<[KeyCacheSlot; PLACES]>>> = const { Cell::new(None) };
}

/// The next number for a [`KeyCache`], unique in the process. A cache gets a new number when it is
/// cleared, so that its old slots are ignored.
static ENCODERS: AtomicU64 = AtomicU64::new(1);

/// The cached keys of one encoder. A key is identified by its address, until Python code runs that
/// might free the `str`.
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

    /// Returns the encoded bytes of a cached key: an array, and the number of its bytes that are
    /// used. Returns `None` if the key is not cached.
    #[inline(always)]
    pub(super) fn get(&self, key: *mut ffi::PyObject) -> Option<(&[u8; MOST_BYTES], usize)> {
        let place = &self.places.as_ref()?[place_of(key)];
        (place.key == key && place.encoder == self.encoder).then_some((&place.text, place.len))
    }

    /// Caches the encoded bytes of a key, unless they exceed [`MOST_BYTES`]. The first call only
    /// allocates the slots.
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

    /// Allocates the slots, or reuses those of this thread's last encoder. It is called for the
    /// encoder's first key, which is not cached.
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

    /// Clears the cache. It is called after Python code has run, which may have freed a key.
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
