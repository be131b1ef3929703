//! The values that wait for the end of their list or dict.
//!
//! A container is made at its end, when it is known how many items it has: lists of the right size, dicts without a resize.
//! What waits is bounded: past some thousand values, what there is of each open container goes into it, and it grows from
//! there in place.

use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use super::containers::{self, Pending};
use super::keys::{Keys, NONE};
use super::shapes::Shapes;
use super::values::{self, Values};
use crate::raw::collector::HeldOff;

/// Values that wait, keys among them, before they are put into their containers.
const MOST_WAITING: usize = 2048;

/// Levels whose memory is kept for the next call.
const KEPT_LEVELS: usize = 1024;

/// An open list or dict.
struct Frame {
    /// Where its items start among those that wait.
    start: usize,
    /// The list or dict, where items were put into it already.
    container: *mut ffi::PyObject,
    /// What the keys' guesses were before it.
    before: Guess,
    is_dict: bool,
    /// Whether one of its values may hold others.
    has_container: bool,
    /// Keys that were put into it already, each as often as it stands there.
    n_put: usize,
}

/// Where one is among the keys: what the next one is guessed from.
#[derive(Clone, Copy)]
struct Guess {
    /// The key before in the same object, or [`NONE`].
    last: u16,
    /// The key whose value the container is.
    owner: u16,
}

/// What is kept from one call to the next: memory, and the keys that were seen.
struct State {
    waiting: Vec<*mut ffi::PyObject>,
    frames: Vec<Frame>,
    keys: Keys,
    shapes: Shapes,
    values: Values,
}

/// The state of the last call, where none is under way. A call takes it and puts it back: one inside of another, or in another
/// thread, makes its own. What it holds belongs to the one interpreter that this module is for, in each process of a fork.
static KEPT: AtomicPtr<State> = AtomicPtr::new(null_mut());

/// A value under construction.
pub(crate) struct Building<'py> {
    py: Python<'py>,
    /// Always there until the drop.
    state: ManuallyDrop<Box<State>>,
    guess: Guess,
    /// The key that is likely to come next, or [`NONE`].
    likely: u16,
    no_collection: Option<HeldOff<'py>>,
}

impl<'py> Building<'py> {
    /// Nothing yet. Where `is_alone`, no foreign code runs until it is done, and the collector is held off.
    #[inline]
    pub(crate) fn new(py: Python<'py>, is_alone: bool) -> Building<'py> {
        let kept = KEPT.swap(null_mut(), Ordering::Acquire);
        let state = if kept.is_null() {
            new_state()
        } else {
            // SAFETY: made by `Box::into_raw` in `drop`, and taken out by the swap: nobody else has it.
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

    /// Adds a value, or a key where one is due.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        if self.state.waiting.len() == self.state.waiting.capacity() {
            self.spill()?;
        }
        self.state.waiting.push(value.into_ptr());
        Ok(())
    }

    /// Whether to look for a string of ASCII among those that were made before.
    #[inline(always)]
    pub(crate) fn is_looking(&mut self, len: usize) -> bool {
        (2..=values::MOST_BYTES).contains(&len) && self.state.values.is_worth_while()
    }

    /// The string of ASCII with this hash that was made before, if `is_it`.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        hash: u32,
        is_it: impl FnOnce(&[u8]) -> bool,
    ) -> Option<Bound<'py, PyAny>> {
        self.state.values.find(self.py, hash, is_it)
    }

    /// The string of ASCII that was found last, if `is_it`.
    #[inline(always)]
    pub(crate) fn find_last(
        &mut self,
        is_it: impl FnOnce(&[u8]) -> bool,
    ) -> Option<Bound<'py, PyAny>> {
        self.state.values.last(self.py, is_it)
    }

    /// Remembers a string of ASCII.
    #[inline(always)]
    pub(crate) fn remember(&mut self, hash: u32, string: &Bound<'py, PyAny>) {
        self.state.values.put(hash, string);
    }

    /// The key that is likely to come next, in UTF-8: all of it ASCII, unless the text is UTF-8 too.
    #[inline(always)]
    pub(crate) fn guess(&self, is_utf8: bool) -> Option<&[u8]> {
        let guess = self.state.keys.text(self.likely)?;
        (is_utf8 || self.state.keys.is_ascii(self.likely)).then_some(guess)
    }

    /// Adds the key of [`Building::guess`].
    #[inline(always)]
    pub(crate) fn push_likely_key(&mut self) -> PyResult<()> {
        let at = self.likely;
        let key = self.state.keys.get(self.py, at);
        self.guess.last = at;
        self.likely = self.state.keys.behind(at);
        self.push(key)
    }

    /// Where a key is, by a number that most texts have for themselves; else the place that it may take.
    #[inline(always)]
    pub(crate) fn find_key(&self, hash: u32, is_it: impl Fn(&[u8]) -> bool) -> Result<u16, u16> {
        self.state.keys.find(hash, is_it)
    }

    /// Puts a key that is the `str` of this UTF-8 into a place.
    pub(crate) fn keep_key(
        &mut self,
        at: u16,
        hash: u32,
        text: &[u8],
        key: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        self.state.keys.set(at, hash, text, key)
    }

    /// Adds the key of a place.
    #[inline(always)]
    pub(crate) fn push_kept_key(&mut self, at: u16) -> PyResult<()> {
        let keys = &mut self.state.keys;
        keys.learn(self.guess.last, self.guess.owner, at);
        let key = keys.get(self.py, at);
        self.guess.last = at;
        self.likely = keys.behind(at);
        self.push(key)
    }

    /// Adds any other key.
    #[inline]
    pub(crate) fn push_key(&mut self, key: Bound<'py, PyAny>) -> PyResult<()> {
        self.guess.last = NONE;
        self.likely = NONE;
        self.push(key)
    }

    /// Begins a list or dict.
    #[inline(always)]
    pub(crate) fn begin(&mut self, is_dict: bool) {
        let before = self.guess;
        let start = self.state.waiting.len();
        self.state.frames.push(Frame {
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

    /// A list without items, which needs no frame.
    #[inline(always)]
    pub(crate) fn empty_list(&mut self) -> PyResult<Bound<'py, PyAny>> {
        self.has_container();
        // SAFETY: attached; a new list, or null with an error.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyList_New(0)) }
    }

    /// A dict without keys, which needs no frame.
    #[inline(always)]
    pub(crate) fn empty_dict(&mut self) -> PyResult<Bound<'py, PyAny>> {
        self.has_container();
        // SAFETY: attached; a new dict, or null with an error.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyDict_New()) }
    }

    /// Runs code of others: the collector is on meanwhile.
    #[inline]
    pub(crate) fn with_foreign<R>(&mut self, run: impl FnOnce() -> R) -> R {
        let is_held = self.no_collection.take().is_some();
        let made = run();
        self.no_collection = is_held.then(|| HeldOff::new(self.py));
        made
    }

    /// Lists and dicts that are open.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.state.frames.len()
    }

    /// Notes that one of the values of the innermost container may hold others.
    #[inline(always)]
    pub(crate) fn has_container(&mut self) {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.has_container = true;
        }
    }

    /// The list that was begun last, taken out.
    ///
    /// # Panics
    /// Where none was begun: a bug of the caller (so for all below).
    #[inline(always)]
    pub(crate) fn end_list(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let frame = self.end(false);
        let pending = Pending::take(&mut self.state.waiting, frame.start);
        // SAFETY: the values from the start on are what waits for this list, each with a reference of ours; the container is
        // null or a list that `containers` has made of those before.
        unsafe { containers::list(py, pending, frame.container) }
    }

    /// The dict that was begun last, taken out, and whether a key stood in it twice.
    #[inline(always)]
    pub(crate) fn end_dict(&mut self) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let py = self.py;
        let frame = self.end(true);
        let State {
            waiting, shapes, ..
        } = &mut **self.state;
        let pending = Pending::take(waiting, frame.start);
        if frame.container.is_null() {
            // SAFETY: the values from the start on are what waits for this dict, keys and values by turns, each with a reference
            // of ours.
            let made = unsafe { shapes.copy(py, pending.items(), frame.has_container) };
            if let Some(made) = made {
                return Ok((made, false));
            }
        }
        // SAFETY: the values from the start on are what waits for this dict, keys and values by turns, each with a reference of
        // ours; the container is null or a dict that `containers` has made of those before.
        unsafe { containers::dict(py, pending, frame.container, frame.n_put) }
    }

    /// Takes the innermost container off.
    #[inline(always)]
    fn end(&mut self, is_dict: bool) -> Frame {
        let frame = self.state.frames.pop().expect("one was begun");
        assert!(frame.is_dict == is_dict);
        self.guess = frame.before;
        if frame.before.last != NONE {
            self.likely = self.state.keys.behind(frame.before.last);
        }
        self.has_container();
        frame
    }

    /// The value, once all was told.
    ///
    /// # Panics
    /// Where there is not exactly one: a bug of the caller.
    #[inline]
    pub(crate) fn finish(mut self) -> Bound<'py, PyAny> {
        assert!(self.state.frames.is_empty() && self.state.waiting.len() == 1);
        let value = self.state.waiting.pop().expect("counted");
        // SAFETY: an object with a reference of ours, which goes with it.
        unsafe { Bound::from_owned_ptr(self.py, value) }
    }

    /// Puts what waits into its containers, and makes room for more.
    #[cold]
    #[inline(never)]
    fn spill(&mut self) -> PyResult<()> {
        let State {
            waiting, frames, ..
        } = &mut **self.state;
        let mut kept = 0;
        let n_frames = frames.len();
        for i in 0..n_frames {
            let end = frames.get(i + 1).map_or(waiting.len(), |next| next.start);
            let frame = &mut frames[i];
            let start = frame.start;
            // The key of an open value, or of one that is yet to come, waits on.
            let n_waiting_on = usize::from(frame.is_dict && !(end - start).is_multiple_of(2));
            let n = end - start - n_waiting_on;
            // Where an error is raised below, each value has gone or is null.
            let items = &mut waiting[start..start + n];
            if n > 0 {
                frame.n_put += n / 2;
                // SAFETY: what waits for this container, with a reference of ours each; the container is null or what
                // this has made before. Each item is taken, and null then.
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
            // Thousands of levels of objects: a key waits for each.
            waiting.reserve(waiting.capacity());
        }
        Ok(())
    }
}

#[cold]
fn new_state() -> Box<State> {
    Box::new(State {
        waiting: Vec::with_capacity(MOST_WAITING),
        frames: Vec::with_capacity(64),
        keys: Keys::new(),
        shapes: Shapes::new(),
        values: Values::new(),
    })
}

impl Drop for Building<'_> {
    fn drop(&mut self) {
        let state = &mut *self.state;
        state.values.clear(self.py);
        // What is left where it failed. CPython takes deep ones apart without recursion.
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
        // SAFETY: this is the drop, and nothing looks at the state behind it.
        let state = unsafe { ManuallyDrop::take(&mut self.state) };
        let other = KEPT.swap(Box::into_raw(state), Ordering::AcqRel);
        if !other.is_null() {
            // SAFETY: as in `new`; its keys are let go while attached.
            let mut other = unsafe { Box::from_raw(other) };
            other.keys.clear(self.py);
            other.shapes.clear(self.py);
        }
    }
}
