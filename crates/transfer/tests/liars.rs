//! Tests senders that send wrong sizes, names, numbers or hashes: the receiver refuses them with a
//! reason, and writes no file.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

mod common;

use common::{Done, bytes, contents, lie, receiving};
use onecopy_transfer::message::{FileHead, FileTime, Message, VERSION};
use onecopy_transfer::{Code, Error, Limits, Reason, ReceiverOptions};

fn hello(code: &[u8]) -> Message {
    Message::Hello {
        version: VERSION,
        hashed: true,
        block_log2: 10,
        code: code.to_vec(),
    }
}

fn file(name: &[u8], len_bytes: u64) -> Message {
    Message::File(FileHead {
        len_bytes,
        modified: FileTime::default(),
        mode: 0o644,
        name: name.to_vec(),
    })
}

fn folder(name: &[u8]) -> Message {
    Message::Folder {
        mode: 0o755,
        name: name.to_vec(),
    }
}

const FOLDER_END: Message = Message::FolderEnd {
    modified: FileTime {
        seconds: 0,
        nanoseconds: 0,
    },
};

fn reason(said: &(Option<Message>, Done)) -> Reason {
    match said {
        (Some(Message::Refused(reason, words)), Err(Error::Refusing(own, _))) => {
            assert_eq!(reason, own);
            assert!(!words.is_empty());
            *reason
        }
        other => panic!("it was not refused: {other:?}"),
    }
}

/// Returns the settings of a receiver whose folder does not exist yet, and the folder that contains
/// it. A test checks that nothing is written to the outer folder.
fn outside() -> (tempfile::TempDir, ReceiverOptions) {
    let outer = tempfile::tempdir().unwrap();
    let to = receiving(&outer.path().join("inbox"));
    (outer, to)
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused_in_the_list_and_behind_it() {
    let long = vec![b'x'; 256];
    for name in [
        &b"../evil"[..],
        b"..",
        b".",
        b"",
        b"/evil",
        b"a/b",
        b"a\0b",
        b"NUL",
        b"aux.txt",
        b".onecopy-receive",
        b"\xff",
        &long,
    ] {
        let (outer, to) = outside();
        let said = lie(to.clone(), &[hello(b""), file(name, 1)], b"");
        assert_eq!(reason(&said), Reason::Name);
        let said = lie(to.clone(), &[hello(b""), folder(name)], b"");
        assert_eq!(reason(&said), Reason::Name);
        // The list announced another name.
        let messages = [hello(b""), file(b"a", 1), Message::EndOfList, file(name, 1)];
        assert_eq!(reason(&lie(to, &messages, b"")), Reason::Name);
        assert_eq!(contents(outer.path()), []);
    }
}

#[test]
fn folders_nested_too_deep_are_refused() {
    let (outer, to) = outside();
    let mut messages = vec![hello(b"")];
    messages.extend(std::iter::repeat_n(folder(b"d"), 129));
    assert_eq!(reason(&lie(to.clone(), &messages, b"")), Reason::Name);
    let mut messages = vec![hello(b"")];
    messages.extend(std::iter::repeat_n(folder(&[b'd'; 255]), 17));
    assert_eq!(reason(&lie(to, &messages, b"")), Reason::Name);
    assert_eq!(contents(outer.path()), []);
}

#[test]
fn links_in_the_folder_are_not_followed() {
    let (outer, to) = outside();
    let elsewhere = outer.path().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::create_dir_all(&to.folder).unwrap();
    std::fs::write(elsewhere.join("target"), "old").unwrap();
    std::os::unix::fs::symlink(&elsewhere, to.folder.join("link")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("target"), to.folder.join("file")).unwrap();
    let said = lie(
        to.clone(),
        &[hello(b""), folder(b"link"), file(b"a", 1), FOLDER_END],
        b"",
    );
    assert_eq!(reason(&said), Reason::Exists);
    let to = ReceiverOptions {
        replace: true,
        ..to
    };
    let said = lie(to, &[hello(b""), file(b"file", 3), Message::EndOfList], b"");
    assert_eq!(reason(&said), Reason::Exists);
    assert_eq!(contents(&elsewhere), [("target".into(), b"old".to_vec())]);
}

#[test]
fn sizes_other_than_those_listed_are_refused() {
    let data = bytes(4000, 1);
    let cases: [&[Message]; 9] = [
        // More bytes than the file has, at once and in blocks.
        &[file(b"a", 10), Message::Block(11)],
        &[
            file(b"a", 1500),
            Message::Block(1024),
            Message::BlockHash([0; 32]),
            Message::Block(1024),
        ],
        &[file(b"a", 1500), Message::Block(1500)],
        // Fewer bytes than the file has.
        &[file(b"a", 10), Message::Block(9)],
        &[file(b"a", 10), Message::FileEnd([0; 32])],
        &[file(b"a", 10), Message::Block(0)],
        // A larger file than was listed, one file more, one file fewer.
        &[file(b"a", 1501)],
        &[file(b"a", 0), Message::FileEnd([0; 32]), file(b"b", 0)],
        &[Message::Done],
    ];
    for after in cases {
        let (outer, to) = outside();
        let first = match after.first() {
            Some(Message::File(head)) if head.len_bytes != 1501 => Message::File(head.clone()),
            _ => file(b"a", 1500),
        };
        // A correct hash for the first block, so that the second block causes the refusal.
        let after = after.iter().cloned().map(|message| match message {
            Message::BlockHash(_) => Message::BlockHash(
                onecopy_transfer::block_hashes::block_hash(&data[..1024], 0, 10),
            ),
            Message::FileEnd(_) => Message::FileEnd(*blake3::hash(b"").as_bytes()),
            other => other,
        });
        let messages: Vec<Message> = [hello(b""), first, Message::EndOfList]
            .into_iter()
            .chain(after)
            .collect();
        let said = lie(to.clone(), &messages, &data);
        assert_eq!(reason(&said), Reason::Data, "{messages:?}");
        assert!(!to.folder.join("b").exists());
        assert!(!outer.path().join("a").exists());
    }
}

#[test]
fn wrong_hashes_are_refused_and_the_old_file_stays() {
    let data = bytes(2048, 1);
    let good = onecopy_transfer::block_hashes::block_hash(&data[..1024], 0, 10);
    let second = onecopy_transfer::block_hashes::block_hash(&data[..1024], 1, 10);
    let cases: [&[Message]; 3] = [
        &[
            file(b"a", 10),
            Message::Block(10),
            Message::FileEnd([7; 32]),
        ],
        &[
            file(b"a", 2048),
            Message::Block(1024),
            Message::BlockHash([7; 32]),
        ],
        &[
            file(b"a", 2048),
            Message::Block(1024),
            Message::BlockHash(good),
            Message::Block(1024),
            Message::BlockHash(second),
            Message::FileEnd([7; 32]),
        ],
    ];
    for after in cases {
        let (_outer, to) = outside();
        std::fs::create_dir(&to.folder).unwrap();
        std::fs::write(to.folder.join("a"), "old").unwrap();
        let to = ReceiverOptions {
            replace: true,
            ..to
        };
        let messages: Vec<Message> = [hello(b""), after[0].clone(), Message::EndOfList]
            .into_iter()
            .chain(after.iter().cloned())
            .collect();
        assert_eq!(
            reason(&lie(to.clone(), &messages, &data[..1024])),
            Reason::Data
        );
        assert_eq!(std::fs::read(to.folder.join("a")).unwrap(), b"old");
    }
}

#[test]
fn limits_hold_for_what_is_listed() {
    let (outer, to) = outside();
    let to = ReceiverOptions {
        limits: Limits {
            max_bytes: 100,
            max_entries: 2,
        },
        ..to
    };
    for messages in [
        vec![file(b"a", 101)],
        vec![file(b"a", 60), file(b"b", 60)],
        vec![file(b"a", u64::MAX), file(b"b", u64::MAX)],
        vec![file(b"a", 0), file(b"b", 0), file(b"c", 0)],
        vec![folder(b"a"), folder(b"b"), folder(b"c")],
    ] {
        let messages: Vec<Message> = [hello(b"")].into_iter().chain(messages).collect();
        assert_eq!(reason(&lie(to.clone(), &messages, b"")), Reason::Limit);
    }
    assert_eq!(contents(outer.path()), []);
}

#[test]
fn more_than_the_disk_has_is_refused_before_a_byte_is_written() {
    let (outer, to) = outside();
    let to = ReceiverOptions {
        limits: Limits {
            max_bytes: u64::MAX,
            max_entries: 9,
        },
        ..to
    };
    let messages = [hello(b""), file(b"a", 1 << 60), Message::EndOfList];
    assert_eq!(reason(&lie(to, &messages, b"")), Reason::Space);
    assert_eq!(contents(outer.path()), []);
}

#[test]
fn without_the_code_nothing_is_told_or_written() {
    let code = Code::make(None).unwrap();
    for wrong in [&b""[..], b"00000000", &code.secret()[1..]] {
        let (outer, to) = outside();
        let to = ReceiverOptions {
            code: Some(code.clone()),
            ..to
        };
        let messages = [hello(wrong), file(b"a", 1), Message::EndOfList];
        assert_eq!(reason(&lie(to, &messages, b"")), Reason::Code);
        assert_eq!(std::fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}

#[test]
fn another_version_and_other_protocols_are_refused() {
    let (outer, to) = outside();
    let other = Message::Hello {
        version: 2,
        hashed: true,
        block_log2: 10,
        code: Vec::new(),
    };
    assert_eq!(reason(&lie(to.clone(), &[other], b"")), Reason::Version);
    let (said, done) = lie(to.clone(), &[Message::EndOfList], b"");
    assert!(
        matches!(said, Some(Message::Refused(Reason::Data, _))),
        "{said:?}"
    );
    assert!(matches!(done, Err(Error::Protocol(_))), "{done:?}");
    let turns: [&[Message]; 4] = [
        &[hello(b""), hello(b"")],
        &[hello(b""), Message::Done],
        &[hello(b""), FOLDER_END],
        &[hello(b""), Message::EndOfList, Message::BlockHash([0; 32])],
    ];
    for messages in turns {
        assert_eq!(reason(&lie(to.clone(), messages, b"")), Reason::Data);
    }
    assert_eq!(contents(outer.path()), []);
}
