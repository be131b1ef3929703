//! Copies of sparse files that change while they are copied.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use onecopy_files::sendfile::copy_contents;

static DATA: [u8; 65536] = [7; 65536];

/// Copies a file of `DATA` and a hole up to 1 MiB; calls `change` with this file after the first
/// part is copied. Returns the contents of the copy.
fn copied(change: impl Fn(&File) -> io::Result<()>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let create = |name: &str| {
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        options.open(folder.path().join(name)).unwrap()
    };
    let (from, to) = (create("from"), create("to"));
    from.write_all_at(&DATA, 0).unwrap();
    from.set_len(1 << 20).unwrap();
    let moved = copy_contents(&from, &to, |_| change(&from)).unwrap();
    let contents = std::fs::read(folder.path().join("to")).unwrap();
    assert_eq!(moved.n_bytes, contents.len() as u64);
    contents
}

#[test]
fn the_hole_at_the_end_is_part_of_the_copy() {
    let mut expected = DATA.to_vec();
    expected.resize(1 << 20, 0);
    assert_eq!(copied(|_| Ok(())), expected);
}

#[test]
fn a_copy_of_a_file_that_is_truncated_ends_at_its_new_end() {
    assert_eq!(copied(|from| from.set_len(DATA.len() as u64)), DATA);
}
