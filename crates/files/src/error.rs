//! The one error type of this room.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What was being done when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Looking at what stands under the target's name.
    Inspect,
    /// Creating the temporary file beside the target.
    Create,
    /// Writing to it.
    Write,
    /// Giving it the permissions of the file it replaces.
    SetPermissions,
    /// Having the system put its data on the disk.
    Sync,
    /// Renaming it to the target's name.
    Rename,
    /// Having the system put the new name on the disk: the file stands under its name, but a power failure may undo it.
    SyncDirectory,
}

/// Why a file could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// From [`crate::AtomicFile::create`]: the directory the file is to stand in does not exist. Create it.
    NoDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// From [`crate::AtomicFile::create`]: under the name stands a directory, a device, a pipe or a socket, which a rename
    /// would replace or fail to. Write to another name, or to standard output.
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What stands there.
        what: &'static str,
    },
    /// From any call: the system refused for lack of permission, or the file system is read-only. See to the permissions of
    /// the directory: a temporary file is created in it.
    Denied {
        /// What was being done.
        action: Action,
        /// The target.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// From a write or the commit: the disk is full, a quota or a size limit is reached. Make room.
    Full {
        /// What was being done.
        action: Action,
        /// The target.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// From any call: another error of the system.
    Io {
        /// What was being done.
        action: Action,
        /// The target.
        path: PathBuf,
        /// The system's error.
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

    /// The kind of the system's error, for callers that speak `io`.
    fn io_kind(&self) -> io::ErrorKind {
        match self {
            Error::NoDirectory { .. } => io::ErrorKind::NotFound,
            Error::NotAFile { .. } => io::ErrorKind::InvalidInput,
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
            Error::Denied {
                action,
                path,
                source,
            } => write!(
                f,
                "cannot {action} `{}`: {source}\nsee to the permissions of its directory, where a temporary file is written first",
                path.display()
            ),
            Error::Full {
                action,
                path,
                source,
            } => write!(
                f,
                "cannot {action} `{}`: {source}\nmake room on its file system, or write elsewhere",
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
            Error::NoDirectory { .. } | Error::NotAFile { .. } => None,
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
