//! [`Failure`]: why a command failed, with its message and its exit code.

use std::fmt;
use std::io;

use onecopy_rows::ErrorKind;
use onecopy_wire::{ChunkError, ChunkErrorKind};

use crate::console::error;
use crate::exit;

/// The reason why a command failed.
pub(crate) enum Failure {
    /// The command line or the configuration is wrong.
    Usage(String),
    /// The input with this name cannot be opened or read.
    Read(String, io::Error),
    /// An error of the database, its driver or the statement.
    Rows(onecopy_rows::Error),
    /// Any other failure, described by its message.
    Other(String),
    /// Stdout cannot be written.
    Stdout(io::Error),
    /// The output file cannot be written; the error names the file and the operation.
    File(io::Error),
    /// Threads or signal handlers cannot be created.
    System(io::Error),
    /// A connection to another machine could not be opened; the message names the reason.
    Connect(String),
    /// A signal or the time limit stopped the command. The string is advice for the user, such as
    /// how to resume; it may be empty.
    Stopped(&'static str),
}

impl From<onecopy_rows::Error> for Failure {
    fn from(error: onecopy_rows::Error) -> Failure {
        Failure::Rows(error)
    }
}

impl From<ChunkError> for Failure {
    fn from(error: ChunkError) -> Failure {
        match error.source.downcast_ref::<onecopy_rows::Error>() {
            Some(rows) => Failure::Rows(rows.clone()),
            None if error.kind == ChunkErrorKind::Cancelled => Failure::Stopped(""),
            None => Failure::Other(error.to_string()),
        }
    }
}

impl From<onecopy_files::Error> for Failure {
    fn from(error: onecopy_files::Error) -> Failure {
        Failure::File(error.into())
    }
}

impl From<onecopy_serve::Error> for Failure {
    fn from(error: onecopy_serve::Error) -> Failure {
        match error {
            onecopy_serve::Error::System { .. } => Failure::Other(error.to_string()),
            _ => Failure::Usage(error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Connect(message) | Failure::Other(message) => {
                f.write_str(message)
            }
            Failure::Read(name, source) => write!(f, "`{name}` cannot be read: {source}"),
            Failure::Rows(error) => {
                let replace = "use `--errors replace` to read U+FFFD instead";
                f.write_str(&with_state(&error.clone().or_else_replace(replace)))
            }
            Failure::Stdout(source) => write!(f, "stdout cannot be written: {source}"),
            Failure::File(source) => source.fmt(f),
            Failure::System(source) => write!(f, "cannot start: {source}"),
            Failure::Stopped("") => f.write_str("stopped"),
            Failure::Stopped(advice) => write!(f, "stopped\n{advice}"),
        }
    }
}

impl Failure {
    /// Converts an error of an export. [`onecopy_export::Error::Write`] becomes [`Failure::Stdout`]
    /// if `to_stdout` is `true`, otherwise [`Failure::File`].
    pub(crate) fn of_export(error: onecopy_export::Error, to_stdout: bool) -> Failure {
        use onecopy_export::Error;
        match error {
            Error::Usage(_) | Error::UnknownEnding(_) => Failure::Usage(error.to_string()),
            Error::Rows(error) => Failure::Rows(error),
            Error::Write(error) if to_stdout => Failure::Stdout(error),
            Error::Write(error) => Failure::File(error),
            Error::File(error) => error.into(),
            Error::Stopped => Failure::Stopped(""),
            error => Failure::Other(error.to_string()),
        }
    }

    /// Reports the failure on stderr; returns the exit code.
    pub(crate) fn report(&self) -> i32 {
        let code = self.exit_code();
        if code != exit::PIPE_CLOSED {
            error(&self.to_string());
        }
        code
    }

    /// Returns `true` if the command failed because its operation was cancelled, by a signal or the
    /// time limit.
    pub(crate) fn is_cancel(&self) -> bool {
        match self {
            Failure::Rows(error) => {
                matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Timeout)
            }
            Failure::Stopped(_) => true,
            _ => false,
        }
    }

    /// Returns the exit code of a command that failed for this reason.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Failure::Usage(_) => exit::USAGE,
            Failure::Connect(_) => exit::CONNECT,
            Failure::Rows(error) if error.kind == ErrorKind::Connect => exit::CONNECT,
            Failure::Stdout(source) if source.kind() == io::ErrorKind::BrokenPipe => {
                exit::PIPE_CLOSED
            }
            Failure::Stopped(_) => exit::STOPPED,
            _ => exit::FAILED,
        }
    }
}

/// Returns the message of a database error. The SQLSTATE is added at the end of the first line,
/// unless the message already contains it.
pub(crate) fn with_state(error: &onecopy_rows::Error) -> String {
    let text = error.to_string();
    if error.sqlstate.is_empty() || error.message.contains(&error.sqlstate) {
        return text;
    }
    let end = text.find('\n').unwrap_or(text.len());
    format!("{} [{}]{}", &text[..end], error.sqlstate, &text[end..])
}
