//! `Building`: creates Python objects from parse events.
//!
//! A list or dict is usually created at its end, with a known number of items. The number of
//! pending values is limited. At the limit, all open lists and dicts are created early. Later
//! values are then added to them.

use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::containers::{self, Pending};
use super::recent_keys::{Keys, NONE};
use super::shapes::Shapes;
use crate::raw::collector::HeldOff;

/// The number of pending values and keys whose memory is kept between calls.
const MOST_WAITING: usize = 2048;

/// The number of open lists and dicts whose memory is kept between calls.
const KEPT_LEVELS: usize = 1024;

/// An open list or dict.
struct OpenContainer {
    /// The index of this container's first pending value.
    start: usize,
    /// The list or dict with earlier values; null if there is none.
    container: *mut ffi::PyObject,
    /// The previous `guess` of the builder, restored at the end of the container.
    before: Guess,
    is_dict: bool,
    /// `true` if a value of the container may contain other objects.
    has_container: bool,
    /// The number of keys that were added to `container`, with duplicates.
    n_put: usize,
}

/// The state for predicting the next key. Objects often have the same keys in the same order.
#[derive(Clone, Copy)]
struct Guess {
    /// The slot in [`Keys`] of the previous key; [`NONE`] before the first key.
    last: u16,
    /// The slot in [`Keys`] of the key that leads to the innermost open container.
    owner: u16,
}

/// The builder state that later calls reuse: memory and caches.
struct BuilderCache {
    waiting: Vec<*mut ffi::PyObject>,
    frames: Vec<OpenContainer>,
    keys: Keys,
    shapes: Shapes,
}

/// The state of the previous call; null while a call uses it. A nested or simultaneous call creates
/// a new state.
static KEPT: AtomicPtr<BuilderCache> = AtomicPtr::new(null_mut());

/// Builds a Python object from the events of a JSON or BSON reader.
pub(crate) struct Building<'py> {
    py: Python<'py>,
    /// The reusable state. Only `drop` moves it.
    state: ManuallyDrop<Box<BuilderCache>>,
    guess: Guess,
    /// The slot in [`Keys`] of the predicted next key, or [`NONE`].
    likely: u16,
    no_collection: Option<HeldOff<'py>>,
}

impl<'py> Building<'py> {
    /// Creates an empty builder. If `is_alone` is `true`, the garbage collector is disabled until
    /// the end. Pass `false` if the user's Python code, such as a hook, may run.
    #[inline]
    pub(crate) fn new(py: Python<'py>, is_alone: bool) -> Building<'py> {
        let kept = KEPT.swap(null_mut(), Ordering::Acquire);
        let state = if kept.is_null() {
            new_state()
        } else {
            // SAFETY: `Box::into_raw` in `drop` made the pointer. The swap has removed the only
            // reference.
            unsafe { Box::from_raw(kept) }
        };
        Building {
            py,
            state: ManuallyDrop::new(state),
            guess: Guess {
                last: NONE,
                owner: Keys::ROOT,
            },
            likely: NONE,
            no_collection: is_alone.then(|| HeldOff::new(py)),
        }
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.py
    }

    /// Adds a key or value to the innermost open container.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        if self.state.waiting.len() == self.state.waiting.capacity() {
            self.spill()?;
        }
        self.state.waiting.push(value.into_ptr());
        Ok(())
    }

    /// Returns the UTF-8 of the predicted next key. If `is_utf8` is `false`, returns only an ASCII
    /// key.
    #[inline(always)]
    pub(crate) fn guess(&self, is_utf8: bool) -> Option<&[u8]> {
        let guess = self.state.keys.text(self.likely)?;
        (is_utf8 || self.state.keys.is_ascii(self.likely)).then_some(guess)
    }

    /// Adds the key from [`Building::guess`] to the innermost dict.
    #[inline(always)]
    pub(crate) fn push_likely_key(&mut self) -> PyResult<()> {
        let at = self.likely;
        let key = self.state.keys.get(self.py, at);
        self.guess.last = at;
        self.likely = self.state.keys.likely_next(at);
        self.push(key)
    }

    /// Returns the slot of the cached key for `hash` and `is_it`. `Err` contains a slot for a new
    /// key.
    #[inline(always)]
    pub(crate) fn find_key(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> Result<u16, u16> {
        self.state.keys.find(hash, is_it)
    }

    /// Stores the `str` of a key with the UTF-8 `text` in a cache slot.
    pub(crate) fn keep_key(
        &mut self,
        at: u16,
        hash: u32,
        text: &[u8],
        key: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.state.keys.set(at, hash, text, key)
    }

    /// Adds the cached key in slot `at` to the innermost dict.
    #[inline(always)]
    pub(crate) fn push_kept_key(&mut self, at: u16) -> PyResult<()> {
        let keys = &mut self.state.keys;
        keys.learn(self.guess.last, self.guess.owner, at);
        let key = keys.get(self.py, at);
        self.guess.last = at;
        self.likely = keys.likely_next(at);
        self.push(key)
    }

    /// Adds a key without a cache slot to the innermost dict.
    #[inline]
    pub(crate) fn push_key(&mut self, key: Bound<'py, PyAny>) -> PyResult<()> {
        self.guess.last = NONE;
        self.likely = NONE;
        self.push(key)
    }

    /// Begins a list, or a dict if `is_dict` is `true`.
    #[inline(always)]
    pub(crate) fn begin(&mut self, is_dict: bool) {
        let before = self.guess;
        let start = self.state.waiting.len();
        self.state.frames.push(OpenContainer {
            start,
            container: null_mut(),
            before,
            is_dict,
            has_container: self.no_collection.is_none(),
            n_put: 0,
        });
        if before.last != NONE {
            self.guess.owner = before.last;
            self.guess.last = NONE;
        }
        if is_dict {
            self.likely = self.state.keys.first(self.guess.owner);
        }
    }

    /// Returns a new empty list, without [`Building::begin`].
    #[inline(always)]
    pub(crate) fn empty_list(&mut self) -> PyResult<Bound<'py, PyAny>> {
        self.has_container();
        // SAFETY: attached; a new list, or null with an error.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyList_New(0)) }
    }

    /// Returns a new empty dict, without [`Building::begin`].
    #[inline(always)]
    pub(crate) fn empty_dict(&mut self) -> PyResult<Bound<'py, PyAny>> {
        self.has_container();
        // SAFETY: attached; a new dict, or null with an error.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyDict_New()) }
    }

    /// Calls `run` with the garbage collector enabled, for the user's Python code.
    #[inline]
    pub(crate) fn with_foreign<R>(&mut self, run: impl FnOnce() -> R) -> R {
        let is_held = self.no_collection.take().is_some();
        let made = run();
        self.no_collection = is_held.then(|| HeldOff::new(self.py));
        made
    }

    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.state.frames.len()
    }

    /// Records that the innermost container has a value that may contain other objects.
    #[inline(always)]
    pub(crate) fn has_container(&mut self) {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.has_container = true;
        }
    }

    /// Ends the innermost list and returns it.
    ///
    /// # Panics
    /// If the innermost open container is not a list.
    #[inline(always)]
    pub(crate) fn end_list(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let frame = self.end(false);
        let pending = Pending::take(&mut self.state.waiting, frame.start);
        // SAFETY: the values from the start on are the pending ones of this list, with one owned
        // reference each. The container is null or a list with earlier values from `containers`.
        unsafe { containers::list(py, pending, frame.container) }
    }

    /// Ends the innermost dict. Also returns `true` if a key occurred twice.
    ///
    /// # Panics
    /// If the innermost open container is not a dict.
    #[inline(always)]
    pub(crate) fn end_dict(&mut self) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let py = self.py;
        let frame = self.end(true);
        let BuilderCache {
            waiting, shapes, ..
        } = &mut **self.state;
        let pending = Pending::take(waiting, frame.start);
        if frame.container.is_null() {
            // SAFETY: the values from the start on are the pending keys and values of this dict,
            // with one owned reference each.
            let made = unsafe { shapes.copy(py, pending.items(), frame.has_container) };
            if let Some(made) = made {
                return Ok((made, false));
            }
        }
        // SAFETY: the values from the start on are the pending keys and values of this dict, with
        // one owned reference each. The container is null or a dict with earlier values from
        // `containers`.
        unsafe { containers::dict(py, pending, frame.container, frame.n_put) }
    }

    /// Ends the innermost container and restores the previous key prediction.
    #[inline(always)]
    fn end(&mut self, is_dict: bool) -> OpenContainer {
        let frame = self.state.frames.pop().expect("one was begun");
        assert!(frame.is_dict == is_dict);
        self.guess = frame.before;
        if frame.before.last != NONE {
            self.likely = self.state.keys.likely_next(frame.before.last);
        }
        self.has_container();
        frame
    }

    /// Returns the complete object. Call it after the last event.
    ///
    /// # Panics
    /// If a container is open, or if the number of values is not one.
    #[inline]
    pub(crate) fn finish(mut self) -> Bound<'py, PyAny> {
        assert!(self.state.frames.is_empty() && self.state.waiting.len() == 1);
        let value = self.state.waiting.pop().expect("counted");
        // SAFETY: an object with a reference of ours, which is passed on.
        unsafe { Bound::from_owned_ptr(self.py, value) }
    }

    /// Moves all pending values into their lists and dicts. Creates missing lists and dicts.
    #[cold]
    #[inline(never)]
    fn spill(&mut self) -> PyResult<()> {
        let BuilderCache {
            waiting, frames, ..
        } = &mut **self.state;
        let mut kept = 0;
        let n_frames = frames.len();
        for i in 0..n_frames {
            let end = frames.get(i + 1).map_or(waiting.len(), |next| next.start);
            let frame = &mut frames[i];
            let start = frame.start;
            // In a dict, a key without a value remains pending.
            let n_waiting_on = usize::from(frame.is_dict && !(end - start).is_multiple_of(2));
            let n = end - start - n_waiting_on;
            // After an exception, each moved value is null. `drop` releases the others.
            let items = &mut waiting[start..start + n];
            if n > 0 {
                frame.n_put += n / 2;
                // SAFETY: the pending values of this container, with an owned reference each. The
                // container is null or was made here. Each taken item becomes null.
                frame.container = unsafe {
                    if frame.is_dict {
                        containers::put_in_dict(self.py, frame.container, items)?
                    } else {
                        containers::put_in_list(self.py, frame.container, items)?
                    }
                };
            }
            frame.start = kept;
            if n_waiting_on > 0 {
                waiting.swap(kept, start + n);
                kept += 1;
            }
        }
        waiting.truncate(kept);
        if waiting.len() > waiting.capacity() / 2 {
            // With thousands of nested dicts, the pending keys fill the space.
            waiting.reserve(waiting.capacity());
        }
        Ok(())
    }
}

#[cold]
fn new_state() -> Box<BuilderCache> {
    Box::new(BuilderCache {
        waiting: Vec::with_capacity(MOST_WAITING),
        frames: Vec::with_capacity(64),
        keys: Keys::new(),
        shapes: Shapes::new(),
    })
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        let state = &mut *self.state;
        // After a failure, some values remain. CPython frees deeply nested ones without recursion.
        for value in state.waiting.drain(..) {
            // SAFETY: null, or an object with a reference of ours; attached ('py).
            unsafe { ffi::Py_XDECREF(value) };
        }
        for frame in state.frames.drain(..) {
            // SAFETY: null, or a container of ours.
            unsafe { ffi::Py_XDECREF(frame.container) };
        }
        if state.frames.capacity() > KEPT_LEVELS {
            state.frames.shrink_to(KEPT_LEVELS);
        }
        if state.waiting.capacity() > MOST_WAITING {
            state.waiting.shrink_to(MOST_WAITING);
        }
        // SAFETY: this is the drop, and nothing uses the state after it.
        let state = unsafe { ManuallyDrop::take(&mut self.state) };
        let other = KEPT.swap(Box::into_raw(state), Ordering::AcqRel);
        if !other.is_null() {
            // SAFETY: as in `new`; its keys are released while attached.
            let mut other = unsafe { Box::from_raw(other) };
            other.keys.clear(self.py);
            other.shapes.clear(self.py);
        }
    }
}
