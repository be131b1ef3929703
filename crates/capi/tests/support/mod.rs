//! The shared library of this build, and programs that inspect it.

use std::path::PathBuf;
use std::process::Command;

/// `libonecopy.so`: cargo puts it next to the test programs.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.with_file_name("libonecopy.so");
    assert!(path.is_file(), "no {}", path.display());
    path
}

/// The output of a program, which must succeed.
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
