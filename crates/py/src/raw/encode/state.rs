//! `EncoderState`: the part of an encoder's state that is the same for all output formats.

use std::rc::Rc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::classes::Class;
use super::format::Step;
use super::frames::{self, ContainerForm, ContainerFrame, Frames};
use super::key_cache::KeyCache;
use super::members::{ExitReason, Interruption};
use super::sorted::{RecentOrder, SortedMembers};
use super::standard_types::RecentObjects;
use super::{builtin_types, dict};
use crate::raw::gil;

/// The error that containers, or calls to `default`, are nested more deeply than the limit allows.
pub(super) struct TooDeep {
    pub(super) is_circular: bool,
}

/// The part of an encoder's state that does not depend on the output format. It does not contain
/// the write position.
pub(super) struct EncoderState<'py> {
    pub(super) frames: Frames<'py>,
    pub(super) keys: KeyCache,
    /// Why, and at which member, the loop over a container's members was last interrupted.
    pub(super) interruption: Interruption,
    /// A cache of the classes and time zones that were looked up since Python code last ran.
    pub(super) recent: RecentObjects,
    /// The order of the keys of the `dict` that was sorted last.
    pub(super) recent_order: RecentOrder,
    /// The cached properties of the class of the dataclass instance that is written next. The
    /// pointer is valid until Python code runs.
    pub(super) found: *const Class,
    /// The reason why the fast path did not write an object; set each time when it writes nothing.
    pub(super) unwritten: Step,
    /// The classes of all dataclass instances on the stack of open containers.
    pub(super) classes: Vec<Rc<Class>>,
    /// Set before Python code runs for the first time. Until the encoder is dropped, the calls of
    /// [`gil::calls`] are nested in it, which is faster.
    crossing: Option<gil::Crossing>,
}

impl<'py> EncoderState<'py> {
    #[inline(always)]
    pub(super) fn new(py: Python<'py>) -> EncoderState<'py> {
        EncoderState {
            frames: Frames::new(py),
            keys: KeyCache::new(),
            interruption: Interruption::NONE,
            recent: RecentObjects::NONE,
            recent_order: RecentOrder::NONE,
            found: std::ptr::null(),
            unwritten: Step::Done,
            classes: Vec::new(),
            crossing: None,
        }
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.frames.py()
    }

    /// Prepares the state for Python code, which may free or change any object: makes the frames
    /// own the references to their containers, and clears the caches of keys, classes and time
    /// zones. It must be called before any Python code runs.
    pub(super) fn before_code(&mut self) {
        self.crossing.get_or_insert_with(gil::Crossing::begin);
        self.frames.own();
        self.forget_keys();
        self.recent = RecentObjects::NONE;
        self.found = std::ptr::null();
    }

    /// Clears the caches of keys, whose `str` may have been freed.
    pub(super) fn forget_keys(&mut self) {
        self.keys.forget();
        self.recent_order.clear();
    }

    /// Completes the stack of container frames after the loop over members was interrupted. `n` is
    /// the number of frames that existed before the loop. The method stores the position of the
    /// next member in frame `n - 1`, and reverses the order of the later frames, because they were
    /// pushed from the innermost container to the outermost. If the loop was not interrupted, the
    /// method does nothing.
    #[inline(always)]
    pub(super) fn settle(&mut self, n: usize) {
        if self.interruption.reason != ExitReason::Done {
            self.frames.settle(n, self.interruption.at);
        }
    }

    /// Returns the index of `class` in the list `classes`. Adds the class to the list if it is
    /// missing.
    pub(super) fn index_of_class(&mut self, class: Rc<Class>) -> isize {
        frames::index_of_class(&mut self.classes, class)
    }

    /// Returns an error if `max_depth` containers are already open, so that entering `object` would
    /// exceed the limit.
    #[inline(always)]
    pub(super) fn check_depth(
        &self,
        object: *mut ffi::PyObject,
        max_depth: usize,
    ) -> Result<(), TooDeep> {
        if self.frames.depth() >= max_depth {
            return Err(self.too_deep(object));
        }
        Ok(())
    }

    #[cold]
    fn too_deep(&self, object: *mut ffi::PyObject) -> TooDeep {
        // A replacement is kept alive by a frame of its own, which is not a container.
        let mut around = self.frames.iter().filter(|f| f.form != ContainerForm::Held);
        TooDeep {
            is_circular: around.any(|f| f.object == object),
        }
    }

    /// Limits chains of replacements. A replacement is an object that is written instead of another
    /// one, for example a result of `default`. Returns an error if more than `max_depth` of the
    /// objects that are being written are replacements. Replacements do not count as containers, so
    /// an object with one replacement can be written at any depth.
    pub(super) fn check_held(
        &self,
        object: *mut ffi::PyObject,
        max_depth: usize,
    ) -> Result<(), TooDeep> {
        if self.frames.n_held() <= max_depth {
            return Ok(());
        }
        Err(TooDeep {
            is_circular: self.frames.iter().any(|f| f.object == object),
        })
    }

    /// Pushes a frame for the items of an instance of a class derived from list or tuple. If the
    /// instance has no items, pushes no frame and returns `false`.
    pub(super) fn push_items(&mut self, object: Bound<'py, PyAny>) -> bool {
        // SAFETY: a list or tuple, as the caller guarantees, whose size is the number of items.
        let n = unsafe { ffi::Py_SIZE(object.as_ptr()) };
        let form = match object.is_instance_of::<PyList>() {
            true => ContainerForm::List,
            false => ContainerForm::Tuple,
        };
        if n != 0 {
            self.frames.push_owned(object, form, n);
        }
        n != 0
    }

    /// Returns the next key of the container in `frame`, and advances the position in the frame.
    /// Returns `None` after the last key, and for containers without keys.
    ///
    /// # Safety
    /// `frame` must be the innermost frame. The returned reference to the key is borrowed, and
    /// valid until Python code runs.
    pub(super) unsafe fn next_key(
        &self,
        frame: *mut ContainerFrame,
        private: bool,
    ) -> Option<*mut ffi::PyObject> {
        // SAFETY: the frame's object is alive, and of its form.
        unsafe {
            let frame = &mut *frame;
            match frame.form {
                ContainerForm::Dict => {
                    let entries = dict::entries(frame.object);
                    entries
                        .next(frame.object, &mut frame.at)
                        .map(|(key, _)| key)
                }
                ContainerForm::SortedDict => {
                    let members = SortedMembers::without_recent(frame.object);
                    members?.next(&mut frame.at).map(|(key, _)| key)
                }
                ContainerForm::Pairs => {
                    let items = builtin_types::items(frame.object, true);
                    frame.at += 2;
                    items.get(frame.at.cast_unsigned() - 2).copied()
                }
                ContainerForm::Fields => {
                    let class = &self.classes[frame.n.cast_unsigned()];
                    class.fields()?.next_name(private, &mut frame.at)
                }
                _ => None,
            }
        }
    }

    /// Returns the value of the key that [`EncoderState::next_key`] returned last. Returns `None`
    /// if the number of entries of a `dict` has changed, or if a dataclass instance does not store
    /// the attribute at the position that was determined for its class.
    ///
    /// # Safety
    /// The same requirements as for [`EncoderState::next_key`], which must have returned a key.
    pub(super) unsafe fn value_of_key(
        &self,
        frame: *const ContainerFrame,
    ) -> Option<*mut ffi::PyObject> {
        // SAFETY: the frame's object is alive, and of its form.
        unsafe {
            let frame = &*frame;
            match frame.form {
                ContainerForm::Dict if dict::len(frame.object) == frame.n => {
                    let mut at = frame.at - 1;
                    let entries = dict::entries(frame.object);
                    entries.next(frame.object, &mut at).map(|(_, value)| value)
                }
                ContainerForm::SortedDict if dict::len(frame.object) == frame.n => {
                    let members = SortedMembers::without_recent(frame.object);
                    members?.next(&mut (frame.at - 1)).map(|(_, value)| value)
                }
                ContainerForm::Pairs => {
                    let items = builtin_types::items(frame.object, true);
                    items.get(frame.at.cast_unsigned() - 1).copied()
                }
                ContainerForm::Fields => {
                    let class = &self.classes[frame.n.cast_unsigned()];
                    let is_of_it = class.is_of(frame.object);
                    let fields = class.fields().filter(|_| is_of_it)?;
                    fields.value_before(frame.object, frame.at)
                }
                _ => None,
            }
        }
    }

    /// Returns the value of the attribute `name` of `object`, the dataclass instance in the
    /// innermost frame. A new frame keeps the value alive. Any Python code may run.
    ///
    /// # Errors
    /// The exception that Python code raises while the attribute is read.
    ///
    /// # Safety
    /// The innermost frame must be for `object`, which is a dataclass instance, and `name` must be
    /// the name of one of its fields.
    pub(super) unsafe fn attribute(
        &mut self,
        object: *mut ffi::PyObject,
        name: *mut ffi::PyObject,
    ) -> PyResult<*mut ffi::PyObject> {
        self.before_code();
        // SAFETY: both are alive: the frame holds the object, and its class the name.
        let (object, name) = unsafe {
            let name = Bound::from_borrowed_ptr(self.py(), name);
            let object = Bound::from_borrowed_ptr(self.py(), object);
            (object, name.cast_into_unchecked::<PyString>())
        };
        let value = gil::calls(self.py(), || object.getattr(name))?;
        let borrowed = value.as_ptr();
        self.frames.push_owned(value, ContainerForm::Held, 0);
        Ok(borrowed)
    }

    /// Returns the path to the value that is being written, such as `$.rows[3].price`.
    pub(super) fn path(&self) -> String {
        let mut path = String::from("$");
        for frame in self.frames.iter() {
            // SAFETY: attached, and each frame's object is alive: borrowed from what holds it, or
            // ours.
            unsafe { frames::append_step(self.py(), frame, &self.classes, &mut path) };
        }
        path
    }
}
