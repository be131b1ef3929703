//! Implements the two options of the JSON encoder that require its slower loop: line breaks with
//! indents, and sorted keys.

use onecopy_text::{Pen, Put};
use pyo3::ffi;
use pyo3::prelude::*;

use super::{JsonEncoder, JsonStop, ROOM, sorted};
use crate::raw::encode::frames::ContainerForm;
use crate::raw::gil;

/// The number of spare bytes after the longest line break. They allow a short line break to be
/// written by a copy of fixed size, which is faster than one of variable size.
const SPARE_BYTES: usize = 32;

/// A line break and the indent of the deepest level of nesting that can be written so far. A prefix
/// of these bytes is the line break and indent of a less deep level.
#[derive(Debug, Default)]
pub(super) struct LineBreaks {
    bytes: Vec<u8>,
    indent_bytes: usize,
    /// The nesting depth of the most deeply nested members so far. It determines the length of the
    /// indent in `bytes`.
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

    /// Pushes a frame for the sorted keys and values of a `dict`.
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

    /// Writes the end of the innermost container, after a line break if the container has members.
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
