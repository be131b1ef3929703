//! The access log and the metrics of a server.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::Arc;

use onecopy_serve::access::{Format, LogTarget, ReportProblem};
use onecopy_serve::{AccessLog, Config, MetricsArea};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::raw::descriptor;
use crate::raw::gil;

/// The shared memory that contains the counters of servers. The public class for it is
/// `onecopy.Metrics`.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Metrics(MetricsArea);

#[pymethods]
impl Metrics {
    #[new]
    fn new(servers: usize) -> PyResult<Metrics> {
        Ok(Metrics(MetricsArea::new(servers)?))
    }

    /// Opens the shared metrics of another process by a file descriptor. The caller keeps the
    /// descriptor.
    #[staticmethod]
    fn of_descriptor(number: i32) -> PyResult<Metrics> {
        let descriptor = descriptor::duplicate(number)?;
        match MetricsArea::of_descriptor(descriptor) {
            Ok(area) => Ok(Metrics(area)),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                Err(PyValueError::new_err(format!(
                    "descriptor {number} has no metrics, or those of another version of onecopy\n\
                 pass on the `descriptor` of a `Metrics`, to the same version"
                )))
            }
            Err(e) => Err(e.into()),
        }
    }

    #[getter]
    fn descriptor(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    fn text(&self, py: Python<'_>) -> String {
        gil::detach(py, || self.0.text())
    }
}

impl Metrics {
    /// Reserves a slot for the counters of one server.
    pub(super) fn slot(&self) -> PyResult<onecopy_serve::Metrics> {
        self.0.slot().map_err(|e| match e.kind() {
            io::ErrorKind::QuotaExceeded => PyRuntimeError::new_err(
                "all slots of these metrics are used by running servers\n\
                 make it with a larger `servers`",
            ),
            _ => e.into(),
        })
    }
}

/// A path for log lines, or the number of a file descriptor.
#[derive(FromPyObject)]
pub(super) enum LogDestination {
    #[pyo3(transparent)]
    Descriptor(i32),
    #[pyo3(transparent)]
    Path(PathBuf),
}

/// Opens the access log, and makes `config` log each request. `options` has the destination, the
/// line format, and `true` to log queries.
pub(super) fn access_log(
    options: Option<(LogDestination, String, bool)>,
    config: &mut Config,
) -> PyResult<Option<AccessLog>> {
    let Some((target, format, query)) = options else {
        return Ok(None);
    };
    let format = match &*format {
        "common" => Format::Common,
        "combined" => Format::Combined,
        "json" => Format::Json,
        other => {
            return Err(PyValueError::new_err(format!(
                "`{other}` is no format of access logs\nwrite `common`, `combined` or `json`"
            )));
        }
    };
    let (to, name) = match target {
        LogDestination::Path(path) => {
            let name = format!("`{}`", path.display());
            (LogTarget::Path(path), name)
        }
        LogDestination::Descriptor(number) => {
            let to = LogTarget::Descriptor(descriptor::duplicate(number)?);
            (to, format!("on descriptor {number}"))
        }
    };
    // The log's thread never calls Python, so `sys.stderr` is not used.
    let report: ReportProblem = Arc::new(|text| {
        let _ = writeln!(io::stderr(), "onecopy: {text}");
    });
    let log = AccessLog::open(to, format, config.metrics.clone(), report).map_err(|e| {
        let text = format!(
            "the access log {name} cannot be opened: {e}\n\
             name a file in an existing folder to which this user may write"
        );
        io::Error::new(e.kind(), text)
    })?;
    config.keep = format.keep(query);
    let lines = log.clone();
    config.on_access = Some(Arc::new(move |access| lines.put(access)));
    Ok(Some(log))
}
