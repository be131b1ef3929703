//! Tests response bodies that the application owns or produces (shared bytes, parts, files, items),
//! announced lengths, and long request bodies.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Client, PATIENCE, TestServer};
use onecopy_serve::{
    Body, BodyPolicy, Config, FileBody, FnHandler, Handler, ItemSink, Items, Outcome, Pulled,
    Pushed, Request, RequestBody, Response, SharedBytes,
};

/// Bytes that send the message `gone` when they are dropped.
struct Reported(Vec<u8>, Sender<&'static str>);

impl AsRef<[u8]> for Reported {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        let _ = self.1.send("gone");
    }
}

/// Starts a server that answers each request with the response that `make` returns for its path.
fn serving(make: impl Fn(&str) -> Response + Send + Sync + 'static) -> TestServer {
    TestServer::start(FnHandler(move |request: Request<'_>| make(request.path())))
}

fn announced(mut response: Response, n_bytes: u64) -> Response {
    response
        .field("Content-Length", n_bytes.to_string().as_bytes())
        .unwrap();
    response
}

#[test]
fn held_bytes_go_out_whole_and_are_let_go() {
    let (reported, gone) = channel();
    let reported = Mutex::new(reported);
    let server = serving(move |_| {
        let report = reported.lock().unwrap().clone();
        Response::new(200).body(Body::SharedBytes(SharedBytes::new(Reported(
            vec![b'x'; 3 << 20],
            report,
        ))))
    });
    let mut client = server.connect();
    let answer = client.get("/");
    assert_eq!(answer.field("Content-Length"), Some("3145728"));
    assert!(answer.body.iter().all(|b| *b == b'x') && answer.body.len() == 3 << 20);
    assert_eq!(gone.recv_timeout(PATIENCE), Ok("gone"));
    assert_eq!(client.get("/").status, 200, "the connection is kept");
}

#[test]
fn parts_are_one_body_and_are_cut_where_the_announced_length_ends() {
    let server = serving(|path| {
        let parts =
            ["one ", "two ", "three"].map(|text| SharedBytes::new(text.as_bytes().to_vec()));
        let response = Response::new(200).body(Body::Parts(parts.into()));
        match path {
            "/cut" => announced(response, 6),
            _ => response,
        }
    });
    let mut client = server.connect();
    let answer = client.get("/");
    assert_eq!(
        (answer.text(), answer.field("Content-Length")),
        ("one two three", Some("13"))
    );
    let answer = client.get("/cut");
    assert_eq!(
        (answer.text(), answer.field("Content-Length")),
        ("one tw", Some("6"))
    );
    assert_eq!(client.get("/").status, 200, "the connection is kept");
}

#[test]
fn a_body_shorter_than_announced_ends_the_connection() {
    let server = serving(|_| announced(Response::new(200).body("short"), 9));
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    let (bytes, _) = client.rest();
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.contains("Content-Length: 9\r\n") && text.ends_with("\r\n\r\nshort"),
        "{text}"
    );
    assert_eq!(server.line().outcome, Outcome::Failed);
}

#[test]
fn what_an_application_says_of_length_date_and_phrase_stands() {
    let server = serving(|_| {
        let mut response = Response::new(200).reason(b"Fine \xe9").unwrap();
        response
            .field("date", b"Thu, 01 Jan 1970 00:00:00 GMT")
            .unwrap();
        response.field("CONTENT-LENGTH", b" 2 ").unwrap();
        assert!(
            response.field("content-length", b"3").is_err(),
            "another one"
        );
        assert!(response.field("content-length", b"+2").is_err());
        assert!(response.field("Content-Length", b"").is_err());
        assert!(response.field("Date", b"x").is_err(), "a second one");
        assert!(response.field("X", b"a\nb").is_err());
        assert!(Response::new(200).reason(b"a\r\nX: y").is_err());
        response.body("ok")
    });
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let text: String = client.rest().0.iter().map(|b| char::from(*b)).collect();
    assert!(text.starts_with("HTTP/1.1 200 Fine é\r\n"), "{text}");
    assert_eq!(text.matches("ate: ").count(), 1, "{text}");
    assert!(text.contains("date: Thu, 01 Jan 1970"), "{text}");
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

#[test]
fn a_part_of_a_file_is_sent_whatever_its_position() {
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|i| (i % 251) as u8).collect();
    let file = file_of(&bytes);
    let server = serving(move |path| {
        let file = file.try_clone().unwrap();
        let body = FileBody::new(file, 1_000, 4_000_000);
        let response = Response::new(200).body(Body::File(body));
        match path {
            "/cut" => announced(response, 10),
            _ => response,
        }
    });
    let mut client = server.connect();
    assert!(client.get("/").body == bytes[1_000..4_001_000]);
    assert!(client.get("/cut").body == bytes[1_000..1_010]);
    client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let head = String::from_utf8(client.rest().0).unwrap();
    assert!(head.contains("Content-Length: 4000000\r\n") && head.ends_with("\r\n\r\n"));
}

#[test]
fn a_file_that_has_become_shorter_breaks_the_answer_off() {
    let server = serving(|_| {
        let file = file_of(&[b'x'; 100]);
        Response::new(200).body(Body::File(FileBody::new(file, 0, 1_000)))
    });
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (bytes, _) = client.rest();
    assert!(bytes.len() < 1_000, "{} bytes", bytes.len());
    assert_eq!(server.line().outcome, Outcome::ClientGone);
}

/// A body that produces the items that the test sends through a channel. Sends `dropped` through
/// another channel when it is dropped.
struct Script(Receiver<Step>, Sender<&'static str>);

enum Step {
    Item(&'static str),
    Fail,
    Panic,
}

impl Items for Script {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        loop {
            match self.0.recv_timeout(PATIENCE) {
                Err(_) => return Pulled::Done,
                Ok(Step::Fail) => return Pulled::Failed,
                Ok(Step::Panic) => panic!("as scripted"),
                Ok(Step::Item(text)) => match sink.push(SharedBytes::new(text.as_bytes())) {
                    Pushed::Next => {}
                    Pushed::Full => return Pulled::More,
                    Pushed::Enough => return Pulled::Done,
                },
            }
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.1.send("dropped");
    }
}

/// Starts a server that answers the first request for `/` with a [`Script`]. Returns the sender of
/// its steps, and the receiver of its reports.
fn scripted(announce: Option<u64>) -> (TestServer, Sender<Step>, Receiver<&'static str>) {
    let (steps, script) = channel();
    let (report, reported) = channel();
    let script = Mutex::new(Some(Script(script, report)));
    let server = serving(move |path| {
        let Some(script) = (path == "/")
            .then(|| script.lock().unwrap().take())
            .flatten()
        else {
            return Response::new(200).body("other");
        };
        let mut response = Response::new(200).body(Body::Items(Box::new(script)));
        if let Some(n_bytes) = announce {
            response.announce(n_bytes);
        }
        response
    });
    (server, steps, reported)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn an_item_is_with_the_client_while_the_next_one_is_waited_for() {
    let (server, steps, reported) = scripted(None);
    let mut client = server.connect();
    client.send(GET);
    steps.send(Step::Item("first")).unwrap();
    // The test sends the next item only after the client has received the first one.
    client.read_until(b"5\r\nfirst\r\n");
    steps.send(Step::Item("")).unwrap();
    steps.send(Step::Item("second")).unwrap();
    client.read_until(b"6\r\nsecond\r\n");
    assert_eq!(
        server.connect().get("/other").text(),
        "other",
        "others are served meanwhile"
    );
    drop(steps);
    client.read_until(b"0\r\n\r\n");
    assert_eq!(reported.recv_timeout(PATIENCE), Ok("dropped"));
    assert_eq!(
        client.get("/other").text(),
        "other",
        "the connection is kept"
    );
}

#[test]
fn answers_before_a_handler_that_takes_long_do_not_wait_for_it() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = serving(move |path| {
        if path == "/long" {
            wait.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        }
        Response::new(200).body(path.to_owned())
    });
    let mut client = server.connect();
    client.send(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /long HTTP/1.1\r\nHost: a\r\n\r\n");
    client.read_until(b"\r\n\r\n/a");
    assert_eq!(server.connect().get("/b").text(), "/b", "nor do others");
    go.send(()).unwrap();
    client.read_until(b"\r\n\r\n/long");
}

#[test]
fn items_that_fail_never_look_complete() {
    for (announce, step) in [
        (None, Step::Fail),
        (None, Step::Panic),
        (Some(21), Step::Fail),
    ] {
        let (server, steps, reported) = scripted(announce);
        let mut client = server.connect();
        client.send(GET);
        steps.send(Step::Item("what came")).unwrap();
        steps.send(step).unwrap();
        let (bytes, _) = client.rest();
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains("what came") && !text.contains("0\r\n\r\n"),
            "{text}"
        );
        assert_eq!(reported.recv_timeout(PATIENCE), Ok("dropped"));
        assert_ne!(server.line().outcome, Outcome::Done);
    }
}

#[test]
fn items_are_cut_at_the_announced_length_and_fewer_end_the_connection() {
    let (server, steps, _told) = scripted(Some(7));
    let mut client = server.connect();
    client.send(GET);
    steps.send(Step::Item("12345")).unwrap();
    steps.send(Step::Item("67890")).unwrap();
    client.read_until(b"\r\n\r\n1234567");
    assert_eq!(
        client.get("/other").text(),
        "other",
        "the connection is kept"
    );

    let (server, steps, _told) = scripted(Some(7));
    let mut client = server.connect();
    client.send(GET);
    steps.send(Step::Item("12345")).unwrap();
    client.read_until(b"\r\n\r\n12345");
    drop(steps);
    client.assert_closed();
    assert_eq!(server.line().outcome, Outcome::Failed);
}

#[test]
fn a_client_that_has_closed_the_connection_ends_the_items_at_the_next_ones() {
    let (server, steps, reported) = scripted(None);
    let mut client = server.connect();
    client.send(GET);
    steps.send(Step::Item("first")).unwrap();
    client.read_until(b"5\r\nfirst\r\n");
    drop(client);
    while reported.recv_timeout(Duration::from_millis(1)).is_err() {
        steps.send(Step::Item("more")).unwrap();
    }
    assert_eq!(server.line().outcome, Outcome::ClientGone);
}

#[test]
fn http_1_0_gets_items_up_to_the_end_of_the_connection() {
    let (server, steps, _told) = scripted(None);
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.0\r\n\r\n");
    steps.send(Step::Item("plain")).unwrap();
    drop(steps);
    let (bytes, _) = client.rest();
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.ends_with("\r\n\r\nplain") && !text.contains("chunked"),
        "{text}"
    );
}

#[test]
fn a_client_that_leaves_ends_its_items() {
    struct Endless(Sender<&'static str>);
    impl Items for Endless {
        fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
            loop {
                match sink.push(SharedBytes::new(vec![b'x'; 1 << 16])) {
                    Pushed::Next => {}
                    Pushed::Full => return Pulled::More,
                    Pushed::Enough => return Pulled::Done,
                }
            }
        }
    }
    impl Drop for Endless {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let (report, reported) = channel();
    let report = Mutex::new(report);
    let server = serving(move |_| {
        let items = Endless(report.lock().unwrap().clone());
        Response::new(200).body(Body::Items(Box::new(items)))
    });
    let mut client = server.connect();
    client.send(GET);
    client.read_until(b"xxxxxxxx");
    assert!(
        reported.try_recv().is_err(),
        "it goes on as the client takes it"
    );
    drop(client);
    assert_eq!(reported.recv_timeout(PATIENCE), Ok("dropped"));
    assert_eq!(server.line().outcome, Outcome::ClientGone);
}

/// Answers with the bytes of the request body. The field `X-Kind` is the kind of [`RequestBody`].
struct Upload;

impl Handler for Upload {
    fn handle(&self, _: Request<'_>) -> Response {
        Response::new(200).body("none")
    }

    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        assert!(request.body().is_empty());
        let n_bytes = body.n_bytes();
        let (kind, bytes) = match body {
            RequestBody::None => ("none", Vec::new()),
            RequestBody::Awaited(_) => panic!("bodies are read first here"),
            RequestBody::Memory(chunk) => ("memory", chunk.to_vec()),
            RequestBody::File(mut file, _) => {
                assert_eq!(file.stream_position().unwrap(), 0);
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                ("file", bytes)
            }
        };
        assert_eq!(n_bytes, Some(bytes.len() as u64));
        Response::new(200)
            .header("X-Kind", kind)
            .unwrap()
            .body(bytes)
    }

    fn body_policy(&self, _: Request<'_>) -> BodyPolicy {
        BodyPolicy::Read
    }
}

fn upload(client: &mut Client, body: &[u8], chunked: bool) -> (String, Vec<u8>) {
    let mut request = b"POST / HTTP/1.1\r\nHost: a\r\n".to_vec();
    if chunked {
        request.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for piece in body.chunks(1000) {
            request.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            request.extend_from_slice(piece);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"0\r\n\r\n");
    } else {
        request.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        request.extend_from_slice(body);
    }
    client.send(&request);
    let answer = client.answer();
    (
        answer.field("X-Kind").unwrap_or("refused").to_owned(),
        answer.body,
    )
}

#[test]
fn bodies_come_into_memory_and_long_ones_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.limits.body_memory_bytes = 10_000;
    config.limits.body_bytes = 50_000;
    config.body_folder = folder.path().to_owned();
    let server = TestServer::with(config, Upload);
    let mut client = server.connect();
    for (n, kind) in [
        (1, "memory"),
        (10_000, "memory"),
        (10_001, "file"),
        (50_000, "file"),
    ] {
        let body: Vec<u8> = (0..n).map(|i| (i % 253) as u8).collect();
        for chunked in [false, true] {
            let (came_as, back) = upload(&mut client, &body, chunked);
            assert_eq!(came_as, kind, "{n} {chunked}");
            assert!(back == body, "{n} {chunked}");
        }
    }
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        0,
        "no name is left"
    );
    assert_eq!(upload(&mut client, &vec![0; 50_001], false).0, "refused");
}

#[test]
fn a_body_for_which_there_is_no_room_is_refused() {
    let mut config = Config::default();
    config.limits.body_memory_bytes = 10;
    config.body_folder = "/nowhere".into();
    let server = TestServer::with(config, Upload);
    let mut client = server.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n12345678901234567890");
    assert_eq!(client.answer().status, 507);
}

#[test]
fn a_handler_that_takes_no_files_refuses_long_bodies() {
    let mut config = Config::default();
    config.limits.body_memory_bytes = 10;
    let server = TestServer::with(config, Arc::new(common::echo()));
    let mut client = server.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n12345678901234567890");
    assert_eq!(client.answer().status, 413);
}
