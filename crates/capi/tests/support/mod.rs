//! The shared library that this build has made, and programs that look at it.

use std::path::PathBuf;
use std::process::Command;

/// `libonecopy.so`: cargo puts it beside the test programs.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.with_file_name("libonecopy.so");
    assert!(path.is_file(), "no {}", path.display());
    path
}

/// What a program prints; it must succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (told, errors) = (done.stdout, String::from_utf8_lossy(&done.stderr));
    assert!(
        done.status.success(),
        "{command:?}: {}\n{errors}",
        done.status
    );
    String::from_utf8(told).expect("text")
}
