//! Tests that signals stop a server. Signals belong to the whole process, so this file has only one
//! test.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use common::{Act, PATIENCE, Script, TestServer, streaming};
use onecopy_serve::{Response, StreamEnd, stop_on_signals};

fn term() {
    let me = std::process::id().to_string();
    let status = std::process::Command::new("kill")
        .args(["-TERM", &me])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn the_first_signal_stops_and_the_second_cuts() {
    const SIGTERM: i32 = 15;
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let guard = stop_on_signals(&server.handle, &[SIGTERM]).unwrap();
    let again = stop_on_signals(&server.handle, &[SIGTERM]);
    assert_eq!(
        again.err().unwrap().kind(),
        std::io::ErrorKind::AlreadyExists
    );
    let script = Script::of([Act::Bytes(b"begun".to_vec())]);
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    client.head().unwrap();
    let mut idle = server.connect();
    idle.get("/");
    term();
    idle.assert_closed();
    assert!(!script.was_cancelled());
    term();
    assert!(matches!(end.recv_timeout(PATIENCE), Ok(StreamEnd::Stopped)));
    assert!(client.rest().1);
    assert_eq!(server.join().n_cut, 1);
    drop(guard);
}
