//! The command, from the wheel's script.

use std::ffi::OsString;

use onecopy_cli::Extra;
use pyo3::prelude::*;

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
    py.detach(move || {
        let extra = Extra {
            features,
            again,
            ..Extra::default()
        };
        onecopy_cli::run(args.into_iter(), extra)
    })
}
