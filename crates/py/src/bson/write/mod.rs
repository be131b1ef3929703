//! Objects to BSON.
//!
//! | module | what it holds |
//! |---|---|
//! | `options` | the keywords that all functions share |
//! | `other` | what stands for objects that are none of CPython's own types |
//! | `marked` | values of BSON's own types, ours and pymongo's |
//! | `error` | why a document cannot be written, as an exception |
//! | `functions` | `encode` and `encode_into` |
//! | `chunks` | documents one behind the other |
//!
//! The walk itself is in `raw::walk::bson`.

mod chunks;
mod error;
mod functions;
mod marked;
mod options;
mod other;

use pyo3::prelude::*;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<chunks::BSONChunks>()?;
    functions::add(module)?;
    chunks::add(module)
}
