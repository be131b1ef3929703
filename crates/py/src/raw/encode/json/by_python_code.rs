//! Writes objects as JSON with Python code.

use onecopy_text::{Pen, Put};
use pyo3::ffi;
use pyo3::prelude::*;

use super::options::{JsonStop, ObjectForm};
use super::{JsonEncoder, JsonNext, ROOM};
use crate::json::Fragment;
use crate::raw::encode::frames::ContainerForm;
use crate::raw::encode::{builtin_types, classes};
use crate::raw::gil;

impl<'py> JsonEncoder<'_, 'py> {
    /// Writes an object or an `int` that the fast path does not support. The result is the caller's
    /// next action. Python code may run.
    ///
    /// # Safety
    /// `object` must be alive.
    #[inline(never)]
    pub(super) unsafe fn other<'s>(
        &mut self,
        object: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<(Pen<'s>, JsonNext<'py>), JsonStop> {
        // SAFETY: alive, as the caller guarantees; attached.
        let object = unsafe { Bound::from_borrowed_ptr(self.py(), object) };
        self.close(&pen);
        let text = if object.is_exact_instance_of::<pyo3::types::PyInt>() {
            self.before_code();
            self.forms.big_int(&object)?
        } else if let Ok(fragment) = object.cast_exact::<Fragment>() {
            // The chunk may be flushed before the text, if it is full.
            if self.target.runs_python {
                self.before_code();
            }
            return Ok((self.json_text(fragment.get().bytes())?, JsonNext::Done));
        } else {
            self.before_code();
            let other = gil::calls(self.py(), || {
                classes::learn(&object);
                Ok::<_, JsonStop>(match self.forms.other(&object)? {
                    Some(other) => other,
                    None => ObjectForm::Instead(self.forms.default(&object)?),
                })
            })?;
            match other {
                ObjectForm::Text(text) => text,
                ObjectForm::Instead(instead) => {
                    // SAFETY: held.
                    let kind = unsafe { builtin_types::kind(instead.as_ptr()) };
                    if kind.is_scalar() {
                        return Ok((self.open(ROOM)?, JsonNext::Scalar(instead)));
                    }
                    self.shared
                        .check_held(object.as_ptr(), self.style.max_depth)?;
                    let item = instead.as_ptr();
                    self.frames.push_owned(instead, ContainerForm::Held, 0);
                    return Ok((self.open(ROOM)?, JsonNext::Instead(item)));
                }
                ObjectForm::Memory(memory) => {
                    return Ok((self.open(ROOM)?, JsonNext::Memory(memory)));
                }
                ObjectForm::Items => {
                    self.check_depth(object.as_ptr())?;
                    // Reserving space may run Python code that changes the list. The number of
                    // items is therefore read later.
                    let mut pen = self.open(ROOM)?;
                    if !self.push_items(object) {
                        pen.put_short(b"[]", 2);
                        return Ok((pen, JsonNext::Done));
                    }
                    pen.put_byte(b'[');
                    return Ok((pen, JsonNext::Members));
                }
                ObjectForm::Pairs(pairs) => {
                    self.check_depth(object.as_ptr())?;
                    let n = pairs.len() as isize;
                    if n == 0 {
                        let mut pen = self.open(ROOM)?;
                        pen.put_short(b"{}", 2);
                        return Ok((pen, JsonNext::Done));
                    }
                    self.frames
                        .push_owned(pairs.into_any(), ContainerForm::Pairs, n);
                    let mut pen = self.open(ROOM)?;
                    pen.put_byte(b'{');
                    return Ok((pen, JsonNext::Members));
                }
            }
        };
        Ok((self.json_text(&text)?, JsonNext::Done))
    }

    fn json_text<'s>(&mut self, text: &[u8]) -> Result<Pen<'s>, JsonStop> {
        if self.is_latin1 && !text.is_ascii() {
            self.leave_latin1()?;
        }
        let mut pen = self.open(text.len() + ROOM)?;
        pen.put(text);
        Ok(pen)
    }
}
