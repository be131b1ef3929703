//! Tests of `message`, and a function that encodes messages for other tests.

use super::message::*;
use crate::error::Error;
use proptest::prelude::*;

/// Encodes a message with this tag and body.
pub(super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

fn read(bytes: &[u8]) -> Result<BackendMessage<'_>, Error> {
    match frame(bytes)? {
        Framed::Complete(frame) => BackendMessage::read(frame, bytes),
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
    assert_eq!(
        super::message::frame(&longer).unwrap(),
        Framed::Complete(frame)
    );
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
            BackendMessage::Authentication(Authentication::Ok),
        ),
        (
            b'R',
            &[0, 0, 0, 3],
            BackendMessage::Authentication(Authentication::CleartextPassword),
        ),
        (
            b'R',
            &[0, 0, 0, 5, 1, 2, 3, 4],
            BackendMessage::Authentication(Authentication::Md5Password([1, 2, 3, 4])),
        ),
        (
            b'R',
            b"\0\0\0\x0aSCRAM-SHA-256\0\0",
            BackendMessage::Authentication(Authentication::Sasl(vec![b"SCRAM-SHA-256"])),
        ),
        (
            b'R',
            b"\0\0\0\x0br=1",
            BackendMessage::Authentication(Authentication::SaslContinue(b"r=1")),
        ),
        (
            b'R',
            b"\0\0\0\x0cv=1",
            BackendMessage::Authentication(Authentication::SaslFinal(b"v=1")),
        ),
        (
            b'R',
            &[0, 0, 0, 7],
            BackendMessage::Authentication(Authentication::Other(7)),
        ),
        (
            b'K',
            &[0, 0, 0, 7, 0, 0, 0, 9],
            BackendMessage::BackendKeyData {
                process_id: 7,
                secret_key: 9,
            },
        ),
        (
            b'S',
            b"TimeZone\0UTC\0",
            BackendMessage::ParameterStatus {
                name: "TimeZone".to_owned(),
                value: "UTC".to_owned(),
            },
        ),
        (b'Z', b"I", BackendMessage::ReadyForQuery(b'I')),
        (
            b'C',
            b"INSERT 0 1\0",
            BackendMessage::CommandComplete(b"INSERT 0 1"),
        ),
        (b'D', b"anything", BackendMessage::DataRow(b"anything")),
        (
            b't',
            &[0, 1, 0, 0, 0, 23],
            BackendMessage::ParameterDescription(vec![23]),
        ),
        (
            b'T',
            &described,
            BackendMessage::RowDescription(vec![field]),
        ),
        (
            b'A',
            b"\0\0\0\x01c\0p\0",
            BackendMessage::NotificationResponse {
                process_id: 1,
                channel: "c".to_owned(),
                payload: "p".to_owned(),
            },
        ),
        (b'1', b"", BackendMessage::ParseComplete),
        (b'2', b"", BackendMessage::BindComplete),
        (b'3', b"", BackendMessage::CloseComplete),
        (b'I', b"", BackendMessage::EmptyQueryResponse),
        (b'n', b"", BackendMessage::NoData),
        (b's', b"", BackendMessage::PortalSuspended),
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
    // The message declares 65,535 columns and contains none; no memory may be allocated for the
    // missing columns.
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

#[test]
fn the_error_that_ends_the_session_is_found_after_other_messages() {
    let error = |severity: &str| {
        let body = format!("S{severity}\0V{severity}\0C57P01\0Mbye\0\0");
        message(b'E', body.as_bytes())
    };
    let before = [message(b'N', b"SNOTICE\0Mx\0\0"), error("ERROR")].concat();
    assert!(fatal_error(&before).is_none());
    let all = [&before[..], &error("FATAL"), b"E\0\0"].concat();
    assert_eq!(fatal_error(&all).unwrap().sqlstate, "57P01");
    assert!(fatal_error(&all[..all.len() - 4]).is_none());
}
