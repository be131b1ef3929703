//! Helpers for tests: a gateway that serves a small SQLite database on a real socket, and a simple
//! HTTP client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onecopy_gateway::{Config, Log, Options, serve};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Connection;
use onecopy_serve::{Handle, Limits};

/// The log lines of the gateway. A test can wait for a line.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Lines {
    pub(crate) fn push(&self, line: &str) {
        self.0.0.lock().unwrap().push(line.to_owned());
        self.0.1.notify_all();
    }

    /// Waits for a log line that contains all of `parts`, for at most 20 seconds, and returns it.
    pub(crate) fn wait_for(&self, parts: &[&str]) -> String {
        let fits = |line: &&String| parts.iter().all(|p| line.contains(p));
        let lines = self.0.0.lock().unwrap();
        let (lines, waited) = self
            .0
            .1
            .wait_timeout_while(lines, Duration::from_secs(20), |lines| {
                lines.iter().find(fits).is_none()
            })
            .unwrap();
        assert!(!waited.timed_out(), "no line with {parts:?} in {lines:?}");
        lines.iter().find(fits).unwrap().clone()
    }

    pub(crate) fn all(&self) -> String {
        self.0.0.lock().unwrap().join("\n")
    }
}

pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
    pub(crate) thread: Option<JoinHandle<()>>,
    pub(crate) lines: Lines,
    pub(crate) folder: tempfile::TempDir,
}

/// Starts a gateway for a small SQLite database with the name `d`. `queries` is the part of the
/// TOML configuration that defines the queries.
pub(crate) fn served(queries: &str) -> Served {
    served_with(queries, |_| ())
}

pub(crate) fn served_with(queries: &str, change: impl FnOnce(&mut Config)) -> Served {
    served_so(queries, change, |_| ())
}

pub(crate) fn served_with_limits(queries: &str, change: impl FnOnce(&mut Limits)) -> Served {
    served_so(queries, |_| (), change)
}

pub(crate) fn served_so(
    queries: &str,
    change: impl FnOnce(&mut Config),
    limit: impl FnOnce(&mut Limits),
) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/d.db", folder.path().display());
    let connection = Connection::open(&url, &ConnectOptions::default()).unwrap();
    for sql in [
        "create table item (id integer primary key, name text)",
        "insert into item values (1, 'čaj'), (2, '茶'), (3, 'tea')",
    ] {
        drop(connection.execute(sql, &[]).unwrap());
    }
    connection.commit().unwrap();
    let text = format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[databases.d]\nurl = \"sqlite:d.db\"\nmax_concurrent = 2\n{queries}"
    );
    let mut config = Config::parse(&text, &folder.path().join("c.toml"), &|_| None).unwrap();
    change(&mut config);
    let lines = Lines::default();
    let sink = lines.clone();
    let mut options = Options::new(Log::new(move |line| sink.push(line)));
    limit(&mut options.limits);
    let (send, started) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        serve(config, options, |serving, _| {
            send.send(serving.clone()).unwrap()
        })
        .unwrap();
    });
    let serving = started.recv().unwrap();
    Served {
        address: serving.address.ip().unwrap(),
        handle: serving.handle,
        thread: Some(thread),
        lines,
        folder,
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.handle.cut();
        let ended = self.thread.take().unwrap().join();
        assert!(std::thread::panicking() || ended.is_ok());
    }
}

/// A response, parsed from all bytes that were received until the connection ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The body without its transfer coding: the contents of the chunks, if the response is
    /// chunked.
    pub(crate) body: Vec<u8>,
    /// `true` if the body is complete: the last chunk was received, or as many bytes as
    /// Content-Length announces.
    pub(crate) complete: bool,
    pub(crate) trailer: String,
}

impl Served {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    pub(crate) fn send(&self, method: &str, target: &str) -> TcpStream {
        let mut stream = self.connect();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn ask(&self, method: &str, target: &str) -> Answer {
        let mut bytes = Vec::new();
        // An error is ignored, because a response may end by a reset of the connection.
        let _ = self.send(method, target).read_to_end(&mut bytes);
        answer(&bytes)
    }

    /// Requests `target` until the status is 200 (a slot is free) instead of 503, for at most a
    /// minute.
    pub(crate) fn wait_for_slot(&self, target: &str) {
        let begun = Instant::now();
        loop {
            let answer = self.get(target);
            if answer.status == 200 {
                return;
            }
            answer.problem(503);
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no slot came free"
            );
        }
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask("GET", target)
    }
}

pub(crate) fn answer(bytes: &[u8]) -> Answer {
    let end = bytes
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .expect("a head came")
        + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Answer {
        status,
        head,
        body: Vec::new(),
        complete: false,
        trailer: String::new(),
    };
    let mut rest = &bytes[end..];
    if !answer.field("transfer-encoding").contains("chunked") {
        let length: usize = answer.field("content-length").parse().unwrap_or(0);
        answer.complete = rest.len() == length;
        answer.body = rest.to_vec();
        return answer;
    }
    while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        rest = &rest[line + 2..];
        if size == 0 {
            answer.trailer = String::from_utf8(rest.to_vec()).unwrap();
            answer.complete = rest.ends_with(b"\r\n");
            break;
        }
        let part = &rest[..size.min(rest.len())];
        answer.body.extend_from_slice(part);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    answer
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> String {
        self.head
            .lines()
            .filter_map(|l| l.split_once(':'))
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map_or_else(String::new, |(_, v)| v.trim().to_owned())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn problem(&self, status: u16) -> serde_json::Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.field("content-type"), "application/problem+json");
        assert!(self.complete, "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }
}
