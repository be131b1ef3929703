//! Where bytes go: stdout, or a file that appears whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use onecopy_files::{AtomicFile, OnFailure};

/// A destination.
pub(crate) enum Output {
    /// Stdout, past the standard library's buffer: chunks are large and whole, and one copy is enough.
    Stdout(File),
    /// A file under a temporary name.
    File(Box<AtomicFile>),
}

impl Output {
    /// Stdout.
    pub(crate) fn stdout() -> io::Result<Output> {
        let fd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Output::Stdout(File::from(fd)))
    }

    /// A file that appears at `path` when it is finished.
    pub(crate) fn file(path: &Path) -> Result<Output, onecopy_files::Error> {
        AtomicFile::create(path, OnFailure::Remove).map(|file| Output::File(Box::new(file)))
    }

    /// All was written: the file gets its name. Dropped without it, the file is removed.
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
