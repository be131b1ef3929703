//! `onecopy.Json`: a parameter that is sent as JSON.

use onecopy_text::Tally;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::parameters;

/// A parameter that is sent as JSON: ``Json({"a": [1, None]})``. `onecopy.json.dumps` converts its
/// value to text. The statement determines the parameter's type on the server.
///
/// >>> con = onecopy.connect("sqlite::memory:")
/// >>> con.execute("select ? ->> 'name'", [onecopy.Json({"name": "Ærø"})]).fetchone()
/// ('Ærø',)
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Json {
    /// The value that is sent as JSON.
    #[pyo3(get)]
    value: Py<PyAny>,
}

#[pymethods]
impl Json {
    #[new]
    #[pyo3(signature = (value, /))]
    fn new(value: Py<PyAny>) -> Json {
        Json { value }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Json({})", self.value.bind(py).repr()?))
    }
}

impl Json {
    pub(crate) fn text(&self, py: Python<'_>) -> PyResult<String> {
        let module = py.import("onecopy.json")?;
        let text = module.call_method1("dumps_str", (&self.value,))?;
        parameters::utf8(py, text.cast::<PyString>()?, "JSON", &mut Tally::default())
    }
}
