//! `Building`: creates Python objects from parse events. It collects the values of open lists and
//! dicts until each list or dict ends.
//!
//! A list or dict is usually created when it ends. The number of its items is then known, so it
//! does not have to be resized. The number of pending values is limited. When the limit is reached,
//! all open lists and dicts are created early from the pending values, and later values are added
//! to them.

use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::containers::{self, Pending};
use super::recent_keys::{Keys, NONE};
use super::shapes::Shapes;
use crate::raw::collector::HeldOff;

/// The number of pending values and keys for which memory is kept between calls. A value or key is
/// pending until it is added to its list or dict. If a call needed more memory, the excess is freed
/// when the call ends.
const MOST_WAITING: usize = 2048;

/// The largest number of open lists and dicts for which memory is kept for the next call.
const KEPT_LEVELS: usize = 1024;

/// A list or dict whose begin event has been received, but not its end event.
struct OpenContainer {
    /// The index of the first pending value of this container in the vector of the pending values
    /// of all containers.
    start: usize,
    /// The list or dict to which earlier pending values have already been moved; null if there is
    /// none.
    container: *mut ffi::PyObject,
    /// The value of the builder's field `guess` before this container began. It is restored when
    /// the container ends.
    before: Guess,
    is_dict: bool,
    /// `true` if one of the container's values may contain other objects.
    has_container: bool,
    /// The number of keys that have been moved into `container`. A key that occurs twice is counted
    /// twice.
    n_put: usize,
}

/// The state from which the next key is predicted. The prediction is based on the fact that an
/// object often has the same keys, in the same order, as an earlier object.
#[derive(Clone, Copy)]
struct Guess {
    /// The slot in [`Keys`] of the object's previous key; [`NONE`] before the first key.
    last: u16,
    /// The slot in [`Keys`] of the key that leads to the innermost open container: the value of the
    /// key is this container, or a list that contains it.
    owner: u16,
}

/// The state of a builder that the builders of later calls use again: the memory for pending
/// values, and the caches of recent keys and dicts.
struct BuilderCache {
    waiting: Vec<*mut ffi::PyObject>,
    frames: Vec<OpenContainer>,
    keys: Keys,
    shapes: Shapes,
}

/// The state that the previous call has left for the next call; null while a call uses it. A call
/// takes the state out of this variable, and stores it here again at its end. A nested call, or a
/// simultaneous call in another thread, creates a new state. The objects in the state belong to the
/// only interpreter of the process, also after a fork.
static KEPT: AtomicPtr<BuilderCache> = AtomicPtr::new(null_mut());

/// Builds a Python object from the parse events of a JSON or BSON reader.
pub(crate) struct Building<'py> {
    py: Python<'py>,
    /// The state that later calls reuse. It is moved out of this field only by `drop`.
    state: ManuallyDrop<Box<BuilderCache>>,
    guess: Guess,
    /// The slot in [`Keys`] of the predicted next key; [`NONE`] if there is no prediction.
    likely: u16,
    no_collection: Option<HeldOff<'py>>,
}

impl<'py> Building<'py> {
    /// Creates an empty builder. If `is_alone` is `true`, the garbage collector is disabled until
    /// the object is complete. `is_alone` must be `false` if Python code that the user has passed
    /// (such as a hook) may run before the object is complete.
    #[inline]
    pub(crate) fn new(py: Python<'py>, is_alone: bool) -> Building<'py> {
        let kept = KEPT.swap(null_mut(), Ordering::Acquire);
        let state = if kept.is_null() {
            new_state()
        } else {
            // SAFETY: made by `Box::into_raw` in `drop`, and taken out by the swap: there is no
            // other reference.
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

    /// Adds a value to the innermost open container. For a dict, the values are alternately keys
    /// and values.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        if self.state.waiting.len() == self.state.waiting.capacity() {
            self.spill()?;
        }
        self.state.waiting.push(value.into_ptr());
        Ok(())
    }

    /// Returns the UTF-8 of the predicted next key; `None` without a prediction. If `is_utf8` is
    /// `false`, the input has another encoding, and only an ASCII key is returned.
    #[inline(always)]
    pub(crate) fn guess(&self, is_utf8: bool) -> Option<&[u8]> {
        let guess = self.state.keys.text(self.likely)?;
        (is_utf8 || self.state.keys.is_ascii(self.likely)).then_some(guess)
    }

    /// Adds a key to the innermost dict. The key is the one that [`Building::guess`] has predicted.
    #[inline(always)]
    pub(crate) fn push_likely_key(&mut self) -> PyResult<()> {
        let at = self.likely;
        let key = self.state.keys.get(self.py, at);
        self.guess.last = at;
        self.likely = self.state.keys.likely_next(at);
        self.push(key)
    }

    /// Returns the slot of the cached key that has this hash and for which `is_it` returns `true`.
    /// If no such key is cached, returns `Err` with the slot in which the key may be stored.
    #[inline(always)]
    pub(crate) fn find_key(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> Result<u16, u16> {
        self.state.keys.find(hash, is_it)
    }

    /// Stores the `str` of a key, whose UTF-8 is `text`, in a slot of the key cache.
    pub(crate) fn keep_key(
        &mut self,
        at: u16,
        hash: u32,
        text: &[u8],
        key: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.state.keys.set(at, hash, text, key)
    }

    /// Adds the key in slot `at` of the key cache to the innermost dict.
    #[inline(always)]
    pub(crate) fn push_kept_key(&mut self, at: u16) -> PyResult<()> {
        let keys = &mut self.state.keys;
        keys.learn(self.guess.last, self.guess.owner, at);
        let key = keys.get(self.py, at);
        self.guess.last = at;
        self.likely = keys.likely_next(at);
        self.push(key)
    }

    /// Adds a key to the innermost dict. The key is one that the key cache does not contain.
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

    /// Returns a new empty list. The caller adds it as a value, without calling
    /// [`Building::begin`].
    #[inline(always)]
    pub(crate) fn empty_list(&mut self) -> PyResult<Bound<'py, PyAny>> {
        self.has_container();
        // SAFETY: attached; a new list, or null with an error.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyList_New(0)) }
    }

    /// Returns a new empty dict. The caller adds this dict to a container as a finished value, and
    /// therefore does not call [`Building::begin`] for it.
    #[inline(always)]
    pub(crate) fn empty_dict(&mut self) -> PyResult<Bound<'py, PyAny>> {
        self.has_container();
        // SAFETY: attached; a new dict, or null with an error.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyDict_New()) }
    }

    /// Calls `run`, which may run Python code that the user has passed, such as a hook. The garbage
    /// collector is enabled during the call.
    #[inline]
    pub(crate) fn with_foreign<R>(&mut self, run: impl FnOnce() -> R) -> R {
        let is_held = self.no_collection.take().is_some();
        let made = run();
        self.no_collection = is_held.then(|| HeldOff::new(self.py));
        made
    }

    /// Returns the number of open lists and dicts.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.state.frames.len()
    }

    /// Records that a value of the innermost open list or dict can contain other objects, as a list
    /// or dict can.
    #[inline(always)]
    pub(crate) fn has_container(&mut self) {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.has_container = true;
        }
    }

    /// Ends the innermost list and returns it.
    ///
    /// # Panics
    /// If the innermost open container is not a list, which is a bug of the caller.
    #[inline(always)]
    pub(crate) fn end_list(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let frame = self.end(false);
        let pending = Pending::take(&mut self.state.waiting, frame.start);
        // SAFETY: the values from the start on are the pending ones of this list, each with a
        // reference of ours; the container is null or a list that `containers` has made of earlier
        // ones.
        unsafe { containers::list(py, pending, frame.container) }
    }

    /// Ends the innermost dict. Returns the dict, and `true` if one of its keys occurred more than
    /// once.
    ///
    /// # Panics
    /// If the innermost open container is not a dict, which is a bug of the caller.
    #[inline(always)]
    pub(crate) fn end_dict(&mut self) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let py = self.py;
        let frame = self.end(true);
        let BuilderCache {
            waiting, shapes, ..
        } = &mut **self.state;
        let pending = Pending::take(waiting, frame.start);
        if frame.container.is_null() {
            // SAFETY: the values from the start on are the pending ones of this dict, keys and
            // values by turns, each with a reference of ours.
            let made = unsafe { shapes.copy(py, pending.items(), frame.has_container) };
            if let Some(made) = made {
                return Ok((made, false));
            }
        }
        // SAFETY: the values from the start on are the pending ones of this dict, keys and values
        // by turns, each with a reference of ours; the container is null or a dict that
        // `containers` has made of earlier ones.
        unsafe { containers::dict(py, pending, frame.container, frame.n_put) }
    }

    /// Removes the innermost container from the open containers, and restores the key prediction of
    /// the enclosing object.
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

    /// Returns the complete object. Must be called after the last event.
    ///
    /// # Panics
    /// If a container is open, or if the number of values is not one. Both are bugs of the caller.
    #[inline]
    pub(crate) fn finish(mut self) -> Bound<'py, PyAny> {
        assert!(self.state.frames.is_empty() && self.state.waiting.len() == 1);
        let value = self.state.waiting.pop().expect("counted");
        // SAFETY: an object with a reference of ours, which is passed on.
        unsafe { Bound::from_owned_ptr(self.py, value) }
    }

    /// Makes space for more pending values: moves all pending values into the lists and dicts to
    /// which they belong. A list or dict that does not exist yet is created.
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
            // In a dict, the key whose value is not complete yet remains pending.
            let n_waiting_on = usize::from(frame.is_dict && !(end - start).is_multiple_of(2));
            let n = end - start - n_waiting_on;
            // If an exception is raised below, each value that was moved is null. `drop` releases
            // the other values.
            let items = &mut waiting[start..start + n];
            if n > 0 {
                frame.n_put += n / 2;
                // SAFETY: the pending values of this container, with a reference of ours each; the
                // container is null or was made here before. Each item is taken, and null then.
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
            // With thousands of nested dicts, the keys that remain pending fill the space.
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
