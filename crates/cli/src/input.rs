//! The input of a command: a file, or stdin if the path is `-`. The input is read without the
//! buffer of the standard library.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Returns `true` if the path is `-`, which means stdin or stdout.
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the name of the input for messages: the path as given, or `stdin`.
pub(crate) fn name(path: &Path) -> String {
    match is_dash(path) {
        true => "stdin".to_owned(),
        false => path.display().to_string(),
    }
}

/// Opens the input file, or stdin for the path `-`; returns it with its metadata.
///
/// # Errors
/// The error of the operating system. A directory is also an error.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = match is_dash(path) {
        true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
        false => File::open(path)?,
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    Ok((file, metadata))
}
