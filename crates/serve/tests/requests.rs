//! Tests requests as bytes on a socket: which are answered, which are rejected, and that no request
//! can be smuggled.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use common::{Client, TestServer, echo};
use onecopy_serve::{FnHandler, Outcome, Request, Response};

/// Sends one request on a new connection. Returns the status of the response, and the bytes that
/// follow the response.
fn once(server: &TestServer, request: &[u8]) -> (u16, Vec<u8>) {
    let mut client = server.connect();
    client.try_send(request);
    client.shut();
    let answer = client.answer();
    (answer.status, client.rest().0)
}

#[test]
fn hello_is_answered_with_date_and_length() {
    let server = TestServer::start(FnHandler(|_: Request<'_>| {
        Response::new(200)
            .content_type("text/plain")
            .header("X-Caf", b"caf\xe9")
            .unwrap()
            .body("hello, world")
    }));
    let mut client = server.connect();
    let answer = client.get("/a?b=c");
    assert_eq!((answer.status, answer.text()), (200, "hello, world"));
    assert_eq!(answer.field("Content-Length"), Some("12"));
    assert_eq!(answer.field("Content-Type"), Some("text/plain"));
    assert!(answer.field("Date").unwrap().ends_with(" GMT"));
    assert_eq!(answer.field("Connection"), None);
    let line = server.line();
    assert_eq!((line.method.as_str(), line.path.as_str()), ("GET", "/a"));
    assert_eq!((line.status, line.outcome), (200, Outcome::Done));
    assert!(line.n_bytes > 100 && line.n_rows.is_none());
    assert_eq!(client.get("/").status, 200, "the connection is kept");
}

#[test]
fn bodies_that_two_readers_could_measure_differently_are_refused() {
    let server = TestServer::start(echo());
    // Heads with ambiguous framing. Each is followed by a request that must not be parsed.
    let refused: [(&str, u16); 24] = [
        ("Content-Length: 5\r\nContent-Length: 6", 400),
        ("Content-Length: 5, 6", 400),
        ("Content-Length: 5\r\nContent-Length: 5", 400),
        ("Content-Length: +5", 400),
        ("Content-Length: -5", 400),
        ("Content-Length: 0x5", 400),
        ("Content-Length: 1_0", 400),
        ("Content-Length:", 400),
        ("Content-Length: 5abc", 400),
        ("Content-Length: 18446744073709551621", 400),
        ("Content-Length: 5 5", 400),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", 400),
        ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: identity", 501),
        ("Transfer-Encoding: chunked, identity", 400),
        ("Transfer-Encoding: chunked, chunked", 400),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            400,
        ),
        ("Transfer-Encoding: \x0bchunked", 400),
        ("Transfer-Encoding: ,chunked\r\nContent-Length: 5", 400),
        ("Content-Length : 5", 400),
        ("X-A : 5", 400),
        ("X-A\t: 5", 400),
        ("Content-Length: 2000000", 413),
    ];
    for (fields, status) in refused {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
        );
        let (got, rest) = once(&server, request.as_bytes());
        assert_eq!((got, rest), (status, Vec::new()), "{fields:?}");
    }
    let (got, _) = once(
        &server,
        b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    );
    assert_eq!(got, 400, "chunked in HTTP/1.0");
    while let Ok(line) = server.log.try_recv() {
        assert_eq!(line.outcome, Outcome::Refused, "{line:?}");
    }
}

#[test]
fn malformed_heads_are_refused_and_the_connection_closed() {
    let server = TestServer::start(echo());
    let cases: [(&[u8], u16); 29] = [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: x\n\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n", 400),
        (b"GET / HTTP/1.1\rHost: x\r\r", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX\0: a\r\n\r\n", 400),
        (b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: \x07\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: \x7f\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX[]: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX Y: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX\xe9: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/1.11\r\nHost: x\r\n\r\n", 400),
        (b"GET / http/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\n\r\n",
            417,
        ),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ];
    for (request, status) in cases {
        let (got, rest) = once(&server, request);
        let shown = String::from_utf8_lossy(request);
        assert_eq!((got, rest), (status, Vec::new()), "{shown:?}");
    }
}

#[test]
fn heads_past_their_limits_are_refused_while_they_grow() {
    let server = TestServer::start(echo());
    let many = format!(
        "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
        "X: y\r\n".repeat(2000)
    );
    assert_eq!(once(&server, many.as_bytes()).0, 431);
    let long = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    assert_eq!(once(&server, long.as_bytes()).0, 431);
    let target = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "y".repeat(100_000));
    assert_eq!(once(&server, target.as_bytes()).0, 414);
    // A head that is too large is rejected before its end arrives.
    let mut client = server.connect();
    client.try_send("GET / HTTP/1.1\r\nHost: x\r\n");
    client.try_send("X: ".to_owned() + &"y".repeat(1_000_000));
    assert_eq!(client.answer().status, 431);
}

#[test]
fn chunked_request_bodies_are_read_strictly() {
    let server = TestServer::start(echo());
    let head = "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = server.connect();
    client.send(format!(
        "{head}5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-Length: 9\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    assert_eq!(client.answer().text(), "POST /c|hello!");
    assert_eq!(client.answer().text(), "GET /next|");
    for body in [
        "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0_5\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "0\n\r\n",
        "0\r\n\n",
    ] {
        let request = format!("{head}{body}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
        let (status, rest) = once(&server, request.as_bytes());
        assert_eq!((status, rest), (400, Vec::new()), "{body:?}");
    }
    let long = format!("{head}5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(1_000_000));
    assert_eq!(once(&server, long.as_bytes()).0, 400);
    let large = format!("{head}{:x}\r\n", 3 << 20);
    assert_eq!(once(&server, large.as_bytes()).0, 413);
}

#[test]
fn bodies_come_whole_however_they_are_cut() {
    let server = TestServer::start(echo());
    let body: String = (0..300_000)
        .map(|i| char::from(b'a' + (i % 26) as u8))
        .collect();
    let request = format!(
        "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let expected = format!("POST /b|{body}");
    let mut client = server.connect();
    for _ in 0..3 {
        client.send(&request);
        assert!(client.answer().text() == expected);
    }
    let chunked = format!(
        "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    client.send(&chunked);
    assert!(client.answer().text() == expected);
    let small = "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    for at in 1..small.len() {
        client.send(&small[..at]);
        client.send(&small[at..]);
        assert_eq!(client.answer().text(), "POST /b|hello", "cut at {at}");
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    for byte in b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2) {
        client.send([byte]);
    }
    assert_eq!(client.answer().text(), "GET /slow|");
    assert_eq!(client.answer().text(), "GET /slow|");
}

#[test]
fn a_body_that_is_cut_off_never_reaches_the_handler() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    client.send("POST /cut HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello");
    client.shut();
    client.assert_closed();
    let mut client = server.connect();
    client
        .send("POST /cut HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    client.shut();
    client.assert_closed();
    assert_eq!(server.connect().get("/").status, 200);
    assert_eq!(server.line().path, "/", "no other line was written");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    let batch: String = (0..1000)
        .map(|i| format!("GET /{i} HTTP/1.1\r\nHost: x\r\n\r\n"))
        .collect();
    client.send(batch);
    for i in 0..1000 {
        assert_eq!(client.answer().text(), format!("GET /{i}|"));
    }
    client.send(
        "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
         POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nde\
         GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\n\r\n",
    );
    assert_eq!(client.answer().text(), "POST /1|abc");
    assert_eq!(client.answer().text(), "POST /2|de");
    let last = client.answer();
    assert_eq!(last.text(), "GET /3|");
    assert_eq!(last.field("Connection"), Some("close"));
    client.assert_closed();
}

#[test]
fn expectations_are_met_before_the_body_and_only_then() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    client.send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().unwrap().0, 100);
    client.send("hello");
    assert_eq!(client.answer().text(), "POST /e|hello");
    // A handler that accepts no body rejects the request instead.
    let strict = TestServer::start(FnHandler(|_: Request<'_>| Response::new(200)));
    let mut client = strict.connect();
    client.send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 413);
    assert_eq!(answer.field("Connection"), Some("close"));
    assert_eq!(
        answer.field("Content-Type"),
        Some("application/problem+json")
    );
    client.send("hello"); // It may come nevertheless; it is never taken for a request.
    client.shut();
    client.assert_closed();
    assert_eq!(strict.line().outcome, Outcome::Refused);
}

#[test]
fn head_and_statuses_without_body_send_none() {
    let server = TestServer::start(FnHandler(|request: Request<'_>| {
        let status = request.path()[1..].parse().unwrap();
        Response::new(status).body("some text")
    }));
    let mut client = server.connect();
    client.send("HEAD /200 HTTP/1.1\r\nHost: x\r\n\r\n");
    let (status, head) = client.head().unwrap();
    assert!(status == 200 && head.contains("Content-Length: 9\n"));
    for status in [204, 304] {
        client.send(format!("GET /{status} HTTP/1.1\r\nHost: x\r\n\r\n"));
        let (got, head) = client.head().unwrap();
        assert!(got == status && !head.contains("Content-Length"), "{head}");
    }
    assert_eq!(
        client.get("/200").text(),
        "some text",
        "nothing was in between"
    );
}

#[test]
fn http_1_0_closes_unless_it_asks_to_keep() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.field("Connection"), Some("keep-alive"));
    client.send("GET /b HTTP/1.0\r\n\r\n");
    let answer = client.answer();
    assert_eq!(
        (answer.text(), answer.field("Connection")),
        ("GET /b|", Some("close"))
    );
    client.assert_closed();
}

#[test]
fn a_panicking_handler_costs_one_answer() {
    let server = TestServer::start(FnHandler(|request: Request<'_>| {
        assert!(request.path() != "/panic", "as scripted");
        Response::new(200).body("fine")
    }));
    for _ in 0..3 {
        let mut client = server.connect();
        let answer = client.get("/panic");
        assert_eq!(answer.status, 500);
        assert!(
            !answer.text().contains("as scripted"),
            "the message stays inside"
        );
        assert_eq!(server.line().outcome, Outcome::Panicked);
        assert_eq!(server.connect().get("/").text(), "fine");
        assert_eq!(server.line().outcome, Outcome::Done);
    }
}

#[test]
fn ten_thousand_requests_on_one_connection_and_a_thousand_connections_leak_nothing() {
    let server = TestServer::start(echo());
    let mut client = server.connect();
    let n_open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    client.get("/warm");
    let before = n_open();
    for i in 0..10_000 {
        assert_eq!(client.get("/k").status, 200, "request {i}");
    }
    for _ in 0..1000 {
        let mut other = server.connect();
        other.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_eq!(other.answer().status, 200);
        other.assert_closed();
    }
    assert_eq!(client.get("/k").status, 200);
    // Concurrent tests of this process open sockets too. A leak would be thousands of descriptors.
    assert!(n_open() < before + 300, "{} -> {}", before, n_open());
}

#[test]
fn a_busy_port_is_named_with_the_way_out() {
    let server = TestServer::start(echo());
    let error =
        onecopy_serve::Server::bind(server.address.into(), onecopy_serve::Config::default());
    let message = error.err().expect("the port is taken").to_string();
    let port = server.address.port();
    assert!(
        message.contains(&format!("`{port}`")) && message.contains("\nstop"),
        "{message}"
    );
    assert_eq!(Client::connect(server.address).get("/").status, 200);
}
