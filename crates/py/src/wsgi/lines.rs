//! `FieldLines`: a cache of encoded header fields that applications send repeatedly.
//!
//! An application passes a constant header field as the same tuple in each response. The cache
//! contains its encoded line under the address of the tuple, and keeps the tuple alive.

use onecopy_serve::FieldLine;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::raw::pinned_bytes::references;

/// The number of slots, a power of two.
const N_LINES: usize = 256;
/// The maximum length in bytes of a cached name and value together.
const MOST_BYTES: usize = 256;
/// The reference count of a tuple that only this response uses. With a higher count, the
/// application may send the tuple again.
const FRESH_REFERENCES: isize = 2;

struct CachedLine {
    field: Py<PyTuple>,
    line: FieldLine,
}

/// A cache of encoded header fields. The address of a field's tuple determines its slot.
pub(crate) struct FieldLines(Vec<Option<CachedLine>>);

impl FieldLines {
    pub(crate) fn new() -> FieldLines {
        FieldLines((0..N_LINES).map(|_| None).collect())
    }

    /// Returns the cached line of a header field.
    #[inline]
    pub(super) fn get(&self, field: &Bound<'_, PyTuple>) -> Option<&FieldLine> {
        let known = self.0[slot_of(field)].as_ref()?;
        (known.field.as_ptr() == field.as_ptr()).then_some(&known.line)
    }

    /// Caches a header field if the application keeps its tuple. A field that the server writes
    /// itself, or cannot send, is not cached.
    #[inline]
    pub(super) fn keep(&mut self, field: &Bound<'_, PyTuple>, name: &str, value: &[u8]) {
        if references(field.as_any()) <= FRESH_REFERENCES || name.len() + value.len() > MOST_BYTES {
            return;
        }
        if let Ok(line) = FieldLine::new(name, value) {
            let field_kept = field.clone().unbind();
            self.0[slot_of(field)] = Some(CachedLine {
                field: field_kept,
                line,
            });
        }
    }
}

/// Returns the slot of a tuple, computed from its address.
fn slot_of(field: &Bound<'_, PyTuple>) -> usize {
    let address = field.as_ptr().addr();
    (address >> 4 ^ address >> 12) % N_LINES
}
