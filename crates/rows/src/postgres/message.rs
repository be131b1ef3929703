//! Messages of the server: their frame and their fields, read from bytes that were received.
//!
//! Source: PostgreSQL's documentation, "Message Formats". Each length is checked before it is used: a length below that of its
//! own field, a field beyond the end of its message, bytes left over, and a message too long for its kind are errors.

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

/// What received bytes begin with.
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

    /// What is left.
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
    /// What the type is declared with; -1 for nothing.
    pub(super) type_modifier: i32,
}

/// What the server requests or reports of the authentication.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message of this kind and body.
    pub(in super::super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag], &length.to_be_bytes()[..], body].concat()
    }

    fn read(bytes: &[u8]) -> Result<Message<'_>, Error> {
        match frame(bytes)? {
            Framed::Complete(frame) => Message::read(frame, bytes),
            Framed::Partial(_) => panic!("the message is complete"),
        }
    }

    #[test]
    fn a_frame_is_complete_with_its_last_byte() {
        let bytes = message(b'C', b"SELECT 1\0");
        for n in 0..bytes.len() {
            let expected = if n < HEADER_BYTES { 0 } else { bytes.len() };
            assert_eq!(frame(&bytes[..n]).unwrap(), Framed::Partial(expected));
        }
        let frame = Frame {
            tag: b'C',
            len: bytes.len(),
        };
        let longer = [&bytes[..], b"Z"].concat();
        assert_eq!(super::frame(&longer).unwrap(), Framed::Complete(frame));
        assert_eq!(frame.body(&longer), b"SELECT 1\0");
    }

    #[test]
    fn lengths_that_cannot_be_are_errors() {
        for (tag, length) in [
            (b'D', 3),
            (b'D', 0),
            (b'D', -1),
            (b'D', i32::MIN),
            (b'D', i32::MAX),
            (b'C', 100 << 20),
        ] {
            let bytes = [&[tag], &i32::to_be_bytes(length)[..]].concat();
            let error = frame(&bytes).unwrap_err();
            assert_eq!(error.sqlstate, "08P01", "{length}");
        }
        let long_row = [&b"D"[..], &i32::to_be_bytes(1 << 30)].concat();
        assert_eq!(frame(&long_row).unwrap(), Framed::Partial((1 << 30) + 1));
    }

    #[test]
    fn each_kind_of_message_has_its_fields() {
        let described = [
            &b"\0\x01name\0"[..],
            &[
                0, 0, 0, 1, 0, 2, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0,
            ],
        ]
        .concat();
        let field = FieldDescription {
            name: "name".to_owned(),
            type_oid: 25,
            type_len: -1,
            type_modifier: -1,
        };
        for (tag, body, expected) in [
            (
                b'R',
                &[0, 0, 0, 0][..],
                Message::Authentication(Authentication::Ok),
            ),
            (
                b'R',
                &[0, 0, 0, 3],
                Message::Authentication(Authentication::CleartextPassword),
            ),
            (
                b'R',
                &[0, 0, 0, 5, 1, 2, 3, 4],
                Message::Authentication(Authentication::Md5Password([1, 2, 3, 4])),
            ),
            (
                b'R',
                b"\0\0\0\x0aSCRAM-SHA-256\0\0",
                Message::Authentication(Authentication::Sasl(vec![b"SCRAM-SHA-256"])),
            ),
            (
                b'R',
                b"\0\0\0\x0br=1",
                Message::Authentication(Authentication::SaslContinue(b"r=1")),
            ),
            (
                b'R',
                b"\0\0\0\x0cv=1",
                Message::Authentication(Authentication::SaslFinal(b"v=1")),
            ),
            (
                b'R',
                &[0, 0, 0, 7],
                Message::Authentication(Authentication::Other(7)),
            ),
            (
                b'K',
                &[0, 0, 0, 7, 0, 0, 0, 9],
                Message::BackendKeyData {
                    process_id: 7,
                    secret_key: 9,
                },
            ),
            (
                b'S',
                b"TimeZone\0UTC\0",
                Message::ParameterStatus {
                    name: "TimeZone".to_owned(),
                    value: "UTC".to_owned(),
                },
            ),
            (b'Z', b"I", Message::ReadyForQuery(b'I')),
            (
                b'C',
                b"INSERT 0 1\0",
                Message::CommandComplete(b"INSERT 0 1"),
            ),
            (b'D', b"anything", Message::DataRow(b"anything")),
            (
                b't',
                &[0, 1, 0, 0, 0, 23],
                Message::ParameterDescription(vec![23]),
            ),
            (b'T', &described, Message::RowDescription(vec![field])),
            (
                b'A',
                b"\0\0\0\x01c\0p\0",
                Message::NotificationResponse {
                    channel: "c".to_owned(),
                    payload: "p".to_owned(),
                },
            ),
            (b'1', b"", Message::ParseComplete),
            (b'2', b"", Message::BindComplete),
            (b'3', b"", Message::CloseComplete),
            (b'I', b"", Message::EmptyQueryResponse),
            (b'n', b"", Message::NoData),
            (b's', b"", Message::PortalSuspended),
        ] {
            assert_eq!(read(&message(tag, body)).unwrap(), expected);
        }
    }

    #[test]
    fn messages_that_are_cut_or_too_long_are_errors() {
        for (tag, body) in [
            (b'Z', &b"I"[..]),
            (b'K', &[0, 0, 0, 7, 0, 0, 0, 9]),
            (b'S', b"a\0b\0"),
            (b'C', b"SELECT 1\0"),
            (b't', &[0, 1, 0, 0, 0, 23]),
            (b'1', b""),
            (b'R', &[0, 0, 0, 5, 1, 2, 3, 4]),
            (b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"),
        ] {
            for n in 0..body.len() {
                assert!(
                    read(&message(tag, &body[..n])).is_err(),
                    "{} of {n} bytes",
                    char::from(tag)
                );
            }
            let longer = [body, b"x"].concat();
            assert!(read(&message(tag, &longer)).is_err(), "{}", char::from(tag));
        }
        // A count of columns that are not there takes no memory for them.
        assert!(read(&message(b'T', &[0xff, 0xff])).is_err());
        assert!(read(&message(b'?', b"")).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), tag in any::<u8>()) {
            let _ = frame(&bytes);
            let _ = read(&message(tag, &bytes));
        }
    }
}
