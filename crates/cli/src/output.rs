//! Where bytes go: stdout, or a file that appears whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// A destination.
pub(crate) enum Output {
    /// Stdout, past the standard library's buffer: chunks are large and whole, and one copy is enough.
    Stdout(File),
    /// A file under a temporary name.
    File(AtomicFile),
}

impl Output {
    /// Stdout.
    pub(crate) fn stdout() -> io::Result<Output> {
        let fd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Output::Stdout(File::from(fd)))
    }

    /// A file that appears at `path` when it is finished.
    pub(crate) fn file(path: &Path) -> io::Result<Output> {
        AtomicFile::create(path).map(Output::File)
    }

    /// All was written: the file gets its name. Dropped without it, the file is removed.
    pub(crate) fn finish(self) -> io::Result<()> {
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
            Output::File(file) => file.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(file) => file.flush(),
            Output::File(file) => file.file.flush(),
        }
    }
}

/// A file under a temporary name beside its own, synced and renamed by `commit`, removed otherwise.
pub(crate) struct AtomicFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    committed: bool,
}

impl AtomicFile {
    fn create(path: &Path) -> io::Result<AtomicFile> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&temporary)?;
        Ok(AtomicFile {
            file,
            temporary,
            path: path.to_owned(),
            committed: false,
        })
    }

    fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.temporary, &self.path)?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}
