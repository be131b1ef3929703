//! `onecopy.json`: Python objects to JSON and back.
//!
//! | module | what it holds |
//! |---|---|
//! | `read` | JSON to objects |
//! | `write` | objects to JSON |

mod read;
mod write;

use pyo3::prelude::*;

pub(crate) use read::raise;

/// Adds all functions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    read::add(module)?;
    write::add(module)
}

/// A class of the module `onecopy.json`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("onecopy.json")?.getattr(name)
}
