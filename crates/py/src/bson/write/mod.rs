//! Writing BSON: `encode`, `encode_into`, `encode_many` and `dump_many`.
//!
//! | module | contents |
//! |---|---|
//! | `options` | the keywords that all functions share |
//! | `other_types` | the BSON forms of objects that are not of CPython's built-in types |
//! | `bson_classes` | values of the BSON classes of onecopy and of pymongo |
//! | `encode` | calls the encoder; adds to the ledger, converts errors |
//! | `error` | the exception for a document that cannot be encoded |
//! | `functions` | `encode` and `encode_into` |
//! | `chunks` | concatenated documents, in chunks |
//!
//! The encoder itself is in `raw::encode::bson`.

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
