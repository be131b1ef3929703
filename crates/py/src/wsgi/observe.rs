//! What is seen of a server from outside: its access log, and its metrics.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::Arc;

use onecopy_serve::access::{Format, Tell, To};
use onecopy_serve::{AccessLog, Config, MetricsArea};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::raw::ending;
use crate::raw::output;

/// Memory that servers count in; `onecopy.Metrics` is its public face.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Metrics(MetricsArea);

#[pymethods]
impl Metrics {
    #[new]
    fn new(servers: usize) -> PyResult<Metrics> {
        Ok(Metrics(MetricsArea::new(servers)?))
    }

    /// That of another process, by the number of its descriptor, which stays the caller's.
    #[staticmethod]
    fn of_descriptor(number: i32) -> PyResult<Metrics> {
        let descriptor = output::duplicate(number)?;
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
        ending::detach(py, || self.0.text())
    }
}

impl Metrics {
    /// A place for a server.
    pub(super) fn place(&self) -> PyResult<onecopy_serve::Metrics> {
        self.0.place().map_err(|e| match e.kind() {
            io::ErrorKind::QuotaExceeded => PyRuntimeError::new_err(
                "all places of these metrics are taken by servers that live\nmake it with a larger `servers`",
            ),
            _ => e.into(),
        })
    }
}

/// Where lines go: a path, or the number of a descriptor.
#[derive(FromPyObject)]
pub(super) enum Target {
    #[pyo3(transparent)]
    Descriptor(i32),
    #[pyo3(transparent)]
    Path(PathBuf),
}

/// Opens the access log, and has `config` tell it of each request. `options`: where to, its format, whether with queries.
pub(super) fn access_log(
    options: Option<(Target, String, bool)>,
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
    let to = match target {
        Target::Path(path) => To::Path(path),
        Target::Descriptor(number) => To::Descriptor(output::duplicate(number)?),
    };
    // Not Python's `sys.stderr`: the log's thread knows nothing of Python.
    let tell: Tell = Arc::new(|text| {
        let _ = writeln!(io::stderr(), "onecopy: {text}");
    });
    let log = AccessLog::open(to, format, config.metrics.clone(), tell)?;
    config.keep = format.keep(query);
    let lines = log.clone();
    config.on_access = Some(Arc::new(move |access| lines.put(access)));
    Ok(Some(log))
}
