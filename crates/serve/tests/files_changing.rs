//! Tests files that change while they are sent, and clients that read them slowly.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

mod common;
mod folder;

use std::fs::{self, File};
use std::io::{Read, Write};

use common::TestServer;
use folder::Folder;
use onecopy_serve::static_files::FilesOptions;
use onecopy_serve::{Config, Files, Outcome};

/// Writes a file of 64 MB, which is more than the socket buffers can contain. Returns its bytes.
fn large(f: &Folder) -> Vec<u8> {
    let bytes: Vec<u8> = (0..64_000_000_u32).map(|i| (i / 3) as u8).collect();
    fs::write(f.root("large"), &bytes).unwrap();
    bytes
}

#[test]
fn a_file_that_is_cut_while_it_is_sent_breaks_the_answer_off() {
    let f = Folder::serving(|_| ());
    let bytes = large(&f);
    for cut in [0, 1000, 16_384, 100_000] {
        fs::write(f.root("large"), &bytes).unwrap();
        let mut client = f.server.connect();
        client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(client.head().unwrap().0, 200);
        let file = File::options().write(true).open(f.root("large")).unwrap();
        file.set_len(cut).unwrap();
        let (got, _) = client.rest();
        assert!(got.len() < bytes.len(), "it looks complete");
        // Sent bytes are the file's own pages, in which the kernel zeroes the bytes past the new
        // end.
        let right = got.len().min(usize::try_from(cut).unwrap());
        assert!(
            got[..right] == bytes[..right],
            "cut at {cut}, {} bytes",
            got.len()
        );
        assert_ne!(f.server.line().outcome, Outcome::Done);
    }
}

#[test]
fn a_file_that_grows_is_sent_as_long_as_was_promised() {
    let f = Folder::serving(|_| ());
    let bytes = large(&f);
    let mut client = f.server.connect();
    client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.head().unwrap().0, 200);
    let mut file = File::options().append(true).open(f.root("large")).unwrap();
    file.write_all(b"and more").unwrap();
    let mut got = vec![0; bytes.len()];
    client.stream.read_exact(&mut got).unwrap();
    assert!(got == bytes);
    assert_eq!(client.get("/a.txt").text(), "0123456789");
}

#[test]
fn a_file_that_is_replaced_is_sent_whole() {
    let f = Folder::serving(|_| ());
    let bytes = large(&f);
    let mut client = f.server.connect();
    client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.head().unwrap().0, 200);
    fs::write(f.root("new"), "new").unwrap();
    fs::rename(f.root("new"), f.root("large")).unwrap();
    assert_eq!(f.get("/large").text(), "new");
    let mut got = vec![0; bytes.len()];
    client.stream.read_exact(&mut got).unwrap();
    assert!(got == bytes);
}

#[test]
fn slow_readers_hold_no_thread() {
    let mut config = Config::default();
    config.handler_threads = 1;
    let f = Folder::serving(|_| ());
    let bytes = large(&f);
    let files = Files::new(&f.root(""), FilesOptions::default()).unwrap();
    let server = TestServer::with(config, files);
    let mut slow: Vec<_> = (0..64).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(client.head().unwrap().0, 200);
    }
    assert_eq!(server.connect().get("/a.txt").text(), "0123456789");
    for mut client in slow.drain(..).step_by(16) {
        let mut got = vec![0; bytes.len()];
        client.stream.read_exact(&mut got).unwrap();
        assert!(got == bytes);
    }
}

#[test]
fn a_client_that_takes_a_long_file_at_once_leaves_others_their_turn() {
    let f = Folder::serving(|_| ());
    let file = File::create(f.root("sparse")).unwrap();
    // Sending this file would take hours even over loopback. The test does not wait for its end.
    file.set_len(1 << 40).unwrap();
    let mut fast = f.server.connect();
    fast.send("GET /sparse HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(fast.head().unwrap().0, 200);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut block = vec![0; 1 << 20];
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                fast.stream.read_exact(&mut block).unwrap();
            }
        });
        for _ in 0..100 {
            assert_eq!(f.server.connect().get("/a.txt").text(), "0123456789");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
