//! Reading JSON: `loads`, `load` and `loads_lines`.
//!
//! | module | contents |
//! |---|---|
//! | `big` | integers of any number of digits |
//! | `build` | the event handler that creates Python objects |
//! | `error` | `JSONDecodeError` |
//! | `lines` | `loads_lines`: one value for each line |
//! | `load` | `loads` and `load` |
//! | `options` | the keywords that all functions share |

mod big;
mod build;
mod error;
mod lines;
mod load;
mod options;

pub(crate) use error::raise;
use pyo3::prelude::*;

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    load::add(module)?;
    lines::add(module)
}
