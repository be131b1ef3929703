//! Tests the limits on times and numbers. The tests advance a manual clock instead of waiting.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use common::{PATIENCE, TestServer, echo};
use onecopy_serve::{Config, FnHandler, Limits, Outcome, Request, Response};

/// Returns a complete request followed by the beginning of a second one. The response to the first
/// request proves that the server has read that beginning.
fn get_then(start: &str) -> String {
    format!("GET /first HTTP/1.1\r\nHost: x\r\n\r\n{start}")
}

#[test]
fn a_head_that_dribbles_is_cut_at_its_time() {
    let server = TestServer::start(echo());
    let mut silent = server.connect();
    let mut slow = server.connect();
    slow.send(get_then("GET / HT"));
    assert_eq!(slow.answer().text(), "GET /first|");
    let mut in_time = server.connect();
    in_time.send(get_then("G"));
    assert_eq!(in_time.answer().text(), "GET /first|");
    server.advance(Duration::from_millis(9_900));
    slow.send("T");
    in_time.send("ET /late HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(in_time.answer().text(), "GET /late|");
    server.advance(Duration::from_millis(200));
    let answer = slow.answer();
    assert_eq!(
        (answer.status, answer.field("Connection")),
        (408, Some("close"))
    );
    slow.assert_closed();
    silent.assert_closed(); // No request, no answer.
    assert_eq!(in_time.get("/").status, 200);
}

#[test]
fn an_empty_line_after_a_request_leaves_the_connection_idle() {
    let server = TestServer::start(echo());
    let post = "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab";
    let mut clients = Vec::new();
    for line in ["\r\n", "\r"] {
        let mut client = server.connect();
        client.send(format!("{post}{line}"));
        assert_eq!(client.answer().text(), "POST /first|ab");
        clients.push(client);
    }
    let mut fresh = server.connect();
    fresh.send("\r\n");
    let (mut later, mut slow) = (server.connect(), server.connect());
    later.send(format!("{post}\r\n"));
    assert_eq!(later.answer().text(), "POST /first|ab");
    slow.send(get_then("\r\nGET / HT"));
    assert_eq!(slow.answer().text(), "GET /first|");
    server.advance(Duration::from_millis(10_100));
    assert_eq!(slow.answer().status, 408);
    fresh.assert_closed(); // No request, no answer.
    server.advance(Duration::from_secs(48));
    assert_eq!(later.get("/next").text(), "GET /next|");
    server.advance(Duration::from_secs(3));
    for mut client in clients {
        client.assert_closed();
    }
}

#[test]
fn the_408_for_a_head_request_has_no_content() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    client.send(get_then("HEAD / HT"));
    assert_eq!(client.answer().text(), "GET /first|");
    server.advance(Duration::from_millis(10_100));
    let (status, head) = client.head().unwrap();
    assert_eq!(status, 408);
    assert!(!head.contains("Content-Length: 0"), "{head}");
    client.assert_closed();
}

#[test]
fn a_connection_kept_alive_is_closed_when_idle_and_not_before() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    for _ in 0..5 {
        assert_eq!(client.get("/").status, 200);
        server.line();
        server.advance(Duration::from_secs(59));
    }
    assert_eq!(client.get("/").status, 200);
    server.line();
    server.advance(Duration::from_secs(61));
    client.assert_closed();
}

#[test]
fn a_body_that_stops_coming_is_refused() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    client.send(get_then(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello",
    ));
    assert_eq!(client.answer().text(), "GET /first|");
    server.advance(Duration::from_secs(31));
    assert_eq!(client.answer().status, 408);
    client.assert_closed();
}

#[test]
fn two_hundred_dribbling_connections_do_not_stop_another() {
    let server = TestServer::start(echo());
    let mut slow: Vec<_> = (0..200).map(|_| server.connect()).collect();
    let mut normal = server.connect();
    for byte in b"GET /slow HTTP/1.1\r\n" {
        for client in &mut slow {
            client.send([*byte]);
        }
        assert_eq!(normal.get("/n").text(), "GET /n|");
    }
    server.advance(Duration::from_secs(11));
    for client in &mut slow {
        // A connection ends without a response if the server had not read its first byte in time.
        if let Some(answer) = client.answer_or_end() {
            assert_eq!(answer.status, 408);
            client.assert_closed();
        }
    }
    assert_eq!(normal.get("/n").text(), "GET /n|");
}

#[test]
fn a_large_answer_to_a_client_that_stalls_is_cut() {
    let server = TestServer::start(FnHandler(|_: Request<'_>| {
        Response::new(200).body(vec![b'x'; 64 << 20])
    }));
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    client.head().unwrap();
    // The client has received the head, so the first write has ended and its time limit runs.
    let mut other = server.connect();
    other.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(other.answer().body.len(), 64 << 20);
    assert_eq!(server.line().outcome, Outcome::Done);
    server.advance(Duration::from_secs(31));
    let line = server.line();
    assert_eq!(line.outcome, Outcome::Stalled);
    assert!(line.n_bytes < 64 << 20);
    assert!(client.rest().1, "cut by a reset");
}

#[test]
fn connections_past_the_limit_are_told_so() {
    let mut config = Config::default();
    config.limits = limits(|l| l.n_connections = 3);
    let server = TestServer::with(config, echo());
    let mut kept: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut kept {
        assert_eq!(client.get("/").status, 200);
    }
    let mut late = server.connect();
    let answer = late.get("/");
    assert_eq!(
        (answer.status, answer.field("Connection")),
        (503, Some("close"))
    );
    assert_eq!(answer.field("Retry-After"), Some("1"));
    drop(late);
    drop(kept.pop());
    // The slot is free after the server has detected the end of the previous connection.
    for _ in 0..10_000 {
        let mut next = server.connect();
        if next.get("/").status == 200 {
            return;
        }
    }
    panic!("the place was never freed");
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[test]
fn slow_handlers_never_stop_another_connection_or_a_timer() {
    let (enter, entered) = channel();
    let enter = Mutex::new(enter);
    let (leave, hold) = channel::<()>();
    let hold = Mutex::new(hold);
    let mut config = Config::default();
    config.handler_threads = 3;
    let server = TestServer::with(
        config,
        FnHandler(move |request: Request<'_>| {
            if request.path() == "/slow" {
                enter.lock().unwrap().send(()).unwrap();
                let _ = hold.lock().unwrap().recv_timeout(PATIENCE);
            }
            Response::new(200).body("done")
        }),
    );
    let mut slow: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for client in &mut slow {
        client.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
        entered.recv_timeout(PATIENCE).unwrap();
    }
    // Two of three handler threads are in use. Other requests are answered, and timers are
    // processed.
    let mut dribble = server.connect();
    dribble.send(get_then("GET "));
    assert_eq!(dribble.answer().text(), "done");
    for _ in 0..100 {
        assert_eq!(server.connect().get("/").text(), "done");
    }
    server.advance(Duration::from_secs(11));
    assert_eq!(dribble.answer().status, 408);
    drop(leave);
    for client in &mut slow {
        assert_eq!(client.answer().text(), "done");
    }
}

#[test]
fn requests_past_the_handler_threads_wait_and_timers_go_on() {
    let (enter, entered) = channel();
    let enter = Mutex::new(enter);
    let (leave, hold) = channel::<()>();
    let hold = Mutex::new(hold);
    let mut config = Config::default();
    config.handler_threads = 1;
    let server = TestServer::with(
        config,
        FnHandler(move |request: Request<'_>| {
            if request.path() == "/slow" {
                enter.lock().unwrap().send(()).unwrap();
                let _ = hold.lock().unwrap().recv_timeout(PATIENCE);
            }
            Response::new(200).body("done")
        }),
    );
    let mut slow = server.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    entered.recv_timeout(PATIENCE).unwrap();
    let mut waiting: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &mut waiting {
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    let mut dribble = server.connect();
    dribble.send("GET ");
    // This request is refused without a handler. So its response proves that the server has
    // accepted all earlier connections.
    let mut refused = server.connect();
    refused.send("GET / HTTP/9.9\r\n\r\n");
    assert_eq!(refused.answer().status, 505);
    server.advance(Duration::from_secs(11));
    if let Some(answer) = dribble.answer_or_end() {
        assert_eq!(answer.status, 408);
    }
    drop(leave);
    assert_eq!(slow.answer().text(), "done");
    // The requests waited for longer than the time limit of a head, but for the server. So they are
    // not refused.
    for client in &mut waiting {
        assert_eq!(client.answer().text(), "done");
    }
    assert_eq!(server.connect().get("/").text(), "done");
}
