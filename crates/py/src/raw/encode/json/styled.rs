//! Line breaks, indents and sorted keys of the JSON encoder.

use onecopy_text::{Pen, Put};
use pyo3::ffi;
use pyo3::prelude::*;

use super::{JsonEncoder, JsonStop, ROOM};
use crate::raw::encode::frames::ContainerForm;
use crate::raw::encode::sorted;
use crate::raw::gil;

/// Spare bytes after the longest line break. They permit a copy of fixed size, which is faster.
const SPARE_BYTES: usize = 32;

/// A line break with the longest indent. Shorter indents are prefixes of these bytes.
#[derive(Debug, Default)]
pub(super) struct LineBreaks {
    bytes: Vec<u8>,
    indent_bytes: usize,
    /// The greatest depth of members so far. The indent in `bytes` has at least this depth.
    deepest: usize,
}

impl LineBreaks {
    /// Returns the size of the line break and indent at this depth.
    #[inline(always)]
    fn n_bytes(&self, depth: usize) -> usize {
        match self.bytes.is_empty() {
            true => 0,
            false => 1 + depth * self.indent_bytes,
        }
    }
}

impl JsonEncoder<'_, '_> {
    /// Creates the line breaks and indents up to the depth `deepest`.
    #[inline(always)]
    pub(super) fn make_lines(&mut self, deepest: usize) {
        self.lines.deepest = deepest;
        let Some(indent) = &self.style.indent else {
            return;
        };
        if self.lines.bytes.len() < 1 + deepest * indent.len() + SPARE_BYTES {
            let lines = &mut self.lines;
            lines.indent_bytes = indent.len();
            // Twice the required size, so that deep nesting rarely needs new bytes.
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

    /// Returns the size of a line break and indent. `levels` is `lines.deepest` minus the depth of
    /// the member.
    #[inline(always)]
    pub(super) fn line_bytes(&self, levels: usize) -> usize {
        let lines = &self.lines;
        lines.n_bytes(lines.deepest.saturating_sub(levels))
    }

    /// Writes a line break and indent. `levels` is `lines.deepest` minus the depth of the member.
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
        // SAFETY: alive, as the caller guarantees, and attached.
        let dict = unsafe { Bound::from_borrowed_ptr(self.py(), dict) };
        self.close(&pen);
        self.before_code();
        // SAFETY: we hold the `dict`.
        let pairs = match unsafe { sorted::pairs(self.py(), dict.as_ptr()) }? {
            Some(pairs) => pairs,
            None => gil::calls(self.py(), || self.forms.sorted(&dict))?,
        };
        let n = pairs.len() as isize;
        self.frames
            .push_owned(pairs.into_any(), ContainerForm::Pairs, n);
        self.open(ROOM)
    }

    /// Writes the closing bracket `end`. If the container has members, first writes a line break.
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

    /// Writes the colon after a key. With line breaks, also writes a space.
    pub(super) fn colon<'s>(&self, mut pen: Pen<'s>) -> Pen<'s> {
        pen.put_byte(b':');
        if self.style.indent.is_some() {
            pen.put_byte(b' ');
        }
        pen
    }
}
