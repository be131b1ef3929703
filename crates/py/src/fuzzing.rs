//! A door for the targets in `fuzz/` that carry an interpreter.

use pyo3::prelude::*;

/// A fresh module `onecopy._core`; the caller gives it its place in `sys.modules`.
///
/// # Errors
/// What the module raises where it cannot be imported.
pub fn module(py: Python<'_>) -> Bound<'_, PyModule> {
    pyo3::wrap_pymodule!(crate::_core)(py).into_bound(py)
}
