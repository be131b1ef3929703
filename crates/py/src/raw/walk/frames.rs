//! Where the walk is: one frame for each container it is inside of.

use std::cell::Cell;
use std::fmt::Write as _;
use std::rc::Rc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

use super::classes::Class;
use super::{dict, object};
use crate::raw::text;

/// How a container is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A list, as an array.
    List,
    /// A tuple, as an array.
    Tuple,
    /// A `dict`, as an object.
    Dict,
    /// A list of keys and values in turn, as an object.
    Pairs,
    /// A list or tuple of rows, as an array.
    Rows,
    /// A row, a list (`n` is 1) or tuple, as an object whose keys are given apart.
    Row,
    /// A tuple of columns, each a list or tuple, as an array of such objects.
    Columns,
    /// An instance of a dataclass, as an object of its fields; `n` is the index of its class among those of the walk.
    Fields,
    /// Nothing is gone through: what stands for another object is kept alive.
    Held,
}

/// One container.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) object: *mut ffi::PyObject,
    pub(super) form: Form,
    /// Whether the reference is ours.
    owned: bool,
    /// How far it is gone through: an index, or the position in a `dict`.
    pub(super) at: isize,
    /// Items that it had at the start; of a `dict` it may not change.
    pub(super) n: isize,
    /// Where it begins in what is written, for a format that puts lengths in front; 0 else.
    pub(super) start: usize,
}

thread_local! {
    /// Room for frames that the last walk of this thread left: a walk of a small object allocates none.
    static ROOM: Cell<Vec<Frame>> = const { Cell::new(Vec::new()) };
}

/// Frames that room is kept for.
const KEPT: usize = 64;

/// The containers that the walk is inside of, the outermost first.
///
/// While no Python code runs nothing can be freed that hangs on the outermost object, so references are borrowed. Before any
/// Python code runs, [`Frames::own`] makes them ours.
pub(super) struct Frames<'py> {
    frames: Vec<Frame>,
    /// Frames up to here are owned, or need not be.
    n_owned: u32,
    /// Frames that are no containers.
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

    /// Frames that are no containers: what stands in place of another object.
    pub(super) fn n_held(&self) -> usize {
        self.n_held as usize
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Containers that the walk is inside of.
    #[inline(always)]
    pub(super) fn depth(&self) -> usize {
        self.frames.len() - self.n_held as usize
    }

    #[inline(always)]
    pub(super) fn last_mut(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter()
    }

    /// Goes inside of a container, borrowed.
    ///
    /// # Safety
    /// It is alive, of that form, and something that the outermost object holds keeps it so until Python code runs.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, object: *mut ffi::PyObject, form: Form, n: isize) {
        // SAFETY: the duty of the caller.
        unsafe { self.push_at(object, form, n, 0, 0) };
    }

    /// As [`Frames::push`], of one that begins at `start`, and is gone through up to `at`.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn push_at(
        &mut self,
        object: *mut ffi::PyObject,
        form: Form,
        n: isize,
        at: isize,
        start: usize,
    ) {
        self.frames.push(Frame {
            object,
            form,
            owned: false,
            at,
            n,
            start,
        });
    }

    /// Notes how far the innermost of the first `n` is gone through. Those after it were pushed
    /// from the innermost to the outermost, and are turned round.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&mut self, n: usize, at: isize) {
        if let Some(frame) = n.checked_sub(1).and_then(|i| self.frames.get_mut(i)) {
            frame.at = at;
        }
        self.frames[n..].reverse();
    }

    /// Goes inside of a container that nobody else holds.
    pub(super) fn push_owned(&mut self, object: Bound<'py, PyAny>, form: Form, n: isize) {
        self.own();
        self.n_held += u32::from(form == Form::Held);
        self.frames.push(Frame {
            object: object.into_ptr(),
            form,
            owned: true,
            at: 0,
            n,
            start: 0,
        });
        self.n_owned = self.n_frames();
    }

    /// The number of frames: the depth is limited, and 32 bits keep what an encoder begins with
    /// within 128 bytes, which are moved without a call of `memcpy`.
    fn n_frames(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Leaves the innermost container; whether a reference to it was given back, which may have run any code.
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
    fn release(&mut self, frame: &Frame) {
        self.n_owned = self.n_owned.min(self.n_frames());
        self.n_held -= u32::from(frame.form == Form::Held);
        // Giving it back may run Python code: what is around it must be ours by then. It is: a frame is owned only
        // together with all before it.
        // SAFETY: attached, by the lifetime; the reference is ours.
        unsafe { ffi::Py_DECREF(frame.object) };
    }

    /// Makes all references ours: to be called before Python code runs.
    pub(super) fn own(&mut self) {
        for frame in &mut self.frames[self.n_owned as usize..] {
            if !frame.owned {
                // SAFETY: attached; no Python code has run since the frame was pushed, or it would be owned: it is alive.
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

/// The index of a class among those that frames are of.
pub(super) fn index_of_class(classes: &mut Vec<Rc<Class>>, class: Rc<Class>) -> isize {
    let found = classes.iter().rposition(|known| Rc::ptr_eq(known, &class));
    let index = found.unwrap_or_else(|| {
        classes.push(class);
        classes.len() - 1
    });
    index as isize
}

/// Appends what leads from a container to the member that was written last: `[3]`, `.price`.
///
/// # Safety
/// Attached; the frame's object is alive.
pub(super) unsafe fn append_step(
    py: Python<'_>,
    frame: &Frame,
    classes: &[Rc<Class>],
    path: &mut String,
) {
    let at = frame.at.unsigned_abs();
    // SAFETY: alive, of the frame's form; keys are borrowed from it while no Python code runs.
    unsafe {
        let key = match frame.form {
            Form::Held => return,
            Form::List | Form::Tuple | Form::Rows | Form::Row => {
                let _ = write!(path, "[{}]", at.saturating_sub(1));
                return;
            }
            Form::Columns => {
                let n = ffi::Py_SIZE(frame.object).unsigned_abs().max(1);
                let at = at.saturating_sub(1);
                let _ = write!(path, "[{}][{}]", at / n, at % n);
                return;
            }
            Form::Fields => classes
                .get(frame.n.unsigned_abs())
                .and_then(|class| class.fields()?.name_before(frame.at)),
            Form::Pairs => {
                let items = object::items(frame.object, true);
                at.checked_sub(2).and_then(|i| items.get(i).copied())
            }
            Form::Dict => {
                let (mut at, mut found) = (0, None);
                let entries = dict::entries(frame.object);
                while at < frame.at
                    && let Some((key, _)) = entries.next(frame.object, &mut at)
                {
                    found = Some(key);
                }
                found
            }
        };
        let Some(key) = key else { return };
        append_key(Borrowed::from_ptr(py, key), path);
    }
}

/// Appends `.name`, or `['other name']`, cut where it is long.
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
