//! Rows and columns of values as objects, with keys that are given for all of them.

use onecopy_text::convert::Kernels;
use onecopy_text::{Pen, Put};
use onecopy_wire::json::KeySegments;
use pyo3::ffi;

use super::ahead;
use super::format::Format;
use super::frames::{Form, Frame};
use super::json::Json;
use super::members::{self, Members, Reason};
use super::object::{self, Kind};
use super::{ROOM, Shape, Stop, Walk};

/// The compact form: options are for objects.
type Compact<'a, 'py> = Json<'a, 'py, false>;

/// The values of one row, of which `value` returns the one at an index.
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
    unsafe fn put_key<'py, K: Kernels, F: Format<'py>>(
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

impl<'a> Walk<'a, '_> {
    fn row_keys(&self) -> Option<&'a KeySegments> {
        match self.shape {
            Shape::Row(keys) | Shape::Rows(keys) | Shape::Columns(keys) => Some(keys),
            Shape::Value => None,
        }
    }

    /// Space for a key that is given, besides that of a member.
    pub(super) fn row_key_bytes(&self) -> usize {
        self.row_keys().map_or(0, KeySegments::room_bytes)
    }

    /// Goes inside of rows, as the shape says.
    ///
    /// # Safety
    /// `root` is alive, and of the shape.
    pub(super) unsafe fn enter_rows(&mut self, root: *mut ffi::PyObject, pen: &mut Pen<'_>) {
        // SAFETY: a list or tuple where the shape says so, held by the caller.
        unsafe {
            let is_list = isize::from(ffi::PyList_Check(root) != 0);
            match self.shape {
                Shape::Value => {}
                Shape::Row(_) => self.frames.push(root, Form::Row, is_list),
                Shape::Rows(_) => {
                    pen.put_byte(b'[');
                    self.frames.push(root, Form::Rows, is_list);
                }
                Shape::Columns(_) => {
                    pen.put_byte(b'[');
                    let first = object::items(root, false)[0];
                    self.frames.push(root, Form::Columns, ffi::Py_SIZE(first));
                }
            }
        }
    }

    /// Returns whether all of a row, or all rows, are written.
    ///
    /// # Errors
    /// If a row has not as many values any more as there are keys.
    ///
    /// # Safety
    /// `frame` is the innermost one, of such a form.
    pub(super) unsafe fn are_rows_written(&self, frame: *const Frame) -> Result<bool, Stop> {
        // SAFETY: the frame's object is alive, a list or tuple.
        let (n, at, frame) = unsafe {
            let frame = &*frame;
            (ffi::Py_SIZE(frame.object), frame.at, frame)
        };
        match (frame.form, self.row_keys()) {
            (Form::Row, Some(keys)) if n.cast_unsigned() == keys.len() => Ok(at >= n),
            (Form::Columns, _) => Ok(at / n >= frame.n),
            (Form::Rows, _) => Ok(at >= n),
            _ => Err(Stop::Changed),
        }
    }
}

impl Compact<'_, '_> {
    /// Goes on with a frame of rows, of one row, or of columns.
    ///
    /// # Errors
    /// If a row or column is none, and what code raises.
    ///
    /// # Safety
    /// `frame` is the innermost one, of such a form, and not at its end.
    pub(super) unsafe fn write_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut Frame,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        let Some(keys) = self.row_keys() else {
            return Err(Stop::Changed);
        };
        let levels = self.levels();
        // SAFETY: the frame's object is alive, and of this form.
        unsafe {
            let (container, at) = ((*frame).object, (*frame).at);
            let items = object::items(container, (*frame).n != 0);
            match (*frame).form {
                Form::Row => {
                    let value = |i: usize| items[i];
                    let cells = Cells { keys, value };
                    Ok(members::write(kernels, self, cells, at, levels, pen))
                }
                Form::Rows => self.list_of_rows(kernels, keys, items, frame, levels, pen),
                _ => {
                    let columns = object::items(container, false);
                    let n_rows = (*frame).n;
                    self.columns(kernels, keys, columns, n_rows, at, levels, pen)
                }
            }
        }
    }

    /// Writes the rest of the rows, without frames for each.
    ///
    /// # Safety
    /// The rows are alive, and no code runs before all is done; their frame is the innermost one.
    #[inline(always)]
    unsafe fn list_of_rows<'s, K: Kernels>(
        &mut self,
        kernels: K,
        keys: &KeySegments,
        rows: &[*mut ffi::PyObject],
        frame: *mut Frame,
        levels: usize,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        // SAFETY: the frame stays where it is until one is pushed.
        let mut at = unsafe { (*frame).at };
        while let Some(&row) = rows.get(at.cast_unsigned()) {
            let index = at.cast_unsigned();
            if !self.has_space(levels, keys.room_bytes(), &pen) {
                self.interrupt(Reason::Space, std::ptr::null_mut(), at, pen.at());
                return Ok(pen);
            }
            ahead::fetch_object(rows, index);
            // SAFETY: alive, by the caller's word; of a list or tuple, also of a class of its own,
            // the size is the number of items.
            unsafe {
                ahead::fetch_rows(rows, index);
                let is_list = ffi::PyList_Check(row) != 0;
                let is_row = is_list || ffi::PyTuple_Check(row) != 0;
                if !is_row || ffi::Py_SIZE(row).cast_unsigned() != keys.len() {
                    (*frame).at = at + 1;
                    return Err(Stop::Row { index });
                }
                at += 1;
                let items = object::items(row, is_list);
                let value = |i: usize| items[i];
                let cells = Cells { keys, value };
                pen = members::write(kernels, self, cells, 0, levels, pen);
                if self.interruption.reason != Reason::Done {
                    let start = pen.at();
                    self.push_interrupted(row, Form::Row, isize::from(is_list), start, at);
                    return Ok(pen);
                }
                end_object(&mut pen);
            }
        }
        Ok(pen)
    }

    /// Writes the rows that columns have, from the cell at `at` on.
    ///
    /// # Safety
    /// The caller holds the columns, whatever runs.
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
    ) -> Result<Pen<'s>, Stop> {
        let n = columns.len() as isize;
        let (mut row, mut column) = (at / n, at % n);
        let mut is_after_row = column == 0 && at > 0;
        while row < n_rows {
            if is_after_row {
                end_object(&mut pen);
            }
            if column == 0 {
                pen = self.room(pen, ROOM + keys.room_bytes())?;
            }
            // SAFETY: each column is a list or tuple that is held.
            unsafe {
                let index = row.cast_unsigned();
                let value = |i: usize| {
                    let of = columns[i];
                    let items = object::items(of, object::kind(of) == Kind::List);
                    items.get(index).copied().unwrap_or(std::ptr::null_mut())
                };
                let cells = Cells { keys, value };
                pen = members::write(kernels, self, cells, column, levels, pen);
            }
            if self.interruption.reason != Reason::Done {
                self.interruption.at += row * n;
                return Ok(pen);
            }
            (row, column, is_after_row) = (row + 1, 0, true);
        }
        Ok(pen)
    }
}

/// Replaces the last comma by the end of an object, and puts a comma after it.
#[inline(always)]
pub(super) fn end_object(pen: &mut Pen<'_>) {
    // SAFETY: a comma was put after each member, and no space was made since.
    unsafe { pen.set_at(pen.at().sub(1)) };
    pen.put_short(b"},", 2);
}
