//! BSON to objects.
//!
//! | module | what it holds |
//! |---|---|
//! | `build`, `events` | objects of what the reader tells |
//! | `decode` | `decode` and `decode_all` |
//! | `document`, `fields` | `RawDocument` |
//! | `error` | `BSONDecodeError` |
//! | `iter` | `decode_iter`: one document at a time, from a buffer, a file or chunks |
//! | `options` | what the caller asks |
//! | `rare` | values that Python has no type for |

mod build;
mod decode;
mod document;
pub(super) mod error;
mod events;
mod fields;
mod iter;
mod options;
mod rare;

use pyo3::prelude::*;

pub(crate) use document::RawDocument;

/// Adds the functions to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    decode::add(module)?;
    iter::add(module)?;
    document::add(module)
}
