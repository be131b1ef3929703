//! The command, from the wheel's script.

use std::ffi::OsString;
use std::path::PathBuf;

use onecopy_cli::Extra;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::raw::ending;

/// Tells where this interpreter's packages lie: drivers come as packages too (`mssql-python-odbc`, `mssql-python-rs`).
pub(crate) fn know_packages(py: Python<'_>) {
    static KNOWN: PyOnceLock<()> = PyOnceLock::new();
    KNOWN.get_or_init(py, || {
        let path = py.import("sys").and_then(|sys| sys.getattr("path"));
        let path: Vec<Bound<'_, PyAny>> = path.and_then(|p| p.extract()).unwrap_or_default();
        // What stands in `sys.path` and is no text is none of ours.
        for folder in path.iter().filter_map(|f| f.extract::<PathBuf>().ok()) {
            if folder.ends_with("site-packages") || folder.ends_with("dist-packages") {
                onecopy_rows::odbc::add_driver_folder(folder);
            }
        }
    });
}

/// Runs the command with these arguments, the program's name first, and returns its exit code.
///
/// It runs detached and handles signals itself: its caller has put Python's own SIGINT handler away. `again` is the
/// command line of this process, if running it again runs this command again.
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
    ending::detach(py, move || {
        let extra = Extra {
            features,
            again,
            ..Extra::default()
        };
        onecopy_cli::run(args.into_iter(), extra)
    })
}
