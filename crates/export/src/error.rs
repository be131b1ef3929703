//! [`Error`]: the errors of this crate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use onecopy_wire::{ChunkError, ChunkErrorKind};

use crate::format::all_endings;

/// The reason why rows could not be exported, or files could not be verified.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The options cannot be combined. The message contains the remedy.
    Usage(String),
    /// The ending of this file name belongs to no format. Use another name, or select the format
    /// explicitly.
    UnknownEnding(PathBuf),
    /// The target exists. Use another name, or request that it is replaced.
    Exists(PathBuf),
    /// The folder contains files that no export has written. Use an empty folder.
    NotOurs {
        /// The folder.
        folder: PathBuf,
        /// The name of one such file, which no export has written.
        file: String,
    },
    /// Another process exports into the folder. Wait until it has ended.
    Locked(PathBuf),
    /// Another process is writing the part with this number. Wait until that process has ended.
    PartLocked(usize),
    /// The folder contains an unfinished export of several parts. Resume it, or discard it and
    /// begin again.
    Unfinished(PathBuf),
    /// The error of the database, of the connection, or of a value that cannot be converted.
    Rows(onecopy_rows::Error),
    /// The rows cannot be written in the format.
    Format(String),
    /// The destination of the rows cannot be written.
    Write(io::Error),
    /// A file cannot be created, synced or renamed.
    File(onecopy_files::Error),
    /// A file or folder cannot be read, created or deleted.
    Path {
        /// The operation that failed, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The manifest of an export cannot be used, because a part of its JSON is missing or invalid.
    Manifest {
        /// The file of the manifest.
        path: PathBuf,
        /// The part of the manifest that is missing or not valid.
        message: String,
    },
    /// The export was stopped by its observer.
    Stopped,
}

impl Error {
    pub(crate) fn path(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.as_ref().to_owned();
        move |source| Error::Path {
            action,
            path,
            source,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(message) | Error::Format(message) => f.write_str(message),
            Error::UnknownEnding(path) => write!(
                f,
                "the ending of `{}` is not the ending of an output format\n\
                 end the name in {}\n\
                 .gz or .zst may follow the ending of a text format",
                path.display(),
                all_endings()
            ),
            Error::Exists(path) => write!(
                f,
                "`{}` exists\nuse another name, or `--overwrite` to replace it",
                path.display()
            ),
            Error::NotOurs { folder, file } => write!(
                f,
                "the folder `{}` contains the file `{file}`, which is not part of an export\n\
                 use an empty folder",
                folder.display()
            ),
            Error::Locked(path) => write!(
                f,
                "another process exports into the folder `{}`\nwait until it has ended",
                path.display()
            ),
            Error::PartLocked(number) => write!(
                f,
                "another process writes part {number}\nwait until it has ended"
            ),
            Error::Unfinished(path) => write!(
                f,
                "the folder `{}` has an unfinished export\n\
                 `--resume` continues it, `--overwrite` begins again",
                path.display()
            ),
            Error::Rows(error) => error.fmt(f),
            Error::Write(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
            Error::Path {
                action,
                path,
                source,
            } => write!(f, "cannot {action} `{}`: {source}", path.display()),
            Error::Manifest { path, message } => {
                write!(
                    f,
                    "the manifest `{}` is not valid: {message}",
                    path.display()
                )
            }
            Error::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Rows(error) => Some(error),
            Error::Write(error) | Error::Path { source: error, .. } => Some(error),
            Error::File(error) => Some(error),
            _ => None,
        }
    }
}

impl From<onecopy_rows::Error> for Error {
    fn from(error: onecopy_rows::Error) -> Error {
        Error::Rows(error)
    }
}

impl From<onecopy_files::Error> for Error {
    fn from(error: onecopy_files::Error) -> Error {
        Error::File(error)
    }
}

impl From<ChunkError> for Error {
    fn from(error: ChunkError) -> Error {
        match error.source.downcast_ref::<onecopy_rows::Error>() {
            Some(rows) => Error::Rows(rows.clone()),
            None if error.kind == ChunkErrorKind::Cancelled => Error::Stopped,
            None => Error::Format(error.to_string()),
        }
    }
}
