//! Tests that a write to a full disk fails with the path of the file, and that an existing file is
//! unchanged.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::fs;
use std::io::{ErrorKind, Write};

use onecopy_files::{AtomicFile, Error, OnFailure};

/// The only test of this file, because it sets a limit for the whole process. The limit on the size
/// of files simulates a full disk, which only root could create. The same system call fails in both
/// cases.
#[test]
fn a_full_disk_is_an_error_with_the_path_and_the_old_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.json");
    fs::write(&path, "old").unwrap();
    let limit = libc::rlimit {
        rlim_cur: 64 << 10,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the signal's default action (ending the process) is replaced by ignoring it; the
    // limit is a plain struct. If the hard limit is below infinity, the call fails and the test
    // reports it.
    let set = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let mut old = limit;
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut old);
        let limit = libc::rlimit {
            rlim_max: old.rlim_max,
            ..limit
        };
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
    };
    assert_eq!(set, 0);

    let mut file = AtomicFile::create(&path, OnFailure::Remove).unwrap();
    let error = file.write_all(&vec![b'x'; 128 << 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    let message = error.to_string();
    assert!(
        message.contains("rows.json") && message.contains("free some space"),
        "{message}"
    );
    let inner = error.into_inner().unwrap().downcast::<Error>().unwrap();
    assert!(matches!(*inner, Error::Full { .. }));
    assert_eq!(file.len_bytes(), 64 << 10);
    drop(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
