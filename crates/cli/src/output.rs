//! [`Output`]: stdout, or a file that gets its name only when it is complete.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use onecopy_files::{AtomicFile, OnFailure};

/// The destination of a command's output.
pub(crate) enum Output {
    /// Stdout, without the buffer of the standard library: each write is a whole chunk, so a buffer
    /// would only add a copy.
    Stdout(File),
    /// A file, which has a temporary name until it is finished.
    File(Box<AtomicFile>),
}

impl Output {
    /// Opens stdout.
    pub(crate) fn stdout() -> io::Result<Output> {
        let fd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Output::Stdout(File::from(fd)))
    }

    /// Creates a file that is named `path` when it is finished.
    pub(crate) fn file(path: &Path) -> Result<Output, onecopy_files::Error> {
        AtomicFile::create(path, OnFailure::Remove).map(|file| Output::File(Box::new(file)))
    }

    /// Finishes the output: a file gets its final name. If the `Output` is dropped without this
    /// call, the file is deleted.
    pub(crate) fn finish(self) -> Result<(), onecopy_files::Error> {
        match self {
            Output::Stdout(_) => Ok(()),
            Output::File(file) => file.commit(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(file) => file.write(bytes),
            Output::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(file) => file.flush(),
            Output::File(file) => file.flush(),
        }
    }
}
