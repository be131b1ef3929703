//! Tests row streams: they are sent chunk by chunk, a slow client delays them, and an incomplete
//! stream never looks complete.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use common::{Act, PATIENCE, Script, TestServer, streaming};
use onecopy_serve::{Breaker, Config, Outcome, Response, StreamEnd};
use onecopy_text::{Ledger, Stage};
use onecopy_wire::ChunkError;
use onecopy_wire::chunk_source::ChunkErrorKind;

const GET: &str = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";
const GET_1_0: &str = "GET /stream HTTP/1.0\r\n\r\n";

fn rows(range: std::ops::Range<u32>) -> Vec<u8> {
    range
        .flat_map(|i| format!("row {i}\n").into_bytes())
        .collect()
}

#[test]
fn a_stream_is_chunked_and_ends_with_its_rows_in_the_trailer() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let ledger = Ledger::within(&Ledger::off());
    let script = Script::of([
        Act::Bytes(rows(0..5000)),
        Act::Bytes(Vec::new()), // Must not become the last chunk.
        Act::Bytes(rows(5000..9000)),
        Act::Done(rows(9000..10_000), 10_000),
    ]);
    let (chunks, end) = script.body();
    let body = chunks.ledger(&ledger);
    bodies
        .send(Response::new(200).content_type("text/plain").body(body))
        .unwrap();
    let mut client = server.connect();
    client.send(GET);
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("Trailer"), Some("onecopy-status"));
    assert_eq!(answer.trailer, "onecopy-status: ok; rows=10000");
    assert!(answer.body == rows(0..10_000));
    assert!(matches!(
        end.recv_timeout(PATIENCE),
        Ok(StreamEnd::Done { n_rows: 10_000 })
    ));
    let line = server.line();
    assert_eq!((line.outcome, line.n_rows), (Outcome::Done, Some(10_000)));
    assert!(line.n_bytes > answer.body.len() as u64);
    // The head is copied once, and the body is not copied.
    let head = ledger.stage(Stage::Head);
    assert_eq!(ledger.total(), head);
    let n_head = answer
        .head
        .lines()
        .map(|line| line.len() + 2)
        .sum::<usize>()
        + 2;
    assert_eq!(head.taken, n_head as u64);
    assert_eq!((head.copied, head.converted), (head.taken, 0));
    assert_eq!(client.get("/").text(), "short", "the connection is kept");
}

#[test]
fn an_empty_stream_is_whole_too() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    for request in [GET, GET_1_0] {
        let (chunks, end) = Script::of([Act::Done(Vec::new(), 0)]).body();
        bodies.send(Response::new(200).body(chunks)).unwrap();
        let mut client = server.connect();
        client.send(request);
        let answer = client.answer();
        assert!(answer.status == 200 && answer.body.is_empty());
        assert!(matches!(
            end.recv_timeout(PATIENCE),
            Ok(StreamEnd::Done { n_rows: 0 })
        ));
    }
}

#[test]
fn pipelined_streams_and_texts_keep_their_order() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let mut client = server.connect();
    let short = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    client.send(format!("{short}{GET}{short}{GET}{short}"));
    for text in [&b"first"[..], b"second"] {
        let (chunks, _) = Script::of([Act::Bytes(text.to_vec()), Act::Done(vec![b'.'], 1)]).body();
        bodies.send(Response::new(200).body(chunks)).unwrap();
    }
    for expected in ["short", "first.", "short", "second.", "short"] {
        assert_eq!(client.answer().text(), expected);
    }
}

#[test]
fn http_1_0_gets_the_bytes_and_the_end_of_the_connection() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let (chunks, _) = Script::of([Act::Bytes(rows(0..9)), Act::Done(rows(9..20), 20)]).body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.field("Transfer-Encoding"), None);
    assert_eq!(answer.field("Content-Length"), None);
    assert_eq!(answer.field("Connection"), Some("close"));
    assert_eq!(answer.body, rows(0..20));
    assert_eq!(server.line().outcome, Outcome::Done);
}

#[test]
fn head_of_a_stream_fills_nothing() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let script = Script::default();
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    let (status, head) = client.head().unwrap();
    assert!(
        status == 200 && head.contains("Transfer-Encoding: chunked\n"),
        "{head}"
    );
    assert!(matches!(end.recv_timeout(PATIENCE), Ok(StreamEnd::NoBody)));
    script.wait_dropped();
    assert_eq!(script.n_fills(), 0);
    assert_eq!(client.get("/").text(), "short");
}

#[test]
fn a_source_that_fails_first_gives_the_status_of_its_error() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let mut client = server.connect();
    for mapped in [true, false] {
        let (chunks, end) = Script::of([Act::Fail(ChunkErrorKind::Source, "no table")]).body();
        let chunks = match mapped {
            true => chunks.on_error(|e| Response::problem(502, "Bad Gateway", &e.to_string())),
            false => chunks,
        };
        bodies.send(Response::new(200).body(chunks)).unwrap();
        client.send(GET);
        let answer = client.answer();
        let expected = if mapped { 502 } else { 500 };
        assert_eq!(answer.status, expected);
        assert_eq!(
            answer.field("Content-Type"),
            Some("application/problem+json")
        );
        assert_eq!(
            answer.text().contains("no table"),
            mapped,
            "only the mapper reports it"
        );
        match end.recv_timeout(PATIENCE) {
            Ok(StreamEnd::Failed(e)) => assert_eq!(e.to_string(), "no table"),
            other => panic!("{other:?}"),
        }
        let line = server.line();
        assert_eq!((line.outcome, line.status), (Outcome::Failed, expected));
    }
    let (chunks, end) = Script::of([Act::Panic]).body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    client.send(GET);
    assert_eq!(client.answer().status, 500);
    assert!(matches!(
        end.recv_timeout(PATIENCE),
        Ok(StreamEnd::Panicked)
    ));
    assert_eq!(
        client.get("/").text(),
        "short",
        "a whole answer keeps the connection"
    );
}

#[test]
fn a_stream_that_breaks_never_has_its_last_chunk() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    for act in [Act::Fail(ChunkErrorKind::Source, "server gone"), Act::Panic] {
        let panics = matches!(act, Act::Panic);
        let (chunks, end) = Script::of([Act::Bytes(b"[1,2,3".to_vec()), act]).body();
        let chunks = chunks.on_error(|_| panic!("the status is sent already"));
        bodies.send(Response::new(200).body(chunks)).unwrap();
        let mut client = server.connect();
        client.send(GET);
        let (status, head) = client.head().unwrap();
        assert!(status == 200 && head.contains("chunked"));
        let (rest, reset) = client.rest();
        assert_eq!(rest, b"6\r\n[1,2,3\r\n", "all that came before, and no end");
        assert!(!reset, "what was sent is delivered");
        let ended = end.recv_timeout(PATIENCE).unwrap();
        match panics {
            true => assert!(matches!(ended, StreamEnd::Panicked)),
            false => assert!(matches!(ended, StreamEnd::Failed(_))),
        }
        let line = server.line();
        let outcome = if panics {
            Outcome::Panicked
        } else {
            Outcome::Failed
        };
        assert_eq!((line.status, line.outcome), (200, outcome));
    }
}

#[test]
fn a_close_delimited_stream_that_breaks_is_reset() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let script = Script::of([Act::Bytes(b"[1,2,3".to_vec())]);
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send(GET_1_0);
    assert_eq!(client.head().unwrap().0, 200);
    let mut got = [0; 6];
    std::io::Read::read_exact(&mut client.stream, &mut got).unwrap();
    script.act(Act::Fail(ChunkErrorKind::Source, "server gone"));
    let (rest, reset) = client.rest();
    assert!(
        rest.is_empty() && reset,
        "the end must be an error: {rest:?}"
    );
    assert!(matches!(
        end.recv_timeout(PATIENCE),
        Ok(StreamEnd::Failed(_))
    ));
}

#[test]
fn a_client_that_leaves_cancels_its_source() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    // The client disconnects before the first chunk is filled, and in the middle of the stream.
    for acts in [vec![], vec![Act::Endless(vec![b'x'; 60_000])]] {
        let script = Script::of(acts);
        let (chunks, end) = script.body();
        bodies.send(Response::new(200).body(chunks)).unwrap();
        let mut client = server.connect();
        client.send(GET);
        script.wait_filling();
        drop(client);
        script.wait_cancelled();
        script.wait_dropped();
        assert!(matches!(
            end.recv_timeout(PATIENCE),
            Ok(StreamEnd::ClientGone)
        ));
        assert!(end.recv_timeout(PATIENCE).is_err(), "reported once");
        assert_eq!(server.line().outcome, Outcome::ClientGone);
        assert_eq!(server.connect().get("/").text(), "short");
        assert_eq!(server.line().outcome, Outcome::Done);
    }
}

#[test]
fn a_client_that_stalls_holds_the_source_back_and_is_cut() {
    let (bodies, handler) = streaming();
    let mut config = Config::default();
    config.workers = 1;
    let server = TestServer::with(config, handler);
    let script = Script::of([Act::Endless(vec![b'x'; 60_000])]);
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut stalled = server.connect();
    stalled.send(GET);
    stalled.head().unwrap();
    // When the kernel's buffers are full, the source is no longer called. The only worker then
    // serves other streams.
    let mut n_fills = 0;
    loop {
        let (chunks, _) = Script::of([Act::Done(b"other".to_vec(), 1)]).body();
        bodies.send(Response::new(200).body(chunks)).unwrap();
        let mut other = server.connect();
        other.send(GET);
        assert_eq!(other.answer().text(), "other");
        assert_eq!(server.line().outcome, Outcome::Done);
        match script.n_fills() {
            same if same == n_fills => break,
            more => n_fills = more,
        }
    }
    assert!(n_fills < 10_000, "600 MB would be no back-pressure");
    server.advance(config_write_stall() / 2);
    assert_eq!(server.connect().get("/").text(), "short");
    assert_eq!(server.line().path, "/");
    assert!(!script.was_cancelled(), "half of the limit");
    server.advance(config_write_stall());
    script.wait_cancelled();
    script.wait_dropped();
    assert!(matches!(end.recv_timeout(PATIENCE), Ok(StreamEnd::Stalled)));
    let line = server.line();
    assert_eq!((line.outcome, line.status), (Outcome::Stalled, 200));
    assert!(line.n_rows.is_some());
    // The client may read bytes that the kernel still has, and then gets an error.
    let (_, reset) = stalled.rest();
    assert!(reset);
}

fn config_write_stall() -> std::time::Duration {
    Config::default().limits.write_stall
}

#[test]
fn a_slow_client_gets_everything_if_it_goes_on_reading() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let payload = rows(0..2_000_000);
    let acts = payload.chunks(70_001).map(|c| Act::Bytes(c.to_vec()));
    let script = Script::of(acts.chain([Act::Done(Vec::new(), 2_000_000)]));
    let (chunks, end) = script.body();
    bodies.send(Response::new(200).body(chunks)).unwrap();
    let mut client = server.connect();
    client.send(GET);
    let answer = client.answer();
    assert!(answer.body == payload);
    assert_eq!(answer.trailer, "onecopy-status: ok; rows=2000000");
    assert!(matches!(
        end.recv_timeout(PATIENCE),
        Ok(StreamEnd::Done { .. })
    ));
}

#[test]
fn more_streams_than_workers_all_come_through() {
    let (bodies, handler) = streaming();
    let mut config = Config::default();
    config.workers = 2;
    let server = TestServer::with(config, handler);
    for i in 0..20_u8 {
        let acts = (0..50).map(|_| Act::Bytes(vec![i; 1000]));
        let (chunks, _) = Script::of(acts.chain([Act::Done(Vec::new(), 50)])).body();
        bodies.send(Response::new(200).body(chunks)).unwrap();
    }
    let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(GET);
    }
    let mut seen: Vec<u8> = Vec::new();
    for client in &mut clients {
        let body = client.answer().body;
        assert_eq!(body, vec![body[0]; 50_000]);
        seen.push(body[0]);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..20).collect::<Vec<u8>>());
}

fn too_late() -> ChunkError {
    ChunkError {
        kind: ChunkErrorKind::Limit,
        source: "too late".into(),
    }
}

/// The results that a source which ignores a cancel may return after its stream has ended.
fn late_acts() -> [Act; 3] {
    [
        Act::Bytes(rows(0..10)),
        Act::Done(rows(0..10), 10),
        Act::Fail(ChunkErrorKind::Source, "late"),
    ]
}

#[test]
fn a_breaker_answers_while_the_source_does_not_come_back() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    for late in late_acts() {
        let (script, breaker) = (Script::default(), Breaker::new());
        let (chunks, end) = script.body();
        let chunks = chunks
            .breaker(&breaker)
            .on_error(|e| Response::problem(504, "Gateway Timeout", &e.to_string()));
        bodies.send(Response::new(200).body(chunks)).unwrap();
        let mut client = server.connect();
        client.send(GET);
        script.wait_filling();
        breaker.fail(too_late());
        breaker.fail(too_late()); // Once is enough.
        let answer = client.answer();
        assert_eq!(
            (answer.status, answer.field("Connection")),
            (504, Some("close"))
        );
        assert!(answer.text().contains("too late"));
        // The late result of the source is discarded.
        script.act(late);
        script.wait_dropped();
        client.assert_closed();
        assert!(matches!(
            end.recv_timeout(PATIENCE),
            Ok(StreamEnd::Failed(e)) if e.kind == ChunkErrorKind::Limit
        ));
        assert_eq!(server.line().outcome, Outcome::Failed);
        assert_eq!(server.connect().get("/").text(), "short");
        server.line();
    }
}

#[test]
fn a_breaker_breaks_what_was_begun() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    for (request, late) in [GET, GET_1_0, GET].into_iter().zip(late_acts()) {
        let (script, breaker) = (Script::of([Act::Bytes(rows(0..100))]), Breaker::new());
        let (chunks, end) = script.body();
        bodies
            .send(Response::new(200).body(chunks.breaker(&breaker)))
            .unwrap();
        let mut client = server.connect();
        client.send(request);
        assert_eq!(client.head().unwrap().0, 200);
        script.wait("the second fill", |p| p.n_fills == 2);
        breaker.fail(too_late());
        let (rest, reset) = client.rest();
        assert!(!rest.ends_with(b"0\r\n\r\n") && !rest.windows(14).any(|w| w == b"onecopy-status"));
        assert_eq!(reset, request == GET_1_0);
        script.act(late);
        script.wait_dropped();
        assert!(matches!(
            end.recv_timeout(PATIENCE),
            Ok(StreamEnd::Failed(_))
        ));
        assert_eq!(server.line().outcome, Outcome::Failed);
    }
}

#[test]
fn a_breaker_is_too_late_for_a_stream_that_has_ended() {
    let (bodies, handler) = streaming();
    let server = TestServer::start(handler);
    let mut client = server.connect();
    let breaker = Breaker::new();
    let (chunks, _) = Script::of([Act::Done(rows(0..3), 3)]).body();
    bodies
        .send(Response::new(200).body(chunks.breaker(&breaker)))
        .unwrap();
    client.send(GET);
    assert_eq!(client.answer().body, rows(0..3));
    breaker.fail(too_late());
    let script = Script::default();
    bodies
        .send(Response::new(200).body(script.body().0))
        .unwrap();
    client.send(GET);
    script.wait_filling();
    breaker.fail(too_late());
    script.act(Act::Done(rows(3..5), 2));
    assert_eq!(client.answer().body, rows(3..5));
}
