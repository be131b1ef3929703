//! Tests clients that close their sending side after a request and still read.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use common::{Act, PATIENCE, Script, TestServer, streaming};
use onecopy_serve::{
    Body, FnHandler, ItemSink, Items, Outcome, Pulled, Pushed, Request, Response, SharedBytes,
    StreamEnd,
};

/// A body with one item for each message that it receives.
struct Gated(Receiver<()>);

impl Items for Gated {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        while self.0.recv_timeout(PATIENCE).is_ok() {
            match sink.push(SharedBytes::new(b"item")) {
                Pushed::Next => {}
                Pushed::Full => return Pulled::More,
                Pushed::Enough => break,
            }
        }
        Pulled::Done
    }
}

#[test]
fn items_are_sent_to_their_end() {
    for (request, item, end) in [
        (
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "4\r\nitem\r\n",
            "0\r\n\r\n",
        ),
        ("GET / HTTP/1.0\r\n\r\n", "item", ""),
    ] {
        let (items, gate) = channel();
        let gate = Mutex::new(Some(Gated(gate)));
        let server = TestServer::start(FnHandler(move |_: Request<'_>| {
            let items = gate.lock().unwrap().take().unwrap();
            Response::new(200).body(Body::Items(Box::new(items)))
        }));
        let mut client = server.connect();
        client.send(request);
        items.send(()).unwrap();
        client.read_until(b"item");
        client.shut();
        // A response on another connection shows that the server has received the earlier event.
        let mut other = server.connect();
        other.send("x\r\n\r\n");
        assert_eq!(other.answer().status, 400);
        server.line();
        for _ in 0..30 {
            items.send(()).unwrap();
        }
        drop(items);
        let (bytes, is_reset) = client.rest();
        let text = String::from_utf8(bytes).unwrap();
        let first_end = &item[item.find("item").unwrap() + 4..];
        assert_eq!(text, first_end.to_owned() + &item.repeat(30) + end);
        assert!(!is_reset);
        assert_eq!(server.line().outcome, Outcome::Done);
    }
}

#[test]
fn a_row_stream_is_cancelled_and_no_sent_byte_is_lost() {
    for (version, is_chunked) in [("1.1", true), ("1.0", false)] {
        let (bodies, handler) = streaming();
        let server = TestServer::start(handler);
        let script = Script::of([Act::Bytes(b"row".to_vec())]);
        let (chunks, end) = script.body();
        bodies.send(Response::new(200).body(chunks)).unwrap();
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        client.send(format!("GET /stream HTTP/{version}\r\nHost: x\r\n\r\n"));
        script.wait("the second fill", |play| play.n_fills == 2);
        server.line();
        client.shut();
        script.wait_cancelled();
        assert!(matches!(
            end.recv_timeout(PATIENCE),
            Ok(StreamEnd::ClientGone)
        ));
        assert_eq!(server.line().outcome, Outcome::ClientGone);
        let (bytes, is_reset) = client.rest();
        if is_chunked {
            assert!(bytes.ends_with(b"3\r\nrow\r\n"), "{}", bytes.escape_ascii());
        }
        // The end of the connection would otherwise be the end of the body.
        assert_eq!(is_reset, !is_chunked);
    }
}
