//! `Frames`: the stack of an encoder's open containers. A container is open until all its members
//! have been written. The entries of the stack are called frames.

use std::cell::Cell;
use std::fmt::Write as _;
use std::rc::Rc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

use super::classes::Class;
use super::sorted::SortedMembers;
use super::{builtin_types, dict};
use crate::raw::text;

/// The type of a container, and how the container is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerForm {
    /// A list, written as an array.
    List,
    /// A tuple, written as an array.
    Tuple,
    /// A `dict`, written as an object.
    Dict,
    /// A `dict` whose members are sorted in place, written as an object. The position in the frame
    /// is the index of the next member in the order of the keys.
    SortedDict,
    /// A list in which keys and values alternate, written as an object.
    Pairs,
    /// A list or tuple of rows, written as an array of objects.
    Rows,
    /// A row, written as an object whose keys are passed separately. The row is a list if the
    /// frame's `n` is 1, otherwise a tuple.
    Row,
    /// A tuple of columns, each of which is a list or tuple. It is written as an array that
    /// contains an object for each row.
    Columns,
    /// An instance of a dataclass, written as an object. The field `n` of the frame is the index of
    /// the instance's class in the encoder's list of dataclasses.
    Fields,
    /// Not a container: an object that is written instead of another object. The frame keeps it
    /// alive.
    Held,
}

/// The state of a container (list, `dict`, …) whose members are being written.
#[derive(Debug)]
pub(super) struct ContainerFrame {
    pub(super) object: *mut ffi::PyObject,
    pub(super) form: ContainerForm,
    /// `true` if the frame owns a reference to the container, `false` if the reference is borrowed.
    owned: bool,
    /// The position of the next member: its index, or for a `dict` the position for `PyDict_Next`.
    pub(super) at: isize,
    /// The number of members at the time when the container was entered. If the number of entries
    /// of a `dict` changes later, the encoder returns an error. For some variants of `form`, this
    /// field has another meaning, which the documentation of the variant describes.
    pub(super) n: isize,
    /// The offset of the container in the output, for a format that writes the length of a
    /// container at its start; otherwise 0.
    pub(super) start: usize,
}

thread_local! {
    /// The memory in which the previous encoder of this thread stored its frames. The next encoder
    /// reuses it, so that writing a small object needs no allocation for frames.
    static ROOM: Cell<Vec<ContainerFrame>> = const { Cell::new(Vec::new()) };
}

/// The largest capacity, in frames, of a stack that is kept in [`ROOM`] for the next encoder.
const KEPT: usize = 64;

/// The stack of the open containers of an encoder, the outermost first. Each frame contains a
/// reference to its container.
///
/// The references in frames are borrowed as long as no Python code runs, because no container
/// inside the outermost one can then be freed. Before Python code runs, [`Frames::own`] converts
/// them to owned references.
pub(super) struct Frames<'py> {
    frames: Vec<ContainerFrame>,
    /// The number of frames that own the reference to their object. They are the outermost frames,
    /// at the bottom of the stack.
    n_owned: u32,
    /// The number of frames of the form `Held`, which keep an object alive and are not containers.
    n_held: u32,
    py: Python<'py>,
}

impl<'py> Frames<'py> {
    pub(super) fn new(py: Python<'py>) -> Frames<'py> {
        Frames {
            frames: ROOM.take(),
            n_owned: 0,
            n_held: 0,
            py,
        }
    }

    /// Returns the number of frames of the form `Held`, which keep an object alive and are not
    /// containers.
    pub(super) fn n_held(&self) -> usize {
        self.n_held as usize
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the number of open containers.
    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        self.frames.len() - self.n_held as usize
    }

    #[inline(always)]
    pub(super) fn last_mut(&mut self) -> Option<&mut ContainerFrame> {
        self.frames.last_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ContainerFrame> {
        self.frames.iter()
    }

    /// Pushes a frame for a container, with a borrowed reference.
    ///
    /// # Safety
    /// The container must be alive, and its form must be `form`. The outermost object must keep it
    /// alive, directly or indirectly, until Python code runs.
    #[inline(always)]
    pub(super) unsafe fn push(
        &mut self,
        object: *mut ffi::PyObject,
        form: ContainerForm,
        n: isize,
    ) {
        // SAFETY: the caller guarantees the requirements.
        unsafe { self.push_at(object, form, n, 0, 0) };
    }

    /// Pushes a frame for a container with a borrowed reference, like [`Frames::push`]. The
    /// container begins at offset `start` of the output, and `at` is the position of its next
    /// member.
    ///
    /// # Safety
    /// The same requirements as for [`Frames::push`].
    #[inline(always)]
    pub(super) unsafe fn push_at(
        &mut self,
        object: *mut ffi::PyObject,
        form: ContainerForm,
        n: isize,
        at: isize,
        start: usize,
    ) {
        self.frames.push(ContainerFrame {
            object,
            form,
            owned: false,
            at,
            n,
            start,
        });
    }

    /// Sets the position of frame `n - 1` to `at`. Then reverses the order of the frames from index
    /// `n` on, because these frames were pushed in the wrong order: the innermost container first.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, n: usize, at: isize) {
        if let Some(frame) = n.checked_sub(1).and_then(|i| self.frames.get_mut(i)) {
            frame.at = at;
        }
        self.frames[n..].reverse();
    }

    /// Pushes a frame that owns the reference `object`. All earlier frames become owners of their
    /// references too, because the later release of `object` may run Python code.
    pub(super) fn push_owned(&mut self, object: Bound<'py, PyAny>, form: ContainerForm, n: isize) {
        self.own();
        self.n_held += u32::from(form == ContainerForm::Held);
        self.frames.push(ContainerFrame {
            object: object.into_ptr(),
            form,
            owned: true,
            at: 0,
            n,
            start: 0,
        });
        self.n_owned = self.n_frames();
    }

    /// Returns the number of frames. 32 bits are sufficient, because the depth is limited. With a
    /// 32-bit counter, the initial state of an encoder has at most 128 bytes, which the compiler
    /// moves without a call to `memcpy`.
    fn n_frames(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Pops the innermost frame. Returns `true` if the frame owned the reference to its object. In
    /// this case the reference was released, which may have run any Python code.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> bool {
        match self.frames.pop() {
            Some(frame) if frame.owned => {
                self.release(&frame);
                true
            }
            _ => false,
        }
    }

    #[cold]
    fn release(&mut self, frame: &ContainerFrame) {
        self.n_owned = self.n_owned.min(self.n_frames());
        self.n_held -= u32::from(frame.form == ContainerForm::Held);
        // Releasing the reference may run Python code, so the enclosing containers must be owned.
        // They are: when a frame becomes owned, all frames before it do too.
        // SAFETY: attached, by the lifetime; the reference is ours.
        unsafe { ffi::Py_DECREF(frame.object) };
    }

    /// Makes all frames own the references to their containers. It is called before Python code
    /// runs, because such code could release the other references to the containers.
    pub(super) fn own(&mut self) {
        for frame in &mut self.frames[self.n_owned as usize..] {
            if !frame.owned {
                // SAFETY: attached; no Python code has run since the frame was pushed, or it would
                // be owned: it is alive.
                unsafe { ffi::Py_INCREF(frame.object) };
                frame.owned = true;
            }
        }
        self.n_owned = self.n_frames();
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.py
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        while !self.frames.is_empty() {
            self.pop();
        }
        if self.frames.capacity() <= KEPT {
            ROOM.set(std::mem::take(&mut self.frames));
        }
    }
}

/// Returns the index of `class` in `classes`, the list of the classes of all dataclass instances
/// that have a frame. Adds the class if the list does not contain it.
pub(super) fn index_of_class(classes: &mut Vec<Rc<Class>>, class: Rc<Class>) -> isize {
    let found = classes.iter().rposition(|known| Rc::ptr_eq(known, &class));
    let index = found.unwrap_or_else(|| {
        classes.push(class);
        classes.len() - 1
    });
    index as isize
}

/// Appends one step to a path, such as `[3]` or `.price`. The step identifies the most recently
/// written member of the frame's container.
///
/// # Safety
/// The GIL must be held, and the frame's object must be alive.
pub(super) unsafe fn append_step(
    py: Python<'_>,
    frame: &ContainerFrame,
    classes: &[Rc<Class>],
    path: &mut String,
) {
    let at = frame.at.unsigned_abs();
    let key = match frame.form {
        ContainerForm::Held => return,
        ContainerForm::List | ContainerForm::Tuple | ContainerForm::Rows | ContainerForm::Row => {
            let _ = write!(path, "[{}]", at.saturating_sub(1));
            return;
        }
        ContainerForm::Columns => {
            // SAFETY: alive, a tuple.
            let n = unsafe { ffi::Py_SIZE(frame.object) }.unsigned_abs().max(1);
            let at = at.saturating_sub(1);
            let _ = write!(path, "[{}][{}]", at / n, at % n);
            return;
        }
        ContainerForm::Fields => classes
            .get(frame.n.unsigned_abs())
            .and_then(|class| class.fields()?.name_before(frame.at)),
        ContainerForm::Pairs => {
            // SAFETY: alive, a list.
            let items = unsafe { builtin_types::items(frame.object, true) };
            at.checked_sub(2).and_then(|i| items.get(i).copied())
        }
        // SAFETY: alive, a `dict`.
        ContainerForm::Dict => unsafe { last_key(frame) },
        // SAFETY: alive, a `dict`; no code runs.
        ContainerForm::SortedDict => unsafe {
            let members = SortedMembers::without_recent(frame.object);
            members.and_then(|members| members.next(&mut (frame.at - 1)).map(|(key, _)| key))
        },
    };
    if let Some(key) = key {
        // SAFETY: borrowed from the container, as no code runs.
        append_key(unsafe { Borrowed::from_ptr(py, key) }, path);
    }
}

/// Returns the last key before the position `frame.at` in the frame's `dict`. This key is the most
/// recently written one.
///
/// # Safety
/// The frame's object must be a live `dict`.
unsafe fn last_key(frame: &ContainerFrame) -> Option<*mut ffi::PyObject> {
    let (mut at, mut found) = (0, None);
    // SAFETY: the caller guarantees the requirements; no code runs.
    unsafe {
        let entries = dict::entries(frame.object);
        while at < frame.at
            && let Some((key, _)) = entries.next(frame.object, &mut at)
        {
            found = Some(key);
        }
    }
    found
}

/// Appends a key to a path, as `.name`, or as `['other name']` if the key is not an identifier.
/// Long keys are shortened.
fn append_key(key: Borrowed<'_, '_, PyAny>, path: &mut String) {
    const MOST: usize = 40;
    let name = match key.cast::<PyString>() {
        Ok(_) => text::own_units(text::as_str_object(key)).map_or_else(
            |_| String::new(),
            |units| {
                onecopy_text::naive::code_points(units)
                    .take(MOST)
                    .map(|c| {
                        c.ok()
                            .and_then(char::from_u32)
                            .unwrap_or(char::REPLACEMENT_CHARACTER)
                    })
                    .collect()
            },
        ),
        Err(_) => return path.push_str("[…]"),
    };
    let is_name = |c: char| c == '_' || c.is_alphanumeric();
    let _ = if !name.is_empty() && name.chars().all(is_name) {
        write!(path, ".{name}")
    } else {
        write!(path, "[{name:?}]")
    };
}
