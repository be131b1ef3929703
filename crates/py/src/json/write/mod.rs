//! Writes JSON.
//!
//! | module | contents |
//! |---|---|
//! | `options` | the keywords that all functions share |
//! | `members` | members of objects that the encoder cannot read in place |
//! | `date_time` | dates and times |
//! | `other_types` | objects that are not of a built-in type |
//! | `encode` | calls the encoder, converts errors |
//! | `error` | the exception of the encoder |
//! | `functions` | `dumps`, `dumps_str`, `dumps_into`, `dump`, `dumps_lines` |
//! | `chunks` | an iterable, in chunks |
//! | `rows` | rows as tuples with one header |
//!
//! The encoder is in `raw::encode`.

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
