//! Compares the server's metrics with counts of the client.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::collections::HashMap;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::{Act, Client, PATIENCE, Script, TestServer, echo, streaming};
use onecopy_serve::{
    Body, Config, FileBody, FnHandler, ItemSink, Items, Metrics, MetricsArea, Outcome, Pulled,
    Request, Response, SharedBytes,
};

/// Parses a text for Prometheus. Returns the values by the names of their series, without the
/// prefix `onecopy_`.
fn values(text: &str) -> HashMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let split = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let name = name.strip_prefix("onecopy_").unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(split).collect()
}

struct Counted(Metrics);

impl Counted {
    /// Returns a configuration, and the metrics that a server with this configuration counts.
    fn config() -> (Counted, Config) {
        let config = Config::default();
        (Counted(config.metrics.clone()), config)
    }

    fn get(&self, name: &str) -> u64 {
        let value = values(&self.0.text()).get(name).copied().unwrap_or(0.0);
        assert!(value >= 0.0 && value.fract() == 0.0, "{name} {value}");
        value as u64
    }

    fn requests(&self, status: &str, outcome: Outcome) -> u64 {
        let outcome = outcome.name();
        self.get(&format!(
            "http_requests_total{{status=\"{status}\",outcome=\"{outcome}\"}}"
        ))
    }

    /// Waits until the metric `name` has this value.
    fn wait(&self, name: &str, value: u64) {
        let begun = Instant::now();
        while self.get(name) != value {
            assert!(begun.elapsed() < PATIENCE, "{name} {}", self.0.text());
            std::thread::yield_now();
        }
    }
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn requests_are_counted_by_class_and_outcome() {
    let (counted, mut config) = Counted::config();
    config.limits.n_fields = 5;
    let server = TestServer::with(
        config,
        FnHandler(|request: Request<'_>| match request.path() {
            "/304" => Response::new(304),
            "/404" => Response::new(404),
            "/panics" => panic!("as scripted"),
            _ => Response::new(200).body("four"),
        }),
    );
    let mut client = server.connect();
    client.send(GET.repeat(3));
    (0..3).for_each(|_| assert_eq!(client.answer().status, 200));
    client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(client.head().unwrap().0, 200);
    assert_eq!(client.get("/304").status, 304);
    assert_eq!(client.get("/404").status, 404);
    assert_eq!(client.get("/panics").status, 500);
    for refused in [
        "GET / HTTP/1.1\nHost: x\n\n".to_owned(),
        format!(
            "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
            "X-A: 1\r\n".repeat(6)
        ),
    ] {
        let mut client = server.connect();
        client.send(refused);
        assert!(matches!(client.answer().status, 400 | 431));
    }
    let mut slow = server.connect();
    slow.send(format!("{GET}GET"));
    slow.answer();
    let n_lines = 10;
    let lines: Vec<_> = (0..n_lines).map(|_| server.line()).collect();
    server.advance(Duration::from_secs(11));
    assert_eq!(slow.answer().status, 408);
    server.line();
    assert_eq!(counted.requests("2xx", Outcome::Done), 5);
    assert_eq!(counted.requests("3xx", Outcome::Done), 1);
    assert_eq!(counted.requests("4xx", Outcome::Done), 1);
    assert_eq!(counted.requests("4xx", Outcome::Refused), 3);
    assert_eq!(counted.requests("5xx", Outcome::Panicked), 1);
    assert_eq!(counted.get("http_request_duration_seconds_count"), 11);
    assert_eq!(lines.len() + 1, 11);
}

/// A body of four items.
struct Four(u8);

impl Items for Four {
    fn pull(&mut self, sink: &mut ItemSink<'_>) -> Pulled {
        self.0 += 1;
        sink.push(SharedBytes::new(vec![b'i'; 1000]));
        match self.0 {
            4 => Pulled::Done,
            _ => Pulled::More,
        }
    }
}

#[test]
fn bytes_are_those_that_the_client_has_sent_and_received() {
    let (counted, config) = Counted::config();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![b'f'; 300_000]).unwrap();
    let file = Mutex::new(file);
    let server = TestServer::with(
        config,
        BodyReader(move |request: Request<'_>| match request.path() {
            "/file" => {
                let file = file.lock().unwrap().try_clone().unwrap();
                Response::new(200).body(Body::File(FileBody::new(file, 0, 300_000)))
            }
            "/items" => Response::new(200).body(Body::Items(Box::new(Four(0)))),
            "/rows" => {
                let acts = [Act::Bytes(vec![b'r'; 5000]), Act::Done(b"end".to_vec(), 7)];
                Response::new(200).body(Script::of(acts).body().0)
            }
            _ => Response::new(200).body("short"),
        }),
    );
    let last =
        |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let requested = [
        GET.repeat(16) + &last("/"),
        "HEAD /file HTTP/1.1\r\nHost: x\r\n\r\n".to_owned() + &last("/file"),
        last("/items"),
        last("/rows"),
        "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\nninebytes"
            .to_owned()
            + &last("/"),
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\nnot read whole".to_owned(),
    ];
    let (mut n_sent, mut n_received, mut n_told) = (0, 0, 0);
    for (i, requested) in requested.iter().enumerate() {
        let mut client = server.connect();
        client.send(requested);
        let (come, reset) = client.rest();
        assert!(!reset, "{i}");
        n_sent += requested.len() as u64;
        n_received += come.len() as u64;
        for _ in 0..requested.matches("HTTP/1.1\r\n").count() {
            n_told += server.line().n_bytes;
        }
    }
    counted.wait("http_connections", 0);
    assert_eq!(counted.get("http_sent_bytes_total"), n_received);
    assert_eq!(counted.get("http_received_bytes_total"), n_sent);
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".len() as u64;
    assert_eq!(
        n_told + interim,
        n_received,
        "the log counts all but interim answers"
    );
    assert_eq!(counted.get("http_rows_total"), 7);
    let n = requested.len() as u64;
    assert_eq!(counted.get("http_connections_accepted_total"), n);
}

/// A handler that accepts request bodies.
struct BodyReader<F>(F);

impl<F: Fn(Request<'_>) -> Response + Send + Sync + 'static> onecopy_serve::Handler
    for BodyReader<F>
{
    fn handle(&self, request: Request<'_>) -> Response {
        (self.0)(request)
    }

    fn body_policy(&self, _: Request<'_>) -> onecopy_serve::BodyPolicy {
        onecopy_serve::BodyPolicy::Read
    }
}

#[test]
fn durations_reach_from_the_head_to_the_last_byte_and_know_who_waited() {
    let (enter, entered) = channel();
    let enter = Mutex::new(enter);
    let (leave, hold) = channel::<()>();
    let hold = Mutex::new(hold);
    let (counted, mut config) = Counted::config();
    config.handler_threads = 1;
    let server = TestServer::with(
        config,
        FnHandler(move |_: Request<'_>| {
            enter.lock().unwrap().send(()).unwrap();
            hold.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            Response::new(200)
        }),
    );
    let (mut first, mut second) = (server.connect(), server.connect());
    first.send(GET);
    entered.recv_timeout(PATIENCE).unwrap();
    assert_eq!(counted.get("http_handlers_running"), 1);
    second.send(GET);
    counted.wait("http_requests_waiting", 1);
    server.advance(Duration::from_millis(300));
    leave.send(()).unwrap();
    assert_eq!(first.answer().status, 200);
    server.line(); // Its end is known before the clock is moved on.
    entered.recv_timeout(PATIENCE).unwrap();
    assert_eq!(counted.get("http_requests_waiting"), 0);
    server.advance(Duration::from_millis(700));
    leave.send(()).unwrap();
    assert_eq!(second.answer().status, 200);
    server.line();
    assert_eq!(counted.get("http_handlers_running"), 0);
    let buckets = ["0.1", "0.25", "0.5", "1", "+Inf"].map(|end| {
        let name = format!("http_request_duration_seconds_bucket{{le=\"{end}\"}}");
        counted.get(&name)
    });
    assert_eq!(buckets, [0, 0, 1, 2, 2]);
    let text = counted.0.text();
    assert_eq!(values(&text)["http_request_duration_seconds_sum"], 1.3);
}

#[test]
fn connections_past_the_limit_are_counted_as_refused() {
    let (counted, mut config) = Counted::config();
    config.limits.n_connections = 1;
    let server = TestServer::with(config, echo());
    let mut kept = server.connect();
    assert_eq!(kept.get("/").status, 200);
    let mut late = server.connect();
    assert_eq!(late.get("/").status, 503);
    server.line();
    server.line();
    assert_eq!(counted.get("http_connections"), 2);
    assert_eq!(
        counted.get("http_connections_refused_total{reason=\"busy\"}"),
        1
    );
    assert_eq!(counted.get("http_connections_accepted_total"), 2);
    assert_eq!(counted.requests("5xx", Outcome::Refused), 1);
    late.shut();
    late.assert_closed();
    counted.wait("http_connections", 1);
}

#[test]
fn streams_are_open_until_their_end_however_it_comes() {
    let (counted, config) = Counted::config();
    let (bodies, handler) = streaming();
    let server = TestServer::with(config, handler);
    let begin = |script: &Script| -> Client {
        let (chunks, _) = script.body();
        bodies.send(Response::new(200).body(chunks)).unwrap();
        let mut client = server.connect();
        client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        client.head().unwrap();
        client
    };
    let whole = Script::of([Act::Bytes(b"begun".to_vec())]);
    let whole_client = begin(&whole);
    let left = Script::of([Act::Bytes(b"begun".to_vec())]);
    let left_client = begin(&left);
    let cut = Script::of([Act::Bytes(b"begun".to_vec())]);
    let cut_client = begin(&cut);
    assert_eq!(counted.get("http_row_streams"), 3);
    drop(left_client);
    assert_eq!(server.line().outcome, Outcome::ClientGone);
    assert_eq!(counted.get("http_row_streams"), 2);
    whole.act(Act::Done(Vec::new(), 40));
    assert_eq!(server.line().outcome, Outcome::Done);
    assert_eq!(counted.get("http_row_streams"), 1);
    // 40 rows of the first stream, and one row that each of the two other streams had produced.
    assert_eq!(counted.get("http_rows_total"), 42);
    server.handle.cut();
    assert_eq!(server.line().outcome, Outcome::Stopped);
    assert_eq!(counted.get("http_row_streams"), 0);
    server.join();
    for (outcome, n) in [
        (Outcome::Done, 1),
        (Outcome::ClientGone, 1),
        (Outcome::Stopped, 1),
    ] {
        assert_eq!(counted.requests("2xx", outcome), n);
    }
    drop((whole_client, cut_client));
}

#[test]
fn a_client_that_takes_nothing_is_counted_as_stalled() {
    let (counted, config) = Counted::config();
    let body = vec![0; 64 << 20];
    let server = TestServer::with(
        config,
        FnHandler(move |_: Request<'_>| Response::new(200).body(body.clone())),
    );
    let mut client = server.connect();
    client.send(GET);
    client.head().unwrap();
    let mut other = server.connect();
    other.send(GET);
    assert_eq!(other.answer().body.len(), 64 << 20);
    let whole = server.line().n_bytes;
    server.advance(Duration::from_secs(31));
    let stalled = server.line();
    assert_eq!(stalled.outcome, Outcome::Stalled);
    assert_eq!(counted.requests("2xx", Outcome::Stalled), 1);
    assert_eq!(
        counted.get("http_sent_bytes_total"),
        whole + stalled.n_bytes
    );
}

/// Starts a server whose metrics are in `area`. Returns it after it has answered `n` requests, with
/// the client, which is still connected.
fn served(area: &MetricsArea, n: usize) -> (TestServer, Client) {
    let mut config = Config::default();
    config.metrics = area.slot().unwrap();
    let server = TestServer::with(config, echo());
    let mut client = server.connect();
    for _ in 0..n {
        client.get("/");
        server.line();
    }
    (server, client)
}

#[test]
fn servers_of_an_area_are_summed_and_those_that_ended_stay_counted() {
    let area = MetricsArea::new(2).unwrap();
    let done = "http_requests_total{status=\"2xx\",outcome=\"done\"}";
    let said = |area: &MetricsArea| {
        let all = values(&area.text());
        [done, "http_connections", "http_servers"].map(|name| all[name] as u64)
    };
    // A thread of an ended server may keep its slot locked slightly longer.
    let wait = |area: &MetricsArea, expected: [u64; 3]| {
        let begun = Instant::now();
        while said(area) != expected {
            assert!(begun.elapsed() < PATIENCE, "{:?}", said(area));
            std::thread::yield_now();
        }
    };
    assert_eq!(said(&area), [0, 0, 0]);
    let (first, first_client) = served(&area, 2);
    let (second, second_client) = served(&area, 3);
    assert_eq!(said(&area), [5, 2, 2]);
    let full = area.slot().err().unwrap();
    assert_eq!(full.kind(), std::io::ErrorKind::QuotaExceeded);
    // Another process would open the area by its descriptor in the same way.
    let other = MetricsArea::of_descriptor(area.as_fd().try_clone_to_owned().unwrap()).unwrap();
    assert_eq!(said(&other), [5, 2, 2]);
    drop(first_client);
    first.stop();
    wait(&other, [5, 1, 1]);
    let (third, third_client) = served(&other, 4);
    assert_eq!(said(&area), [9, 2, 2]);
    drop((second_client, third_client));
    second.stop();
    third.stop();
    wait(&area, [9, 0, 0]);
}

#[test]
fn what_is_no_area_is_refused() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[0; 8192]).unwrap();
    let (reader, _writer) = std::io::pipe().unwrap();
    for descriptor in [OwnedFd::from(file), OwnedFd::from(reader)] {
        let refused = MetricsArea::of_descriptor(descriptor).err().unwrap();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidData);
    }
}
