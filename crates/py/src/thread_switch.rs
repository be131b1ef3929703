//! Lets other Python threads run while this thread does long work with the GIL held.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::raw::gil;

/// The source of a Python function that contains a backward jump. At such a jump, the interpreter
/// checks for pending requests, such as a request for the GIL.
const SOURCE: &std::ffi::CStr = c"def turn():\n    for _ in (None,):\n        pass\n";

/// Lets another thread run if that thread has waited for the switch interval
/// (`sys.getswitchinterval()`). On the main thread, also runs signal handlers, as Python does. It
/// calls a short Python function.
///
/// Releasing and acquiring the GIL here would not be sufficient, because CPython passes the GIL to
/// a waiting thread only if that thread has requested it. A thread makes the request only after the
/// GIL was not released for a whole interval. If the GIL were released more often, the thread would
/// never make the request. The interpreter's own loop releases the GIL only if there is a request.
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
