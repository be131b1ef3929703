//! `onecopy.json`: Python objects to JSON and back.
//!
//! | module | what it holds |
//! |---|---|
//! | `read` | JSON to objects |

mod read;

use pyo3::prelude::*;

/// Adds all functions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    read::add(module)
}
