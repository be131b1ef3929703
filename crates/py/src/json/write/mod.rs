//! Writing JSON: `dumps` and the related functions.
//!
//! | module | contents |
//! |---|---|
//! | `options` | the keywords that all functions share |
//! | `members` | lists of members, for objects that the encoder does not read in place |
//! | `date_time` | dates and times |
//! | `other_types` | the JSON forms of objects that are not of CPython's built-in types |
//! | `encode` | calls the encoder; adds to the ledger, converts errors |
//! | `error` | the exception for an object that cannot be encoded |
//! | `functions` | `dumps`, `dumps_str`, `dumps_into`, `dump`, `dumps_lines` |
//! | `chunks` | the items of an iterable, in chunks |
//! | `rows` | rows as tuples with one header |
//!
//! The encoder itself is in `raw::encode`.

mod chunks;
mod date_time;
mod encode;
mod error;
mod functions;
mod members;
mod options;
mod other_types;
mod rows;

use pyo3::prelude::*;

use crate::raw::function;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<chunks::JSONChunks>()?;
    functions::add(module)?;
    function::add::<rows::DumpsRows>(module)?;
    function::add::<chunks::IterChunks>(module)
}
