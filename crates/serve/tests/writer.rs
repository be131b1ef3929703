//! Tests responses that a handler writes block by block while it runs.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use common::{PATIENCE, TestServer};
use onecopy_serve::{
    Body, BodyPolicy, Config, FnHandler, Handler, ItemSink, Items, NoItems, Outcome, Pulled,
    Pushed, Request, RequestBody, Response, SharedBytes, WriteError,
};

const BLOCK_BYTES: usize = 1 << 20;

/// A handler that writes its response in blocks, as its path requires, and reports the result of
/// each write.
struct Writes {
    written: Mutex<Sender<Result<(), WriteError>>>,
    gate: Mutex<Receiver<()>>,
}

struct Ends {
    written: Receiver<Result<(), WriteError>>,
    gate: Sender<()>,
}

impl Ends {
    fn next(&self) -> Result<(), WriteError> {
        self.written.recv_timeout(PATIENCE).expect("a block")
    }
}

impl Handler for Writes {
    fn handle(&self, request: Request<'_>) -> Response {
        let mut writer = request.writer().expect("a request of a connection");
        let mut head = Response::new(200).content_type("text/plain");
        if request.path() == "/length" {
            head.announce(10);
        }
        writer.begin(head).unwrap();
        assert_eq!(writer.begin(Response::new(200)), Err(WriteError::Ended));
        let report = |result| self.written.lock().unwrap().send(result).unwrap();
        if request.path() == "/many" {
            loop {
                let written = writer.write(SharedBytes::new(vec![b'x'; BLOCK_BYTES]));
                report(written);
                if written.is_err() {
                    return Response::new(200);
                }
            }
        }
        report(writer.write(SharedBytes::new(b"first,")));
        if request.path() == "/gate" {
            let opened = self.gate.lock().unwrap().recv_timeout(PATIENCE);
            opened.expect("the test opens the gate");
        }
        report(writer.write(SharedBytes::new(b"second,")));
        match request.path() {
            "/panics" => panic!("on request"),
            "/fails" => Response::new(200).body(Body::Items(Box::new(NoItems))),
            _ => Response::new(500).body("third"),
        }
    }

    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        if let (RequestBody::Awaited(body), "/reads") = (&body, request.path()) {
            assert_eq!(body.receive().unwrap().n_bytes(), Some(5));
        }
        self.handle(request)
    }

    fn body_policy(&self, _: Request<'_>) -> BodyPolicy {
        BodyPolicy::OnDemand
    }

    fn begins_early(&self) -> bool {
        true
    }
}

fn server() -> (TestServer, Ends) {
    let ((report, written), (open, gate)) = (channel(), channel());
    let handler = Writes {
        written: Mutex::new(report),
        gate: Mutex::new(gate),
    };
    let mut config = Config::default();
    config.handler_threads = 4;
    let ends = Ends {
        written,
        gate: open,
    };
    (TestServer::with(config, handler), ends)
}

#[test]
fn a_block_is_there_before_the_handler_writes_the_next() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.head().unwrap().0, 200);
    client.read_until(b"6\r\nfirst,\r\n");
    ends.gate.send(()).unwrap();
    client.read_until(b"7\r\nsecond,\r\n5\r\nthird\r\n0\r\n\r\n");
    assert_eq!(client.answer().text(), "first,second,third");
    for _ in 0..2 {
        let line = server.line();
        assert_eq!((line.status, line.outcome), (200, Outcome::Done));
    }
}

#[test]
fn a_length_that_was_announced_is_kept_and_1_0_ends_with_the_connection() {
    let (server, _ends) = server();
    let mut client = server.connect();
    let answer = client.get("/length");
    assert_eq!(answer.text(), "first,seco");
    client.send("GET / HTTP/1.0\r\n\r\n");
    let (_, head) = client.head().unwrap();
    assert!(head.contains("Connection: close") && !head.contains("chunked"));
    assert_eq!(client.rest(), (b"first,second,third".to_vec(), false));
}

#[test]
fn head_gets_the_head_only() {
    let (server, _ends) = server();
    let mut client = server.connect();
    client.send("HEAD /length HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let (_, head) = client.head().unwrap();
    assert!(head.contains("Content-Length: 10"));
    assert_eq!(client.answer().text(), "first,second,third");
}

#[test]
fn an_answer_that_fails_or_panics_has_no_end() {
    for path in ["/fails", "/panics"] {
        let (server, _ends) = server();
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!(client.head().unwrap().0, 200);
        let (come, _) = client.rest();
        assert_eq!(come, b"6\r\nfirst,\r\n7\r\nsecond,\r\n");
        let expected = match path {
            "/fails" => Outcome::Failed,
            _ => Outcome::Panicked,
        };
        assert_eq!(server.line().outcome, expected);
    }
}

#[test]
fn a_client_that_reads_nothing_holds_the_handler_until_the_limit() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send("GET /many HTTP/1.1\r\nHost: x\r\n\r\n");
    client.head().unwrap();
    let mut other = server.connect();
    // A thread that polls answers this request. If that thread has not yet recorded that the last
    // block of `client` waits, the loop repeats.
    let end = loop {
        assert_eq!(other.get("/length").status, 200);
        server.advance(Duration::from_secs(31));
        if let Some(error) = ends.written.try_iter().find_map(Result::err) {
            break error;
        }
    };
    assert_eq!(end, WriteError::Stalled);
    while server.line().outcome != Outcome::Stalled {}
    assert!(client.rest().1, "cut by a reset");
}

#[test]
fn a_client_that_leaves_ends_the_writing() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send("GET /many HTTP/1.1\r\nHost: x\r\n\r\n");
    client.head().unwrap();
    assert_eq!(ends.next(), Ok(()));
    drop(client);
    while let Ok(()) = ends.next() {}
    assert_eq!(server.line().outcome, Outcome::ClientGone);
}

#[test]
fn a_client_that_closes_its_sending_side_gets_every_block() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send("GET /gate HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until(b"6\r\nfirst,\r\n");
    client.shut();
    assert_eq!(ends.next(), Ok(()));
    // A response on another connection shows that the server has received the earlier event.
    let mut other = server.connect();
    other.send("x\r\n\r\n");
    assert_eq!(other.answer().status, 400);
    server.line();
    ends.gate.send(()).unwrap();
    assert_eq!(ends.next(), Ok(()));
    let (bytes, is_reset) = client.rest();
    assert!(bytes.ends_with(b"0\r\n\r\n"), "{}", bytes.escape_ascii());
    assert!(!is_reset);
    assert_eq!(server.line().outcome, Outcome::Done);
}

#[test]
fn a_server_that_is_cut_ends_the_writing() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send("GET /many HTTP/1.1\r\nHost: x\r\n\r\n");
    client.head().unwrap();
    server.handle.cut();
    let error = loop {
        if let Err(error) = ends.next() {
            break error;
        }
    };
    assert_eq!(error, WriteError::Stopped);
    assert_eq!(server.line().outcome, Outcome::Stopped);
    server.join();
}

#[test]
fn a_client_that_reads_slowly_gets_every_byte() {
    let (server, ends) = server();
    let mut client = server.connect();
    client.send("GET /many HTTP/1.0\r\n\r\n");
    client.head().unwrap();
    for _ in 0..40 {
        let mut block = vec![0; BLOCK_BYTES];
        std::io::Read::read_exact(&mut client.stream, &mut block).unwrap();
        assert!(block.iter().all(|b| *b == b'x'));
    }
    drop(client);
    while let Ok(()) = ends.next() {}
}

#[test]
fn a_handler_that_is_called_before_the_body_writes_too() {
    let (server, _ends) = server();
    for path in ["/reads", "/ignores"] {
        let mut client = server.connect();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        ));
        if path == "/reads" {
            assert_eq!(client.head().unwrap().0, 100);
            client.send("12345");
        }
        let answer = client.answer();
        assert_eq!(answer.text(), "first,second,third");
        let closes = answer.field("Connection") == Some("close");
        assert_eq!(closes, path == "/ignores");
        assert_eq!(server.line().outcome, Outcome::Done);
    }
}

#[test]
fn a_request_of_no_connection_and_a_handler_that_does_not_begin_early_have_no_writer() {
    assert!(Request::new("GET", "/", &[]).writer().is_none());
    let server = TestServer::start(FnHandler(|request: Request<'_>| {
        assert!(request.writer().is_none());
        Response::new(204)
    }));
    assert_eq!(server.connect().get("/").status, 204);
}

/// A body that produces items until the sink is full, reports their number of bytes, and then waits
/// until the test continues.
struct Gated {
    n_bytes: Sender<usize>,
    gate: Receiver<()>,
}

impl Items for Gated {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        let mut n_bytes = 0;
        loop {
            n_bytes += 64 << 10;
            if sink.push(SharedBytes::new(vec![b'x'; 64 << 10])) != Pushed::Next {
                break;
            }
        }
        self.n_bytes.send(n_bytes).unwrap();
        let opened = self.gate.recv_timeout(PATIENCE);
        opened.expect("the test opens the gate");
        Pulled::Done
    }
}

#[test]
fn items_that_a_full_socket_has_left_are_sent_while_the_next_one_is_made() {
    let ((report, n_bytes), (open, gate)) = (channel(), channel());
    let items = Mutex::new(Some(Gated {
        n_bytes: report,
        gate,
    }));
    let server = TestServer::start(FnHandler(move |_: Request<'_>| {
        let items = items.lock().unwrap().take().unwrap();
        Response::new(200).body(Body::Items(Box::new(items)))
    }));
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    client.head().unwrap();
    let n_bytes = n_bytes.recv_timeout(PATIENCE).unwrap();
    // The handler now waits for the test.
    std::io::Read::read_exact(&mut client.stream, &mut vec![0; n_bytes]).unwrap();
    open.send(()).unwrap();
    assert_eq!(client.rest(), (Vec::new(), false));
}
