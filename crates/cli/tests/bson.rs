//! Tests `onecopy bson2json` and `onecopy json2bson` as processes: files, pipes, signals, memory.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use onecopy_wire::bson::naive::{self, Value, tree};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onecopy"));
        command.args(args).current_dir(self.0.path());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the command with `args`, and writes `stdin` to its standard input in parts of
    /// `n_bytes`.
    fn run(&self, args: &[&str], stdin: &[u8], n_bytes: usize) -> Output {
        let mut child = self.command(args).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // The command may end before it has read its whole input.
            scope.spawn(move || {
                stdin
                    .chunks(n_bytes)
                    .try_for_each(|part| pipe.write_all(part))
            });
            child.wait_with_output().unwrap()
        })
    }

    fn good(&self, args: &[&str], stdin: &[u8]) -> Vec<u8> {
        let output = self.run(args, stdin, 1 << 20);
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.stdout
    }

    /// Runs the command, which must end with exit code 1. Returns its stdout and stderr.
    fn failed(&self, args: &[&str], stdin: &[u8]) -> (Vec<u8>, String) {
        let output = self.run(args, stdin, 1 << 20);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        (output.stdout, String::from_utf8(output.stderr).unwrap())
    }
}

/// Returns 1000 concatenated BSON documents, one of which is longer than a megabyte.
fn documents() -> Vec<u8> {
    let mut all = Vec::new();
    for i in 0..1000 {
        let text = "é\"\n".repeat(if i == 500 { 400_000 } else { i % 50 });
        all.extend(tree::write(&vec![
            ("i".to_owned(), Value::Int32(i as i32)),
            ("t".to_owned(), Value::String(text)),
            ("x".to_owned(), Value::Double(0.5_f64.to_bits())),
        ]));
    }
    all
}

#[test]
fn documents_become_lines_or_an_array_and_both_become_the_documents_again() {
    let f = Folder::new();
    let bson = documents();
    fs::write(f.path("all.bson"), &bson).unwrap();
    let lines = f.good(&["bson2json", "all.bson", "--canonical"], b"");
    assert_eq!(lines.iter().filter(|b| **b == b'\n').count(), 1000);
    assert_eq!(f.good(&["bson2json", "--canonical"], &bson), lines);
    let array = f.good(&["bson2json", "-", "--canonical", "--array"], &bson);
    assert!(array.starts_with(b"[\n{\"i\":{\"$numberInt\":\"0\"}") && array.ends_with(b"}\n]\n"));
    let text = String::from_utf8(lines.clone()).unwrap();
    for text in [
        lines,
        array,
        text.replace('\n', "").into_bytes(),
        text.replace('\n', " \r\n\t").into_bytes(),
    ] {
        assert_eq!(f.good(&["json2bson"], &text), bson);
    }
    f.good(&["json2bson", "-o", "again.bson"], text.as_bytes());
    assert_eq!(fs::read(f.path("again.bson")).unwrap(), bson);
}

#[test]
fn nothing_becomes_nothing() {
    let f = Folder::new();
    assert_eq!(f.good(&["bson2json"], b""), b"");
    assert_eq!(f.good(&["bson2json", "--array"], b""), b"[]\n");
    for text in [&b""[..], b" \n", b"[]", b" [ ] \n"] {
        assert_eq!(f.good(&["json2bson"], text), b"");
    }
}

#[test]
fn a_pipe_may_be_cut_anywhere() {
    let f = Folder::new();
    let bson: Vec<u8> = documents().into_iter().take(4000).collect();
    let whole = naive::documents(&bson).map_or(0, |_| bson.len());
    assert_eq!(whole, 0, "the last document is cut");
    let text = "{\"a\":\"é😀\\u00e9\",\"b\":{\"$numberLong\":\"-12\"}}\n[1]".as_bytes();
    let one = &text[..text.len() - 3];
    let expected = f.good(&["json2bson"], one);
    for n_bytes in [1, 2, 7] {
        let output = f.run(&["json2bson"], one, n_bytes);
        assert_eq!(output.stdout, expected);
        let output = f.run(&["bson2json"], &expected, n_bytes);
        assert_eq!(
            output.stdout,
            b"{\"a\":\"\xC3\xA9\xF0\x9F\x98\x80\xC3\xA9\",\"b\":-12}\n"
        );
    }
}

#[test]
fn what_came_before_an_error_is_written_to_stdout_an_array_left_open_and_no_file_made() {
    let f = Folder::new();
    let one = tree::write(&vec![("a".to_owned(), Value::Null)]);
    let cut = [&one[..], &one, &one[..5]].concat();
    let (written, said) = f.failed(&["bson2json"], &cut);
    assert_eq!(written, b"{\"a\":null}\n{\"a\":null}\n");
    assert!(
        said.contains("`stdin` is not valid BSON, at byte 16 (document 3)"),
        "{said}"
    );
    let (written, _) = f.failed(&["bson2json", "--array"], &cut);
    assert!(written.starts_with(b"[\n{\"a\":null},\n{\"a\":null}") && !written.contains(&b']'));
    fs::write(f.path("out"), b"old").unwrap();
    let (written, _) = f.failed(&["bson2json", "-o", "out"], &cut);
    assert_eq!(
        (written.len(), fs::read(f.path("out")).unwrap()),
        (0, b"old".to_vec())
    );

    for (text, place) in [
        (
            "{\"a\":1}\n{\"é\":1} x",
            "byte 17 (line 2, column 9, document 3)",
        ),
        (
            "{\"a\":1}\n{\"b\":",
            "byte 13 (line 2, column 6, document 2)",
        ),
        (
            "[{\"a\":1},\n{\"b\":{\"$oid\":1}}]",
            "byte 23 (line 2, column 14, document 2)",
        ),
        (
            "[{\"a\":1} {\"b\":1}]",
            "byte 9 (line 1, column 10, document 2)",
        ),
        ("[{\"a\":1},]", "byte 9 (line 1, column 10, document 2)"),
        ("[{\"a\":1}", "byte 8 (line 1, column 9, document 2)"),
        ("[{\"a\":1}] {}", "byte 10 (line 1, column 11, document 2)"),
        ("{\"a\":1} 2", "byte 8 (line 1, column 9, document 2)"),
    ] {
        let (written, said) = f.failed(&["json2bson"], text.as_bytes());
        assert!(said.contains(place), "{text}: {said}");
        assert!(
            !written.is_empty() && naive::documents(&written).is_some(),
            "{text}"
        );
        let (written, _) = f.failed(&["json2bson", "-o", "out"], text.as_bytes());
        assert_eq!(written, b"");
    }
    assert_eq!(fs::read(f.path("out")).unwrap(), b"old");
    assert_eq!(f.names(), ["out"]);
}

#[test]
fn malformed_text_is_refused_or_replaced() {
    let f = Folder::new();
    let mut bson = tree::write(&vec![("a".to_owned(), Value::String("xé".to_owned()))]);
    let at = bson.len() - 3;
    bson[at] = b'y';
    let (_, said) = f.failed(&["bson2json"], &bson);
    assert!(
        said.contains("at byte 12") && said.contains("--errors"),
        "{said}"
    );
    let replaced = f.good(&["bson2json", "--errors", "replace"], &bson);
    assert_eq!(replaced, "{\"a\":\"x\u{FFFD}y\"}\n".as_bytes());
}

#[test]
fn a_length_that_lies_takes_no_memory() {
    let f = Folder::new();
    let lie = [&i32::MAX.to_le_bytes()[..], &[0; 100]].concat();
    fs::write(f.path("lie.bson"), lie).unwrap();
    let run = "ulimit -v 200000; exec \"$0\" bson2json lie.bson";
    let output = Command::new("sh")
        .args(["-c", run, env!("CARGO_BIN_EXE_onecopy")])
        .current_dir(f.0.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the data ends inside the document"), "{said}");
}

#[test]
fn memory_stays_small_however_long_the_input_is() {
    let f = Folder::new();
    let text = "a".repeat(1 << 20);
    let bson = tree::write(&vec![("a".to_owned(), Value::String(text.clone()))]);
    let json = format!("{{\"a\":\"{text}\"}}\n").into_bytes();
    for (command, part) in [("bson2json", bson), ("json2bson", json)] {
        let mut child = f.command(&[command]).stdout(Stdio::null()).spawn().unwrap();
        for _ in 0..48 {
            child.stdin.as_mut().unwrap().write_all(&part).unwrap();
        }
        let status = PathBuf::from("/proc").join(child.id().to_string());
        let status = fs::read_to_string(status.join("status")).unwrap();
        let most = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let most = most.unwrap().trim().trim_end_matches(" kB");
        let most_kib: u64 = most.parse().unwrap();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(most_kib < 32 << 10, "{command}: {most_kib} KiB");
    }
}

#[test]
fn a_closed_pipe_is_silent_and_ends_with_141() {
    let f = Folder::new();
    let bson = documents();
    for (command, part) in [("bson2json", &bson[..]), ("json2bson", b"{\"a\":1}\n")] {
        let mut child = f.command(&[command]).spawn().unwrap();
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        while stdin.write_all(part).is_ok() {}
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(
            (child.wait().unwrap().code(), said.as_str()),
            (Some(141), "")
        );
    }
}

#[test]
fn ctrl_c_ends_with_130_and_leaves_no_half_written_file() {
    let f = Folder::new();
    for (command, start) in [("bson2json", &b"\x05\0\0\0\0"[..]), ("json2bson", b"{}\n")] {
        let mut child = f.command(&[command, "-o", "out"]).spawn().unwrap();
        // The pipe stays open, so that the input does not end.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(start).unwrap();
        while f.names().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        let killed = Command::new("kill").args(["-s", "INT", &pid]).status();
        assert!(killed.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(f.names(), Vec::<String>::new());
        drop(stdin);
    }
}
