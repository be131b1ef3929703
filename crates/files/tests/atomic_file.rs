//! Tests that a file gets its name only when it is complete, and that an existing file of this name
//! is unchanged until then.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use onecopy_files::{AtomicFile, Error, OnFailure};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn write(path: &Path, content: &str) -> Result<(), Error> {
    let mut file = AtomicFile::create(path, OnFailure::Remove)?;
    file.write_all(content.as_bytes()).unwrap();
    assert_eq!(file.len_bytes(), content.len() as u64);
    file.commit()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn refusal(path: impl Into<PathBuf>) -> (Error, String) {
    let error = AtomicFile::create(path.into(), OnFailure::Remove).unwrap_err();
    let message = error.to_string();
    (error, message)
}

#[test]
fn nothing_is_seen_under_the_name_before_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.csv");
    let mut file = AtomicFile::create(&path, OnFailure::Remove).unwrap();
    file.write_all(b"a,b\n").unwrap();
    assert!(!path.exists());
    assert_eq!(fs::read(file.temporary_path()).unwrap(), b"a,b\n");
    assert_eq!(file.temporary_path().parent(), path.parent());
    file.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"a,b\n");
    assert_eq!(names(dir.path()), ["rows.csv"]);
}

#[test]
fn the_old_file_is_read_whole_until_it_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    write(&path, "old").unwrap();
    let mut reader = fs::File::open(&path).unwrap();
    write(&path, "new").unwrap();
    let mut content = String::new();
    std::io::Read::read_to_string(&mut reader, &mut content).unwrap();
    assert_eq!(content, "old");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_file_given_up_leaves_nothing_or_what_it_was_told_to_keep() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    write(&path, "old").unwrap();
    let mut file = AtomicFile::create(&path, OnFailure::Remove).unwrap();
    file.write_all(b"half").unwrap();
    file.abandon();
    assert_eq!(names(dir.path()), ["a"]);

    let mut file = AtomicFile::create(&path, OnFailure::Keep).unwrap();
    file.write_all(b"half").unwrap();
    let kept = file.temporary_path().to_owned();
    drop(file);
    assert_eq!(fs::read_to_string(kept).unwrap(), "half");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[test]
fn a_new_file_has_the_permissions_of_a_plain_create() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
    write(&ours, "").unwrap();
    fs::File::create(&plain).unwrap();
    assert_eq!(mode(&ours), mode(&plain));
}

#[test]
fn a_replaced_file_keeps_its_permissions_and_is_private_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    for bits in [0o600, 0o640, 0o664, 0o755, 0o444] {
        write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        let before = fs::metadata(&path).unwrap();
        let file = AtomicFile::create(&path, OnFailure::Remove).unwrap();
        assert_eq!(mode(file.temporary_path()) & 0o077, 0);
        file.commit().unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(
            (mode(&path), after.uid(), after.gid()),
            (bits, before.uid(), before.gid())
        );
    }
}

#[test]
fn a_symbolic_link_stays_and_its_target_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let target = data.join("real");
    fs::write(&target, "old").unwrap();
    let (link, second) = (dir.path().join("link"), dir.path().join("second"));
    symlink("data/real", &link).unwrap();
    symlink(&link, &second).unwrap();
    write(&second, "new").unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::symlink_metadata(&second).unwrap().is_symlink());
    assert_eq!(names(&data), ["real"]);

    let dangling = dir.path().join("dangling");
    symlink("data/fresh", &dangling).unwrap();
    write(&dangling, "fresh").unwrap();
    assert_eq!(fs::read_to_string(data.join("fresh")).unwrap(), "fresh");

    let circle = dir.path().join("circle");
    symlink("circle", &circle).unwrap();
    assert!(refusal(&circle).1.contains("circle of symbolic links"));
}

#[test]
fn what_is_no_file_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (error, message) = refusal(dir.path());
    assert!(
        matches!(
            error,
            Error::NotAFile {
                what: "a directory",
                ..
            }
        ),
        "{message}"
    );
    assert!(message.contains(dir.path().to_str().unwrap()), "{message}");
    assert!(matches!(
        refusal("/dev/null").0,
        Error::NotAFile {
            what: "a device",
            ..
        }
    ));
    let slash = format!("{}/new/", dir.path().display());
    assert!(matches!(refusal(slash).0, Error::NotAFile { .. }));
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(matches!(
        refusal(&socket).0,
        Error::NotAFile {
            what: "a socket",
            ..
        }
    ));
    assert_eq!(names(dir.path()), ["socket"]);
}

#[test]
fn a_missing_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("no/such");
    let (error, message) = refusal(missing.join("a.csv"));
    assert!(matches!(error, Error::NoDirectory { .. }));
    assert!(message.contains(missing.to_str().unwrap()), "{message}");
    fs::write(dir.path().join("file"), "").unwrap();
    let (error, message) = refusal(dir.path().join("file/a.csv"));
    assert!(matches!(error, Error::NoDirectory { .. }), "{message}");
}

#[test]
fn a_directory_removed_under_way_is_an_error_of_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let sub = dir.path().join("sub");
    fs::create_dir(&sub).unwrap();
    let file = AtomicFile::create(sub.join("a"), OnFailure::Remove).unwrap();
    fs::remove_dir_all(&sub).unwrap();
    let message = file.commit().unwrap_err().to_string();
    assert!(message.contains("sub/a"), "{message}");
}

#[test]
fn a_name_of_the_longest_kind_has_room_for_its_temporary_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("n".repeat(255));
    write(&path, "x").unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "x");
}

#[test]
fn two_writers_of_one_name_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut first = AtomicFile::create(&path, OnFailure::Remove).unwrap();
    let mut second = AtomicFile::create(&path, OnFailure::Remove).unwrap();
    first.write_all(b"first").unwrap();
    second.write_all(b"second").unwrap();
    second.commit().unwrap();
    first.commit().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
    assert_eq!(names(dir.path()), ["a"]);
}
