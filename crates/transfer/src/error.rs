//! [`Error`]: the errors of this crate. [`Reason`]: the reasons why a receiver refuses a transfer.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::message::Malformed;
use crate::sender_rules::Violation;

/// The reason why a receiver refuses a transfer. It is also sent to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The receiver does not support the sender's version of the protocol.
    Version,
    /// The code of the sender is wrong or missing. Compare it with the code that the receiver
    /// printed.
    Code,
    /// The receiver does not accept the name of a file or folder. Rename the file or folder.
    Name,
    /// A file with this name exists. Rename one of the files, or let the receiver replace files
    /// (`--replace`).
    Exists,
    /// The transfer has more bytes or files than the receiver permits. Raise the receiver's limits.
    Limit,
    /// The receiver's disk has too little space. Free some space.
    Space,
    /// The received data does not match its hash or the list of files. Send the data again.
    Data,
    /// A system call of the receiver failed.
    System,
    /// Another transfer to the receiver's folder is in progress. Wait until it ends.
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

/// The reason why a transfer failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection broke, or no byte arrived within the timeout. Start the transfer again: it
    /// continues after the last complete block.
    Broken(io::Error),
    /// On the sender: the receiver refused the transfer for this reason, with this message.
    Refused(Reason, String),
    /// On the receiver: this receiver refused the transfer for this reason, with this message for
    /// the user.
    Refusing(Reason, String),
    /// On the receiver: the sender aborted the transfer, with this message.
    Aborted(String),
    /// A file changed during its transfer. Send the file when no program writes to it.
    Changed {
        /// The path of the file that has changed.
        path: PathBuf,
        /// A description of the change, for the error message.
        what: &'static str,
    },
    /// On the sender: the name of a file is not permitted in a transfer, so the file cannot be
    /// sent.
    Name {
        /// The path of the file that cannot be sent.
        path: PathBuf,
        /// A description of the problem with the name.
        what: String,
    },
    /// On the sender or the receiver: a system call for a file or folder failed.
    File {
        /// The operation that failed, such as `open the folder`.
        action: &'static str,
        /// The path of the file or folder for which the system call failed.
        path: PathBuf,
        /// The error that the system call returned.
        source: io::Error,
    },
    /// The peer does not use this protocol, or violates it.
    Protocol(String),
    /// The certificate does not match the fingerprint in the code. Check the code and the address.
    Fingerprint,
    /// On the receiver: too many wrong codes were presented. Start the receiver again, which
    /// creates a new code.
    TooManyCodes,
    /// The caller stopped the transfer.
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

    /// Returns `true` if the error is temporary, so that the same transfer can succeed when it is
    /// started again.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Error::Broken(_) | Error::Refused(Reason::Busy, _))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Broken(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the other side disconnected\nsend again to resume the transfer")
            }
            Error::Broken(e) if is_late(e) => f.write_str(
                "the other side sent nothing for too long\nsend again to resume the transfer",
            ),
            Error::Broken(e) => write!(
                f,
                "the connection was lost: {e}\nsend again to resume the transfer"
            ),
            Error::Refused(_, words) => write!(f, "the receiver refuses: {words}"),
            Error::Refusing(_, words) => write!(f, "refused: {words}"),
            Error::Aborted(words) => write!(f, "the sender gave up: {words}"),
            Error::Changed { path, what } => write!(
                f,
                "`{}` changed while it was sent: {what}\nsend it again when it is not being written to",
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
                "the other side violates the protocol: {what}\ncheck that it is `onecopy` of the same version, and that both sides use TLS or neither does"
            ),
            Error::Fingerprint => f.write_str(
                "the receiver's certificate does not match the code\ncopy the whole code again; if it is correct, another program answers at this address",
            ),
            Error::TooManyCodes => {
                f.write_str("too many wrong codes\nstart `onecopy receive` again, which creates a new code")
            }
            Error::Stopped => f.write_str("stopped"),
        }
    }
}

/// Returns `true` if the error is a timeout of a socket. The system reports a timeout as
/// `WouldBlock` or as `TimedOut`.
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
