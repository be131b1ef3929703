//! Tests that the error for a directory without write permission contains the directory's path.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use onecopy_files::{Action, AtomicFile, Error, OnFailure};

/// The only test of this file, because it forks if the user is root. Root may write to every
/// directory, so the test continues in a child process that has dropped root's privileges.
#[test]
fn a_directory_without_permission_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let path = dir.path().join("a.csv");
    let denied = || {
        let error = AtomicFile::create(&path, OnFailure::Remove).unwrap_err();
        let message = error.to_string();
        matches!(
            error,
            Error::Denied {
                action: Action::Create,
                ..
            }
        ) && message.contains(path.to_str().unwrap())
            && message.contains("permissions")
    };
    // SAFETY: asks for the user id.
    if unsafe { libc::geteuid() } != 0 {
        assert!(denied());
    } else {
        // SAFETY: the child has only this thread, drops its privileges permanently and ends by
        // `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: two system calls without pointers; 65534 is nobody's id.
            let dropped = unsafe { libc::setgid(65534) == 0 && libc::setuid(65534) == 0 };
            let right = dropped && std::panic::catch_unwind(denied).unwrap_or(false);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        let mut status = 0;
        // SAFETY: pid is our child, status receives how it ended.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "{status}"
        );
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
