//! Objects to JSON.
//!
//! | module | what it holds |
//! |---|---|
//! | `options` | the keywords that all functions share |
//! | `members` | objects of which members are listed first |
//! | `moments` | dates and times |
//! | `other` | what stands for objects that are none of CPython's own types |
//! | `error` | why an object cannot be written, as an exception |
//! | `functions` | `dumps` and its kin |
//! | `chunks` | the items of an iterable, in chunks |
//! | `rows` | rows as tuples with one header |
//!
//! The walk itself is in `raw::walk`.

mod chunks;
mod error;
mod functions;
mod members;
mod moments;
mod options;
mod other;
mod rows;

use pyo3::prelude::*;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<other::Fragment>()?;
    module.add_class::<chunks::JSONChunks>()?;
    functions::add(module)
}
