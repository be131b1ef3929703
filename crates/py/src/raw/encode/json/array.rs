//! Writes NumPy arrays as JSON, directly from memory.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;
use pyo3::prelude::*;

use super::{JsonEncoder, JsonNext, JsonStop, ROOM};
use crate::raw::encode::frames::ContainerForm;
use crate::raw::ndarray::{self, Memory, Subarray, View};

/// The space that is reserved for an array item and its comma or bracket, in bytes. The longest
/// item is a datetime. Line breaks and strings reserve their own space.
pub(super) const ITEM_BYTES: usize = json::SCALAR_BYTES + 8;

pub(super) struct ArrayInput<'v> {
    view: &'v View,
    /// The array object; null if no Python code can run. After Python code has run, it is compared
    /// with `view`.
    object: *mut ffi::PyObject,
    /// `true` if the output buffer may grow, which may run Python code.
    grows: bool,
    /// The line break and indent before each item of an innermost subarray. May be empty.
    line: Vec<u8>,
    /// The size of the indent of one level, in bytes.
    indent_bytes: usize,
}

impl ArrayInput<'_> {
    /// Returns the line break and indent before each item of a subarray with `n_dims` dimensions.
    /// For the closing bracket, pass `n_dims + 1`.
    fn line(&self, n_dims: usize) -> &[u8] {
        let n_left = (n_dims - 1) * self.indent_bytes;
        &self.line[..self.line.len().saturating_sub(n_left)]
    }
}

impl<'py> JsonEncoder<'_, 'py> {
    /// Writes a NumPy array from its memory. An array of another layout is passed to
    /// [`JsonEncoder::other`].
    ///
    /// # Safety
    /// `object` must be alive, and `native` must be determined from it.
    #[inline(never)]
    pub(super) unsafe fn large<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<(Pen<'s>, JsonNext<'py>), JsonStop> {
        // SAFETY: alive, as the caller guarantees; an array, by its class.
        unsafe {
            if let Some(view) = ndarray::view_of(object, self.style.natives.numpy) {
                let pen = self.array(kernels, object, &view, true, pen)?;
                return Ok((pen, JsonNext::Done));
            }
            self.other(object, pen)
        }
    }

    /// Writes the NumPy array or scalar in `memory`.
    #[inline(never)]
    pub(super) fn memory<'s, K: Kernels>(
        &mut self,
        kernels: K,
        memory: &Memory<'_>,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        // SAFETY: `memory` keeps the array alive, and has its view.
        unsafe { self.array(kernels, memory.object.as_ptr(), &memory.view, false, pen) }
    }

    /// Writes the NumPy array of `view`. If `is_fresh` is `false`, Python code has run, and `view`
    /// is checked first.
    ///
    /// # Safety
    /// `object` must be alive, and `view` must be the view of this object.
    unsafe fn array<'s, K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        view: &View,
        is_fresh: bool,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        if self.frames.depth() + view.n_dims() > self.style.max_depth {
            return Err(JsonStop::TooDeep { is_circular: false });
        }
        let runs_python = self.target.runs_python;
        if runs_python {
            // SAFETY: alive, as the caller guarantees; attached.
            let object = unsafe { Bound::from_borrowed_ptr(self.py(), object) };
            self.frames.push_owned(object, ContainerForm::Held, 0);
        }
        let mut array = ArrayInput {
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
            self.forget();
        }
        self.ensure_space(pen, ROOM)
    }

    /// Writes an array and a comma. Returns `false` and writes nothing if the array is unsuitable
    /// or the pen has too little space.
    ///
    /// # Safety
    /// `object` must be alive and of a NumPy array class.
    #[inline]
    pub(super) unsafe fn small_array<K: Kernels>(
        &mut self,
        kernels: K,
        object: *mut ffi::PyObject,
        n_dims: usize,
        pen: &mut Pen<'_>,
    ) -> bool {
        // SAFETY: the caller guarantees the requirements.
        let view = unsafe { ndarray::view_of(object, self.style.natives.numpy) };
        let Some(view) = view.filter(|view| (1..=n_dims).contains(&view.n_dims())) else {
            return false;
        };
        let n_bytes = view.n_written().saturating_mul(ITEM_BYTES);
        if pen.remaining() < n_bytes.saturating_add(ROOM) {
            return false;
        }
        let array = ArrayInput {
            view: &view,
            object: std::ptr::null_mut(),
            grows: false,
            line: Vec::new(),
            indent_bytes: 0,
        };
        // SAFETY: the rest of the space of the pen, which is not used until that is done.
        let rest = unsafe { std::slice::from_raw_parts_mut(pen.at().cast(), pen.remaining()) };
        let place = Pen::new(rest);
        match self.part(kernels, &array, view.whole(), place) {
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

    /// Reserves space for `n_items` array items, with `n_after` bytes after each.
    #[inline(always)]
    pub(super) fn reserve<'s>(
        &mut self,
        array: &ArrayInput<'_>,
        n_items: usize,
        n_after: usize,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let n_bytes = n_items * (ITEM_BYTES + n_after);
        if pen.remaining() < n_bytes {
            return self.grow_for(array, n_bytes, pen);
        }
        Ok(pen)
    }

    #[cold]
    #[inline(never)]
    fn grow_for<'s>(
        &mut self,
        array: &ArrayInput<'_>,
        n_bytes: usize,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        if !array.grows {
            return Err(JsonStop::Full);
        }
        let pen = self.grow(pen, n_bytes)?;
        self.check_array(array)?;
        Ok(pen)
    }

    /// Returns an error if Python code has replaced the array's memory.
    pub(super) fn check_array(&self, array: &ArrayInput<'_>) -> Result<(), JsonStop> {
        if array.object.is_null() {
            return Ok(());
        }
        // SAFETY: held by a frame.
        let object = unsafe { Bound::from_borrowed_ptr(self.py(), array.object) };
        match ndarray::is_current(&object, array.view)? {
            true => Ok(()),
            false => Err(JsonStop::ArrayChanged),
        }
    }

    /// Writes a subarray as nested JSON arrays.
    fn part<'s, K: Kernels>(
        &mut self,
        kernels: K,
        array: &ArrayInput<'_>,
        part: Subarray<'_>,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
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

    /// Adds `index` to the start of the failing item's path. Called for each dimension, innermost
    /// first.
    #[cold]
    pub(super) fn at_index(&mut self, index: usize, stop: JsonStop) -> JsonStop {
        self.within.insert_str(0, &format!("[{index}]"));
        stop
    }
}

/// Writes a line break with its indent. The check avoids a copy of zero bytes.
#[inline(always)]
pub(super) fn put_line(line: &[u8], pen: &mut Pen<'_>) {
    if !line.is_empty() {
        pen.put(line);
    }
}
