//! Tests TLS with the client of rustls, over sockets that split the bytes at random positions.
//! `tests/serve/test_tls.py` tests TLS with OpenSSL.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;
mod secure;

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use common::{Act, PATIENCE, Script, echo, streaming};
use onecopy_serve::{
    Body, BodyPolicy, Config, Error, FileBody, FnHandler, Handler, ItemSink, Items, Outcome,
    Pulled, Pushed, Request, Response, SharedBytes, Tls, TlsProblem,
};
use onecopy_wire::chunk_source::ChunkErrorKind;
use rustls::version::{TLS12, TLS13};
use secure::{Identity, Secure, rest};

#[test]
fn both_versions_are_spoken_and_connections_kept() {
    let secure = Secure::start(echo());
    for version in [&TLS12, &TLS13] {
        let mut config = secure.identity.client(&[version]);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut client = secure.connect_by(config, usize::MAX);
        for target in ["/a", "/b"] {
            assert_eq!(client.get(target).text(), format!("GET {target}|"));
            assert_eq!(secure.server.line().outcome, Outcome::Done);
        }
        let session = &client.stream.get_ref().conn;
        assert_eq!(session.protocol_version(), Some(version.version));
        assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
}

#[test]
fn a_client_that_speaks_http_2_alone_is_refused() {
    let secure = Secure::start(echo());
    let mut config = secure.identity.client(&[&TLS13]);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut client = secure.connect_by(config, usize::MAX);
    let error = client.stream.get_mut().write_all(b"x").unwrap_err();
    assert!(
        error.to_string().contains("NoApplicationProtocol"),
        "{error}"
    );
    let line = secure.server.line();
    assert_eq!((line.status, line.outcome), (0, Outcome::Refused));
}

#[test]
fn bytes_that_come_one_by_one_and_records_cut_anywhere_are_the_same_requests() {
    let secure = Secure::start(echo());
    let request = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
    for version in [&TLS12, &TLS13] {
        let config = secure.identity.client(&[version]);
        let mut client = secure.connect_by(config.clone(), 1);
        client.send(request);
        assert_eq!(client.answer().text(), "POST /a|hello");
        let mut client = secure.connect_by(config, usize::MAX);
        for at in 0..request.len() {
            // Each part is sent in its own TLS record.
            client.send(&request[..at]);
            client.stream.get_mut().flush().unwrap();
            client.send(&request[at..]);
            assert_eq!(client.answer().text(), "POST /a|hello");
        }
    }
}

#[test]
fn many_requests_in_one_record_are_all_answered() {
    let secure = Secure::start(echo());
    let mut client = secure.connect();
    client.send("GET /n HTTP/1.1\r\nHost: x\r\n\r\n".repeat(300));
    for _ in 0..300 {
        assert_eq!(client.answer().text(), "GET /n|");
    }
}

fn pattern(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i / 251 * 7 + i) as u8).collect()
}

#[test]
fn big_bodies_go_both_ways_with_back_pressure() {
    let mut config = Config::default();
    config.limits.body_bytes = 32 << 20;
    config.limits.body_memory_bytes = 32 << 20;
    let secure = Secure::with(config, echo());
    let body = pattern(20_000_003);
    let mut client = secure.connect();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    client.send(&body);
    // The body is larger than the kernel's buffers, so the server must wait for the client.
    let answer = client.answer();
    assert!(answer.body.strip_prefix(b"POST /|") == Some(&body[..]));
    assert_eq!(client.get("/after").text(), "GET /after|");
}

/// Answers with the body of the request, in the form of response body that the path names.
struct Forms;

impl Handler for Forms {
    fn handle(&self, request: Request<'_>) -> Response {
        let body = request.body().to_vec();
        match request.path() {
            "/file" => {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&body).unwrap();
                Response::new(200).body(Body::File(FileBody::new(file, 5, body.len() - 5)))
            }
            "/parts" => {
                let parts = body.chunks(999).map(|part| SharedBytes::new(part.to_vec()));
                Response::new(200).body(Body::Parts(parts.collect()))
            }
            _ => Response::new(200).body(body),
        }
    }

    fn body_policy(&self, _: Request<'_>) -> BodyPolicy {
        BodyPolicy::Read
    }
}

#[test]
fn bodies_of_each_kind_are_the_same_bytes() {
    let secure = Secure::start(Forms);
    let mut client = secure.connect();
    for n in [5, 6, 16_384, 16_385, 65_536, 65_541, 900_000] {
        let body = pattern(n);
        for (target, skipped) in [("/file", 5), ("/parts", 0), ("/", 0)] {
            let head = format!("POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {n}\r\n\r\n");
            client.send(head);
            client.send(&body);
            assert!(client.answer().body == body[skipped..], "{target} {n}");
        }
    }
}

#[test]
fn a_client_that_takes_nothing_is_cut_in_time() {
    let secure = Secure::start(FnHandler(|_: Request<'_>| {
        Response::new(200).body(vec![b'x'; 40_000_000])
    }));
    let mut client = secure.connect();
    client.send("GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until(b"\r\n\r\n");
    secure.server.advance(Duration::from_secs(31));
    assert_eq!(secure.server.line().outcome, Outcome::Stalled);
    let (_, whole) = rest(&mut client);
    assert!(!whole);
}

#[test]
fn the_end_of_a_stream_without_length_is_said_only_if_it_is_whole() {
    for whole in [true, false] {
        let (bodies, handler) = streaming();
        let secure = Secure::start(handler);
        let script = Script::of([Act::Bytes(b"first".to_vec())]);
        let (body, _end) = script.body();
        bodies.send(Response::new(200).body(body)).unwrap();
        let mut client = secure.connect();
        client.send("GET /stream HTTP/1.0\r\n\r\n");
        client.read_until(b"first");
        script.act(match whole {
            true => Act::Done(b"second".to_vec(), 2),
            false => Act::Fail(ChunkErrorKind::Source, "broken"),
        });
        let expected: &[u8] = if whole { b"second" } else { b"" };
        assert_eq!(rest(&mut client), (expected.to_vec(), whole));
    }
}

#[test]
fn a_chunked_stream_that_breaks_off_ends_without_a_word() {
    let (bodies, handler) = streaming();
    let secure = Secure::start(handler);
    let script = Script::of([Act::Bytes(b"first".to_vec())]);
    let (body, _end) = script.body();
    bodies.send(Response::new(200).body(body)).unwrap();
    let mut client = secure.connect();
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until(b"first\r\n");
    script.act(Act::Fail(ChunkErrorKind::Source, "broken"));
    assert_eq!(rest(&mut client), (Vec::new(), false));
}

#[test]
fn an_answer_shorter_than_it_said_ends_without_a_word() {
    let secure = Secure::start(FnHandler(|_: Request<'_>| {
        let mut response = Response::new(200).body("half");
        response.field("Content-Length", b"8").unwrap();
        response
    }));
    let mut client = secure.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until(b"half");
    assert_eq!(rest(&mut client), (Vec::new(), false));
}

/// A body that produces the items that the test sends through a channel; `None` makes it fail.
struct Handed(Receiver<Option<&'static str>>);

impl Items for Handed {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        loop {
            match self.0.recv_timeout(PATIENCE) {
                Err(_) => return Pulled::Done,
                Ok(None) => return Pulled::Failed,
                Ok(Some(text)) => match sink.push(SharedBytes::new(text.as_bytes())) {
                    Pushed::Next => {}
                    Pushed::Full => return Pulled::More,
                    Pushed::Enough => return Pulled::Done,
                },
            }
        }
    }
}

fn handing() -> (Sender<Option<&'static str>>, Secure) {
    let (give, take) = channel();
    let take = Mutex::new(Some(take));
    let secure = Secure::start(FnHandler(move |_: Request<'_>| {
        let items = Handed(take.lock().unwrap().take().unwrap());
        Response::new(200).body(Body::Items(Box::new(items)))
    }));
    (give, secure)
}

#[test]
fn an_item_is_with_the_client_before_the_next_one_is_made() {
    for whole in [true, false] {
        let (give, secure) = handing();
        let mut client = secure.connect();
        client.send("GET / HTTP/1.0\r\n\r\n");
        for text in ["one", "two", "three"] {
            give.send(Some(text)).unwrap();
            client.read_until(text.as_bytes()); // The application waits for us: the watch has sent it.
        }
        if !whole {
            give.send(None).unwrap();
        }
        drop(give);
        assert_eq!(rest(&mut client), (Vec::new(), whole));
    }
}

#[test]
fn what_is_no_handshake_is_told_so_and_refused() {
    let secure = Secure::start(echo());
    for (sent, reported) in [
        // A handshake record with invalid contents: the server sends an alert (type 21, version 3).
        (
            &b"\x16\x03\x01\x00\x04\x63\x00\x00\x00"[..],
            &b"\x15\x03"[..],
        ),
        // A handshake message longer than permitted: rustls sends no alert for it.
        (b"\x16\x03\x01\x00\x04\xff\xff\xff\xff", b""),
        (b"\x00\x00\x00\x00\x00\x00\x00\x00", b"\x15\x03"),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\n",
        ),
    ] {
        let mut socket = secure.socket();
        socket.write_all(sent).unwrap();
        let mut come = Vec::new();
        socket.read_to_end(&mut come).unwrap();
        assert!(
            come.starts_with(reported),
            "{} for {}",
            come.escape_ascii(),
            sent.escape_ascii()
        );
        let line = secure.server.line();
        assert_eq!(
            (line.status, line.n_bytes, line.outcome),
            (0, 0, Outcome::Refused)
        );
    }
    assert_eq!(secure.connect().get("/").status, 200);
}

#[test]
fn a_client_that_leaves_in_the_handshake_is_refused_and_one_that_said_nothing_is_not_told_of() {
    let secure = Secure::start(echo());
    drop(secure.socket());
    let mut socket = secure.socket();
    socket.write_all(b"\x16\x03\x01").unwrap();
    drop(socket);
    assert_eq!(secure.server.line().outcome, Outcome::Refused);
    secure.connect().get("/");
    assert_eq!(secure.server.line().outcome, Outcome::Done);
}

#[test]
fn a_client_that_stalls_in_the_handshake_is_cut_at_the_time_of_a_head() {
    let secure = Secure::start(echo());
    let mut stalled = secure.socket();
    stalled.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
    // The stalled connection was accepted before this one.
    let mut other = secure.connect();
    other.get("/");
    assert_eq!(secure.server.line().outcome, Outcome::Done);
    secure.server.advance(Duration::from_secs(11));
    let line = secure.server.line();
    assert_eq!((line.status, line.outcome), (0, Outcome::Refused));
    assert_eq!(stalled.read(&mut [0; 64]).unwrap(), 0);
    assert_eq!(other.get("/").status, 200);
}

#[test]
fn a_head_that_stalls_behind_its_handshake_is_cut_at_the_same_time() {
    let secure = Secure::start(echo());
    let mut client = secure.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /");
    assert_eq!(client.answer().status, 200);
    secure.server.line();
    secure.server.advance(Duration::from_secs(11));
    assert_eq!(client.answer().status, 408);
    assert_eq!(rest(&mut client), (Vec::new(), true));
}

#[test]
fn idle_connections_end_with_a_word() {
    let secure = Secure::start(echo());
    let mut idle = secure.connect();
    idle.get("/");
    secure.server.line();
    secure.server.advance(Duration::from_secs(61));
    assert_eq!(rest(&mut idle), (Vec::new(), true));
    let mut stopped = secure.connect();
    stopped.get("/");
    secure.server.line();
    secure.server.handle.stop();
    assert_eq!(rest(&mut stopped), (Vec::new(), true));
}

#[test]
fn a_session_goes_on_where_it_is_resumed() {
    let secure = Secure::start(echo());
    let config = secure.identity.client(&[&TLS13]);
    let mut kinds = Vec::new();
    for _ in 0..2 {
        // The clones of the configuration share the sessions that they can resume.
        let mut client = secure.connect_by(config.clone(), usize::MAX);
        assert_eq!(client.get("/").status, 200);
        kinds.push(client.stream.get_ref().conn.handshake_kind().unwrap());
    }
    use rustls::HandshakeKind::{Full, Resumed};
    assert_eq!(kinds, [Full, Resumed]);
}

#[test]
fn files_that_cannot_serve_are_told_with_the_remedy() {
    let (a, b) = (Identity::new(), Identity::new());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let fails = |certificate: &Path, key: &Path, at: &Path| {
        let error = Tls::from_files(certificate, key).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(at.to_str().unwrap()) && text.contains('\n'),
            "{text}"
        );
        match error {
            Error::Tls { problem, .. } => problem,
            other => panic!("{other}"),
        }
    };
    let nowhere = folder.path().join("nowhere.pem");
    let empty = file("empty.pem", "");
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let locked = file("locked.pem", locked);
    let der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let der = file("der.pem", der);
    assert!(matches!(
        fails(&nowhere, &a.key, &nowhere),
        TlsProblem::Read(_)
    ));
    assert!(matches!(
        fails(&a.certificate, &nowhere, &nowhere),
        TlsProblem::Read(_)
    ));
    assert!(matches!(
        fails(&empty, &a.key, &empty),
        TlsProblem::NoCertificate
    ));
    assert!(matches!(
        fails(&a.key, &a.key, &a.key),
        TlsProblem::NoCertificate
    ));
    assert!(matches!(
        fails(&a.certificate, &a.certificate, &a.certificate),
        TlsProblem::NoKey
    ));
    assert!(matches!(
        fails(&a.certificate, &locked, &locked),
        TlsProblem::EncryptedKey
    ));
    assert!(matches!(
        fails(&a.certificate, &b.key, &b.key),
        TlsProblem::Mismatch
    ));
    assert!(matches!(
        fails(&der, &a.key, &der),
        TlsProblem::Malformed(_)
    ));
}
