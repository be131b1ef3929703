//! Reading BSON: `decode`, `decode_all`, `decode_iter` and `RawDocument`.
//!
//! | module | contents |
//! |---|---|
//! | `build`, `events` | the event handler that creates Python objects |
//! | `decode` | the functions `decode` and `decode_all` |
//! | `raw_document`, `mapping`, `fields` | `RawDocument` |
//! | `error`, `failure` | `BSONDecodeError` |
//! | `iter` | `decode_iter`: one document at a time, from a buffer, a file or chunks |
//! | `options` | the keywords that all functions share |
//! | `bson_classes` | values of BSON types that Python does not have |

mod bson_classes;
mod build;
mod decode;
pub(super) mod error;
mod events;
mod failure;
mod fields;
mod iter;
mod mapping;
mod options;
mod raw_document;

use pyo3::prelude::*;

pub(crate) use raw_document::RawDocument;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    decode::add(module)?;
    iter::add(module)?;
    module.add_class::<RawDocument>()
}
