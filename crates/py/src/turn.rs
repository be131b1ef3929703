//! A turn for Python's other threads, in work that stays attached for long.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::raw::ending;

/// A jump back: where every interpreter loop looks at what is asked of it.
const SOURCE: &std::ffi::CStr = c"def turn():\n    for _ in (None,):\n        pass\n";

/// Lets another thread run where one has waited for its share (`sys.getswitchinterval()`), and runs signal handlers (on the
/// main thread, as Python has it). Costs a call of a Python function.
///
/// To detach and attach again would not do. The lock goes to whom it is given only where the waiting thread has asked for
/// it, which it does after it waited for the interval undisturbed; a lock that is let go for a moment more often than that
/// wakes it each time too late, and it never asks. The interpreter's own loop does what was asked for and nothing else.
///
/// # Errors
/// What a signal handler raised.
pub(crate) fn take(py: Python<'_>) -> PyResult<()> {
    static TURN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let turn = TURN.get_or_try_init(py, || -> PyResult<_> {
        let names = PyDict::new(py);
        py.run(SOURCE, Some(&names), None)?;
        Ok(names.as_any().get_item("turn")?.unbind())
    })?;
    ending::calls(py, || turn.bind(py).call0())?;
    py.check_signals()
}
