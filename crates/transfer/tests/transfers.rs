//! Tests whole transfers between a sender and a receiver in this process.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use common::{bytes, contents, exchange, receiving, sending, transfer};
use onecopy_transfer::identity::CertificateIdentity;
use onecopy_transfer::{
    Code, Error, Observer, Phase, Reason, Receiver, ReceiverOptions, SenderOptions,
};

/// Creates a folder with an empty folder and with files of sizes around the block size.
fn tree(at: &Path) -> PathBuf {
    let top = at.join("top");
    fs::create_dir_all(top.join("inner/deeper")).unwrap();
    fs::create_dir(top.join("leer")).unwrap();
    for (n, name) in [0, 1, 1023, 1024, 1025, 2048, 2049, 70_000]
        .into_iter()
        .zip([
            "a",
            "b",
            "inner/c",
            "inner/d",
            "e 東京",
            "inner/deeper/f",
            "g",
            "h",
        ])
    {
        fs::write(top.join(name), bytes(n, n as u64)).unwrap();
    }
    fs::set_permissions(top.join("b"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(top.join("inner"), fs::Permissions::from_mode(0o750)).unwrap();
    top
}

#[test]
fn files_folders_permissions_and_times_arrive() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = tree(from.path());
    for (hashed, log2, into) in [
        (true, 10, "w"),
        (true, 10, "x"),
        (false, 10, "y"),
        (true, 20, "z"),
    ] {
        let inbox = to.path().join(into);
        let options = SenderOptions {
            hashed,
            block_log2: log2,
            by_sendfile: into != "w",
            ..sending(&[&top])
        };
        let (sent, received) = transfer(&options, receiving(&inbox));
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert_eq!(contents(&inbox.join("top")), contents(&top));
        assert!(inbox.join("top/leer").is_dir() && !inbox.join(".onecopy-receive").exists());
        for name in ["a", "b", "inner", "inner/d", "h"] {
            let (a, b) = (top.join(name), inbox.join("top").join(name));
            let (a, b) = (fs::metadata(a).unwrap(), fs::metadata(b).unwrap());
            assert_eq!(a.mode() & 0o777, b.mode() & 0o7777, "{name}");
            assert_eq!(
                (a.mtime(), a.mtime_nsec()),
                (b.mtime(), b.mtime_nsec()),
                "{name}"
            );
        }
        assert_eq!(
            (sent.n_files, sent.n_bytes),
            (received.n_files, received.n_bytes)
        );
        assert_eq!(sent.n_files, 8);
        // A file of more than one block is sent by the kernel if `by_sendfile` is set, otherwise
        // from the buffer that was hashed. A file without hashes is also received by the kernel.
        if into == "w" {
            assert_eq!(sent.n_copied, sent.n_bytes);
        } else if log2 == 10 {
            assert!(sent.n_copied <= 1 + 1023 + 1024, "{sent:?}");
        }
        if !hashed {
            assert!(received.n_copied <= 1 + 1023 + 1024, "{received:?}");
        }
    }
}

#[test]
fn the_same_again_moves_nothing_and_other_files_are_not_replaced_unasked() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("file");
    fs::write(&file, bytes(5000, 1)).unwrap();
    transfer(&sending(&[&file]), receiving(to.path()))
        .1
        .unwrap();
    let again = transfer(&sending(&[&file]), receiving(to.path()))
        .0
        .unwrap();
    assert_eq!((again.n_files, again.n_moved), (1, 0));

    fs::write(&file, bytes(6000, 2)).unwrap();
    let (sent, received) = transfer(&sending(&[&file]), receiving(to.path()));
    assert!(
        matches!(sent, Err(Error::Refused(Reason::Exists, _))),
        "{sent:?}"
    );
    assert!(matches!(received, Err(Error::Refusing(Reason::Exists, _))));
    assert_eq!(fs::read(to.path().join("file")).unwrap(), bytes(5000, 1));
    let replacing = ReceiverOptions {
        replace: true,
        ..receiving(to.path())
    };
    transfer(&sending(&[&file]), replacing).1.unwrap();
    assert_eq!(fs::read(to.path().join("file")).unwrap(), bytes(6000, 2));
}

#[test]
fn tls_with_a_code_arrives_and_a_wrong_certificate_is_noticed() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = tree(from.path());
    let identity = CertificateIdentity::make().unwrap();
    let code = Code::make(Some(identity.fingerprint())).unwrap();
    let receiving = ReceiverOptions {
        code: Some(code.clone()),
        ..receiving(to.path())
    };
    let receiver = Receiver::new(receiving);
    for hashed in [true, false] {
        let options = SenderOptions {
            code: Some(code.clone()),
            hashed,
            ..sending(&[&top])
        };
        let (sent, received) = exchange(&options, &receiver, Some(&identity), &mut ());
        sent.unwrap();
        received.unwrap();
        assert_eq!(contents(&to.path().join("top")), contents(&top));
        fs::remove_dir_all(to.path().join("top")).unwrap();
    }
    let other = CertificateIdentity::make().unwrap();
    let options = SenderOptions {
        code: Some(code.clone()),
        ..sending(&[&top])
    };
    let (sent, _) = exchange(&options, &receiver, Some(&other), &mut ());
    assert!(matches!(sent, Err(Error::Fingerprint)), "{sent:?}");
    // A sender without TLS connects to a receiver with TLS.
    let (sent, received) = exchange(&sending(&[&top]), &receiver, Some(&identity), &mut ());
    assert!(sent.is_err() && received.is_err());
    assert_eq!(contents(to.path()), []);
}

#[test]
fn the_third_wrong_code_ends_it() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("file");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::new(ReceiverOptions {
        code: Some(Code::make(None).unwrap()),
        ..receiving(to.path())
    });
    for last in [false, false, true] {
        let (sent, received) = exchange(&sending(&[&file]), &receiver, None, &mut ());
        assert!(
            matches!(sent, Err(Error::Refused(Reason::Code, _))),
            "{sent:?}"
        );
        assert_eq!(
            matches!(received, Err(Error::TooManyCodes)),
            last,
            "{received:?}"
        );
    }
}

/// Calls `what` once, after `after` bytes of files were moved.
struct Meanwhile<F> {
    after: u64,
    moving: bool,
    what: F,
}

impl<F: FnMut()> Observer for Meanwhile<F> {
    fn phase(&mut self, phase: Phase) {
        self.moving = matches!(phase, Phase::Moving { .. });
    }

    fn bytes(&mut self, n_bytes: u64) {
        if self.moving && self.after > 0 {
            self.after = self.after.saturating_sub(n_bytes);
            if self.after == 0 {
                (self.what)();
            }
        }
    }
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_an_error_and_the_old_one_stays() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 5] = [
        ("truncated", |p| {
            fs::OpenOptions::new()
                .write(true)
                .open(p)
                .unwrap()
                .set_len(9000)
                .unwrap()
        }),
        ("emptied", |p| {
            fs::OpenOptions::new()
                .write(true)
                .open(p)
                .unwrap()
                .set_len(0)
                .unwrap()
        }),
        ("grown", |p| {
            fs::OpenOptions::new()
                .write(true)
                .open(p)
                .unwrap()
                .set_len(90_000)
                .unwrap()
        }),
        ("written to", |p| {
            let file = fs::OpenOptions::new().write(true).open(p).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"!", 100).unwrap();
        }),
        ("replaced", |p| {
            let other = p.with_extension("new");
            fs::write(&other, bytes(50_000, 3)).unwrap();
            fs::rename(&other, p).unwrap();
        }),
    ];
    for (what, change) in changes {
        for (hashed, after, by_sendfile) in [
            (true, 20_000, false),
            (true, 20_000, true),
            (false, 20_000, false),
            (true, 50_000, false),
            (true, 50_000, true),
        ] {
            let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let file = from.path().join("file");
            fs::write(&file, bytes(50_000, 1)).unwrap();
            fs::write(to.path().join("file"), "old").unwrap();
            let receiver = Receiver::new(ReceiverOptions {
                replace: true,
                ..receiving(to.path())
            });
            let mut observer = Meanwhile {
                after,
                moving: false,
                what: || change(&file),
            };
            let options = SenderOptions {
                hashed,
                by_sendfile,
                ..sending(&[&file])
            };
            let (sent, received) = exchange(&options, &receiver, None, &mut observer);
            assert!(
                matches!(
                    sent,
                    Err(Error::Changed { .. } | Error::Refused(Reason::Data, _))
                ),
                "{what}: {sent:?}"
            );
            assert!(
                matches!(
                    received,
                    Err(Error::Aborted(_) | Error::Refusing(Reason::Data, _))
                ),
                "{what}: {received:?}"
            );
            // Verified parts may be kept, but not under the name of a file.
            let there = fs::read_dir(to.path())
                .unwrap()
                .map(|e| e.unwrap().file_name());
            assert!(
                there
                    .into_iter()
                    .all(|n| n == "file" || n == ".onecopy-receive"),
                "{what}"
            );
            assert_eq!(fs::read(to.path().join("file")).unwrap(), b"old", "{what}");
            // Once no program writes to the file, its transfer succeeds.
            let (_, received) = exchange(&options, &receiver, None, &mut ());
            received.unwrap();
            assert!(contents(to.path()) == contents(from.path()), "{what}");
        }
    }
}

/// Stops the transfer after this number of bytes was listed and sent.
struct Stop(u64);

impl Observer for Stop {
    fn bytes(&mut self, n_bytes: u64) {
        self.0 = self.0.saturating_sub(n_bytes);
    }
    fn stops(&self) -> bool {
        self.0 == 0
    }
}

#[test]
fn what_is_there_of_another_version_of_a_file_is_not_used() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("file");
    for seed in [1, 2] {
        fs::write(&file, bytes(50_000, seed)).unwrap();
        let receiver = Receiver::new(receiving(to.path()));
        // The bytes of the list are counted too.
        let mut stop = Stop(50_000 + 30_000);
        let (sent, received) = exchange(&sending(&[&file]), &receiver, None, &mut stop);
        assert!(sent.is_err() && received.is_err());
    }
    let (sent, received) = transfer(&sending(&[&file]), receiving(to.path()));
    received.unwrap();
    // The bytes that the second attempt received are reused.
    assert!(sent.unwrap().n_moved <= 50_000 - 25_000);
    assert_eq!(contents(to.path()), contents(from.path()));
}

#[test]
fn a_part_that_was_harmed_is_read_again_from_there() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("file");
    fs::write(&file, bytes(50_000, 1)).unwrap();
    let receiver = Receiver::new(receiving(to.path()));
    let _ = exchange(
        &sending(&[&file]),
        &receiver,
        None,
        &mut Stop(50_000 + 30_000),
    );
    let parts = to.path().join(".onecopy-receive");
    let part = fs::read_dir(parts)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "part"))
        .unwrap();
    let mut harmed = fs::read(&part).unwrap();
    harmed[10_000] ^= 1;
    fs::write(&part, harmed).unwrap();
    let (sent, received) = transfer(&sending(&[&file]), receiving(to.path()));
    received.unwrap();
    assert_eq!(sent.unwrap().n_moved, 50_000 - 9 * 1024);
    assert_eq!(contents(to.path()), contents(from.path()));
}

#[test]
fn two_transfers_into_one_folder_do_not_mix() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = from.path().join("file");
    fs::write(&file, bytes(50_000, 1)).unwrap();
    let receiver = Receiver::new(receiving(to.path()));
    let mut refused = false;
    let mut observer = Meanwhile {
        after: 20_000,
        moving: false,
        what: || {
            let (sent, _) = transfer(&sending(&[&file]), receiving(to.path()));
            refused = matches!(sent, Err(Error::Refused(Reason::Busy, _)));
        },
    };
    let (_, received) = exchange(&sending(&[&file]), &receiver, None, &mut observer);
    received.unwrap();
    assert!(refused);
}

#[test]
fn links_and_pipes_in_folders_are_left_out_and_told() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top = from.path().join("top");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("a"), "a").unwrap();
    std::os::unix::fs::symlink("a", top.join("link")).unwrap();
    struct Told(Vec<String>);
    impl Observer for Told {
        fn left_out(&mut self, path: &Path, what: &str) {
            self.0
                .push(format!("{} {what}", path.file_name().unwrap().display()));
        }
    }
    let mut seen = Told(Vec::new());
    let receiver = Receiver::new(receiving(to.path()));
    let (sent, _) = exchange(&sending(&[&top]), &receiver, None, &mut seen);
    assert_eq!(sent.unwrap().n_files, 1);
    assert_eq!(seen.0, ["link a symbolic link"]);
    // A symbolic link that is named as a source is followed.
    let channel = top.join("link");
    transfer(&sending(&[&channel]), receiving(to.path()))
        .1
        .unwrap();
    assert_eq!(fs::read(to.path().join("link")).unwrap(), b"a");
}
