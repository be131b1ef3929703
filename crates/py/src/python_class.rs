//! Looks up classes that onecopy's Python modules define.

use pyo3::prelude::*;

/// Returns the class `name` from onecopy's Python module `module`.
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
