//! Creates the extension module for fuzz targets.

use pyo3::prelude::*;

/// Creates the module `onecopy._core`. The caller must register it in `sys.modules`.
///
/// # Errors
/// The exception of the module's initialisation.
pub fn module(py: Python<'_>) -> Bound<'_, PyModule> {
    pyo3::wrap_pymodule!(crate::_core)(py).into_bound(py)
}
