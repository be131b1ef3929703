//! Writes a table as a JSON array of objects with the same keys. The table is a list of rows or a
//! tuple of columns.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json::KeySegments;
use pyo3::ffi;

use super::format::JsonFormat;
use super::{JsonEncoder, JsonShape, JsonStop, ROOM};
use crate::raw::encode::builtin_types::{self, ObjectKind};
use crate::raw::encode::format::MemberEncoder;
use crate::raw::encode::frames::{ContainerForm, ContainerFrame};
use crate::raw::encode::members::{self, ExitReason, Members};
use crate::raw::encode::prefetch;

/// The JSON encoder for default options, the only encoder of rows.
type Compact<'a, 'py> = JsonFormat<'a, 'py, false>;

/// The keys and values of one row. The function `value` returns the value at an index.
#[derive(Clone, Copy)]
struct Cells<'k, V> {
    keys: &'k KeySegments,
    value: V,
}

impl<V: Copy + Fn(usize) -> *mut ffi::PyObject> Members for Cells<'_, V> {
    #[inline(always)]
    unsafe fn next(&self, at: &mut isize) -> Option<(*mut ffi::PyObject, *mut ffi::PyObject)> {
        let index = at.cast_unsigned();
        if index >= self.keys.len() {
            return None;
        }
        *at += 1;
        Some((std::ptr::null_mut(), (self.value)(index)))
    }

    #[inline(always)]
    unsafe fn put_key<'py, K: Kernels, F: MemberEncoder<'py>>(
        &self,
        _kernels: K,
        _encoder: &mut F,
        _key: *mut ffi::PyObject,
        at: isize,
        _index: &mut F::Index,
        pen: &mut Pen<'_>,
    ) -> bool {
        self.keys.put_behind_comma(at.cast_unsigned(), pen);
        true
    }

    #[inline(always)]
    fn key_bytes(&self) -> usize {
        self.keys.room_bytes()
    }
}

impl<'a> JsonEncoder<'a, '_> {
    fn row_keys(&self) -> Option<&'a KeySegments> {
        match self.shape {
            JsonShape::Row(keys) | JsonShape::Rows(keys) | JsonShape::Columns(keys) => Some(keys),
            JsonShape::Value => None,
        }
    }

    /// Returns the number of bytes to reserve for the longest key of a row.
    pub(super) fn row_key_bytes(&self) -> usize {
        self.row_keys().map_or(0, KeySegments::room_bytes)
    }

    /// Writes the opening bracket of `root`, and pushes a frame for its rows or columns. For a
    /// single row, only pushes a frame.
    ///
    /// # Safety
    /// `root` must be alive, and of the type that the encoder's [`JsonShape`] requires.
    pub(super) unsafe fn enter_rows(&mut self, root: *mut ffi::PyObject, pen: &mut Pen<'_>) {
        // SAFETY: a list or tuple where the shape says so, held by the caller.
        unsafe {
            let is_list = isize::from(ffi::PyList_Check(root) != 0);
            match self.shape {
                JsonShape::Value => {}
                JsonShape::Row(_) => self.frames.push(root, ContainerForm::Row, is_list),
                JsonShape::Rows(_) => {
                    pen.put_byte(b'[');
                    self.frames.push(root, ContainerForm::Rows, is_list);
                }
                JsonShape::Columns(_) => {
                    pen.put_byte(b'[');
                    let first = builtin_types::items(root, false)[0];
                    self.frames
                        .push(root, ContainerForm::Columns, ffi::Py_SIZE(first));
                }
            }
        }
    }

    /// Returns `true` if all values of the row or table in `frame` are written.
    ///
    /// # Errors
    /// An error if the number of values in a row has changed.
    ///
    /// # Safety
    /// `frame` must be the innermost frame, and its form must be `Row`, `Rows` or `Columns`.
    pub(super) unsafe fn are_rows_written(
        &self,
        frame: *const ContainerFrame,
    ) -> Result<bool, JsonStop> {
        // SAFETY: the frame's object is alive, a list or tuple.
        let (n, at, frame) = unsafe {
            let frame = &*frame;
            (ffi::Py_SIZE(frame.object), frame.at, frame)
        };
        match (frame.form, self.row_keys()) {
            (ContainerForm::Row, Some(keys)) if n.cast_unsigned() == keys.len() => Ok(at >= n),
            (ContainerForm::Columns, _) => Ok(at / n >= frame.n),
            (ContainerForm::Rows, _) => Ok(at >= n),
            _ => Err(JsonStop::Changed),
        }
    }
}

impl Compact<'_, '_> {
    /// Writes values of the innermost row or table until its end or an interruption.
    ///
    /// # Errors
    /// An error if a row or column is not a list or tuple, or an exception of Python code.
    ///
    /// # Safety
    /// `frame` must be the innermost frame, of the form `Row`, `Rows` or `Columns`, with values
    /// left.
    pub(super) unsafe fn write_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut ContainerFrame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let Some(keys) = self.row_keys() else {
            return Err(JsonStop::Changed);
        };
        let levels = self.levels();
        // SAFETY: the frame's object is alive, and of this form.
        unsafe {
            let (container, at) = ((*frame).object, (*frame).at);
            let items = builtin_types::items(container, (*frame).n != 0);
            match (*frame).form {
                ContainerForm::Row => {
                    let value = |i: usize| items[i];
                    let cells = Cells { keys, value };
                    Ok(members::write(kernels, self, cells, at, levels, pen))
                }
                ContainerForm::Rows => self.list_of_rows(kernels, keys, items, frame, levels, pen),
                _ => {
                    let columns = builtin_types::items(container, false);
                    let n_rows = (*frame).n;
                    self.columns(kernels, keys, columns, n_rows, at, levels, pen)
                }
            }
        }
    }

    /// Writes the remaining rows of a list or tuple, without frames.
    ///
    /// # Safety
    /// The rows must be alive, and their frame must be the innermost one. No Python code may run.
    #[inline(always)]
    unsafe fn list_of_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        keys: &KeySegments,
        rows: &[*mut ffi::PyObject],
        frame: *mut ContainerFrame,
        levels: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        // SAFETY: the frame does not move until one is pushed.
        let mut at = unsafe { (*frame).at };
        while let Some(&row) = rows.get(at.cast_unsigned()) {
            let index = at.cast_unsigned();
            if !self.has_space(levels, keys.room_bytes(), &pen) {
                self.interrupt(ExitReason::Space, std::ptr::null_mut(), at, pen.at());
                return Ok(pen);
            }
            prefetch::fetch_object(rows, index);
            // SAFETY: alive, as the caller guarantees. The size of a list or tuple is the number of
            // items.
            unsafe {
                prefetch::fetch_rows(rows, index);
                let is_list = ffi::PyList_Check(row) != 0;
                let is_row = is_list || ffi::PyTuple_Check(row) != 0;
                if !is_row || ffi::Py_SIZE(row).cast_unsigned() != keys.len() {
                    (*frame).at = at + 1;
                    return Err(JsonStop::Row { index });
                }
                at += 1;
                let items = builtin_types::items(row, is_list);
                let value = |i: usize| items[i];
                let cells = Cells { keys, value };
                pen = members::write(kernels, self, cells, 0, levels, pen);
                if self.interruption.reason != ExitReason::Done {
                    let start = pen.at();
                    self.push_interrupted(row, ContainerForm::Row, isize::from(is_list), start, at);
                    return Ok(pen);
                }
                end_object(&mut pen);
            }
        }
        Ok(pen)
    }

    /// Writes the remaining rows of a table of columns. `at` is the index of the next cell, row by
    /// row.
    ///
    /// # Safety
    /// The caller must hold references to the columns even while Python code runs.
    #[inline(always)]
    #[expect(clippy::too_many_arguments)]
    unsafe fn columns<'s, K: Kernels>(
        &mut self,
        kernels: K,
        keys: &KeySegments,
        columns: &[*mut ffi::PyObject],
        n_rows: isize,
        at: isize,
        levels: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let n = columns.len() as isize;
        let (mut row, mut column) = (at / n, at % n);
        let mut is_after_row = column == 0 && at > 0;
        while row < n_rows {
            if is_after_row {
                end_object(&mut pen);
            }
            if column == 0 {
                pen = self.ensure_space(pen, ROOM + keys.room_bytes())?;
            }
            // SAFETY: each column is a list or tuple that is held.
            unsafe {
                let index = row.cast_unsigned();
                let value = |i: usize| {
                    let of = columns[i];
                    let items =
                        builtin_types::items(of, builtin_types::kind(of) == ObjectKind::List);
                    items.get(index).copied().unwrap_or(std::ptr::null_mut())
                };
                let cells = Cells { keys, value };
                pen = members::write(kernels, self, cells, column, levels, pen);
            }
            if self.interruption.reason != ExitReason::Done {
                self.interruption.at += row * n;
                return Ok(pen);
            }
            (row, column, is_after_row) = (row + 1, 0, true);
        }
        Ok(pen)
    }
}

/// Replaces the last comma with the end of an object, and writes a new comma.
#[inline(always)]
pub(super) fn end_object(pen: &mut Pen<'_>) {
    // SAFETY: a comma was put after each member, and no space was made since.
    unsafe { pen.set_at(pen.at().sub(1)) };
    pen.put_short(b"},", 2);
}
