//! Tests that `onecopy serve` survives crashes of the process that serves with a third-party
//! driver.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// A configuration with a third-party driver. The driver need not be installed: the configuration
/// is sufficient for a supervisor process.
const CONFIG: &str = "[databases.d]\nurl = \"sqlite::memory:\"\n\
    [databases.foreign]\nurl = \"Driver=/nowhere/psqlodbcw.so;Pwd=hush-7f3a\"\n\
    [queries.one]\ndatabase = \"d\"\nsql = \"select 1 as one\"\n\
    [queries.endless]\ndatabase = \"d\"\n\
    sql = \"with recursive c(x) as (select 1 union all select x + 1 from c) select x from c\"\n";

struct Supervised {
    parent: Child,
    said: BufReader<ChildStderr>,
    address: String,
    folder: tempfile::TempDir,
}

/// Returns the processes whose parent is `pid`, including zombies.
fn children(pid: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|child| stat(*child).is_some_and(|(_, parent)| parent == pid))
        .collect()
}

/// Returns the state and the parent of a process, from `/proc/PID/stat`; `None` if it has ended.
fn stat(pid: u32) -> Option<(char, u32)> {
    stat_at(Path::new(&format!("/proc/{pid}")))
}

/// Returns the state and the parent from the file `stat` in `folder`, the folder of a process or a
/// thread in `/proc`.
fn stat_at(folder: &Path) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Waits at most half a minute until `is_so` returns a value, and returns the value.
fn wait_until<T>(what: &str, is_so: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = is_so() {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::yield_now();
    }
}

fn signal(pid: u32, name: &str) {
    let mut kill = Command::new("kill");
    let status = kill.args(["-s", name, &pid.to_string()]).status();
    assert!(status.unwrap().success(), "{name} to {pid}");
}

/// Sends SIGSTOP to a process, and waits until all its threads are stopped.
fn halt(pid: u32) {
    signal(pid, "STOP");
    wait_until("all threads halted", || {
        let mut threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        threads
            .all(|thread| stat_at(&thread.unwrap().path()).is_none_or(|(state, _)| state == 'T'))
            .then_some(())
    });
}

/// Sends a signal until the process has died from it. The first SIGSEGV does not end the process:
/// Rust's handler, which detects stack overflows, restores the default action and returns. A
/// segmentation fault would then occur again, but a sent signal does not.
fn crash(pid: u32, name: &str) {
    while stat(pid).is_some_and(|(state, _)| state != 'Z') {
        let pid = pid.to_string();
        let mut kill = Command::new("kill");
        let _ = kill.args(["-s", name, &pid]).stderr(Stdio::null()).status();
    }
}

impl Supervised {
    fn start(more: &[&str]) -> Supervised {
        Supervised::start_with(CONFIG, more, None)
    }

    fn start_with(config: &str, more: &[&str], manager: Option<&Path>) -> Supervised {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("c.toml"), config).unwrap();
        let mut parent = Command::new(env!("CARGO_BIN_EXE_onecopy"))
            .args(["serve", "c.toml", "--port", "0"])
            .args(more)
            .current_dir(folder.path())
            .env_remove("ONECOPY_BIND")
            .env_remove("ONECOPY_PORT")
            .env_remove("CLICOLOR_FORCE")
            .envs(manager.map(|file| ("ONECOPY_ODBC_MANAGER", file)))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut supervised = Supervised {
            said: BufReader::new(parent.stderr.take().unwrap()),
            parent,
            address: String::new(),
            folder,
        };
        let line = supervised.line_with("serves at http://");
        let address = line.trim().rsplit("http://").next().unwrap();
        supervised.address = address.trim_end_matches('/').to_owned();
        supervised
    }

    /// Reads lines from stderr and returns the first one that contains `part`.
    fn line_with(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let n = self.said.read_line(&mut line).unwrap();
            assert_ne!(n, 0, "no line with {part}");
            assert!(!line.contains("hush"), "{line}");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Reads lines from stderr until each of `parts` has occurred in a line. Returns the last of
    /// these lines that contains the first part.
    fn lines_with(&mut self, parts: &[&str]) -> String {
        let mut missing: Vec<&str> = parts.to_vec();
        let mut found = String::new();
        while !missing.is_empty() {
            let line = self.line_with("");
            missing.retain(|part| !line.contains(part));
            if line.contains(parts[0]) {
                found = line;
            }
        }
        found
    }

    fn answer(&self, path: &str) -> String {
        let mut answer = String::new();
        self.ask(path).read_to_string(&mut answer).unwrap();
        answer
    }

    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let address = &self.address;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn assert_answers(&self) {
        let answer = self.answer("/one.json");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("[{\"one\":1}]"), "{answer}");
    }

    /// Returns the process id of the child process, which serves.
    fn child(&self) -> u32 {
        // The addresses are printed before the child is started.
        let first = || children(self.parent.id()).first().copied();
        let child = wait_until("a child", first);
        assert_eq!(children(self.parent.id()), [child]);
        child
    }

    fn wait_until_closed(&self) {
        wait_until("nobody listens", || {
            TcpStream::connect(&self.address).is_err().then_some(())
        });
    }

    fn end(&mut self) -> Option<i32> {
        self.parent.wait().unwrap().code()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

#[test]
fn a_crash_is_told_and_survived_with_those_who_wait() {
    let mut served = Supervised::start(&[]);
    served.assert_answers();
    for (name, meaning) in [
        ("SEGV", "memory that is not its own"),
        ("ABRT", "gave up"),
        ("KILL", "memory ran out"),
    ] {
        let child = served.child();
        let mut under_way = served.ask("/endless.csv");
        under_way.read_exact(&mut [0; 1000]).unwrap();
        let mut waits = Vec::new();
        if name == "KILL" {
            // A stopped process accepts no connections. So these two requests wait in the kernel
            // for the next process. Only SIGKILL ends a stopped process immediately.
            halt(child);
            waits.extend([served.ask("/one.json"), served.ask("/one.json")]);
        }
        crash(child, name);
        let line = served.line_with("crash: ");
        assert!(
            line.contains(&format!("process {child} died by SIG{name}")),
            "{line}"
        );
        assert!(line.contains(meaning), "{line}");
        assert!(line.contains("foreign (psqlodbc (Unicode))"), "{line}");
        for waiting in &mut waits {
            let mut answer = String::new();
            waiting.read_to_string(&mut answer).unwrap();
            assert!(answer.contains("[{\"one\":1}]"), "{answer}");
        }
        let mut rest = Vec::new();
        let _ = under_way.read_to_end(&mut rest);
        assert!(!rest.ends_with(b"0\r\n\r\n"));
        served.assert_answers();
        // The supervisor has waited for the dead process, so it is not a zombie.
        assert_ne!(served.child(), child);
        assert!(
            line.contains(&format!("process {} serves now", served.child())),
            "{line}"
        );
    }
    signal(served.parent.id(), "TERM");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_stop_reaches_the_process_that_serves_once() {
    for name in ["INT", "TERM"] {
        let mut served = Supervised::start(&[]);
        let child = served.child();
        let mut stream = served.ask("/endless.csv");
        stream.read_exact(&mut [0; 1000]).unwrap();
        // As with Ctrl-C in a terminal, both processes get the signal. The child ignores it.
        signal(child, name);
        signal(served.parent.id(), name);
        served.wait_until_closed();
        // A second signal would have aborted the response.
        stream.read_exact(&mut [0; 1 << 20]).unwrap();
        signal(child, name);
        signal(served.parent.id(), name);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!rest.ends_with(b"0\r\n\r\n"));
        served.line_with("GET /endless.csv 200 stopped");
        assert_eq!(served.end(), Some(0), "{name}");
        assert!(stat(child).is_none(), "the child is left");
    }
}

#[test]
fn the_process_that_serves_ends_with_a_parent_that_is_killed() {
    let mut served = Supervised::start(&[]);
    served.assert_answers();
    let child = served.child();
    signal(served.parent.id(), "KILL");
    served.end();
    wait_until("the child is gone", || {
        stat(child)
            .is_none_or(|(state, _)| state == 'Z')
            .then_some(())
    });
    served.wait_until_closed();
}

#[test]
fn crash_after_crash_that_no_driver_call_explains_is_given_up_with_1() {
    // The check at the start connects once. After it has ended, no driver is in use.
    let checked = "check database=foreign: ";
    let mut served = Supervised::start(&[]);
    served.line_with(checked);
    let mut child = served.child();
    for _ in 0..10 {
        crash(child, "SEGV");
        let line = served.lines_with(&["serves now", checked]);
        assert!(line.contains("; drivers: foreign (psqlodbc"), "{line}");
        let words = line.split("; process ").nth(1).unwrap();
        child = words.split(' ').next().unwrap().parse().unwrap();
    }
    crash(child, "SEGV");
    served.line_with(
        "error: the process that serves crashed more than 10 times within 60 s: given up",
    );
    served.line_with("find the driver at fault");
    assert_eq!(served.end(), Some(1));
    served.wait_until_closed();
}

#[test]
fn a_driver_that_aborts_at_each_connect_is_named_and_set_aside_and_the_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let manager = folder.path().join("manager.so");
    // `cc` exists, because rustc uses it as the linker.
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&manager)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fake_odbc/manager.c"
        ))
        .status();
    assert!(compiled.unwrap().success());
    let config = format!(
        "{CONFIG}[databases.broken]\nurl = \"Driver=aborts;Pwd=hush-7f3a\"\n\
         [queries.broken]\ndatabase = \"broken\"\nsql = \"select 1 as one\"\n\
         [queries.away]\ndatabase = \"foreign\"\nsql = \"select 1 as one\"\n"
    );
    let mut served = Supervised::start_with(&config, &[], Some(&manager));
    for _ in 0..3 {
        let line = served.line_with("crash: ");
        assert!(line.contains("died by SIGABRT"), "{line}");
        assert!(line.contains("; in a call to: broken (aborts)"), "{line}");
    }
    let line = served.line_with("set aside database=broken (aborts): ");
    assert!(line.contains("its queries answer 503 for 60 s"), "{line}");
    // The new process does not check the disabled database.
    let child = served.child();
    served.assert_answers();
    let answer = served.answer("/broken.json");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nRetry-After: "), "{answer}");
    assert!(
        answer.contains("the driver of this query's database crashed"),
        "{answer}"
    );
    // Another database of the same driver manager is not disabled.
    let answer = served.answer("/away.json");
    assert!(answer.contains("the database is away"), "{answer}");
    assert_eq!(served.child(), child);
    signal(served.parent.id(), "TERM");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_hangup_is_logged_and_ends_nothing() {
    let mut served = Supervised::start(&[]);
    let child = served.child();
    let mut stream = served.ask("/endless.csv");
    stream.read_exact(&mut [0; 1000]).unwrap();
    // A service manager sends the signal to the whole process group.
    signal(child, "HUP");
    signal(served.parent.id(), "HUP");
    served.line_with("SIGHUP ignored");
    stream.read_exact(&mut [0; 1 << 20]).unwrap();
    assert_eq!(served.child(), child);
    signal(served.parent.id(), "TERM");
    served.wait_until_closed();
    signal(served.parent.id(), "TERM");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_crash_while_it_stops_is_told_and_not_started_anew() {
    let mut served = Supervised::start(&[]);
    let child = served.child();
    let mut stream = served.ask("/endless.csv");
    stream.read_exact(&mut [0; 1000]).unwrap();
    signal(served.parent.id(), "TERM");
    served.wait_until_closed();
    crash(child, "SEGV");
    served.line_with("while it was being stopped");
    assert_eq!(served.end(), Some(1));
}

#[test]
fn the_configuration_is_read_once() {
    let mut served = Supervised::start(&[]);
    let file = served.folder.path().join("c.toml");
    std::fs::write(&file, "half edit").unwrap();
    crash(served.child(), "SEGV");
    served.line_with("serves now");
    served.assert_answers();
}

#[test]
fn sqlite_alone_and_unsupervised_serve_in_one_process() {
    let served = Supervised::start(&["--unsupervised"]);
    served.assert_answers();
    assert_eq!(children(served.parent.id()), [0; 0]);
    let folder = tempfile::tempdir().unwrap();
    let config = CONFIG.replace(
        "Driver=/nowhere/psqlodbcw.so;Pwd=hush-7f3a",
        "sqlite::memory:",
    );
    std::fs::write(folder.path().join("c.toml"), config).unwrap();
    let mut single = Command::new(env!("CARGO_BIN_EXE_onecopy"))
        .args(["serve", "c.toml", "--port", "0"])
        .current_dir(Path::new(folder.path()))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(single.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("serves at http://"), "{line}");
    assert_eq!(children(single.id()), [0; 0]);
    signal(single.id(), "TERM");
    assert_eq!(single.wait().unwrap().code(), Some(0));
}
