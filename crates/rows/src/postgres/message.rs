//! Parses messages of the server from received bytes: `frame` finds the bounds of a message, and
//! `BackendMessage::read` parses its fields.
//!
//! Source: PostgreSQL's documentation, "Message Formats". Each length is checked before it is used.
//! Four faults are errors: a message length below the size of the length field, a field beyond the
//! end of its message, trailing data, and a message that exceeds the size limit of its tag.

use super::fields::Fields;
use crate::error::{Error, ErrorKind};

/// The size in bytes of a message's header: a tag and a length.
pub(super) const HEADER_BYTES: usize = 5;

/// The largest size in bytes of a message other than DataRow and CopyData. The limit is large
/// because an error message may quote a whole statement.
const LONGEST_CONTROL: usize = 64 << 20;

/// The largest size of a message in bytes: the server's own limit.
const LONGEST: usize = i32::MAX as usize;

/// Creates the error for a message that violates PostgreSQL's protocol.
pub(super) fn violation(what: impl std::fmt::Display) -> Error {
    let mut error = Error::new(
        ErrorKind::Operational,
        format!("the server's answer does not follow the PostgreSQL protocol: {what}"),
    );
    "08P01".clone_into(&mut error.sqlstate);
    error
}

/// Returns `true` for an error that [`violation`] created, and for an error of the server with the
/// same SQLSTATE.
pub(super) fn is_violation(error: &Error) -> bool {
    error.sqlstate == "08P01"
}

/// Creates the error for a call to `execute` with a COPY that sends data to the client or receives
/// data from it. Only `copy_out` and `copy_in` execute such a COPY.
pub(super) fn no_copy() -> Error {
    Error::new(
        ErrorKind::NotSupported,
        "`COPY … TO STDOUT` and `COPY … FROM STDIN` are not run by `execute`\n\
         Use `Cursor.copy_out` and `Cursor.copy_in`.",
    )
}

/// Creates the error for a call during a COPY.
pub(super) fn is_copying() -> Error {
    let message = "a COPY is under way on this connection\nRead it to its end, or close it.";
    Error::new(ErrorKind::Interface, message)
}

/// The tag and the length of a complete message at the start of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The tag byte, which identifies the kind of the message.
    pub(super) tag: u8,
    /// The length of the message in bytes, including its header.
    pub(super) len: usize,
}

impl Frame {
    /// Returns the body of the message; `bytes` must begin with the message.
    pub(super) fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(HEADER_BYTES..self.len).unwrap_or_default()
    }
}

/// The result of [`frame`]: a complete or an incomplete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framed {
    /// The message is complete; the field contains its tag and length.
    Complete(Frame),
    /// The message is incomplete. The field is its total length in bytes, or 0 if its header is
    /// incomplete.
    Partial(usize),
}

/// Reads the header of the message at the start of `bytes`, and checks whether `bytes` contains the
/// whole message.
///
/// # Errors
/// The length is invalid.
#[inline]
pub(super) fn frame(bytes: &[u8]) -> Result<Framed, Error> {
    let Some((&[tag, a, b, c, d], _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(Framed::Partial(0));
    };
    // The length includes the four bytes of the length field, but not the tag.
    let length = i32::from_be_bytes([a, b, c, d]);
    let len = match usize::try_from(length) {
        Ok(n) if (4..LONGEST).contains(&n) => n + 1,
        _ => return Err(violation(format_args!("a message has the length {length}"))),
    };
    if len > LONGEST_CONTROL && !matches!(tag, b'D' | b'd') {
        let what = format_args!("a message `{}` has {len} bytes", char::from(tag));
        return Err(violation(what));
    }
    Ok(match bytes.len() >= len {
        true => Framed::Complete(Frame { tag, len }),
        false => Framed::Partial(len),
    })
}

/// Returns the first error in `bytes` with which the server ends the session; `None` if there is
/// none. `bytes` must begin at the start of a message.
pub(super) fn fatal_error(mut bytes: &[u8]) -> Option<Error> {
    while let Ok(Framed::Complete(frame)) = frame(bytes) {
        if frame.tag == b'E'
            && let Ok(BackendMessage::ErrorResponse(fields)) = BackendMessage::read(frame, bytes)
            && fields.is_fatal()
        {
            return Some(fields.to_error(""));
        }
        bytes = &bytes[frame.len..];
    }
    None
}

/// A reader of the fields of a message's body, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    pub(super) fn new(body: &'a [u8]) -> FieldReader<'a> {
        FieldReader(body)
    }

    /// Returns the next `n` bytes of the body; an error if fewer bytes remain.
    pub(super) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(n).ok_or_else(cut)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or_else(cut)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn i16(&mut self) -> Result<i16, Error> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads the number of items that follow (such as columns), an unsigned 16-bit integer.
    pub(super) fn count(&mut self) -> Result<usize, Error> {
        // The number is unsigned, so that it can be up to 65,535.
        self.array().map(|two| usize::from(u16::from_be_bytes(two)))
    }

    /// Returns the bytes of the body before the next NUL; an error if there is no NUL.
    pub(super) fn string_bytes(&mut self) -> Result<&'a [u8], Error> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(cut)?;
        let text = self.bytes(end)?;
        self.0 = &self.0[1..];
        Ok(text)
    }

    /// Returns the text of the body before the next NUL, with U+FFFD for malformed sequences; an
    /// error if there is no NUL.
    pub(super) fn string_lossy(&mut self) -> Result<String, Error> {
        let bytes = self.string_bytes()?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the bytes of the body that were not read yet.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Ends the parsing of a message body. Returns an error if the body has further bytes.
    pub(super) fn end(self) -> Result<(), Error> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(violation("a message is longer than its fields")),
        }
    }
}

fn cut() -> Error {
    violation("a message is shorter than its fields")
}

/// The description of one column in a RowDescription message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldDescription {
    pub(super) name: String,
    pub(super) type_oid: u32,
    /// The size of a value in bytes; negative for a type whose values vary in length.
    pub(super) type_len: i16,
    /// The type modifier, such as the length of a `varchar`; -1 if there is none.
    pub(super) type_modifier: i32,
}

/// An authentication message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Authentication<'a> {
    Ok,
    CleartextPassword,
    Md5Password([u8; 4]),
    /// The names of the SASL mechanisms that the server supports.
    Sasl(Vec<&'a [u8]>),
    SaslContinue(&'a [u8]),
    SaslFinal(&'a [u8]),
    /// An authentication method that is not supported, by its number in the protocol.
    Other(i32),
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BackendMessage<'a> {
    Authentication(Authentication<'a>),
    BackendKeyData {
        process_id: i32,
        secret_key: i32,
    },
    BindComplete,
    CloseComplete,
    /// The command tag: the name of the command, and the number of rows that it returned or
    /// changed.
    CommandComplete(&'a [u8]),
    CopyData(&'a [u8]),
    CopyDone,
    CopyInResponse,
    CopyOutResponse,
    CopyBothResponse,
    /// The body of a DataRow message.
    DataRow(&'a [u8]),
    EmptyQueryResponse,
    ErrorResponse(Box<Fields>),
    NegotiateProtocolVersion,
    NoData,
    NoticeResponse(Box<Fields>),
    NotificationResponse {
        process_id: i32,
        channel: String,
        payload: String,
    },
    ParameterDescription(Vec<u32>),
    ParameterStatus {
        name: String,
        value: String,
    },
    ParseComplete,
    PortalSuspended,
    ReadyForQuery(u8),
    RowDescription(Vec<FieldDescription>),
}

impl<'a> BackendMessage<'a> {
    /// Parses the message at the start of `bytes`, whose tag and length are in `frame`.
    ///
    /// # Errors
    /// The tag is unknown, or the fields do not fill the body exactly.
    pub(super) fn read(frame: Frame, bytes: &'a [u8]) -> Result<BackendMessage<'a>, Error> {
        let mut reader = FieldReader::new(frame.body(bytes));
        let message = match frame.tag {
            b'R' => return authentication(reader).map(BackendMessage::Authentication),
            b'E' => {
                return Fields::read(reader).map(|f| BackendMessage::ErrorResponse(Box::new(f)));
            }
            b'N' => {
                return Fields::read(reader).map(|f| BackendMessage::NoticeResponse(Box::new(f)));
            }
            b'D' => return Ok(BackendMessage::DataRow(reader.rest())),
            b'd' => return Ok(BackendMessage::CopyData(reader.rest())),
            b'G' => return Ok(BackendMessage::CopyInResponse),
            b'H' => return Ok(BackendMessage::CopyOutResponse),
            b'W' => return Ok(BackendMessage::CopyBothResponse),
            b'v' => return Ok(BackendMessage::NegotiateProtocolVersion),
            b'1' => BackendMessage::ParseComplete,
            b'2' => BackendMessage::BindComplete,
            b'3' => BackendMessage::CloseComplete,
            b'c' => BackendMessage::CopyDone,
            b'I' => BackendMessage::EmptyQueryResponse,
            b'n' => BackendMessage::NoData,
            b's' => BackendMessage::PortalSuspended,
            b'C' => BackendMessage::CommandComplete(reader.string_bytes()?),
            b'Z' => BackendMessage::ReadyForQuery(reader.u8()?),
            b'K' => BackendMessage::BackendKeyData {
                process_id: reader.i32()?,
                secret_key: reader.i32()?,
            },
            b'S' => BackendMessage::ParameterStatus {
                name: reader.string_lossy()?,
                value: reader.string_lossy()?,
            },
            b'A' => BackendMessage::NotificationResponse {
                process_id: reader.i32()?,
                channel: reader.string_lossy()?,
                payload: reader.string_lossy()?,
            },
            b't' => {
                let n = reader.count()?;
                let oids = (0..n).map(|_| reader.u32()).collect::<Result<_, _>>()?;
                BackendMessage::ParameterDescription(oids)
            }
            b'T' => {
                let n = reader.count()?;
                let fields = (0..n)
                    .map(|_| field(&mut reader))
                    .collect::<Result<_, _>>()?;
                BackendMessage::RowDescription(fields)
            }
            tag => {
                let what = format_args!("a message has the unknown kind 0x{tag:02x}");
                return Err(violation(what));
            }
        };
        reader.end()?;
        Ok(message)
    }
}

fn field(reader: &mut FieldReader<'_>) -> Result<FieldDescription, Error> {
    let name = reader.string_lossy()?;
    // The object identifier of the table, and the number of the column in it, are skipped.
    reader.u32()?;
    reader.i16()?;
    let described = FieldDescription {
        name,
        type_oid: reader.u32()?,
        type_len: reader.i16()?,
        type_modifier: reader.i32()?,
    };
    // The format code is skipped: the Bind message determines the format.
    reader.i16()?;
    Ok(described)
}

fn authentication(mut reader: FieldReader<'_>) -> Result<Authentication<'_>, Error> {
    let request = match reader.i32()? {
        0 => Authentication::Ok,
        3 => Authentication::CleartextPassword,
        5 => Authentication::Md5Password(reader.array()?),
        10 => {
            let mut mechanisms = Vec::new();
            loop {
                match reader.string_bytes()? {
                    [] => break,
                    name => mechanisms.push(name),
                }
            }
            Authentication::Sasl(mechanisms)
        }
        11 => return Ok(Authentication::SaslContinue(reader.rest())),
        12 => return Ok(Authentication::SaslFinal(reader.rest())),
        other => return Ok(Authentication::Other(other)),
    };
    reader.end()?;
    Ok(request)
}
