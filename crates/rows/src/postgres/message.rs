//! Messages of the server: their frame and their fields, read from bytes that were received.
//!
//! Source: PostgreSQL's documentation, "Message Formats". Each length is checked before it is used:
//! a length below that of its own field, a field beyond the end of its message, bytes left over,
//! and a message too long for its kind are errors.

use super::fields::Fields;
use crate::error::{Error, ErrorKind};

/// Bytes of the tag and the length.
pub(super) const HEADER_BYTES: usize = 5;

/// Longest message that holds neither a row nor data of COPY. Error messages may quote a statement.
const LONGEST_CONTROL: usize = 64 << 20;

/// Longest message of all: the server's own limit of a value, and as much for what is around it.
const LONGEST: usize = i32::MAX as usize;

/// The error of bytes that do not follow the protocol.
pub(super) fn violation(what: impl std::fmt::Display) -> Error {
    let mut error = Error::new(
        ErrorKind::Operational,
        format!("the server's answer does not follow the PostgreSQL protocol: {what}"),
    );
    "08P01".clone_into(&mut error.sqlstate);
    error
}

/// A complete message at the start of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The kind of message.
    pub(super) tag: u8,
    /// Bytes of the message, its header included.
    pub(super) len: usize,
}

impl Frame {
    /// The body in the bytes that the frame was read from.
    pub(super) fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(HEADER_BYTES..self.len).unwrap_or_default()
    }
}

/// The start of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framed {
    /// A complete message.
    Complete(Frame),
    /// A message of which more is to come; so many bytes in all, or 0 while its header is incomplete.
    Partial(usize),
}

/// Reads the frame at the start of `bytes`.
///
/// # Errors
/// A length that cannot be.
#[inline]
pub(super) fn frame(bytes: &[u8]) -> Result<Framed, Error> {
    let Some((&[tag, a, b, c, d], _)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(Framed::Partial(0));
    };
    // The length counts itself, and not the tag.
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

/// Reads the fields of a message's body in their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Reader<'a> {
        Reader(body)
    }

    /// The next `n` bytes.
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

    /// A count of fields, which is never negative.
    pub(super) fn count(&mut self) -> Result<usize, Error> {
        // Parameters are counted up to 65,535.
        self.array().map(|two| usize::from(u16::from_be_bytes(two)))
    }

    /// The bytes before the next NUL.
    pub(super) fn string_bytes(&mut self) -> Result<&'a [u8], Error> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(cut)?;
        let text = self.bytes(end)?;
        self.0 = &self.0[1..];
        Ok(text)
    }

    /// The text before the next NUL; malformed sequences become U+FFFD.
    pub(super) fn string_lossy(&mut self) -> Result<String, Error> {
        let bytes = self.string_bytes()?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The rest.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Refuses bytes that are left over.
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

/// A column of a RowDescription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldDescription {
    pub(super) name: String,
    pub(super) type_oid: u32,
    /// Bytes of a value; negative for a type of variable length.
    pub(super) type_len: i16,
    /// The type modifier; -1 for none.
    pub(super) type_modifier: i32,
}

/// A request or report of the server about the authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Authentication<'a> {
    Ok,
    CleartextPassword,
    Md5Password([u8; 4]),
    /// The names of the mechanisms that the server has.
    Sasl(Vec<&'a [u8]>),
    SaslContinue(&'a [u8]),
    SaslFinal(&'a [u8]),
    /// A method that this crate does not have, by its number.
    Other(i32),
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Authentication(Authentication<'a>),
    BackendKeyData {
        process_id: i32,
        secret_key: i32,
    },
    BindComplete,
    CloseComplete,
    /// The command's name, and how many rows it read or changed.
    CommandComplete(&'a [u8]),
    CopyData(&'a [u8]),
    CopyDone,
    CopyInResponse,
    CopyOutResponse,
    CopyBothResponse,
    /// A row, not yet read.
    DataRow(&'a [u8]),
    EmptyQueryResponse,
    ErrorResponse(Box<Fields>),
    NegotiateProtocolVersion,
    NoData,
    NoticeResponse(Box<Fields>),
    NotificationResponse {
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

impl<'a> Message<'a> {
    /// Reads the message of `frame`.
    ///
    /// # Errors
    /// A tag that is unknown, or fields that do not fill the body exactly.
    pub(super) fn read(frame: Frame, bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        let mut reader = Reader::new(frame.body(bytes));
        let message = match frame.tag {
            b'R' => return authentication(reader).map(Message::Authentication),
            b'E' => return Fields::read(reader).map(|f| Message::ErrorResponse(Box::new(f))),
            b'N' => return Fields::read(reader).map(|f| Message::NoticeResponse(Box::new(f))),
            b'D' => return Ok(Message::DataRow(reader.rest())),
            b'd' => return Ok(Message::CopyData(reader.rest())),
            b'G' => return Ok(Message::CopyInResponse),
            b'H' => return Ok(Message::CopyOutResponse),
            b'W' => return Ok(Message::CopyBothResponse),
            b'v' => return Ok(Message::NegotiateProtocolVersion),
            b'1' => Message::ParseComplete,
            b'2' => Message::BindComplete,
            b'3' => Message::CloseComplete,
            b'c' => Message::CopyDone,
            b'I' => Message::EmptyQueryResponse,
            b'n' => Message::NoData,
            b's' => Message::PortalSuspended,
            b'C' => Message::CommandComplete(reader.string_bytes()?),
            b'Z' => Message::ReadyForQuery(reader.u8()?),
            b'K' => Message::BackendKeyData {
                process_id: reader.i32()?,
                secret_key: reader.i32()?,
            },
            b'S' => Message::ParameterStatus {
                name: reader.string_lossy()?,
                value: reader.string_lossy()?,
            },
            b'A' => {
                reader.i32()?;
                Message::NotificationResponse {
                    channel: reader.string_lossy()?,
                    payload: reader.string_lossy()?,
                }
            }
            b't' => {
                let n = reader.count()?;
                let oids = (0..n).map(|_| reader.u32()).collect::<Result<_, _>>()?;
                Message::ParameterDescription(oids)
            }
            b'T' => {
                let n = reader.count()?;
                let fields = (0..n)
                    .map(|_| field(&mut reader))
                    .collect::<Result<_, _>>()?;
                Message::RowDescription(fields)
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

fn field(reader: &mut Reader<'_>) -> Result<FieldDescription, Error> {
    let name = reader.string_lossy()?;
    // The table and the column that it comes from.
    reader.u32()?;
    reader.i16()?;
    let described = FieldDescription {
        name,
        type_oid: reader.u32()?,
        type_len: reader.i16()?,
        type_modifier: reader.i32()?,
    };
    // The format, which is that of the last Bind.
    reader.i16()?;
    Ok(described)
}

fn authentication(mut reader: Reader<'_>) -> Result<Authentication<'_>, Error> {
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
