//! `onecopy.json`: Python objects to JSON and back.
//!
//! | module | contents |
//! |---|---|
//! | `fragment` | `Fragment`: JSON text that is written unchanged |
//! | `read` | JSON to Python objects |
//! | `write` | Python objects to JSON |

mod fragment;
mod read;
mod write;

use pyo3::prelude::*;

pub(crate) use fragment::Fragment;
pub(crate) use read::raise;

/// Adds all functions and classes of `onecopy.json` to the extension module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Fragment>()?;
    read::add(module)?;
    write::add(module)
}
