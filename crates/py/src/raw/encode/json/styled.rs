//! Implements the two options of the JSON encoder that require its slower loop: line breaks with
//! indents, and sorted keys.

use onecopy_text::{Pen, Put};
use pyo3::ffi;
use pyo3::prelude::*;

use super::{JsonEncoder, JsonStop, ROOM};
use crate::raw::encode::frames::ContainerForm;
use crate::raw::encode::sorted;
use crate::raw::gil;

/// The number of bytes that [`LineBreaks`] has after the longest line break. Because of them, a
/// short line break can be written by a copy of fixed size, which is faster than a copy of variable
/// size.
const SPARE_BYTES: usize = 32;

/// A line break, followed by an indent that is long enough for the deepest level so far. The line
/// break and indent of any other level is a prefix of these bytes.
#[derive(Debug, Default)]
pub(super) struct LineBreaks {
    bytes: Vec<u8>,
    indent_bytes: usize,
    /// The greatest nesting depth of the members that are being written, as the last call of
    /// `make_lines` received it. The indent in `bytes` is at least long enough for this depth.
    deepest: usize,
}

impl LineBreaks {
    /// Returns the size in bytes of the line break and indent before members at this depth.
    #[inline(always)]
    fn n_bytes(&self, depth: usize) -> usize {
        match self.bytes.is_empty() {
            true => 0,
            false => 1 + depth * self.indent_bytes,
        }
    }
}

impl JsonEncoder<'_, '_> {
    /// Creates the line breaks and indents for members at depths up to `deepest`, unless they
    /// already exist.
    #[inline(always)]
    pub(super) fn make_lines(&mut self, deepest: usize) {
        self.lines.deepest = deepest;
        let Some(indent) = &self.style.indent else {
            return;
        };
        if self.lines.bytes.len() < 1 + deepest * indent.len() + SPARE_BYTES {
            let lines = &mut self.lines;
            lines.indent_bytes = indent.len();
            // The indent has twice the required size, so that it is not created again at each level
            // of a deeply nested object.
            let n_bytes = 1 + 2 * deepest * indent.len();
            lines.bytes.clear();
            lines.bytes.reserve(n_bytes + SPARE_BYTES);
            lines.bytes.push(b'\n');
            match **indent {
                [byte, ref rest @ ..] if rest.iter().all(|&other| other == byte) => {
                    lines.bytes.resize(n_bytes, byte);
                }
                _ => {
                    for _ in 0..2 * deepest {
                        lines.bytes.extend_from_slice(indent);
                    }
                }
            }
            lines.bytes.extend_from_slice(&[b' '; SPARE_BYTES]);
        }
    }

    /// Returns the size in bytes of the line break and indent before a member. `levels` is
    /// `lines.deepest` minus the nesting depth of the member.
    #[inline(always)]
    pub(super) fn line_bytes(&self, levels: usize) -> usize {
        let lines = &self.lines;
        lines.n_bytes(lines.deepest.saturating_sub(levels))
    }

    /// Writes the line break and indent before a member. `levels` is `lines.deepest` minus the
    /// depth of the member.
    #[inline(always)]
    pub(super) fn put_line(&self, levels: usize, pen: &mut Pen<'_>) {
        let n = self.line_bytes(levels);
        if n == 0 {
            return;
        }
        match self.lines.bytes.first_chunk::<SPARE_BYTES>() {
            Some(short) if n <= SPARE_BYTES => pen.put_short(short, n),
            _ => pen.put(&self.lines.bytes[..n]),
        }
    }

    /// Pushes a frame for the sorted keys and values of a `dict` that is not sorted in place.
    ///
    /// # Safety
    /// The object must be a live `dict`.
    pub(super) unsafe fn enter_sorted<'s>(
        &mut self,
        dict: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        self.check_depth(dict)?;
        // SAFETY: alive, as the caller guarantees; attached.
        let dict = unsafe { Bound::from_borrowed_ptr(self.py(), dict) };
        self.close(&pen);
        self.before_code();
        // SAFETY: a `dict` that is held.
        let pairs = match unsafe { sorted::pairs(self.py(), dict.as_ptr()) }? {
            Some(pairs) => pairs,
            None => gil::calls(self.py(), || self.forms.sorted(&dict))?,
        };
        let n = pairs.len() as isize;
        self.frames
            .push_owned(pairs.into_any(), ContainerForm::Pairs, n);
        self.open(ROOM)
    }

    /// Writes `end`, the closing bracket of the innermost container. If the container has members,
    /// a line break is written before the bracket.
    pub(super) fn end_styled<'s>(
        &mut self,
        has_members: bool,
        end: u8,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        let depth = self.frames.depth();
        self.make_lines(depth);
        pen = self.ensure_space(pen, ROOM + self.line_bytes(0))?;
        if has_members {
            self.put_line(1, &mut pen);
        }
        pen.put_byte(end);
        Ok(pen)
    }

    /// Writes the colon after a key. If the output has line breaks, also writes a space.
    pub(super) fn colon<'s>(&self, mut pen: Pen<'s>) -> Pen<'s> {
        pen.put_byte(b':');
        if self.style.indent.is_some() {
            pen.put_byte(b' ');
        }
        pen
    }
}
