//! The stack of an encoder's open containers. Its entries are called frames.

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

/// The type of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerForm {
    /// Written as an array.
    List,
    /// Written as an array.
    Tuple,
    /// Written as an object.
    Dict,
    /// A `dict` that is sorted in place. The position in the frame is an index in the order of the
    /// keys.
    SortedDict,
    /// A list of alternating keys and values, written as an object.
    Pairs,
    /// A list or tuple of rows, written as an array of objects.
    Rows,
    /// A row, written as an object with separate keys. It is a list if `n` is 1, otherwise a tuple.
    Row,
    /// A tuple of columns, written as an array with an object for each row.
    Columns,
    /// An instance of a dataclass. `n` is the index of its class in the encoder's list.
    Fields,
    /// Not a container: the frame keeps an object alive.
    Held,
}

/// The state of an open container.
#[derive(Debug)]
pub(super) struct ContainerFrame {
    pub(super) object: *mut ffi::PyObject,
    pub(super) form: ContainerForm,
    /// `true` if the frame owns its reference to the container.
    owned: bool,
    /// The position of the next member: an index, or for a `dict` the position for `PyDict_Next`.
    pub(super) at: isize,
    /// The number of members at the start. If the size of a `dict` changes later, the encoder
    /// fails. Some variants of `form` give this field another meaning.
    pub(super) n: isize,
    /// The offset of the container in the output, if the format writes a length there. For
    /// `SortedDict`, the fingerprint of its keys.
    pub(super) start: usize,
}

thread_local! {
    /// The allocation of this thread's previous encoder. The next encoder reuses it.
    static ROOM: Cell<Vec<ContainerFrame>> = const { Cell::new(Vec::new()) };
}

/// The largest capacity, in frames, that [`ROOM`] keeps.
const KEPT: usize = 64;

/// The stack of an encoder's open containers, the outermost first.
///
/// References are borrowed while no Python code runs, because no container can then be freed.
/// [`Frames::own`] makes them owned before Python code runs.
pub(super) struct Frames<'py> {
    frames: Vec<ContainerFrame>,
    /// The number of frames with an owned reference. They are the outermost frames.
    n_owned: u32,
    /// The number of frames of the form `Held`, which are not containers.
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

    /// Returns the number of frames of the form `Held`.
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

    /// Pushes a frame with a borrowed reference.
    ///
    /// # Safety
    /// The container must be alive and of the form `form`. The outermost object must keep it alive
    /// until Python code runs.
    #[inline(always)]
    pub(super) unsafe fn push(
        &mut self,
        object: *mut ffi::PyObject,
        form: ContainerForm,
        n: isize,
    ) {
        // SAFETY: as the caller guarantees.
        unsafe { self.push_at(object, form, n, 0, 0) };
    }

    /// Same as [`Frames::push`]. `start` is the container's offset in the output, and `at` the
    /// position of its next member.
    ///
    /// # Safety
    /// Same as [`Frames::push`].
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

    /// Sets the position of frame `n - 1`, and reverses the frames from `n` on. They were pushed
    /// with the innermost container first.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, n: usize, at: isize) {
        if let Some(frame) = n.checked_sub(1).and_then(|i| self.frames.get_mut(i)) {
            frame.at = at;
        }
        self.frames[n..].reverse();
    }

    /// Pushes a frame with an owned reference. All other frames become owners too, because the
    /// release of `object` may run Python code.
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

    /// 32 bits keep the encoder's initial state at 128 bytes, which the compiler moves without
    /// `memcpy`.
    fn n_frames(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Pops the innermost frame. Returns `true` if its reference was released, which may have run
    /// Python code.
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
        // The release may run Python code, so all outer frames are owned already. SAFETY: attached,
        // by the lifetime, and the reference is ours.
        unsafe { ffi::Py_DECREF(frame.object) };
    }

    /// Makes all references owned. Must be called before Python code runs.
    pub(super) fn own(&mut self) {
        for frame in &mut self.frames[self.n_owned as usize..] {
            if !frame.owned {
                // SAFETY: attached. The object is alive, because no Python code has run since the
                // frame was pushed.
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

/// Returns the index of `class` in `classes`. Adds a missing class.
pub(super) fn index_of_class(classes: &mut Vec<Rc<Class>>, class: Rc<Class>) -> isize {
    let found = classes.iter().rposition(|known| Rc::ptr_eq(known, &class));
    let index = found.unwrap_or_else(|| {
        classes.push(class);
        classes.len() - 1
    });
    index as isize
}

/// Appends the most recent member to a path, for example `[3]` or `.price`.
///
/// # Safety
/// The caller must hold the GIL, and the frame's object must be alive.
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
        // SAFETY: borrowed from the container, because no code runs.
        append_key(unsafe { Borrowed::from_ptr(py, key) }, path);
    }
}

/// Returns the most recently written key of a `dict`.
///
/// # Safety
/// The frame's object must be a live `dict`.
unsafe fn last_key(frame: &ContainerFrame) -> Option<*mut ffi::PyObject> {
    let (mut at, mut found) = (0, None);
    // SAFETY: as the caller guarantees. No code runs.
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

/// Appends a key to a path, as `.name` or `['other name']`. Long keys are shortened.
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
