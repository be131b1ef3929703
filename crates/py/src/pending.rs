//! `PendingCall`: a database call on an event loop. It is suspended when it has to wait.
//!
//! The call first binds the values, with the GIL. Then a [`Task`] calls the database without the
//! GIL. Finally, the call creates the result, with the GIL. `executemany` reads Python objects
//! outside of the task: see [`gil::attach`].

use std::cell::{RefCell, RefMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onecopy_rows::Error;
use onecopy_rows::task::{Progress, Task, Wait};
use onecopy_wire::CancelHandle;
use pyo3::prelude::*;

use crate::raw::gil;
use crate::raw::one_thread::OfOneThread;
use crate::{errors, limit};

/// A database call in steps, with any type of result.
trait Steps {
    /// Runs the call until it has to wait. `None` at the end.
    fn resume(&mut self, py: Python<'_>) -> Option<Wait>;

    /// Returns the result of a call that has ended. The error `late` replaces the call's own error.
    /// An exception in `make_result` takes precedence.
    fn result(self: Box<Self>, py: Python<'_>, late: Option<Error>) -> PyResult<Py<PyAny>>;
}

/// The outcome of a database call, and its value. A failed call may also have a value.
pub(crate) type Returned<T> = (Result<(), Error>, Option<T>);

struct CallSteps<T: 'static, F> {
    /// `None` after the call has ended.
    task: Option<Task<Returned<T>>>,
    returned: Option<Returned<T>>,
    make_result: F,
}

impl<T: Send, F: FnOnce(Python<'_>, T, bool) -> PyResult<Py<PyAny>>> Steps for CallSteps<T, F> {
    fn resume(&mut self, py: Python<'_>) -> Option<Wait> {
        match gil::resume(py, self.task.as_mut()?) {
            Progress::Waiting(wait) => Some(wait),
            Progress::Done(returned) => {
                (self.task, self.returned) = (None, Some(returned));
                None
            }
        }
    }

    fn result(self: Box<Self>, py: Python<'_>, late: Option<Error>) -> PyResult<Py<PyAny>> {
        let Some((ended, value)) = self.returned else {
            return Err(errors::interface(py, "the call has not returned"));
        };
        let made = match value {
            Some(value) => (self.make_result)(py, value, late.is_some()),
            None => Ok(py.None()),
        };
        let made = made?;
        ended.map_err(|error| errors::to_py(py, &late.unwrap_or(error)))?;
        Ok(made)
    }
}

/// A database call that can be suspended. `onecopy.aio` resumes it on the event loop's thread.
#[pyclass(frozen, module = "onecopy._core")]
pub(crate) struct PendingCall {
    /// `None` after `result` or `abandon`. If another thread drops a suspended call, the call and
    /// its connection are leaked. Only the creating thread may use them.
    steps: OfOneThread<RefCell<Option<Box<dyn Steps>>>>,
    cancel: CancelHandle,
    limit: Option<Duration>,
    is_late: AtomicBool,
}

impl PendingCall {
    /// Creates a call without starting it. `make_result` converts the value of `call` to a Python
    /// object. Its last argument is `true` after the time limit.
    pub(crate) fn new<T: Send + 'static>(
        limit: Option<Duration>,
        cancel: CancelHandle,
        call: impl FnOnce() -> Returned<T> + Send + 'static,
        make_result: impl FnOnce(Python<'_>, T, bool) -> PyResult<Py<PyAny>> + 'static,
    ) -> PyResult<PendingCall> {
        let steps = CallSteps {
            task: Some(Task::new(call)?),
            returned: None,
            make_result,
        };
        Ok(PendingCall {
            steps: OfOneThread::new(RefCell::new(Some(Box::new(steps)))),
            cancel,
            limit,
            is_late: AtomicBool::new(false),
        })
    }

    /// Records that the time limit has expired.
    pub(crate) fn note_late(&self) {
        self.is_late.store(true, Relaxed);
    }

    /// Borrows the state of the call.
    ///
    /// # Errors
    /// `InterfaceError` on another thread, and in Python code that the call runs.
    fn borrow(&self, py: Python<'_>) -> PyResult<RefMut<'_, Option<Box<dyn Steps>>>> {
        let Some(steps) = self.steps.get() else {
            let message = "the call belongs to the event loop of another thread";
            return Err(errors::interface(py, message));
        };
        let in_use =
            |_| errors::interface(py, "the call is in use further down in the same thread");
        steps.try_borrow_mut().map_err(in_use)
    }
}

#[pymethods]
impl PendingCall {
    /// Runs the call until it has to wait for its socket.
    ///
    /// Returns:
    ///     ``None`` if the call has ended. Otherwise a tuple of three items: the descriptor to wait
    ///     for, or -1 if other tasks have to run first; ``True`` to wait until the descriptor is
    ///     readable or writable, ``False`` to wait only until it is readable; and the largest
    ///     number of seconds to wait, or ``None`` for no limit.
    fn resume(&self, py: Python<'_>) -> PyResult<Option<(i32, bool, Option<f64>)>> {
        let mut steps = self.borrow(py)?;
        let Some(wait) = steps.as_mut().and_then(|steps| steps.resume(py)) else {
            return Ok(None);
        };
        let seconds = wait.deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            left.as_secs_f64()
        });
        Ok(Some((wait.fd, wait.is_for_write, seconds)))
    }

    /// Returns the result of a call that has ended, or raises its error.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let limit = self.limit.filter(|_| self.is_late.load(Relaxed));
        let steps = self.borrow(py)?.take();
        match steps {
            Some(steps) => steps.result(py, limit.map(limit::ran_out)),
            None => Err(errors::interface(py, "the call has ended")),
        }
    }

    /// Ends a call without a result. If the call waits for the server, its connection is lost.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        let steps = self.borrow(py)?.take();
        drop(steps);
        Ok(())
    }

    /// Cancels the call. The caller repeats this until the call has ended, because an early cancel
    /// has no effect. If the call runs several seconds longer, a further cancel shuts the
    /// connection down.
    fn cancel(&self, py: Python<'_>) {
        let cancel = self.cancel.clone();
        gil::detach(py, move || cancel.cancel());
    }

    /// The time limit of the call in seconds, or ``None``.
    #[getter]
    fn limit(&self) -> Option<f64> {
        self.limit.map(|limit| limit.as_secs_f64())
    }

    /// Cancels the call after its time limit. The call fails with an error that names the limit.
    fn run_out(&self, py: Python<'_>) {
        self.note_late();
        self.cancel(py);
    }
}
