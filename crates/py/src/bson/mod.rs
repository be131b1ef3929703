//! `onecopy.bson`: Python objects to BSON and back.
//!
//! | module | what it holds |
//! |---|---|
//! | `object_id` | `ObjectId` |
//! | `extended` | documents to Extended JSON and back, and whether bytes are documents |
//! | `moments` | dates and times as BSON's milliseconds |
//! | `read` | BSON to objects |
//! | `write` | objects to BSON |
//!
//! The other types of BSON's are classes of Python's (`python/onecopy/bson/_types.py`).

mod extended;
mod moments;
mod object_id;
mod read;
mod write;

use pyo3::prelude::*;

pub(crate) use object_id::ObjectId;
pub(crate) use read::RawDocument;

/// Adds all functions and classes to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ObjectId>()?;
    read::add(module)?;
    write::add(module)?;
    extended::add(module)
}

/// Letters of a regex's options by the flags of Python's `re`.
const REGEX_FLAGS: [(u32, u8); 6] = [
    (2, b'i'),
    (4, b'l'),
    (8, b'm'),
    (16, b's'),
    (32, b'u'),
    (64, b'x'),
];

/// A class of the module `onecopy.bson`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("onecopy.bson")?.getattr(name)
}
