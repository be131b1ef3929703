//! Many concurrent clients read, disconnect, pipeline and abort in random order. The test checks
//! that each stream is reported once, that all sources are dropped, and that every response is
//! correct.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;
mod on_demand;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use common::{Client, Dice, TestServer};
use on_demand::{CHUNKED, Reported, assert_goes_on, head, length, with_threads};
use onecopy_serve::{BodyError, Chunks, Config, FnHandler, Request, Response, StreamEnd};
use onecopy_text::{ByteSink, Chunk};
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

/// A source that fills `left` chunks with its letter, and then ends or fails.
struct Letters {
    letter: u8,
    left: u64,
    fails: bool,
    live: Arc<AtomicU64>,
}

impl ChunkSource for Letters {
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError> {
        if self.left == 0 {
            return match self.fails {
                false => Ok(Filled::Done),
                true => Err(ChunkError {
                    kind: ChunkErrorKind::Source,
                    source: "as scripted".into(),
                }),
            };
        }
        self.left -= 1;
        chunk.put(&[self.letter; 30_000]).unwrap();
        Ok(Filled::More)
    }

    fn cancel_handle(&self) -> CancelHandle {
        CancelHandle::new(|| {})
    }
}

impl Drop for Letters {
    fn drop(&mut self) {
        self.live.fetch_sub(1, SeqCst);
    }
}

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
    done: AtomicU64,
    live: Arc<AtomicU64>,
}

/// Returns a handler that answers `/<letter>/<chunks>/<ok or fail>` with a stream, and other paths
/// with a short text.
fn handler(counts: &Arc<Counts>) -> impl onecopy_serve::Handler {
    let counts = Arc::clone(counts);
    FnHandler(move |request: Request<'_>| {
        let parts: Vec<&str> = request.path().split('/').collect();
        let [_, letter, n, how] = parts[..] else {
            return Response::new(200).body(request.path().to_owned());
        };
        counts.begun.fetch_add(1, SeqCst);
        counts.live.fetch_add(1, SeqCst);
        let of_end = Arc::clone(&counts);
        let chunks = Chunks::new(Letters {
            letter: letter.as_bytes()[0],
            left: n.parse().unwrap(),
            fails: how == "fail",
            live: Arc::clone(&counts.live),
        });
        Response::new(200).body(chunks.on_end(move |end| {
            of_end.ended.fetch_add(1, SeqCst);
            if matches!(end, StreamEnd::Done { .. }) {
                of_end.done.fetch_add(1, SeqCst);
            }
        }))
    })
}

/// Runs a client that makes 60 connections with random behaviour. Returns the number of streams
/// that it received completely.
fn live(address: std::net::SocketAddr, seed: u64) -> u64 {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut n_whole = 0;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    for _ in 0..60 {
        let mut client = Client::connect(address);
        let n = dice.below(12);
        match dice.below(6) {
            0 => {
                for i in 0..5 {
                    assert_eq!(client.get(&format!("/{i}")).text(), format!("/{i}"));
                }
            }
            1 => {
                let stream = format!("/a/{n}/ok");
                client.send(get("/1") + &get(&stream) + &get("/2") + &get(&stream));
                for i in 1..3 {
                    assert_eq!(client.answer().text(), format!("/{i}"));
                    assert_eq!(client.answer().body, vec![b'a'; 30_000 * n as usize]);
                    n_whole += 1;
                }
            }
            2 => {
                client.send(get(&format!("/b/{}/fail", n + 1)));
                assert_eq!(client.head().unwrap().0, 200);
                let (rest, _) = client.rest();
                assert!(!rest.ends_with(b"\r\n\r\n"));
            }
            3 => {
                client.send(get("/c/0/fail"));
                assert_eq!(client.answer().status, 500);
                assert_eq!(client.get("/on").text(), "/on");
            }
            4 => client.send(get(&format!("/d/{}/ok", n * 40))), // And leaves at once.
            _ => {
                client.send(get("/e/400/ok"));
                client.head().unwrap();
                client.send(get("/f/400/ok")); // Leaves after the head, with another request sent.
            }
        }
    }
    n_whole
}

#[test]
fn clients_in_disorder_leave_nothing_behind() {
    let counts = Arc::new(Counts::default());
    let mut config = Config::default();
    config.workers = 3;
    config.handler_threads = 2;
    let server = TestServer::with(config, handler(&counts));
    let address = server.address;
    let clients: Vec<_> = (1..=8)
        .map(|seed| std::thread::spawn(move || live(address, seed)))
        .collect();
    let n_whole: u64 = clients.into_iter().map(|c| c.join().unwrap()).sum();
    let stopped = server.stop();
    assert_eq!((stopped.n_cut, stopped.n_left), (0, 0));
    let begun = counts.begun.load(SeqCst);
    assert!(begun > 100 && n_whole > 20);
    assert_eq!(
        counts.ended.load(SeqCst),
        begun,
        "each stream is reported once"
    );
    assert_eq!(counts.live.load(SeqCst), 0, "each source is dropped");
    assert!(counts.done.load(SeqCst) >= n_whole);
}

/// Runs a client that sends 60 requests with a body. In random order, it waits for `100 Continue`
/// or does not, and disconnects early or does not.
fn upload(address: std::net::SocketAddr, seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut client = Client::connect(address);
    for _ in 0..60 {
        let body: Vec<u8> = (0..dice.below(90_000) / (1 + dice.below(20)))
            .map(|i| b'a' + (i % 26) as u8)
            .chain(*b"end")
            .collect();
        let chunked = dice.below(3) == 0;
        let framing = if chunked {
            CHUNKED.to_owned()
        } else {
            length(body.len())
        };
        let sent = match chunked {
            true => format!(
                "{:x}\r\n{}\r\n0\r\n\r\n",
                body.len(),
                String::from_utf8_lossy(&body)
            ),
            false => String::from_utf8_lossy(&body).into_owned(),
        };
        match dice.below(5) {
            0 => {
                client.send(head("/reads", &framing) + &sent);
                assert_goes_on(&mut client);
                assert!(client.answer().body == body);
            }
            1 => {
                client.send(head("/ignores", &framing));
                // All permits may be in use; then the body is requested before the handler is
                // called.
                match client.head().unwrap().0 {
                    100 => {
                        client.send(&sent);
                        assert_eq!(client.answer().text(), "not wanted");
                    }
                    _ => client = Client::connect(address),
                }
            }
            2 => {
                client.send(head("/reads", &framing));
                assert_goes_on(&mut client);
                client.send(&sent[..dice.below(sent.len() as u64) as usize]);
                client = Client::connect(address); // Left in the middle.
            }
            3 => {
                client.send(head("/reads", &framing));
                client = Client::connect(address); // Left before `100 Continue`.
            }
            _ => {
                client.send(head("/reads", &framing));
                assert_goes_on(&mut client);
                let at = dice.below(sent.len() as u64) as usize;
                client.send(&sent[..at]);
                client.send(&sent[at..]);
                assert!(client.answer().body == body);
            }
        }
    }
}

#[test]
fn clients_in_disorder_leave_no_handler_behind() {
    let (server, ends) = with_threads(5);
    let address = server.address;
    let clients: Vec<_> = (1..=8)
        .map(|seed| std::thread::spawn(move || upload(address, seed)))
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let stopped = server.stop();
    assert_eq!((stopped.n_cut, stopped.n_left), (0, 0));
    let reported: Vec<Reported> = ends.reported.iter().collect();
    let n = |wanted: Reported| {
        reported
            .iter()
            .filter(|reported| **reported == wanted)
            .count()
    };
    assert!(n(Reported::Called("awaited")) > 20);
    assert!(n(Reported::Failed(BodyError::Gone)) > 5);
    let others = |reported: &Reported| matches!(reported, Reported::Failed(error) if *error != BodyError::Gone);
    assert!(!reported.iter().any(others));
}
