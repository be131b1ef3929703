//! Writes BSON.
//!
//! | module | contents |
//! |---|---|
//! | `options` | the keywords that all functions share |
//! | `other_types` | objects that are not of a built-in type |
//! | `bson_classes` | BSON classes of onecopy and of pymongo |
//! | `encode` | calls the encoder, converts errors |
//! | `error` | the exception of the encoder |
//! | `functions` | `encode` and `encode_into` |
//! | `chunks` | `encode_many` and `dump_many` |
//!
//! The encoder is in `raw::encode::bson`.

mod bson_classes;
mod chunks;
mod encode;
mod error;
mod functions;
mod options;
mod other_types;

use pyo3::prelude::*;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<chunks::BSONChunks>()?;
    functions::add(module)?;
    chunks::add(module)
}
