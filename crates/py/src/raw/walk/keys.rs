//! Keys as they were written before: the rows of a table have the same `str` objects as keys, again and again.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi;

/// The longest text that is kept: a key, its quotes and its colon.
const MOST_BYTES: usize = 40;

/// Keys that are kept, each at the place that its address gives.
const PLACES: usize = 128;

/// One key.
#[derive(Clone, Copy)]
struct Place {
    key: *mut ffi::PyObject,
    /// The walk that it was written in.
    walk: u64,
    len: usize,
    text: [u8; MOST_BYTES],
}

thread_local! {
    /// The places that the last walk of this thread left. What stands in them is of no meaning to another walk.
    static PLACES_LEFT: Cell<Option<Box<[Place; PLACES]>>> = const { Cell::new(None) };
}

/// Numbers that tell walks, and parts of them, apart.
static WALKS: AtomicU64 = AtomicU64::new(1);

/// The keys of one walk. An address stands for a `str` as long as no code runs that might free it.
pub(super) struct Keys {
    places: Option<Box<[Place; PLACES]>>,
    walk: u64,
}

impl Keys {
    pub(super) const fn new() -> Keys {
        Keys {
            places: None,
            walk: 0,
        }
    }

    /// What was written for a key: the first bytes of a text.
    #[inline(always)]
    pub(super) fn get(&self, key: *mut ffi::PyObject) -> Option<(&[u8; MOST_BYTES], usize)> {
        let place = &self.places.as_ref()?[place_of(key)];
        (place.key == key && place.walk == self.walk).then_some((&place.text, place.len))
    }

    /// Keeps what was written for a key, if it is short.
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
        place.walk = self.walk;
        place.len = text.len();
        place.text[..text.len()].copy_from_slice(text);
    }

    /// Takes the places, once there is a second use of a key to be hoped for.
    #[cold]
    fn begin(&mut self) {
        let left = PLACES_LEFT.take();
        self.places = Some(left.unwrap_or_else(|| {
            let none = Place {
                key: std::ptr::null_mut(),
                walk: 0,
                len: 0,
                text: [0; MOST_BYTES],
            };
            Box::new([none; PLACES])
        }));
        self.forget();
    }

    /// Forgets all: code ran that may have freed a key.
    pub(super) fn forget(&mut self) {
        self.walk = WALKS.fetch_add(1, Relaxed);
    }
}

impl Drop for Keys {
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
