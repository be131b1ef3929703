//! Tests the semantics of RFC 9110 and RFC 9112: methods, statuses, targets and fields that are
//! easily confused.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use common::{Act, Script, TestServer, echo};
use onecopy_serve::{
    Body, FnHandler, ItemSink, Items, Outcome, Pulled, Pushed, Request, Response, SharedBytes,
};

/// Sends a request and returns all received bytes, up to the end of the connection.
fn exchange(server: &TestServer, request: &str) -> String {
    let mut client = server.connect();
    client.send(request.as_bytes());
    String::from_utf8(client.rest().0).unwrap()
}

/// Returns the field lines of a response, without `Date`.
fn fields(answer: &str) -> Vec<&str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    let fields = head.lines().skip(1);
    fields.filter(|field| !field.starts_with("Date:")).collect()
}

/// A body of one item, `item`. The flag is `true` after the item was produced.
struct Item(bool);

impl Items for Item {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        if std::mem::replace(&mut self.0, true) {
            return Pulled::Done;
        }
        match sink.push(SharedBytes::new(b"item")) {
            Pushed::Enough => Pulled::Done,
            _ => Pulled::More,
        }
    }
}

/// Answers with a body of the kind that the path names, and with the status in the query (default
/// 200).
fn bodies(request: &Request<'_>) -> Response {
    let status = request
        .query()
        .map_or(200, |status| status.parse().unwrap());
    let mut response = Response::new(status);
    match request.path() {
        "/items" => response.body(Body::Items(Box::new(Item(false)))),
        "/items-announced" => {
            response.announce(4);
            response.body(Body::Items(Box::new(Item(false))))
        }
        "/stream" => response.body(Script::of([Act::Done(b"row".to_vec(), 1)]).body().0),
        "/stream-announced" => {
            response.announce(3);
            response.body(Script::of([Act::Done(b"row".to_vec(), 1)]).body().0)
        }
        "/bytes" => response.body("bytes"),
        path => panic!("{path}"),
    }
}

#[test]
fn head_has_the_fields_of_get_for_each_kind_of_body() {
    let server = TestServer::start(FnHandler(|request: Request<'_>| bodies(&request)));
    for path in [
        "/items",
        "/items-announced",
        "/stream",
        "/stream-announced",
        "/bytes",
    ] {
        for version in ["1.0", "1.1"] {
            for status in [200, 204, 205, 304] {
                let ask = |method: &str| {
                    exchange(
                        &server,
                        &format!(
                            "{method} {path}?{status} HTTP/{version}\r\n\
                             Host: a\r\nConnection: close\r\n\r\n"
                        ),
                    )
                };
                let (get, head) = (ask("GET"), ask("HEAD"));
                assert_eq!(
                    fields(&get),
                    fields(&head),
                    "{path} {status} HTTP/{version}"
                );
                assert!(head.ends_with("\r\n\r\n"), "{head}");
            }
        }
    }
}

#[test]
fn a_head_request_that_is_refused_gets_no_content() {
    let server = TestServer::start(echo());
    let large = format!("Host: a\r\nX: {}\r\n", "x".repeat(70_000));
    for (rest, status) in [
        (" / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "417"),
        (
            " / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
            "501",
        ),
        (" / HTTP/1.1\r\n\r\n", "400"),
        (" / HTTP/3.0\r\n\r\n", "505"),
        (&format!(" / HTTP/1.1\r\n{large}\r\n"), "431"),
    ] {
        let [get, head, after_line] =
            ["GET", "HEAD", "\r\nHEAD"].map(|method| exchange(&server, &format!("{method}{rest}")));
        assert_eq!(&head[9..12], status, "{head}");
        assert!(!get.ends_with("\r\n\r\n"), "{get}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(fields(&head), fields(&get));
        assert_eq!(fields(&after_line), fields(&get));
        assert!(after_line.ends_with("\r\n\r\n"), "{after_line}");
    }
}

#[test]
fn a_reset_content_answer_has_a_length_of_0_and_no_body() {
    let server = TestServer::start(FnHandler(|request: Request<'_>| bodies(&request)));
    for path in [
        "/items",
        "/items-announced",
        "/stream",
        "/stream-announced",
        "/bytes",
    ] {
        let text = exchange(
            &server,
            &format!(
                "GET {path}?205 HTTP/1.1\r\nHost: a\r\n\r\n\
                 GET /bytes HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            ),
        );
        let (reset, next) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            reset.starts_with("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n"),
            "{text}"
        );
        assert!(!reset.contains("Transfer-Encoding"), "{text}");
        assert!(
            next.starts_with("HTTP/1.1 200 ") && next.ends_with("\r\n\r\nbytes"),
            "{text}"
        );
        assert_eq!(server.line().outcome, Outcome::Done);
        server.line();
    }
}

#[test]
fn connect_is_501_and_what_follows_is_no_request() {
    let server = TestServer::start(echo());
    let text = exchange(
        &server,
        "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert!(text.starts_with("HTTP/1.1 501 "), "{text}");
    assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    let line = server.line();
    assert_eq!((line.status, line.outcome), (501, Outcome::Refused));
}

#[test]
fn an_empty_line_before_a_request_is_ignored_and_two_are_refused() {
    let server = TestServer::start(echo());
    let text = exchange(
        &server,
        "\r\nPOST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab\
         \r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|a| &a[..3]).collect();
    assert_eq!(statuses, ["200", "200", "400"], "{text}");
    assert!(
        text.contains("POST /1|ab") && text.contains("GET /2|"),
        "{text}"
    );
}

#[test]
fn the_host_of_a_whole_url_is_that_of_the_request_and_the_log_has_its_path() {
    let server = TestServer::start(FnHandler(|request: Request<'_>| {
        let (host, field) = (request.host().unwrap(), request.header("Host").unwrap());
        assert_eq!(host, field);
        let host = String::from_utf8(host.to_vec()).unwrap();
        Response::new(200).body(format!("{host} {} {:?}", request.path(), request.query()))
    }));
    for (target, body) in [
        ("http://b:99/p?q=1", "b:99 /p Some(\"q=1\")"),
        ("HTTP://b", "b / None"),
        ("/p?q", "a /p Some(\"q\")"),
    ] {
        let text = exchange(
            &server,
            &format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        );
        assert!(text.ends_with(body), "{text}");
        let path = body.split(' ').nth(1).unwrap();
        assert_eq!(server.line().path, path);
    }
}

#[test]
fn fields_of_the_connection_are_left_out_and_a_close_is_kept_to() {
    let server = TestServer::start(FnHandler(|request: Request<'_>| {
        let mut response = Response::new(200);
        let all: [(&str, &[u8]); 11] = [
            ("Keep-Alive", b"timeout=5"),
            ("connection", b"keep-alive"),
            ("Proxy-Authenticate", b"Basic"),
            ("Proxy-Authorization", b"x"),
            ("Proxy-Connection", b"close"),
            ("TE", b"trailers"),
            ("Trailer", b"X"),
            ("Trailers", b"X"),
            ("Transfer-Encoding", b"chunked"),
            ("Upgrade", b"h2c"),
            ("X-Kept", b"1"),
        ];
        for (name, value) in all {
            response.field(name, value).unwrap();
        }
        assert_eq!(response.left_out(), Some("Keep-Alive"));
        if request.path() == "/close" {
            response.field("Connection", b"X, Close").unwrap();
        }
        response.body("ok")
    }));
    let text = exchange(
        &server,
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /close HTTP/1.1\r\nHost: a\r\n\r\n\
         GET /never HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    let answers: Vec<&str> = text.split("HTTP/1.1 ").skip(1).collect();
    assert_eq!(answers.len(), 2, "{text}");
    assert_eq!(fields(answers[0]), ["Content-Length: 2", "X-Kept: 1"]);
    assert_eq!(
        fields(answers[1]),
        ["Content-Length: 2", "Connection: close", "X-Kept: 1"]
    );
    let mut response = Response::new(200);
    response.field("Connection", b"close").unwrap();
    assert_eq!(response.left_out(), None);
}
