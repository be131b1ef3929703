//! Helpers that find the shared library of this build and run programs that inspect it.

use std::path::PathBuf;
use std::process::Command;

/// Returns the path of `libonecopy.so`, which cargo writes to the folder of the test programs.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.with_file_name("libonecopy.so");
    assert!(path.is_file(), "no {}", path.display());
    path
}

/// Runs `command`, which must succeed, and returns its standard output.
pub(crate) fn output(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (printed, errors) = (done.stdout, String::from_utf8_lossy(&done.stderr));
    assert!(
        done.status.success(),
        "{command:?}: {}\n{errors}",
        done.status
    );
    String::from_utf8(printed).expect("text")
}
