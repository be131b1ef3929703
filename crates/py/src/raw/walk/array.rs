//! Arrays of NumPy as JSON, from their memory into the chunk.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;
use pyo3::prelude::*;

use super::frames::Form;
use super::native::Native;
use super::{Next, ROOM, Stop, Walk};
use crate::raw::ndarray::{self, Part, View};

/// Bytes that are written for an item at most, some of them of no meaning, and for what follows it
/// but for a line: those of a moment are [`json::SCALAR_BYTES`]. (Text makes space for itself.)
pub(super) const ITEM_BYTES: usize = json::SCALAR_BYTES + 8;

/// An array that is written.
pub(super) struct Array<'v> {
    view: &'v View,
    /// Compared with the view after code has run; null where none runs.
    object: *mut ffi::PyObject,
    /// True if more space may be made.
    grows: bool,
    /// A line break, and what the items of the innermost arrays are indented by; empty if there are
    /// no line breaks.
    line: Vec<u8>,
    /// Bytes that each level of depth is indented by.
    indent_bytes: usize,
}

impl Array<'_> {
    /// The line break before a member of a part, or before its end (`n_dims` is one more).
    fn line(&self, n_dims: usize) -> &[u8] {
        let n_left = (n_dims - 1) * self.indent_bytes;
        &self.line[..self.line.len().saturating_sub(n_left)]
    }
}

impl<'py> Walk<'_, 'py> {
    /// Writes an array of NumPy's, or goes on as [`Walk::other`] with any other object.
    ///
    /// # Safety
    /// `object` is alive, and was found to be this.
    #[inline(never)]
    pub(super) unsafe fn large<'s, K: Kernels>(
        &mut self,
        kernels: K,
        native: &Native,
        object: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<(Pen<'s>, Next<'py>), Stop> {
        // SAFETY: alive, by the caller's word; an array was found by its class.
        unsafe {
            if matches!(native, Native::Array)
                && let Some(view) = ndarray::view_of(object, self.style.natives.numpy)
            {
                let pen = self.array(kernels, object, &view, true, pen)?;
                return Ok((pen, Next::Done));
            }
            let (pen, next) = self.other(object, pen)?;
            let Next::Memory(memory) = next else {
                return Ok((pen, next));
            };
            // It keeps the array alive.
            let object = memory.object.as_ptr();
            let pen = self.array(kernels, object, &memory.view, false, pen)?;
            Ok((pen, Next::Done))
        }
    }

    /// Writes the array of NumPy's of which this is the view, made just now or before code may have
    /// run.
    ///
    /// # Safety
    /// `object` is alive, and the view is that of it.
    unsafe fn array<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        view: &View,
        is_fresh: bool,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        if self.frames.depth() + view.n_dims() > self.style.max_depth {
            return Err(Stop::TooDeep { is_circular: false });
        }
        let runs_python = self.target.runs_python;
        if runs_python {
            // SAFETY: alive, by the caller's word; attached.
            let object = unsafe { Bound::from_borrowed_ptr(self.py(), object) };
            self.frames.push_owned(object, Form::Held, 0);
        }
        let mut array = Array {
            view,
            object: if runs_python {
                object
            } else {
                std::ptr::null_mut()
            },
            grows: true,
            line: Vec::new(),
            indent_bytes: 0,
        };
        if !is_fresh {
            self.check_array(&array)?;
        }
        if let Some(indent) = &self.style.indent {
            array.indent_bytes = indent.len();
            array.line.push(b'\n');
            for _ in 0..self.frames.depth() + view.n_dims() {
                array.line.extend_from_slice(indent);
            }
        }
        pen = match view.item() {
            Some(item) => {
                pen = self.reserve(&array, 1, 0, pen)?;
                self.item(kernels, item, pen)?
            }
            None => self.part(kernels, &array, view.whole(), pen)?,
        };
        if runs_python && self.frames.pop() {
            self.keys.forget();
        }
        self.room(pen, ROOM)
    }

    /// Writes an array and the comma after it, where the space for all of it is there, it has no
    /// more than these dimensions, and all its items have a form; else nothing.
    ///
    /// # Safety
    /// `object` is alive, and an array of NumPy's by its class.
    #[inline]
    pub(super) unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        n_dims: usize,
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the duty of the caller.
        let view = unsafe { ndarray::view_of(object, self.style.natives.numpy) };
        let Some(view) = view.filter(|view| (1..=n_dims).contains(&view.n_dims())) else {
            return false;
        };
        let n_bytes = view.n_written().saturating_mul(ITEM_BYTES);
        if pen.room() < n_bytes.saturating_add(ROOM) {
            return false;
        }
        let array = Array {
            view: &view,
            object: std::ptr::null_mut(),
            grows: false,
            line: Vec::new(),
            indent_bytes: 0,
        };
        // SAFETY: the rest of the space of the pen, which is not used until that is done.
        let rest = unsafe { std::slice::from_raw_parts_mut(pen.at().cast(), pen.room()) };
        match self.part(kernels, &array, view.whole(), Pen::new(rest)) {
            Ok(mut end) => {
                end.put_byte(b',');
                // SAFETY: all up to there was put.
                unsafe { pen.set_at(end.at()) };
                true
            }
            Err(_) => {
                self.within.clear();
                false
            }
        }
    }

    /// Makes space for so many items, with so many bytes after each.
    #[inline(always)]
    pub(super) fn reserve<'s>(
        &mut self,
        array: &Array<'_>,
        n_items: usize,
        n_after: usize,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        let n_bytes = n_items * (ITEM_BYTES + n_after);
        if pen.room() < n_bytes {
            return self.grow_for(array, n_bytes, pen);
        }
        Ok(pen)
    }

    #[cold]
    #[inline(never)]
    fn grow_for<'s>(
        &mut self,
        array: &Array<'_>,
        n_bytes: usize,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        if !array.grows {
            return Err(Stop::Full);
        }
        let pen = self.grow(pen, n_bytes)?;
        self.check_array(array)?;
        Ok(pen)
    }

    /// Fails if code has run that has given the array other memory.
    pub(super) fn check_array(&self, array: &Array<'_>) -> Result<(), Stop> {
        if array.object.is_null() {
            return Ok(());
        }
        // SAFETY: held by a frame.
        let object = unsafe { Bound::from_borrowed_ptr(self.py(), array.object) };
        match ndarray::is_current(&object, array.view)? {
            true => Ok(()),
            false => Err(Stop::ArrayChanged),
        }
    }

    /// Writes an array of one dimension or more.
    fn part<'s, K: Kernels>(
        &mut self,
        kernels: K,
        array: &Array<'_>,
        part: Part<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        let n_dims = part.n_dims();
        let line = array.line(n_dims);
        pen = self.reserve(array, 1, line.len(), pen)?;
        if part.len() == 0 {
            pen.put_short(b"[]", 2);
            return Ok(pen);
        }
        pen.put_byte(b'[');
        put_line(line, &mut pen);
        if n_dims == 1 {
            pen = self.row(kernels, array, part, line, pen)?;
        } else {
            for i in 0..part.len() {
                pen = match self.part(kernels, array, part.part(i), pen) {
                    Ok(pen) => pen,
                    Err(stop) => return Err(self.at_index(i, stop)),
                };
                pen = self.reserve(array, 1, line.len(), pen)?;
                pen.put_byte(b',');
                put_line(line, &mut pen);
            }
        }
        // SAFETY: a comma and the line were put last, and no space was made since.
        unsafe { pen.set_at(pen.at().sub(1 + line.len())) };
        let line = array.line(n_dims + 1);
        pen = self.reserve(array, 1, line.len(), pen)?;
        put_line(line, &mut pen);
        pen.put_byte(b']');
        Ok(pen)
    }

    /// Notes where in an array an error is: from the innermost index to the outermost.
    #[cold]
    pub(super) fn at_index(&mut self, index: usize, stop: Stop) -> Stop {
        self.within.insert_str(0, &format!("[{index}]"));
        stop
    }
}

/// Puts a line break with its indent, if there are such: a copy of no bytes is a call.
#[inline(always)]
pub(super) fn put_line(line: &[u8], pen: &mut Pen<'_>) {
    if !line.is_empty() {
        pen.put(line);
    }
}
