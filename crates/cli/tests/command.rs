//! Tests the command's exit codes, pipes, signals and files, and that it prints no secrets.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const ENDLESS: &str =
    "with recursive c(x) as (select 1 union all select x + 1 from c) select x from c";
const ENDLESS_WITHOUT_ROWS: &str =
    "with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c";

fn onecopy(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onecopy"));
    command.args(args).current_dir(folder);
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    onecopy(folder, args).output().unwrap()
}

fn start(folder: &Path, args: &[&str]) -> Child {
    onecopy(folder, args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn stderr_of(child: &mut Child) -> String {
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .unwrap()
            .success()
    );
}

/// Waits until `is_so` returns `true`. Fails if `child` ends before, or after a minute.
fn wait_until(child: &Child, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        assert!(!stat.contains(") Z "), "the command has ended");
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::yield_now();
    }
}

/// Waits until the process has installed a handler for SIGINT, as `/proc/PID/status` shows.
fn wait_for_handler(child: &Child) {
    wait_until(child, || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status
            .lines()
            .find_map(|l| l.strip_prefix("SigCgt:\t"))
            .unwrap();
        u64::from_str_radix(caught, 16).unwrap() & (1 << (2 - 1)) != 0
    });
}

/// Waits until the process has used ten clock ticks of processor time (proc_stat(5)). It uses so
/// much time only when it runs the query.
fn wait_for_work(child: &Child) {
    wait_until(child, || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1;
        fields.split(' ').nth(11).unwrap().parse::<u64>().unwrap() >= 10
    });
}

/// Waits until the temporary output file exists. The command creates it after the statement was
/// executed, before it fetches rows.
fn wait_for_file(child: &Child, folder: &Path) {
    wait_until(child, || std::fs::read_dir(folder).unwrap().count() > 0);
}

#[test]
fn a_closed_pipe_is_silent_and_ends_with_141() {
    let folder = tempfile::tempdir().unwrap();
    for form in ["csv", "table"] {
        let mut child = start(
            folder.path(),
            &["query", "sqlite::memory:", ENDLESS, "--format", form],
        );
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.trim() == "x", "{line}");
        let said = stderr_of(&mut child);
        assert_eq!(
            (child.wait().unwrap().code(), said.as_str()),
            (Some(141), ""),
            "{form}"
        );
    }
}

#[test]
fn ctrl_c_cancels_the_query_and_ends_with_130() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["INT", "TERM"] {
        let args = [
            "query",
            "sqlite::memory:",
            ENDLESS_WITHOUT_ROWS,
            "--output",
            "a.csv",
        ];
        let mut child = start(folder.path(), &args);
        wait_for_work(&child);
        signal(&child, name);
        assert_eq!(stderr_of(&mut child), "note: stopped\n");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn ctrl_c_in_the_middle_of_the_rows_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start(
        folder.path(),
        &["query", "sqlite::memory:", ENDLESS, "--output", "a.csv"],
    );
    wait_for_file(&child, folder.path());
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn ctrl_c_ends_at_once_where_nothing_can_be_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = onecopy(folder.path(), &["query", "sqlite::memory:", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe stays open: `wait` would close it.
    let stdin = child.stdin.take();
    wait_for_handler(&child);
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
}

#[test]
fn the_time_limit_cancels_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(
        folder.path(),
        &[
            "query",
            "sqlite::memory:",
            ENDLESS_WITHOUT_ROWS,
            "--time-limit",
            "0.05",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "error: the query took longer than 0.05 s and was cancelled\n"
    );
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "the last good one\n").unwrap();
    // The third row is not valid UTF-8.
    let bad = "select 1 as a union all select 2 union all select cast(x'ff' as text)";
    let output = run(
        folder.path(),
        &["query", "sqlite::memory:", bad, "--output", "a.csv"],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "the last good one\n"
    );
    let good = "select 1 as a union all select 2";
    let output = run(
        folder.path(),
        &["query", "sqlite::memory:", good, "--output", "a.csv"],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n1\n2\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn bson_goes_to_a_pipe_and_to_a_file_that_ends_so() {
    let folder = tempfile::tempdir().unwrap();
    let sql = "select 1 as a union all select 2";
    let expected = b"\x0c\0\0\0\x10a\0\x01\0\0\0\0\x0c\0\0\0\x10a\0\x02\0\0\0\0";
    let args = ["query", "sqlite::memory:", sql];
    let output = run(folder.path(), &[&args[..], &["--format", "bson"]].concat());
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(0), &expected[..])
    );
    let output = run(
        folder.path(),
        &[&args[..], &["--output", "a.bson"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        std::fs::read(folder.path().join("a.bson")).unwrap(),
        expected
    );
    // After a failure, the output has only complete documents, and the error is reported.
    let bad = "select 1 as a union all select cast(x'ff' as text)";
    let output = run(
        folder.path(),
        &["query", "sqlite::memory:", bad, "--format", "bson"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() || output.stdout == expected[..12]);
}

#[test]
fn a_failure_in_the_middle_leaves_json_unclosed_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "select 1 as a union all select cast(x'ff' as text)";
    let output = run(
        folder.path(),
        &["query", "sqlite::memory:", bad, "--format", "json"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&output.stdout).contains(']'));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("column 0 `a`"), "{said}");
    // The advice names an option that this command has.
    assert!(
        said.ends_with(
            "fix it in the database, or use `--errors replace` to read U+FFFD instead\n"
        ),
        "{said}"
    );
    let replace = [
        "query",
        "sqlite::memory:",
        bad,
        "--format",
        "json",
        "--errors",
        "replace",
    ];
    let output = run(folder.path(), &replace);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rows = String::from_utf8(output.stdout).unwrap();
    assert!(rows.contains("\u{fffd}") && rows.ends_with(']'), "{rows}");
}

#[test]
fn a_slip_in_a_path_makes_no_database() {
    let folder = tempfile::tempdir().unwrap();
    for sql in [
        "select 1",
        "/* create table t (a) */ select 1",
        "insert into item values (1)",
        "drop table item",
        "selec 1",
        "begin",
    ] {
        for options in [&[][..], &["--read-only"]] {
            let args = [&["query", "sqlite:nope.db", sql], options].concat();
            let output = run(folder.path(), &args);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(3), "{sql}: {said}");
            assert!(said.contains("there is no such file"), "{sql}: {said}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
    for (target, sql) in [
        (
            "sqlite:new.db",
            "/* the first */ create table t as select 1 as a",
        ),
        ("sqlite:new.db", "insert into t values (2)"),
        ("sqlite:empty.db?mode=rwc", "select 1"),
    ] {
        let output = run(folder.path(), &["query", target, sql]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let output = run(
        folder.path(),
        &["query", "sqlite:new.db", "select a from t"],
    );
    assert_eq!(output.stdout, b"a\n1\n2\n");
    assert!(folder.path().join("empty.db").exists());
}

#[test]
fn passwords_are_told_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "hush-7f3a";
    let targets = [
        format!("Driver=no-such-driver;Server=127.0.0.1;Port=1;Uid=u;Pwd={secret}"),
        format!("DSN=no-such-dsn;PWD={secret}"),
        format!("Driver={{no such driver}};Password={{{secret}}}"),
        format!("postgresql://u:{secret}@127.0.0.1:1/d"),
        format!("mysql://u:{secret}@127.0.0.1:1/d"),
        format!("mssql://u:{secret}@127.0.0.1:1/d"),
        format!("nosuch://u:{secret}@127.0.0.1:1/d"),
        format!("Pwd={secret}"),
    ];
    for target in &targets {
        std::fs::write(folder.path().join("url"), target).unwrap();
        let toml = "[databases.d]\nurl_file = \"url\"\n[queries.q]\nsql = \"select 1\"\n";
        std::fs::write(folder.path().join("c.toml"), toml).unwrap();
        for args in [
            vec!["query", target, "select 1"],
            vec!["query", "@url", "select 1"],
            vec!["doctor", target],
            vec!["serve", "c.toml", "--check"],
        ] {
            let output = run(folder.path(), &args);
            assert!(!output.status.success(), "{args:?}");
            let printed = format!("{output:?}");
            assert!(!printed.contains(secret), "{args:?}: {printed}");
            if args[0] != "serve" {
                assert_eq!(output.status.code(), Some(3), "{args:?}: {printed}");
            }
        }
    }
}

#[test]
fn the_version_tells_what_was_built() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--version"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with(&format!("onecopy {}\n", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    assert!(
        text.contains("SQLite 3.") && text.contains("ODBC"),
        "{text}"
    );
}

#[test]
fn sql_is_read_from_files_and_stdin() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("q.sql"), "select 5 as five;\n").unwrap();
    let output = run(folder.path(), &["query", "sqlite::memory:", "@q.sql"]);
    assert_eq!(output.stdout, b"five\n5\n");
    let mut child = onecopy(folder.path(), &["query", "sqlite::memory:", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"select 6 as six").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"six\n6\n");
}
