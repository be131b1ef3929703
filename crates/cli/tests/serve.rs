//! Tests `onecopy serve` as a process, from its start to its end.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

struct Serving {
    child: Child,
    said: BufReader<ChildStderr>,
    address: String,
    folder: tempfile::TempDir,
}

const CONFIG: &str = "[databases.d]\nurl = \"sqlite::memory:\"\n[queries.one]\nsql = \"select 1 as one\"\n\
    [queries.endless]\nsql = \"with recursive c(x) as (select 1 union all select x + 1 from c) select x from c\"\n\
    [queries.wrong]\nsql = \"select * from nix\"\n";

impl Serving {
    fn start() -> Serving {
        let mut serving = Serving::at(&["--port", "0"]);
        let line = serving.line_with("serves at http://");
        serving.address = line
            .trim()
            .rsplit("http://")
            .next()
            .unwrap()
            .trim_end_matches('/')
            .to_owned();
        serving
    }

    fn at(place: &[&str]) -> Serving {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("c.toml"), CONFIG).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_onecopy"))
            .args(["serve", "c.toml"])
            .args(place)
            .current_dir(folder.path())
            .env_remove("ONECOPY_BIND")
            .env_remove("ONECOPY_PORT")
            .env_remove("CLICOLOR_FORCE")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Serving {
            said: BufReader::new(child.stderr.take().unwrap()),
            child,
            address: String::new(),
            folder,
        }
    }

    /// Reads lines from stderr and returns the first one that contains `part`.
    fn line_with(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(
                self.said.read_line(&mut line).unwrap(),
                0,
                "no line with {part}"
            );
        }
        line
    }

    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_prints_what_to_try_serves_logs_ignores_hangups_and_ends_in_order() {
    for name in ["INT", "TERM"] {
        let mut serving = Serving::start();
        serving.line_with(&format!("curl 'http://{}/one.json'", serving.address));
        // Wrong queries are reported before the first request.
        serving.line_with("check query=wrong database=d: no such table: nix");
        let mut answer = String::new();
        serving
            .ask("/one.json")
            .read_to_string(&mut answer)
            .unwrap();
        assert!(answer.contains("[{\"one\":1}]"), "{answer}");
        serving.line_with("GET /one.json 200 done rows=1 ");
        serving.signal("HUP");
        serving.line_with("SIGHUP ignored");
        serving.signal(name);
        assert_eq!(serving.child.wait().unwrap().code(), Some(0), "{name}");
    }
}

#[test]
fn it_serves_at_a_unix_socket_whatever_the_host_and_takes_its_file_along() {
    let mut serving = Serving::at(&["--bind", "unix:rows.sock"]);
    serving.line_with("serves at unix:rows.sock");
    serving.line_with("curl --unix-socket 'rows.sock' 'http://localhost/one.json'");
    let path = serving.folder.path().join("rows.sock");
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream
        .write_all(b"GET /one.json HTTP/1.1\r\nHost: a.proxy\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("[{\"one\":1}]"), "{answer}");
    assert!(serving.line_with("GET /one.json 200").contains("peer=unix"));
    serving.signal("TERM");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn a_second_signal_cuts_what_is_under_way() {
    let mut serving = Serving::start();
    let mut stream = serving.ask("/endless.csv");
    let mut first = [0; 1000];
    stream.read_exact(&mut first).unwrap();
    serving.signal("INT");
    // The first signal closes the listener; the second one aborts the response.
    let begun = Instant::now();
    while TcpStream::connect(&serving.address).is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it listens still"
        );
    }
    serving.signal("INT");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n") && !rest.windows(14).any(|w| w == b"onecopy-status"));
    serving.line_with("GET /endless.csv 200 stopped");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}
