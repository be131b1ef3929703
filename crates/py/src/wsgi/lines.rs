//! `FieldLines`: a cache of the encoded lines of header fields that applications send repeatedly.
//!
//! An application that sends a constant header field passes the same tuple object in each response.
//! The contents of a tuple cannot change, so the encoded line is cached under the address of the
//! tuple. The cache keeps the tuple alive.

use onecopy_serve::FieldLine;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::raw::pinned_bytes::references;

/// The number of slots of the cache, a power of two. Each slot contains one line.
const N_LINES: usize = 256;
/// The maximum length in bytes of the name and value together of a header field that is cached.
const MOST_BYTES: usize = 256;
/// The reference count of a header field's tuple that the application created only for the current
/// response: one reference is in the list of header fields, and one belongs to the code of this
/// crate that reads the tuple. A higher count means that the application also refers to the tuple,
/// so that it may be sent again.
const FRESH_REFERENCES: isize = 2;

struct CachedLine {
    field: Py<PyTuple>,
    line: FieldLine,
}

/// A cache of header fields as encoded lines. The address of a field's tuple determines the slot of
/// its line.
pub(crate) struct FieldLines(Vec<Option<CachedLine>>);

impl FieldLines {
    pub(crate) fn new() -> FieldLines {
        FieldLines((0..N_LINES).map(|_| None).collect())
    }

    /// Returns the cached line of a header field; `None` if it is not cached.
    #[inline]
    pub(super) fn get(&self, field: &Bound<'_, PyTuple>) -> Option<&FieldLine> {
        let known = self.0[slot_of(field)].as_ref()?;
        (known.field.as_ptr() == field.as_ptr()).then_some(&known.line)
    }

    /// Caches a header field if the application has another reference to its tuple than the list of
    /// header fields of this response. The application will then probably send the same tuple
    /// again. A field that the server itself writes, or that it cannot send, is not cached.
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

/// Returns the index of the cache slot for a tuple, computed from the address of the tuple.
fn slot_of(field: &Bound<'_, PyTuple>) -> usize {
    let address = field.as_ptr().addr();
    (address >> 4 ^ address >> 12) % N_LINES
}
