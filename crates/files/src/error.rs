//! [`Error`]: the errors of this crate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A step in the work of [`crate::AtomicFile`]. An error names the step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Reading the metadata of the target path.
    Inspect,
    /// Creating the temporary file next to the target.
    Create,
    /// Writing to the temporary file.
    Write,
    /// Setting the permissions to those of the replaced file.
    SetPermissions,
    /// Syncing the data to disk.
    Sync,
    /// Renaming the temporary file to the target's name.
    Rename,
    /// Syncing the directory after the rename. The file already has its final name, but a power
    /// failure may undo the rename.
    SyncDirectory,
}

/// The reason why a file could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// From [`crate::AtomicFile::create`]: the directory of the file does not exist, or is not a
    /// directory. Create the directory.
    NoDirectory {
        /// The missing directory.
        directory: PathBuf,
    },
    /// From [`crate::AtomicFile::create`]: the path is not that of a regular file. It is a
    /// directory, a device, a pipe or a socket, which a rename must not replace, or its symbolic
    /// links form a cycle. Write to another name, or to standard output.
    NotAFile {
        /// The path at which a file should be written.
        path: PathBuf,
        /// The kind of the object at this path, such as a directory or a pipe.
        what: &'static str,
    },
    /// From [`crate::AtomicFile::commit_new`]: a file with the final name exists, and this call
    /// never replaces a file. Write to another name.
    Exists {
        /// The final path of the file that was being written.
        path: PathBuf,
    },
    /// From any call: the system denied the permission, or the file system is read-only. Check the
    /// permissions of the directory, in which the temporary file is created.
    Denied {
        /// The operation that failed.
        action: Action,
        /// The final path of the file that was being written.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// The disk is full, or a quota or size limit is reached. Free some space. Any call may return
    /// this error.
    Full {
        /// The operation that failed.
        action: Action,
        /// The final path of the file that was being written.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// An error of the operating system for which there is no other variant. Any call may return
    /// it.
    Io {
        /// The operation that failed.
        action: Action,
        /// The final path of the file that was being written.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(action: Action, path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::Denied {
                action,
                path,
                source,
            },
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Error::Full {
                action,
                path,
                source,
            },
            _ => Error::Io {
                action,
                path,
                source,
            },
        }
    }

    /// Returns the [`io::ErrorKind`] of this error, for callers that use `io::Error`.
    fn io_kind(&self) -> io::ErrorKind {
        match self {
            Error::NoDirectory { .. } => io::ErrorKind::NotFound,
            Error::NotAFile { .. } => io::ErrorKind::InvalidInput,
            Error::Exists { .. } => io::ErrorKind::AlreadyExists,
            Error::Denied { source, .. }
            | Error::Full { source, .. }
            | Error::Io { source, .. } => source.kind(),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Inspect => "look at",
            Action::Create => "create a temporary file for",
            Action::Write => "write",
            Action::SetPermissions => "set the permissions of",
            Action::Sync => "sync",
            Action::Rename => "rename the temporary file to",
            Action::SyncDirectory => "sync the directory of",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoDirectory { directory } => write!(
                f,
                "the directory `{}` does not exist\ncreate it first",
                directory.display()
            ),
            Error::NotAFile { path, what } => write!(
                f,
                "`{}` is {what}, not a file\nwrite to another name, or to standard output",
                path.display()
            ),
            Error::Exists { path } => {
                write!(f, "`{}` exists\nwrite to another name", path.display())
            }
            Error::Denied {
                action,
                path,
                source,
            } => write!(
                f,
                "cannot {action} `{}`: {source}\ncheck the permissions of its directory, in which a temporary file is written first",
                path.display()
            ),
            Error::Full {
                action,
                path,
                source,
            } => write!(
                f,
                "cannot {action} `{}`: {source}\nfree some space on its file system, or write elsewhere",
                path.display()
            ),
            Error::Io {
                action,
                path,
                source,
            } => {
                write!(f, "cannot {action} `{}`: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NoDirectory { .. } | Error::NotAFile { .. } | Error::Exists { .. } => None,
            Error::Denied { source, .. }
            | Error::Full { source, .. }
            | Error::Io { source, .. } => Some(source),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(error.io_kind(), error)
    }
}
