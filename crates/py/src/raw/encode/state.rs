//! `EncoderState`: the state of an encoder for any format.

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

/// The error for containers or `default` calls that are nested too deeply.
pub(super) struct TooDeep {
    pub(super) is_circular: bool,
}

/// The state of an encoder for any format, without the write position.
pub(super) struct EncoderState<'py> {
    pub(super) frames: Frames<'py>,
    pub(super) keys: KeyCache,
    /// The reason and the position of the last interruption.
    pub(super) interruption: Interruption,
    /// The classes and time zones since the last Python code.
    pub(super) recent: RecentObjects,
    /// The key order of the last sorted `dict`.
    pub(super) recent_order: RecentOrder,
    /// The cached class of the next dataclass instance. The pointer is valid until Python code
    /// runs.
    pub(super) found: *const Class,
    /// The reason for the last object that the fast path did not write.
    pub(super) unwritten: Step,
    /// The classes of the open dataclass instances.
    pub(super) classes: Vec<Rc<Class>>,
    /// A guard from the first Python code on. It makes the nested [`gil::calls`] faster.
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

    /// Prepares the state for Python code. The frames then own their containers, and the caches are
    /// empty.
    pub(super) fn before_code(&mut self) {
        self.crossing.get_or_insert_with(gil::Crossing::begin);
        self.frames.own();
        self.forget();
    }

    /// Clears the caches of keys, classes and time zones. These objects may no longer exist, because
    /// Python code has run, or an object was released.
    pub(super) fn forget(&mut self) {
        self.keys.forget();
        self.recent_order.clear();
        self.recent = RecentObjects::NONE;
        self.found = std::ptr::null();
    }

    /// Completes the frames after an interruption of the loop. `n` is the number of earlier frames.
    /// The later frames are reversed.
    #[inline(always)]
    pub(super) fn settle(&mut self, n: usize) {
        if self.interruption.reason != ExitReason::Done {
            self.frames.settle(n, self.interruption.at);
        }
    }

    /// Returns the index of `class` in `classes`. Adds a missing class.
    pub(super) fn index_of_class(&mut self, class: Rc<Class>) -> isize {
        frames::index_of_class(&mut self.classes, class)
    }

    /// Returns an error if `max_depth` containers are already open.
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
        // The frame of a replacement is not a container.
        let mut around = self.frames.iter().filter(|f| f.form != ContainerForm::Held);
        TooDeep {
            is_circular: around.any(|f| f.object == object),
        }
    }

    /// Returns an error if more than `max_depth` open objects are replacements, such as results of
    /// `default`.
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

    /// Pushes a frame for an instance of a class derived from list or tuple. Returns `false` if it
    /// is empty.
    pub(super) fn push_items(&mut self, object: Bound<'py, PyAny>) -> bool {
        // SAFETY: the caller guarantees a list or tuple; its size is the number of items.
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

    /// Returns the next key of `frame` and advances its position. `None` at the end, and for
    /// containers without keys.
    ///
    /// # Safety
    /// `frame` must be the innermost frame. The borrowed key is valid until Python code runs.
    pub(super) unsafe fn next_key(
        &mut self,
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
                    let members = SortedMembers::of_unchanged(
                        frame.object,
                        frame.start,
                        &mut self.recent_order,
                    );
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

    /// Returns the value of the last key of [`EncoderState::next_key`]. `None` if a `dict` has
    /// changed its size, or if an attribute is not at its expected position.
    ///
    /// # Safety
    /// The requirements of [`EncoderState::next_key`] apply. It must have returned a key.
    pub(super) unsafe fn value_of_key(
        &mut self,
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
                ContainerForm::SortedDict => {
                    let members = SortedMembers::of_unchanged(
                        frame.object,
                        frame.start,
                        &mut self.recent_order,
                    );
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

    /// Returns the attribute `name` of the dataclass instance `object`. A new frame keeps the value
    /// alive. Python code may run.
    ///
    /// # Errors
    /// The exception of the Python code.
    ///
    /// # Safety
    /// The innermost frame must be for `object`, and `name` must be one of its fields.
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

    /// Returns the path to the current value, such as `$.rows[3].price`.
    pub(super) fn path(&self) -> String {
        let mut path = String::from("$");
        for frame in self.frames.iter() {
            // SAFETY: attached. Each frame's object is alive: its container or the frame owns it.
            unsafe { frames::append_step(self.py(), frame, &self.classes, &mut path) };
        }
        path
    }
}
