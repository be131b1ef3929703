//! Tests the protocol without I/O: each message is read as it was written, and no sequence of
//! messages causes a panic or exceeds a limit.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use onecopy_transfer::Reason;
use onecopy_transfer::message::{FileHead, FileTime, HEADER_BYTES, Header, Malformed, Message};
use onecopy_transfer::sender_rules::{Limits, SenderState, Violation};
use proptest::collection::vec;
use proptest::prelude::*;

fn time() -> impl Strategy<Value = FileTime> {
    (any::<i64>(), 0_u32..1_000_000_000).prop_map(|(seconds, nanoseconds)| FileTime {
        seconds,
        nanoseconds,
    })
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-c]{1,3}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..300),
        1 => Just(b"..".to_vec()),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let hash = any::<[u8; 32]>();
    prop_oneof![
        (0_u16..3, any::<bool>(), 10_u8..13, vec(any::<u8>(), 0..40)).prop_map(
            |(version, hashed, block_log2, code)| Message::Hello {
                version,
                hashed,
                block_log2,
                code
            }
        ),
        (0_u16..0o1000, name()).prop_map(|(mode, name)| Message::Folder { mode, name }),
        time().prop_map(|modified| Message::FolderEnd { modified }),
        (0_u64..5000, time(), 0_u16..0o1000, name()).prop_map(
            |(len_bytes, modified, mode, name)| Message::File(FileHead {
                len_bytes,
                modified,
                mode,
                name
            })
        ),
        Just(Message::EndOfList),
        (0_u32..5000).prop_map(Message::Block),
        hash.prop_map(Message::BlockHash),
        hash.prop_map(Message::FileEnd),
        Just(Message::Done),
        ".{0,40}".prop_map(Message::Abort),
        any::<u16>().prop_map(|version| Message::Welcome { version }),
        any::<u64>().prop_map(|n_present| Message::Accepted { n_present }),
        (any::<u64>(), vec(hash, 0..5))
            .prop_map(|(n_blocks, stack)| Message::Start { n_blocks, stack }),
        Just(Message::Finished),
        ".{0,40}".prop_map(|words| Message::Refused(Reason::Space, words)),
    ]
}

fn read(bytes: &[u8]) -> Result<Message, Malformed> {
    let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>().unwrap();
    Message::read(Header::read(*header)?, body)
}

/// Passes the messages of a sender to [`SenderState`] until one is refused. Returns the number of
/// bytes and files that a receiver would have received, and the violation.
fn follow(messages: &[Message], limits: Limits) -> (u64, u64, Option<Violation>) {
    let mut sender_protocol = SenderState::new(limits);
    let (mut n_bytes, mut n_files, mut is_listed) = (0, 0, false);
    for message in messages {
        if let Err(violation) = sender_protocol.take(message) {
            return (n_bytes, n_files, Some(violation));
        }
        match message {
            Message::EndOfList => is_listed = true,
            Message::Block(n) => n_bytes += u64::from(*n),
            Message::File(_) if is_listed => n_files += 1,
            _ => {}
        }
        assert!(sender_protocol.path().len() <= 4096);
    }
    (n_bytes, n_files, None)
}

proptest! {
    #[test]
    fn messages_come_back(message in message()) {
        let mut bytes = b"before".to_vec();
        message.write(&mut bytes);
        prop_assert_eq!(read(&bytes[6..]), Ok(message));
    }

    #[test]
    fn any_bytes_are_a_message_that_is_written_the_same_or_none(kind in 0_u8..18, body in vec(any::<u8>(), 0..200)) {
        let len = body.len() as u32;
        let mut bytes = vec![kind];
        bytes.extend(len.to_le_bytes());
        bytes.extend(&body);
        if let Ok(message) = read(&bytes) {
            let mut again = Vec::new();
            message.write(&mut again);
            if matches!(message, Message::Block(_)) {
                bytes.truncate(HEADER_BYTES);
            }
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn no_order_of_messages_brings_more_than_was_listed(messages in vec(message(), 0..40), max_bytes in 0_u64..9000) {
        let hello = Message::Hello { version: 1, hashed: false, block_log2: 10, code: Vec::new() };
        let messages: Vec<Message> = [hello].into_iter().chain(messages).collect();
        let limits = Limits { max_bytes, max_entries: 5 };
        let (n_bytes, n_files, _) = follow(&messages, limits);
        prop_assert!(n_bytes <= max_bytes);
        prop_assert!(n_files <= 5);
    }
}

#[test]
fn a_length_is_refused_before_its_bytes_are_waited_for() {
    let header = |kind: u8, len: u32| {
        let [a, b, c, d] = len.to_le_bytes();
        Header::read([kind, a, b, c, d])
    };
    assert_eq!(header(1, 4097), Err(Malformed::Length));
    assert_eq!(header(6, (1 << 22) + 1), Err(Malformed::Length));
    assert_eq!(header(0, 0), Err(Malformed::Kind(0)));
    assert_eq!(header(16, 0), Err(Malformed::Kind(16)));
    assert!(header(6, 1 << 22).is_ok() && header(1, 4096).is_ok());
}

#[test]
fn long_words_are_cut_and_fit() {
    let mut bytes = Vec::new();
    Message::Abort("é".repeat(5000)).write(&mut bytes);
    let Ok(Message::Abort(words)) = read(&bytes) else {
        panic!("it is read");
    };
    assert!(words.len() > 4000 && words.chars().all(|c| c == 'é'));
}
