//! JSON to objects.
//!
//! | module | what it holds |
//! |---|---|
//! | `big` | integers of any number of digits |
//! | `build` | objects of what the reader tells |
//! | `error` | `JSONDecodeError` |
//! | `lines` | one value for each line |
//! | `load` | `loads` and `load` |
//! | `options` | what the caller asks |

mod big;
mod build;
mod error;
mod lines;
mod load;
mod options;

pub(crate) use error::raise;
use pyo3::prelude::*;

/// Adds the functions to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    load::add(module)?;
    lines::add(module)
}
