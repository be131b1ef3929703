//! Lets other Python threads run during long work with the GIL held.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::raw::gil;

/// The source of a Python function with a backward jump. At this jump, the interpreter checks for
/// requests for the GIL.
const SOURCE: &std::ffi::CStr = c"def turn():\n    for _ in (None,):\n        pass\n";

/// Lets another thread run after the switch interval (`sys.getswitchinterval()`). On the main
/// thread, also runs signal handlers. It calls a short Python function.
///
/// Releasing the GIL is not sufficient: CPython passes it only to a thread that has requested it. A
/// thread requests the GIL after a whole interval without a release. Frequent releases would
/// prevent the request.
///
/// # Errors
/// The exception of a signal handler.
pub(crate) fn allow(py: Python<'_>) -> PyResult<()> {
    static TURN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let turn = TURN.get_or_try_init(py, || -> PyResult<_> {
        let names = PyDict::new(py);
        py.run(SOURCE, Some(&names), None)?;
        Ok(names.as_any().get_item("turn")?.unbind())
    })?;
    gil::calls(py, || turn.bind(py).call0())?;
    py.check_signals()
}
