//! Many clients at once that read, leave, pipeline and break off in no order: every stream is told of once, nothing is
//! left behind, and what was answered is right.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use common::{Client, TestServer};
use onecopy_serve::{Chunks, Config, FnHandler, Request, Response, StreamEnd};
use onecopy_text::{ByteSink, Chunk};
use onecopy_wire::chunk_source::ChunkErrorKind;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

/// Numbers that look random and are the same in each run (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Fills `n` chunks of its letter, then ends well or fails.
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
                    source: "as told".into(),
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

/// `/<letter>/<chunks>/<ok or fail>` is a stream, anything else a short text.
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

/// One client's life; returns how many streams it saw whole.
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
                client.send(get("/f/400/ok")); // Leaves after the head, with another asked for.
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
        "each stream is told of once"
    );
    assert_eq!(counts.live.load(SeqCst), 0, "each source is dropped");
    assert!(counts.done.load(SeqCst) >= n_whole);
}
