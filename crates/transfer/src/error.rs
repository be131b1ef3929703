//! The one error type of this room.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::message::Malformed;
use crate::order::Violation;

/// Why a receiver refuses, as it goes over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It speaks another version.
    Version,
    /// The code is wrong or missing. Look at what the receiver printed.
    Code,
    /// A name is not taken. Rename it.
    Name,
    /// Something stands there already. Move it away, or let the receiver replace files.
    Exists,
    /// More bytes or files than it takes. Raise its limits.
    Limit,
    /// Its disk has no room for all. Make some.
    Space,
    /// What came is not what was hashed, or not what was told. Send again.
    Data,
    /// Its system failed.
    System,
    /// Another transfer into the same folder is under way. Wait for it.
    Busy,
}

impl Reason {
    const ALL: [Reason; 9] = [
        Reason::Version,
        Reason::Code,
        Reason::Name,
        Reason::Exists,
        Reason::Limit,
        Reason::Space,
        Reason::Data,
        Reason::System,
        Reason::Busy,
    ];

    pub(crate) fn number(self) -> u8 {
        Reason::ALL.iter().position(|r| *r == self).unwrap_or(0) as u8
    }

    pub(crate) fn of(number: u8) -> Option<Reason> {
        Reason::ALL.get(usize::from(number)).copied()
    }
}

/// Why a transfer failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection broke, or nothing came for too long. Send again: it goes on where it was.
    Broken(io::Error),
    /// From the sender: the receiver refuses.
    Refused(Reason, String),
    /// From the receiver: it refused what the sender said.
    Refusing(Reason, String),
    /// From the receiver: the sender gave up, in its words.
    Aborted(String),
    /// A file changed while it was sent. Send it when nobody writes to it.
    Changed {
        /// Which.
        path: PathBuf,
        /// What is other than before.
        what: &'static str,
    },
    /// From the sender: a file cannot be sent under its name.
    Name {
        /// Which.
        path: PathBuf,
        /// What is wrong with it, for people.
        what: String,
    },
    /// A file or folder of this end: the system failed.
    File {
        /// What was being done.
        action: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The other end does not speak this protocol, or breaks it.
    Protocol(String),
    /// The certificate is not the one that the code names. Look at the code, and at who answers there.
    Fingerprint,
    /// From the receiver: too many wrong codes came. Start it again, with a new code.
    TooManyCodes,
    /// It was told to stop.
    Stopped,
}

impl Error {
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File {
            action,
            path,
            source,
        }
    }

    pub(crate) fn errno(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(rustix::io::Errno) -> Error {
        let path = path.into();
        move |source| Error::File {
            action,
            path,
            source: source.into(),
        }
    }

    /// Whether the same again may go well, from where it was.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Error::Broken(_) | Error::Refused(Reason::Busy, _))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Broken(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the other end left\nsend again: it goes on where it was")
            }
            Error::Broken(e) if is_late(e) => f.write_str(
                "the other end said nothing for too long\nsend again: it goes on where it was",
            ),
            Error::Broken(e) => write!(
                f,
                "the connection broke: {e}\nsend again: it goes on where it was"
            ),
            Error::Refused(_, words) => write!(f, "the receiver refuses: {words}"),
            Error::Refusing(_, words) => write!(f, "refused: {words}"),
            Error::Aborted(words) => write!(f, "the sender gave up: {words}"),
            Error::Changed { path, what } => write!(
                f,
                "`{}` changed while it was sent: {what}\nsend it when nobody writes to it",
                path.display()
            ),
            Error::Name { path, what } => {
                write!(f, "`{}` cannot be sent: {what}", path.display())
            }
            Error::File {
                action,
                path,
                source,
            } => write!(f, "cannot {action} `{}`: {source}", path.display()),
            Error::Protocol(what) => write!(
                f,
                "the other end breaks the protocol: {what}\nis it `onecopy`, of the same version, and do both use TLS or neither?"
            ),
            Error::Fingerprint => f.write_str(
                "the receiver's certificate is not the one that the code names\ncopy the code again, whole; if it is right, somebody else answers at this address",
            ),
            Error::TooManyCodes => {
                f.write_str("too many wrong codes came\nstart `onecopy receive` again: it makes a new one")
            }
            Error::Stopped => f.write_str("stopped"),
        }
    }
}

/// A timeout of a socket comes as either.
fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Broken(source) | Error::File { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Error {
        Error::Protocol(malformed.to_string())
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Error {
        Error::Refusing(violation.reason(), violation.to_string())
    }
}
