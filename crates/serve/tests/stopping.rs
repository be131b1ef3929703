//! Tests graceful stops: idle connections are closed immediately, requests in progress get their
//! time limit, and the remaining ones are aborted.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use common::{Act, Client, PATIENCE, Script, TestServer, echo, streaming};
use onecopy_serve::{Chunks, Config, FnHandler, Outcome, Request, Response, StreamEnd};
use onecopy_text::Chunk;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

const GET: &str = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn idle_connections_are_closed_at_once_and_the_port_is_free() {
    let server = TestServer::start(echo());
    let address = server.address;
    let mut used = server.connect();
    used.get("/");
    let mut fresh = server.connect();
    server.line();
    let stopped = server.stop();
    assert_eq!((stopped.n_cut, stopped.n_left), (0, 0));
    used.assert_closed();
    // The connection is closed whether it was accepted or still in the kernel's queue.
    let _ = fresh.rest();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn connections_without_a_request_may_still_ask_where_the_server_retires() {
    let server = TestServer::start(echo());
    let mut fresh = server.connect();
    let mut used = server.connect();
    used.get("/1");
    let mut silent = server.connect();
    silent.get("/2");
    server.handle.retire(Duration::from_secs(3));
    server.handle.stop(); // A stop was requested already.
    server.advance(Duration::from_secs(2));
    for client in [&mut fresh, &mut used] {
        let answer = client.get("/late");
        assert_eq!(answer.text(), "GET /late|");
        assert_eq!(answer.field("Connection"), Some("close"));
        client.assert_closed();
    }
    server.advance(Duration::from_secs(4)); // Counted from when it has seen the request to stop.
    silent.assert_closed();
    assert_eq!(server.join().n_cut, 0);
}

#[test]
fn a_stream_under_way_is_finished() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let script = Script::of([Act::Bytes(b"begun,".to_vec())]);
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send(GET);
    client.head().unwrap();
    let mut idle = server.connect();
    idle.get("/");
    server.handle.stop();
    server.handle.stop(); // Asking again is not asking for a cut.
    idle.assert_closed();
    script.act(Act::Done(b"finished".to_vec(), 2));
    let (rest, _) = client.rest();
    let expected = b"6\r\nbegun,\r\n8\r\nfinished\r\n0\r\nonecopy-status: ok; rows=2\r\n\r\n";
    assert_eq!(rest, expected);
    assert!(matches!(
        end.recv_timeout(PATIENCE),
        Ok(StreamEnd::Done { n_rows: 2 })
    ));
    assert_eq!(server.join().n_cut, 0);
}

#[test]
fn what_is_left_at_the_limit_is_cut() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let script = Script::of([Act::Bytes(b"begun,".to_vec())]);
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send(GET);
    client.head().unwrap();
    let mut idle = server.connect();
    idle.get("/");
    server.line();
    server.handle.stop();
    idle.assert_closed();
    server.advance(Duration::from_secs(29));
    assert!(!script.was_cancelled());
    server.advance(Duration::from_secs(2));
    script.wait_cancelled();
    assert!(matches!(end.recv_timeout(PATIENCE), Ok(StreamEnd::Stopped)));
    assert_eq!(server.line().outcome, Outcome::Stopped);
    let (rest, reset) = client.rest();
    assert!(
        !rest.windows(5).any(|w| w == b"0\r\n\r\n") && reset,
        "{rest:?}"
    );
    let stopped = server.join();
    assert_eq!((stopped.n_cut, stopped.n_left), (1, 0));
}

#[test]
fn a_second_request_to_stop_through_the_descriptor_cuts() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let script = Script::default();
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send(GET);
    script.wait_filling();
    let path = format!("/proc/self/fd/{}", server.handle.stop_fd());
    assert!(
        std::fs::read_link(path)
            .unwrap()
            .to_string_lossy()
            .contains("eventfd")
    );
    server.handle.stop();
    server.handle.cut();
    assert!(matches!(end.recv_timeout(PATIENCE), Ok(StreamEnd::Stopped)));
    client.rest();
    assert_eq!(server.join().n_cut, 1);
}

#[test]
fn a_handler_that_does_not_return_does_not_hold_the_stop_for_ever() {
    let (enter, entered) = channel();
    let (leave, left) = channel::<()>();
    let (enter, left) = (Mutex::new(enter), Mutex::new(left));
    let server = TestServer::start(FnHandler(move |_: Request<'_>| {
        enter.lock().unwrap().send(()).unwrap();
        let _ = left.lock().unwrap().recv_timeout(PATIENCE);
        Response::new(200)
    }));
    let mut client = server.connect();
    client.send(GET);
    entered.recv_timeout(PATIENCE).unwrap();
    server.handle.stop();
    server.handle.cut();
    // The wait ends only when the clock passes the linger time. The clock is advanced repeatedly,
    // because the linger time starts only after the server has processed the call of `cut`.
    let run = std::thread::spawn({
        let clock = std::sync::Arc::clone(&server.clock);
        let handle = server.handle.clone();
        let done = std::sync::Arc::new(AtomicBool::new(false));
        let stop = std::sync::Arc::clone(&done);
        let mover = std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                clock.advance_ms(1000);
                handle.wake();
                std::thread::yield_now();
            }
        });
        move || {
            let stopped = server.join();
            done.store(true, Ordering::SeqCst);
            mover.join().unwrap();
            stopped
        }
    });
    let stopped = run.join().unwrap();
    assert_eq!((stopped.n_cut, stopped.n_left), (1, 1));
    leave.send(()).unwrap();
}

/// A source that ignores a cancel, as some drivers do.
struct Deaf(Sender<&'static str>, Receiver<()>);

impl ChunkSource for Deaf {
    fn fill(&mut self, _: &mut Chunk) -> Result<Filled, ChunkError> {
        self.0.send("entered").unwrap();
        let _ = self.1.recv_timeout(PATIENCE);
        Ok(Filled::Done)
    }

    fn n_rows(&self) -> u64 {
        0
    }

    fn cancel_handle(&self) -> CancelHandle {
        let reported = self.0.clone();
        CancelHandle::new(move || reported.send("cancelled").unwrap_or_default())
    }
}

#[test]
fn a_source_that_obeys_no_cancel_does_not_hold_the_stop_for_ever() {
    let (bodies, handler) = streaming();
    let mut config = Config::default();
    config.limits.linger = Duration::from_millis(20);
    let server = TestServer::with(config, handler);
    let (report, reported) = channel();
    let (leave, left) = channel();
    let chunks = Chunks::new(Box::new(Deaf(report, left)));
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send(GET);
    assert_eq!(reported.recv_timeout(PATIENCE), Ok("entered"));
    drop(client);
    assert_eq!(reported.recv_timeout(PATIENCE), Ok("cancelled"));
    server.handle.stop();
    let stopped = server.join();
    assert_eq!((stopped.n_cut, stopped.n_left), (0, 1));
    leave.send(()).unwrap();
}

#[test]
fn a_stop_under_load_answers_every_request_it_took() {
    let server = TestServer::start(echo());
    let address = server.address;
    let stopped = std::sync::Arc::new(AtomicBool::new(false));
    let (first, firsts) = channel();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let stopped = std::sync::Arc::clone(&stopped);
            let first = first.clone();
            std::thread::spawn(move || {
                let mut n = 0_u64;
                let mut client = Client::connect(address);
                loop {
                    client.try_send(format!("GET /{n} HTTP/1.1\r\nHost: x\r\n\r\n"));
                    // The client gets either a complete response or the end of the connection,
                    // never a partial response.
                    match client.answer_or_end() {
                        Some(answer) => {
                            assert_eq!(answer.text(), format!("GET /{n}|"));
                            n += 1;
                            if n == 100 {
                                first.send(()).unwrap();
                            }
                            if answer.field("Connection") == Some("close") {
                                return n;
                            }
                        }
                        None => {
                            assert!(stopped.load(Ordering::SeqCst), "closed before the stop");
                            return n;
                        }
                    }
                }
            })
        })
        .collect();
    for _ in 0..8 {
        firsts.recv_timeout(PATIENCE).unwrap();
    }
    stopped.store(true, Ordering::SeqCst);
    assert_eq!(server.stop().n_cut, 0);
    for client in clients {
        assert!(client.join().unwrap() >= 100);
    }
}
