//! Lets other Python threads run during long work that holds the GIL.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::raw::gil;

/// The source of a Python function with a backward jump, at which the interpreter's loop checks for
/// pending requests.
const SOURCE: &std::ffi::CStr = c"def turn():\n    for _ in (None,):\n        pass\n";

/// Lets another thread run if that thread has waited for the switch interval
/// (`sys.getswitchinterval()`). On the main thread, also runs signal handlers, as Python does. This
/// costs a call of a Python function.
///
/// To release and acquire the GIL would not be sufficient. CPython passes the GIL to a waiting
/// thread only if that thread has requested it. The thread makes the request after it has waited
/// for the whole interval without a release of the GIL. If the GIL is released more often, the
/// thread never makes the request. The interpreter's own loop releases the GIL only if there is a
/// request.
///
/// # Errors
/// The exception that a signal handler has raised.
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
