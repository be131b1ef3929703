//! Methods of `Connection` that only PostgreSQL supports.

use std::time::Duration;

use onecopy_rows::{connect as db, postgres};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::Connection;
use crate::pending::PendingCall;

/// A message that another session sent with ``NOTIFY``.
#[pyclass(frozen, get_all, module = "onecopy")]
pub(crate) struct Notification {
    /// The channel on which the message was sent.
    channel: String,
    /// The payload of the message; empty if the sender passed none.
    payload: String,
    /// The process id of the server process whose session sent the notification.
    process_id: i32,
}

impl Notification {
    fn new(received: postgres::Notification) -> Notification {
        Notification {
            channel: received.channel,
            payload: received.payload,
            process_id: received.process_id,
        }
    }
}

#[pymethods]
impl Notification {
    fn __repr__(&self) -> String {
        let Notification {
            channel,
            payload,
            process_id,
        } = self;
        format!("<onecopy.Notification: {channel}, {payload:?}, process {process_id}>")
    }
}

#[pymethods]
impl Connection {
    /// Returns the notifications that have arrived since the last call. Requires PostgreSQL without
    /// an ODBC driver. The connection receives the notifications of each channel of an executed
    /// ``LISTEN``, outside of a transaction or in a committed one.
    ///
    /// Args:
    ///     timeout: how long to wait for the first notification, in seconds; 0 to return
    ///         immediately. During this time, other calls on the connection block.
    ///
    /// Raises:
    ///     NotSupportedError: the database is not PostgreSQL, or is accessed through ODBC.
    #[pyo3(signature = (timeout=0.0))]
    fn notifications(&self, py: Python<'_>, timeout: f64) -> PyResult<Vec<Notification>> {
        let wait = wait_of(timeout)?;
        let found = self.call(py, |db| db.postgres()?.notifications(wait))?;
        Ok(found.into_iter().map(Notification::new).collect())
    }

    /// Starts `notifications`, and returns a `PendingCall` for an event loop.
    fn _begin_notifications(&self, py: Python<'_>, timeout: f64) -> PyResult<PendingCall> {
        let wait = wait_of(timeout)?;
        let notifications = move |db: &db::Connection| db.postgres()?.notifications(wait);
        self.begin(py, None, notifications, |py, found, _is_late| {
            let found = found.into_iter().map(Notification::new);
            Ok(PyList::new(py, found.collect::<Vec<_>>())?
                .into_any()
                .unbind())
        })
    }
}

/// Converts the argument `timeout` from seconds to a `Duration`.
fn wait_of(timeout: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout)
        .ok()
        .filter(|wait| *wait <= Duration::from_secs(86_400))
        .ok_or_else(|| PyValueError::new_err("`timeout` is in seconds, from 0 to 86400"))
}
