//! Tests the file of the access log: lines are complete regardless of the requests, no request
//! waits for the disk, and a log line reports dropped lines.

#![allow(clippy::unwrap_used)] // Tests, and their helpers.

mod common;

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use common::{Act, PATIENCE, Script, TestServer, echo, streaming};
use onecopy_serve::access::{Format, LogTarget};
use onecopy_serve::config::OnAccess;
use onecopy_serve::{AccessLog, Config, Handler, Metrics, Response, reopen_on_signal};

fn open(to: LogTarget, format: Format) -> AccessLog {
    let report = Arc::new(|text: &str| panic!("{text}"));
    AccessLog::open(to, format, Metrics::default(), report).unwrap()
}

/// Starts a server that writes its access log to `log`. The caller may start the log's writer
/// thread.
fn logging(log: &AccessLog, format: Format, query: bool, handler: impl Handler) -> TestServer {
    let mut config = Config::default();
    config.keep = format.keep(query);
    let lines = log.clone();
    let config = |reported: OnAccess| {
        config.on_access = Some(Arc::new(move |access| {
            lines.put(access);
            reported(access); // Called last, so the test's line follows the log's.
        }));
        config
    };
    TestServer::reporting(config, handler)
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_request_has_a_line_of_its_form() {
    let folder = tempfile::tempdir().unwrap();
    for (format, query) in [
        (Format::Common, false),
        (Format::Common, true),
        (Format::Combined, false),
        (Format::Json, true),
    ] {
        let path = folder.path().join(format!("{format:?}-{query}"));
        let log = open(LogTarget::Path(path.clone()), format);
        log.start().unwrap();
        let server = logging(&log, format, query, echo());
        let mut client = server.connect();
        client.send(
            "GET /a|b?secret=1 HTTP/1.1\r\nHost: x\r\nReferer: \"r\"\r\nUser-Agent: u\r\n\r\n\
             GET /c HTTP/1.0\r\n\r\n",
        );
        let n_body = client.answer().body.len();
        client.answer();
        (0..2).for_each(|_| drop(server.line()));
        let mut bad = server.connect();
        bad.send("GET /\"\x1b[31m HTTP/1.1\r\nHost: x\r\n\r\n");
        let n_refused = bad.answer().body.len();
        server.line();
        drop((client, bad)); // The clock does not move: a connection that lingers would keep the server.
        server.stop();
        log.close();
        let lines = lines(&path);
        assert_eq!(lines.len(), 3, "{lines:?}");
        let texts: Vec<_> = lines
            .iter()
            .map(|line| line.split(']').next_back().unwrap())
            .collect();
        if format == Format::Json {
            let reported: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(reported["peer"], "127.0.0.1");
            assert_eq!(
                (&reported["method"], &reported["status"]),
                (&"GET".into(), &200.into())
            );
            assert_eq!(
                (&reported["path"], &reported["query"]),
                (&"/a|b".into(), &"secret=1".into())
            );
            assert_eq!(
                (&reported["protocol"], &reported["outcome"]),
                (&"HTTP/1.1".into(), &"done".into())
            );
            assert!(reported["bytes"].as_u64().unwrap() > n_body as u64);
            assert!(reported["duration"].is_f64() && reported.get("rows").is_none());
            let refused: serde_json::Value = serde_json::from_str(&lines[2]).unwrap();
            assert_eq!(
                (&refused["status"], &refused["outcome"]),
                (&400.into(), &"refused".into())
            );
            assert!(refused.get("path").is_none());
            continue;
        }
        let agent = match format {
            Format::Combined => [" \"\\\"r\\\"\" \"u\"", " \"-\" \"-\"", " \"-\" \"-\""],
            _ => ["", "", ""],
        };
        let query = if query { "?secret=1" } else { "" };
        let expected = [
            format!(" \"GET /a|b{query} HTTP/1.1\" 200 {n_body}{}", agent[0]),
            format!(" \"GET /c HTTP/1.0\" 200 7{}", agent[1]),
            format!(" \"-\" 400 {n_refused}{}", agent[2]),
        ];
        assert_eq!(texts, expected);
        assert!(lines.iter().all(|line| line.starts_with("127.0.0.1 - - [")));
    }
}

#[test]
fn rows_and_how_a_stream_ended_stand_in_json() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let log = open(LogTarget::Path(file.path().to_owned()), Format::Json);
    log.start().unwrap();
    let (bodies, handler) = streaming();
    let server = logging(&log, Format::Json, false, handler);
    let left = Script::of([Act::Bytes(b"begun".to_vec())]);
    for script in [Script::of([Act::Done(b"rows".to_vec(), 12)]), left] {
        bodies
            .send(Response::new(200).body(script.body().0))
            .unwrap();
        let mut client = server.connect();
        client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        client.head().unwrap();
        drop(client);
        server.line();
    }
    server.stop();
    log.close();
    let reported: Vec<serde_json::Value> = lines(file.path())
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(reported[0]["rows"], 12);
    assert_eq!(
        (&reported[1]["rows"], &reported[1]["outcome"]),
        (&1.into(), &"client_gone".into())
    );
}

#[test]
fn many_threads_and_two_logs_on_one_file_make_whole_lines() {
    const N_CLIENTS: usize = 8;
    const N_REQUESTS: usize = 400;
    let file = tempfile::NamedTempFile::new().unwrap();
    let both: Vec<_> = (0..2)
        .map(|_| {
            let log = open(LogTarget::Path(file.path().to_owned()), Format::Common);
            log.start().unwrap();
            (logging(&log, Format::Common, false, echo()), log)
        })
        .collect();
    let clients: Vec<_> = (0..N_CLIENTS)
        .map(|i| {
            let mut client = both[i % 2].0.connect();
            std::thread::spawn(move || {
                for k in 0..N_REQUESTS {
                    client.get(&format!("/{i}/{k}/{}", "x".repeat(k)));
                }
            })
        })
        .collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    for (server, log) in both {
        (0..N_CLIENTS / 2 * N_REQUESTS).for_each(|_| drop(server.line()));
        server.stop();
        log.close();
    }
    let lines = lines(file.path());
    assert_eq!(lines.len(), N_CLIENTS * N_REQUESTS);
    for i in 0..N_CLIENTS {
        // The lines of each client are complete and in order.
        let own = lines
            .iter()
            .filter(|line| line.contains(&format!("\"GET /{i}/")));
        let expected =
            (0..N_REQUESTS).map(|k| format!("\"GET /{i}/{k}/{} HTTP/1.1\" 200", "x".repeat(k)));
        assert!(own.zip(expected).all(|(line, end)| line.contains(&end)));
    }
}

#[test]
fn what_the_file_does_not_take_in_time_is_dropped_and_told_of() {
    const N: usize = 2000;
    let (mut reader, writer) = std::io::pipe().unwrap();
    let metrics = Metrics::default();
    let report = Arc::new(|text: &str| panic!("{text}"));
    let to = LogTarget::Descriptor(OwnedFd::from(writer));
    let log = AccessLog::open(to, Format::Common, metrics.clone(), report).unwrap();
    log.start().unwrap();
    let server = logging(&log, Format::Common, false, echo());
    let mut client = server.connect();
    let path = format!("/{}", "x".repeat(2000));
    // The pipe is full after 64 KiB, because no process reads it. All requests are still answered.
    for _ in 0..N {
        client.get(&path);
        server.line();
    }
    server.stop();
    let closing = std::thread::spawn(move || log.close());
    let mut text = String::new();
    let reading = std::thread::spawn(move || {
        reader.read_to_string(&mut text).unwrap();
        text
    });
    closing.join().unwrap();
    let text = reading.join().unwrap();
    let dropped: Vec<u64> = text
        .lines()
        .filter_map(|line| line.split_once("\"onecopy dropped "))
        .map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let n_lines = text
        .lines()
        .filter(|line| line.contains("\"GET /x"))
        .count();
    let n_dropped = dropped.iter().sum::<u64>();
    assert!(n_dropped > 0 && !dropped.is_empty());
    assert_eq!(n_lines as u64 + n_dropped, N as u64);
    let counted = format!("\nonecopy_access_log_dropped_lines_total {n_dropped}\n");
    assert!(metrics.text().contains(&counted));
}

#[test]
fn a_file_that_takes_nothing_is_told_of_once() {
    let (reported, reports) = channel();
    let reported = Mutex::new(reported);
    let report = Arc::new(move |text: &str| drop(reported.lock().unwrap().send(text.to_owned())));
    let to = LogTarget::Path("/dev/full".into());
    let metrics = Metrics::default();
    let log = AccessLog::open(to, Format::Json, metrics.clone(), report).unwrap();
    log.start().unwrap();
    let server = logging(&log, Format::Json, false, echo());
    let mut client = server.connect();
    client.get("/");
    let text = reports.recv_timeout(PATIENCE).unwrap();
    assert!(
        text.contains("`/dev/full` cannot be written to") && text.contains('\n'),
        "{text}"
    );
    client.get("/");
    server.line();
    server.line();
    server.stop();
    log.close();
    assert!(reports.try_recv().is_err());
    assert!(
        metrics
            .text()
            .contains("\nonecopy_access_log_dropped_lines_total 2\n")
    );
}

#[test]
fn a_signal_has_the_file_opened_anew() {
    const SIGUSR1: i32 = 10;
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
    let _guard = reopen_on_signal(SIGUSR1).unwrap();
    let log = open(LogTarget::Path(path.clone()), Format::Common);
    // Without a writer thread, the thread that adds a line writes it, so the test need not wait.
    log.close();
    let server = logging(&log, Format::Common, false, echo());
    let mut client = server.connect();
    let mut ask = |target: &str| {
        client.get(target);
        server.line();
    };
    ask("/before");
    fs::rename(&path, &moved).unwrap();
    ask("/between");
    let me = std::process::id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-USR1", &me])
        .status();
    assert!(killed.unwrap().success());
    // The process has received the signal when `kill` has ended, but another thread may run the
    // signal handler slightly later.
    let begun = std::time::Instant::now();
    let mut n_after = 0;
    while !path.exists() {
        assert!(begun.elapsed() < PATIENCE);
        ask("/after");
        n_after += 1;
    }
    let has = |path: &Path, what: &str| lines(path).iter().filter(|l| l.contains(what)).count();
    assert_eq!((has(&moved, "/before"), has(&moved, "/between")), (1, 1));
    assert!(has(&path, "/after") == 1 && has(&moved, "/after") == n_after - 1);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_at_once() {
    let report = Arc::new(|_: &str| ());
    let to = LogTarget::Path("/nowhere/log".into());
    assert!(AccessLog::open(to, Format::Common, Metrics::default(), report).is_err());
}
