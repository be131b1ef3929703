//! Header fields that applications give time and again, as they are sent.
//!
//! A field that stands in a program as a constant is the same tuple each time. What it says cannot change, so its line is kept by
//! the tuple's address, and the tuple with it.

use onecopy_serve::FieldLine;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::raw::held::references;

/// Lines that are kept, a power of two.
const N_LINES: usize = 256;
/// Bytes of a line that is kept, at most.
const MOST_BYTES: usize = 256;
/// References to a tuple that was made for this answer alone: the list's, and the one that it is looked at through.
const FRESH_REFERENCES: isize = 2;

struct Known {
    field: Py<PyTuple>,
    line: FieldLine,
}

/// Lines by their tuple.
pub(crate) struct Lines(Vec<Option<Known>>);

impl Lines {
    pub(crate) fn new() -> Lines {
        Lines((0..N_LINES).map(|_| None).collect())
    }

    /// The line of a field that was kept.
    #[inline]
    pub(super) fn get(&self, field: &Bound<'_, PyTuple>) -> Option<&FieldLine> {
        let known = self.0[slot_of(field)].as_ref()?;
        (known.field.as_ptr() == field.as_ptr()).then_some(&known.line)
    }

    /// Keeps a field that others than the list of this answer hold: it comes again. One that the server writes itself, or cannot
    /// send, is not kept.
    #[inline]
    pub(super) fn keep(&mut self, field: &Bound<'_, PyTuple>, name: &str, value: &[u8]) {
        if references(field.as_any()) <= FRESH_REFERENCES || name.len() + value.len() > MOST_BYTES {
            return;
        }
        if let Ok(line) = FieldLine::new(name, value) {
            let field_kept = field.clone().unbind();
            self.0[slot_of(field)] = Some(Known {
                field: field_kept,
                line,
            });
        }
    }
}

/// Where a tuple's line is.
fn slot_of(field: &Bound<'_, PyTuple>) -> usize {
    let address = field.as_ptr().addr();
    (address >> 4 ^ address >> 12) % N_LINES
}
