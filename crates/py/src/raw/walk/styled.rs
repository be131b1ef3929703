//! Options of JSON: line breaks with their indent between members, and sorted keys.

use onecopy_text::{Pen, Put};
use pyo3::ffi;
use pyo3::prelude::*;

use super::frames::Form;
use super::{ROOM, Stop, Walk, sorted};
use crate::raw::ending;

/// Bytes after the longest line break, so that a short one is put in one step.
const SPARE_BYTES: usize = 32;

/// A line break and the indent of the innermost members that may be written without a frame.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    indent_bytes: usize,
    /// The depth of members that are so many levels above.
    deepest: usize,
}

impl Lines {
    /// The bytes of the line break before members at this depth.
    #[inline(always)]
    fn n_bytes(&self, depth: usize) -> usize {
        match self.bytes.is_empty() {
            true => 0,
            false => 1 + depth * self.indent_bytes,
        }
    }
}

impl Walk<'_, '_> {
    /// Makes the line breaks for members up to this depth, that of members of no level more.
    #[inline(always)]
    pub(super) fn make_lines(&mut self, deepest: usize) {
        self.lines.deepest = deepest;
        let Some(indent) = &self.style.indent else {
            return;
        };
        if self.lines.bytes.len() < 1 + deepest * indent.len() + SPARE_BYTES {
            let lines = &mut self.lines;
            lines.indent_bytes = indent.len();
            // Twice as many, so that deep objects do not make them anew at each level.
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

    /// Bytes of the line break before a member at so many levels above the deepest.
    #[inline(always)]
    pub(super) fn line_bytes(&self, levels: usize) -> usize {
        let lines = &self.lines;
        lines.n_bytes(lines.deepest.saturating_sub(levels))
    }

    /// Puts the line break before a member at so many levels above the deepest.
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

    /// Goes inside of a `dict` whose keys are sorted first.
    ///
    /// # Safety
    /// It is one, and alive.
    pub(super) unsafe fn enter_sorted<'s>(
        &mut self,
        dict: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        self.check_depth(dict)?;
        // SAFETY: alive, by the caller's word; attached.
        let dict = unsafe { Bound::from_borrowed_ptr(self.py(), dict) };
        self.close(&pen);
        self.before_code();
        // SAFETY: a `dict` that is held.
        let pairs = match unsafe { sorted::pairs(self.py(), dict.as_ptr()) }? {
            Some(pairs) => pairs,
            None => ending::calls(self.py(), || self.others.sorted(&dict))?,
        };
        let n = pairs.len() as isize;
        self.frames.push_owned(pairs.into_any(), Form::Pairs, n);
        self.open(ROOM)
    }

    /// Puts the end of the innermost container.
    pub(super) fn end_styled<'s>(
        &mut self,
        has_members: bool,
        end: u8,
        mut pen: Pen<'s>,
    ) -> Result<Pen<'s>, Stop> {
        let depth = self.frames.depth();
        self.make_lines(depth);
        pen = self.room(pen, ROOM + self.line_bytes(0))?;
        if has_members {
            self.put_line(1, &mut pen);
        }
        pen.put_byte(end);
        Ok(pen)
    }

    /// Puts what follows a key.
    pub(super) fn colon<'s>(&self, mut pen: Pen<'s>) -> Pen<'s> {
        pen.put_byte(b':');
        if self.style.indent.is_some() {
            pen.put_byte(b' ');
        }
        pen
    }
}
