//! The protocol of `onecopy send`, as a receiver processes it.
//!
//! It never panics, and a message that is read is written as the same bytes. Whatever a sender
//! sends, no more bytes and files are accepted than were listed and are allowed, each name is one
//! path component, and a folder is ended at most as often as it was begun.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_transfer::message::{HEADER_BYTES, Header, Message};
use onecopy_transfer::name;
use onecopy_transfer::sender_rules::{Limits, SenderState};

const LIMITS: Limits = Limits {
    max_bytes: 100_000,
    max_entries: 20,
};

fuzz_target!(|bytes: &[u8]| {
    let mut order = SenderState::new(LIMITS);
    let (mut rest, mut is_listed, mut is_done) = (bytes, false, false);
    let (mut n_bytes, mut n_entries, mut depth) = (0_u64, 0_u64, 0_usize);
    let mut left = 0_u64;
    while let Some((header, more)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let Ok(header) = Header::read(*header) else {
            return;
        };
        // The bytes of a block are not part of the message.
        let len = if header.is_block() {
            0
        } else {
            header.len_bytes as usize
        };
        let Some((body, more)) = more.split_at_checked(len) else {
            return;
        };
        let Ok(message) = Message::read(header, body) else {
            return;
        };
        let mut again = Vec::new();
        message.write(&mut again);
        assert_eq!(again, rest[..HEADER_BYTES + len]);
        rest = more;
        if order.take(&message).is_err() {
            return;
        }
        assert!(!is_done, "nothing may follow the end");
        match &message {
            Message::Folder { name, .. } => {
                assert!(is_one_component(name));
                depth += 1;
                assert!(depth <= name::MAX_DEPTH && order.path().split('/').count() == depth);
                n_entries += u64::from(is_listed);
            }
            Message::FolderEnd { .. } => {
                depth = depth.checked_sub(1).expect("it was entered");
            }
            Message::File(head) => {
                assert!(is_one_component(&head.name));
                if is_listed {
                    assert_eq!(left, 0, "a file follows one that is whole");
                    left = head.len_bytes;
                    n_entries += 1;
                }
            }
            Message::EndOfList => {
                assert!(depth == 0 && !is_listed);
                is_listed = true;
            }
            Message::Block(n) => {
                left = left
                    .checked_sub(u64::from(*n))
                    .expect("a file has as many bytes as was said");
                assert_eq!(left, order.left_bytes());
                n_bytes += u64::from(*n);
            }
            Message::FileEnd(_) => assert_eq!(left, 0),
            Message::Done => {
                assert!(depth == 0 && n_entries == order.listed_entries());
                is_done = true;
            }
            Message::Abort(_) => is_done = true,
            _ => {}
        }
        assert!(n_bytes <= LIMITS.max_bytes && n_bytes <= order.listed_bytes());
        assert!(n_entries <= LIMITS.max_entries && order.path().len() <= name::MAX_PATH_BYTES);
    }
});

fn is_one_component(name: &[u8]) -> bool {
    let path = std::path::Path::new(std::str::from_utf8(name).expect("UTF-8"));
    let mut components = path.components();
    let is_normal = matches!(components.next(), Some(std::path::Component::Normal(_)));
    is_normal && components.next().is_none() && !name.contains(&0) && name.len() <= 255
}
