//! Runs the command-line program `onecopy`.

use std::ffi::OsString;
use std::path::PathBuf;

use onecopy_cli::Extra;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::raw::gil;

/// Adds the interpreter's package folders to the search path for ODBC drivers. Some drivers are
/// Python packages.
pub(crate) fn know_packages(py: Python<'_>) {
    static KNOWN: PyOnceLock<()> = PyOnceLock::new();
    KNOWN.get_or_init(py, || {
        let path = py.import("sys").and_then(|sys| sys.getattr("path"));
        let path: Vec<Bound<'_, PyAny>> = path.and_then(|p| p.extract()).unwrap_or_default();
        // Skips entries of `sys.path` that are not text.
        for folder in path.iter().filter_map(|f| f.extract::<PathBuf>().ok()) {
            if folder.ends_with("site-packages") || folder.ends_with("dist-packages") {
                onecopy_rows::odbc::add_driver_folder(folder);
            }
        }
    });
}

/// Runs the command-line program, and returns its exit code. The first argument is the program's
/// name.
///
/// The GIL is released during the command. The command handles signals, so the caller must first
/// remove Python's SIGINT handler. `again` is the command line that restarts the program in a new
/// process, or `None`.
#[pyfunction]
#[pyo3(signature = (args, again=None, /))]
pub(crate) fn run_command(
    py: Python<'_>,
    args: Vec<OsString>,
    again: Option<Vec<OsString>>,
) -> i32 {
    let version = py.version_info();
    let features = vec![format!(
        "Python {}.{}.{}",
        version.major, version.minor, version.patch
    )];
    know_packages(py);
    gil::detach(py, move || {
        let extra = Extra {
            features,
            again,
            ..Extra::default()
        };
        onecopy_cli::run(args.into_iter(), extra)
    })
}
