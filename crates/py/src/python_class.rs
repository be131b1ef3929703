//! Looks up classes in onecopy's Python modules.

use pyo3::prelude::*;

/// Returns the class `name` of the Python module `module`.
///
/// # Errors
/// `ImportError` or `AttributeError` if the class does not exist.
pub(crate) fn python_class<'py>(
    py: Python<'py>,
    module: &str,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    py.import(module)?.getattr(name)
}
