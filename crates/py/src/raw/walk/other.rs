//! Objects that Python code may have to run for.

use onecopy_text::{Pen, Put};
use onecopy_wire::json;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::asked::{Other, Stop};
use super::frames::Form;
use super::{Next, ROOM, Walk, classes, object};
use crate::raw::ending;

impl<'py> Walk<'_, 'py> {
    /// Writes an object that is none of CPython's own types, or an `int` past two digits. Any Python code may run.
    ///
    /// # Safety
    /// `object` is alive.
    #[inline(never)]
    pub(super) unsafe fn other<'s>(
        &mut self,
        object: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<(Pen<'s>, Next<'py>), Stop> {
        // SAFETY: alive, by the caller's word; attached.
        let object = unsafe { Bound::from_borrowed_ptr(self.py(), object) };
        self.close(&pen);
        let text = if object.is_exact_instance_of::<pyo3::types::PyInt>() {
            // SAFETY: an `int`.
            match unsafe { object::int(object.as_ptr()) } {
                Some(value) if self.style.exact_ints || value.unsigned_abs() < 1 << 53 => {
                    let mut pen = self.open(ROOM)?;
                    if value < 0 {
                        json::put_i64(value as i64, &mut pen);
                    } else {
                        json::put_u64(value as u64, &mut pen);
                    }
                    return Ok((pen, Next::Done));
                }
                _ => {
                    self.before_code();
                    self.others.big_int(&object)?
                }
            }
        } else {
            self.before_code();
            let other = ending::calls(self.py(), || {
                classes::learn(&object);
                Ok::<_, Stop>(match self.others.other(&object)? {
                    Some(other) => other,
                    None => Other::Instead(self.others.default(&object)?),
                })
            })?;
            match other {
                Other::Text(text) => text,
                Other::Instead(instead) => {
                    self.check_held(object.as_ptr())?;
                    let item = instead.as_ptr();
                    self.frames.push_owned(instead, Form::Held, 0);
                    return Ok((self.open(ROOM)?, Next::Instead(item)));
                }
                Other::Memory(memory) => {
                    return Ok((self.open(ROOM)?, Next::Memory(memory)));
                }
                Other::Items => {
                    let form = if object.is_instance_of::<PyList>() {
                        Form::List
                    } else {
                        Form::Tuple
                    };
                    let items = object.as_ptr();
                    self.check_depth(items)?;
                    // Code may run where room is made: how many items there are is looked at behind it.
                    let mut pen = self.open(ROOM)?;
                    // SAFETY: a list or tuple, by the word of `Others`.
                    let n = unsafe { ffi::Py_SIZE(items) };
                    if n == 0 {
                        pen.put_short(b"[]", 2);
                        return Ok((pen, Next::Done));
                    }
                    self.frames.push_owned(object, form, n);
                    pen.put_byte(b'[');
                    return Ok((pen, Next::Members));
                }
                Other::Pairs(pairs) => {
                    self.check_depth(object.as_ptr())?;
                    let n = pairs.len() as isize;
                    if n == 0 {
                        let mut pen = self.open(ROOM)?;
                        pen.put_short(b"{}", 2);
                        return Ok((pen, Next::Done));
                    }
                    self.frames.push_owned(pairs.into_any(), Form::Pairs, n);
                    let mut pen = self.open(ROOM)?;
                    pen.put_byte(b'{');
                    return Ok((pen, Next::Members));
                }
            }
        };
        if self.is_latin1 && !text.is_ascii() {
            self.leave_latin1()?;
        }
        let mut pen = self.open(text.len() + ROOM)?;
        pen.put(&text);
        Ok((pen, Next::Done))
    }
}
