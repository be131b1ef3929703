//! Tests clients that wait for `100 Continue` before they send the body, with handlers that read
//! the body and handlers that do not.
#![allow(clippy::unwrap_used)]

mod common;
mod on_demand;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use common::{PATIENCE, TestServer};
use on_demand::{
    CHUNKED, OnDemand, Reported, assert_goes_on, head, length, on_demand, server, with_threads,
};
use onecopy_serve::{
    BodyError, BodyPolicy, Config, Handler, Outcome, Request, RequestBody, Response,
};
use onecopy_wire::http::ChunkedError;

#[test]
fn a_body_is_received_when_the_handler_asks_and_the_connection_stays() {
    let (server, ends) = server();
    let mut client = server.connect();
    for body in [&b"hello"[..], &[b'x'; 60_000]] {
        client.send(head("/reads", &length(body.len())));
        assert_goes_on(&mut client);
        assert_eq!(ends.next(), Reported::Called("awaited"));
        // The body in two parts, followed by the next request.
        client.send(&body[..2]);
        client.send([&body[2..], b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n"].concat());
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("Connection")), (200, None));
        assert!(answer.body == body);
        assert_eq!(client.answer().status, 200);
        assert_eq!(ends.next(), Reported::Called("none"));
    }
    let outcomes = [0; 4].map(|_| server.line().outcome);
    assert_eq!(outcomes, [Outcome::Done; 4]);
}

#[test]
fn who_is_not_asked_gets_the_answer_alone_and_the_connection_ends() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/ignores", &length(5)));
    let answer = client.answer(); // The first thing that comes is no 100.
    assert_eq!((answer.status, answer.text()), (200, "not wanted"));
    assert_eq!(answer.field("Connection"), Some("close"));
    assert_eq!(ends.next(), Reported::Called("awaited"));
    // Bytes that the client sends anyway are not parsed as a request and cause no reset.
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    client.assert_closed();
    let line = server.line();
    assert_eq!((line.path.as_str(), line.status), ("/ignores", 200));
    assert_eq!(line.outcome, Outcome::Done);
}

#[test]
fn answers_before_it_do_not_wait_for_the_handler() {
    let (server, ends) = server();
    let mut client = server.connect();
    let before = "GET /first HTTP/1.1\r\nHost: x\r\n\r\n";
    client.send(format!("{before}{}", head("/gate", &length(2))));
    assert_eq!(client.answer().status, 200);
    assert_eq!(ends.next(), Reported::Called("none"));
    assert_eq!(ends.next(), Reported::Called("awaited"));
    ends.gate.send(()).unwrap();
    assert_goes_on(&mut client);
    client.send("ab");
    assert_eq!(client.answer().text(), "ab");
}

#[test]
fn a_chunked_body_is_received_on_demand_too() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/reads", CHUNKED));
    assert_goes_on(&mut client);
    client.send("3\r\nabc\r\n");
    client.send("2\r\nde\r\n0\r\n\r\n");
    assert_eq!(client.answer().text(), "abcde");
    assert_eq!(ends.next(), Reported::Called("awaited"));
}

#[test]
fn a_body_that_is_wrong_or_too_long_fails_the_handler_and_closes() {
    let (server, ends) = server();
    let long = format!("186a1\r\n{}", "x".repeat(100_001));
    for (chunks, error, status) in [
        ("0x5\r\nhello\r\n", ChunkedError::Size, 400),
        (&long, ChunkedError::BodyTooLarge, 413),
    ] {
        let mut client = server.connect();
        client.send(head("/reads", CHUNKED));
        assert_goes_on(&mut client);
        client.send(chunks);
        let answer = client.answer();
        assert_eq!(answer.status, status);
        assert_eq!(answer.field("Connection"), Some("close"));
        assert_eq!(ends.next(), Reported::Called("awaited"));
        assert_eq!(ends.next(), Reported::Failed(BodyError::Coding(error)));
        client.assert_closed();
        assert_eq!(server.line().outcome, Outcome::Refused);
    }
    // A body whose announced length exceeds the limit is refused without calling the handler.
    let mut client = server.connect();
    client.send(head("/reads", &length(100_001)));
    assert_eq!(client.answer().status, 413);
    client.assert_closed();
    assert!(ends.reported.try_recv().is_err());
}

#[test]
fn a_body_for_which_there_is_no_room_fails_the_handler_and_closes() {
    let (ends, handler) = on_demand();
    let mut config = Config::default();
    config.limits.body_memory_bytes = 4;
    config.body_folder = "/nowhere/at/all".into();
    let server = TestServer::with(config, handler);
    let mut client = server.connect();
    client.send(head("/reads", &length(5)));
    assert_goes_on(&mut client);
    client.send("hello");
    let answer = client.answer();
    assert_eq!(
        (answer.status, answer.field("Connection")),
        (507, Some("close"))
    );
    assert_eq!(ends.next(), Reported::Called("awaited"));
    assert_eq!(ends.next(), Reported::Failed(BodyError::Store));
    client.assert_closed();
}

#[test]
fn a_client_that_leaves_while_it_is_waited_for_fails_the_handler() {
    let (server, ends) = server();
    for sent in ["", "hal"] {
        let mut client = server.connect();
        client.send(head("/reads", &length(5)));
        assert_goes_on(&mut client);
        client.send(sent);
        assert_eq!(ends.next(), Reported::Called("awaited"));
        drop(client);
        assert_eq!(ends.next(), Reported::Failed(BodyError::Gone));
        let line = server.line();
        assert_eq!((line.path.as_str(), line.status), ("/reads", 0));
        assert_eq!(line.outcome, Outcome::ClientGone);
    }
    let mut client = server.connect();
    assert_eq!(client.get("/after").status, 200);
}

#[test]
fn a_client_that_sends_nothing_is_cut_at_the_limit() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/reads", &length(5)));
    assert_goes_on(&mut client);
    assert_eq!(ends.next(), Reported::Called("awaited"));
    server.advance(Duration::from_millis(29_999));
    let mut other = server.connect();
    assert_eq!(other.get("/other").status, 200);
    assert_eq!(ends.next(), Reported::Called("none"));
    // The log line of `other` is written after its response, by another thread.
    let line = server.line();
    assert_eq!(
        (&*line.path, line.outcome, line.status),
        ("/other", Outcome::Done, 200)
    );
    server.advance(Duration::from_millis(1));
    assert_eq!(ends.next(), Reported::Failed(BodyError::Late));
    let answer = client.answer();
    assert_eq!(
        (answer.status, answer.field("Connection")),
        (408, Some("close"))
    );
    client.assert_closed();
    let line = server.line();
    assert_eq!(
        (&*line.path, line.outcome, line.status),
        ("/reads", Outcome::Refused, 408)
    );
}

#[test]
fn a_handler_that_asks_for_nothing_has_its_time() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/gate", &length(5)));
    assert_eq!(ends.next(), Reported::Called("awaited"));
    server.advance(Duration::from_secs(1000)); // No limit of the client's runs while the server is at work.
    let mut other = server.connect();
    assert_eq!(other.get("/other").status, 200);
    assert_eq!(ends.next(), Reported::Called("none"));
    ends.gate.send(()).unwrap();
    assert_goes_on(&mut client);
    client.send("hello");
    assert_eq!(client.answer().text(), "hello");
}

#[test]
fn half_of_the_handlers_may_wait_and_the_next_body_is_read_first() {
    let (server, ends) = with_threads(4);
    let mut waiting = [0; 2].map(|_| {
        let mut client = server.connect();
        client.send(head("/reads", &length(5)));
        assert_goes_on(&mut client);
        assert_eq!(ends.next(), Reported::Called("awaited"));
        client
    });
    let mut third = server.connect();
    third.send(head("/reads", &length(5)));
    assert_goes_on(&mut third);
    let mut other = server.connect();
    assert_eq!(other.get("/other").status, 200);
    assert_eq!(
        ends.next(),
        Reported::Called("none"),
        "the third has none yet"
    );
    third.send("third");
    assert_eq!(third.answer().text(), "third");
    assert_eq!(ends.next(), Reported::Called("memory"));
    // A permit that is free again can be used again.
    for client in &mut waiting {
        client.send("early");
        assert_eq!(client.answer().text(), "early");
    }
    third.send(head("/ignores", &length(5)));
    assert_eq!(third.answer().text(), "not wanted");
    assert_eq!(ends.next(), Reported::Called("awaited"));
}

#[test]
fn one_handler_alone_never_waits() {
    let (server, ends) = with_threads(1);
    let mut client = server.connect();
    client.send(head("/ignores", &length(5)));
    assert_goes_on(&mut client);
    client.send("hello");
    assert_eq!(client.answer().text(), "not wanted");
    assert_eq!(ends.next(), Reported::Called("memory"));
}

#[test]
fn a_client_that_does_not_wait_is_read_first() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/ignores", &length(5)) + "hello");
    assert_goes_on(&mut client);
    assert_eq!(client.answer().text(), "not wanted");
    assert_eq!(ends.next(), Reported::Called("memory"));
    // A client of HTTP/1.0 gets no interim response, whatever it expects.
    client.send("POST /reads HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nold");
    assert_eq!(client.answer().text(), "old");
    assert_eq!(ends.next(), Reported::Called("memory"));
    client.assert_closed();
}

#[test]
fn an_answer_ends_the_time_for_asking() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/keeps", &length(5)));
    assert_eq!(client.answer().text(), "kept");
    let body = ends.kept.recv_timeout(PATIENCE).unwrap();
    assert_eq!(body.announced(), Some(5));
    assert_eq!(body.receive().unwrap_err(), BodyError::Answered);
    assert_eq!(body.clone().error(), Some(BodyError::Answered));
    client.assert_closed();
}

#[test]
fn a_handler_that_panics_is_answered_with_500() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/panics", &length(5)));
    let answer = client.answer();
    assert_eq!(
        (answer.status, answer.field("Connection")),
        (500, Some("close"))
    );
    assert_eq!(ends.next(), Reported::Called("awaited"));
    client.assert_closed();
    assert_eq!(server.line().outcome, Outcome::Panicked);
}

#[test]
fn a_server_that_stops_lets_the_body_come_in_its_time() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send(head("/reads", &length(5)));
    assert_goes_on(&mut client);
    assert_eq!(ends.next(), Reported::Called("awaited"));
    server.handle.stop();
    client.send("hello");
    assert_eq!(client.answer().text(), "hello");
    client.assert_closed();
    let stopped = server.join();
    assert_eq!((stopped.n_cut, stopped.n_left), (0, 0));
}

#[test]
fn a_server_that_is_cut_ends_the_wait() {
    for is_requested in [true, false] {
        let (server, ends) = server();
        let mut client = server.connect();
        client.send(head(
            if is_requested { "/reads" } else { "/gate" },
            &length(5),
        ));
        assert_eq!(ends.next(), Reported::Called("awaited"));
        if is_requested {
            assert_goes_on(&mut client);
        }
        server.handle.cut();
        assert_eq!(server.line().outcome, Outcome::Stopped);
        if !is_requested {
            ends.gate.send(()).unwrap();
        }
        assert_eq!(ends.next(), Reported::Failed(BodyError::Stopped));
        let stopped = server.join();
        assert_eq!((stopped.n_cut, stopped.n_left), (1, 0));
        assert_eq!(client.rest().0, b"");
    }
}

#[test]
fn a_body_that_is_kept_does_not_keep_the_server() {
    /// A handler that reports its end: its sender is dropped together with it.
    struct Mark {
        inner: OnDemand,
        _end: Sender<()>,
    }
    impl Handler for Mark {
        fn handle(&self, request: Request<'_>) -> Response {
            self.inner.handle(request)
        }
        fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
            self.inner.handle_body(request, body)
        }
        fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
            self.inner.body_policy(head)
        }
    }
    let (ends, handler) = on_demand();
    let (end, dropped) = channel();
    let server = TestServer::start(Mark {
        inner: handler,
        _end: end,
    });
    let mut client = server.connect();
    client.send(head("/keeps", &length(5)));
    assert_eq!(client.answer().text(), "kept");
    let body = ends.kept.recv_timeout(PATIENCE).unwrap();
    client.assert_closed();
    drop(client);
    server.stop();
    let gone = dropped.recv_timeout(PATIENCE);
    assert_eq!(gone, Err(RecvTimeoutError::Disconnected));
    assert_eq!(body.receive().unwrap_err(), BodyError::Answered);
}
