//! Tests `onecopy transcode` as a process: files, pipes, signals, memory.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
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
        command
            .arg("transcode")
            .args(args)
            .current_dir(self.0.path());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str], stdin: &[u8]) -> Output {
        let mut child = self.command(args).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // The command may end before it has read its whole input.
            scope.spawn(move || pipe.write_all(stdin));
            child.wait_with_output().unwrap()
        })
    }

    /// Runs the command, which must succeed, and returns its stdout.
    fn good(&self, args: &[&str], stdin: &[u8]) -> Vec<u8> {
        let output = self.run(args, stdin);
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.stdout
    }

    /// Runs the command, which must end with exit code 1, and returns its stderr.
    fn failed(&self, args: &[&str], stdin: &[u8]) -> String {
        let output = self.run(args, stdin);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn stdin_goes_to_stdout_as_with_iconv() {
    let f = Folder::new();
    assert_eq!(
        f.good(&["-f", "latin1", "-t", "utf-8"], b"Z\xfcrich"),
        "Zürich".as_bytes()
    );
    assert_eq!(
        f.good(&["-f", "UTF-8", "-t", "UTF-16"], "é".as_bytes()),
        b"\xff\xfe\xe9\0"
    );
    assert_eq!(
        f.good(&["-f", "utf-8", "-t", "ascii//IGNORE"], "aéb".as_bytes()),
        b"ab"
    );
    assert_eq!(
        f.good(&["-c", "-f", "utf-8", "-t", "koi8-r"], b"a\xffb"),
        b"ab"
    );
    assert_eq!(f.good(&["-f", "utf-8", "-"], b""), b"");
    let how = [
        "-f",
        "utf-8",
        "-t",
        "ascii",
        "--errors",
        "xmlcharrefreplace",
    ];
    assert_eq!(f.good(&how, "10 €".as_bytes()), b"10 &#8364;");
}

#[test]
fn marks_and_line_ends_are_what_is_asked() {
    let f = Folder::new();
    let marked = "\u{FEFF}a\r\nb\n".as_bytes();
    for (args, expected) in [
        (&["-f", "utf-8"][..], &b"\xEF\xBB\xBFa\r\nb\n"[..]),
        (&["-f", "utf-8-sig"], b"a\r\nb\n"),
        (&["-f", "utf-8", "--bom", "strip", "--eol", "lf"], b"a\nb\n"),
        (
            &["-f", "utf-8", "--bom", "keep", "-t", "utf-16be"],
            b"\xFE\xFF\0a\0\r\0\n\0b\0\n",
        ),
        (
            &["-f", "utf-8", "--bom", "keep", "-t", "latin1"],
            b"a\r\nb\n",
        ),
        (
            &["-f", "utf-8", "--bom", "add", "--eol", "crlf"],
            b"\xEF\xBB\xBFa\r\nb\r\n",
        ),
    ] {
        assert_eq!(f.good(args, marked), expected, "{args:?}");
    }
    assert_eq!(
        f.good(&["-f", "utf-8", "--bom", "add"], b"a"),
        b"\xEF\xBB\xBFa"
    );
}

#[test]
fn several_files_become_one_with_one_mark() {
    let f = Folder::new();
    f.write("a", b"\xff\xfea\0");
    f.write("b", b"\xfe\xff\0b");
    let both = f.good(&["-f", "utf-16", "-t", "utf-16", "a", "b"], b"");
    assert_eq!(both, b"\xff\xfea\0b\0");
    f.good(&["-f", "utf-16", "-o", "out", "a", "b"], b"");
    assert_eq!(f.read("out"), b"ab");
    assert_eq!(f.names(), ["a", "b", "out"]);
}

#[test]
fn files_change_in_their_place_with_their_mode_and_the_old_ones_kept() {
    let f = Folder::new();
    f.write("a.txt", b"Z\xfcrich");
    f.write("b.txt", b"caf\xe9");
    fs::set_permissions(f.path("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    f.good(&["-f", "latin1", "-i.bak", "a.txt", "b.txt"], b"");
    assert_eq!(f.read("a.txt"), "Zürich".as_bytes());
    assert_eq!(f.read("b.txt"), "café".as_bytes());
    assert_eq!(f.read("a.txt.bak"), b"Z\xfcrich");
    assert_eq!(fs::metadata(f.path("a.txt")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(f.names(), ["a.txt", "a.txt.bak", "b.txt", "b.txt.bak"]);
    // At a second conversion, the kept file is replaced.
    f.good(&["-t", "utf-16", "-i.bak", "a.txt"], b"");
    assert_eq!(f.read("a.txt.bak"), "Zürich".as_bytes());
    f.good(&["-i", "a.txt"], b"");
    assert_eq!(f.read("a.txt"), "Zürich".as_bytes());
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_converted_and_kept() {
    let f = Folder::new();
    f.write("real", b"caf\xe9");
    std::os::unix::fs::symlink("real", f.path("link")).unwrap();
    f.good(&["-f", "latin1", "-i.bak", "link"], b"");
    assert!(fs::symlink_metadata(f.path("link")).unwrap().is_symlink());
    assert_eq!(f.read("real"), "café".as_bytes());
    assert_eq!(f.read("link.bak"), b"caf\xe9");
}

#[test]
fn a_file_that_fails_in_place_stays_and_the_others_are_converted() {
    let f = Folder::new();
    f.write("bad", b"ok\nno\xff");
    f.write("good", "é".as_bytes());
    let said = f.failed(
        &[
            "-f", "utf-8", "-t", "latin1", "-i.old", "bad", "none", "good",
        ],
        b"",
    );
    assert!(
        said.contains("`bad`: 0xff at byte 5 (line 2, column 3)"),
        "{said}"
    );
    assert!(
        said.contains("`none` ") || said.contains("`none`"),
        "{said}"
    );
    assert_eq!(f.read("bad"), b"ok\nno\xff");
    assert_eq!(f.read("good"), b"\xe9");
    assert_eq!(f.names(), ["bad", "good", "good.old"]);
}

#[test]
fn what_cannot_be_converted_is_told_with_byte_line_and_column_from_a_file_and_from_a_pipe() {
    let f = Folder::new();
    let mut text = utf16(&"один два\n".repeat(100_000));
    text.extend(utf16("три"));
    let at = text.len();
    text.extend(b"\x00\xdc!\0");
    f.write("text", &text);
    let place = format!(
        "0x00 0xdc at byte {at} (line 100001, column 4) is not valid utf-16-le: illegal encoding"
    );
    for (args, stdin) in [
        (&["-f", "utf-16le", "text"][..], &b""[..]),
        (&["-f", "utf-16le", "-t", "koi8-r", "text"], b""),
        (&["-f", "utf-16le"], &text),
        (&["-f", "utf-16le", "-t", "utf-32"], &text),
    ] {
        let said = f.failed(args, stdin);
        assert!(said.contains(&place), "{args:?}: {said}");
        assert!(said.contains("-f") && said.contains("--errors"), "{said}");
    }
    let said = f.failed(&["-f", "utf-8", "-t", "koi8-r"], "да\n и 東京".as_bytes());
    assert!(
        said.contains("U+6771 `東` at byte 9 (line 2, column 4) cannot be written in koi8-r"),
        "{said}"
    );
}

#[test]
fn a_failure_leaves_what_stood_under_the_output_name() {
    let f = Folder::new();
    f.write("out", b"old");
    f.failed(&["-f", "utf-8", "-o", "out"], b"abc\xff");
    assert_eq!(f.read("out"), b"old");
    assert_eq!(f.names(), ["out"]);
}

#[test]
fn check_writes_nothing_and_tells_by_its_exit_code() {
    let f = Folder::new();
    f.write("good", "é".as_bytes());
    f.write("bad", b"\xe9");
    f.write("cut", b"a\0b");
    assert_eq!(f.good(&["--check", "-f", "utf-8", "good"], b""), b"");
    let said = f.failed(&["--check", "-f", "utf-8", "good", "bad"], b"");
    assert!(
        said.contains("`bad`: 0xe9 at byte 0 (line 1, column 1)"),
        "{said}"
    );
    f.failed(&["--check", "-f", "utf-8", "-t", "ascii", "good"], b"");
    let said = f.failed(&["--check", "-f", "utf-16-le", "cut"], b"");
    assert!(said.contains("truncated data"), "{said}");
}

#[test]
fn an_encoding_that_is_found_is_told_and_a_guess_can_be_refused() {
    let f = Folder::new();
    let windows = b"caf\xe9, na\xefve, d\xe9j\xe0 vu";
    f.write("old", windows);
    f.write("plain", b"plain");
    f.write("binary", b"\0\x01\x02\0\0\xff");
    for (args, stdin) in [(&["old"][..], &b""[..]), (&[], windows)] {
        let output = f.run(args, stdin);
        assert_eq!(output.stdout, "café, naïve, déjà vu".as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("is read as windows-1252 (guess: not UTF-8 (byte 3)"),
            "{said}"
        );
    }
    let said = f.failed(&["--strict", "old"], b"");
    assert!(said.contains("only a guess, windows-1252"), "{said}");
    assert!(f.run(&["-s", "old"], b"").stderr.is_empty());
    assert_eq!(f.good(&["--strict", "plain"], b""), b"plain");
    let said = f.failed(&["binary"], b"");
    assert!(
        said.contains("`binary` is not text: 3 bytes of zero, in no pattern"),
        "{said}"
    );
    // An ASCII start does not determine the encoding: UTF-8 follows here.
    let late = [vec![b'a'; 2_000_000], "é".into()].concat();
    assert_eq!(f.good(&["-s"], &late), late);
    f.write("late", &late);
    assert_eq!(f.good(&["-s", "late"], b""), late);
}

#[test]
fn a_closed_pipe_is_silent_and_ends_with_141() {
    let f = Folder::new();
    let mut child = f.command(&["-f", "latin1"]).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    while stdin.write_all(&[b'a'; 4096]).is_ok() {}
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

#[test]
fn ctrl_c_ends_with_130_and_leaves_no_half_written_file() {
    let f = Folder::new();
    for name in ["INT", "TERM"] {
        let mut child = f.command(&["-f", "utf-8", "-o", "out"]).spawn().unwrap();
        // The pipe stays open, so that the input does not end.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"begun").unwrap();
        while f.names().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(130));
        drop(stdin);
        assert!(f.names().is_empty(), "{:?}", f.names());
    }
}

#[test]
fn memory_stays_small_however_long_the_text_is() {
    let f = Folder::new();
    let mut child = f
        .command(&["-f", "utf-16le", "-t", "gb18030"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let part = utf16(&"東京都、Zürich 😀\n".repeat(80_000));
    for _ in 0..24 {
        child.stdin.as_mut().unwrap().write_all(&part).unwrap();
    }
    let status = fs::read_to_string(
        Path::new("/proc")
            .join(child.id().to_string())
            .join("status"),
    );
    let status = status.unwrap();
    let most = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap();
    let most_kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(
        part.len() * 24 > 40 << 20 && most_kib < 32 << 10,
        "{most_kib} KiB"
    );
}

#[test]
fn the_command_line_is_looked_at_before_any_file() {
    let f = Folder::new();
    f.write("a", b"a");
    for (args, said) in [
        (&["-i"][..], "stdin has no place"),
        (&["-i", "-"], "stdin has no place"),
        (&["-ia/b", "a"], "has a `/` in it"),
        (&["-i", "-o", "out", "a"], "cannot be used with"),
        (&["--check", "-i", "a"], "cannot be used with"),
        (&["-f", "ebcdic", "a"], "iconv supports others"),
        (&["-t", "ascii//TRANSLIT", "a"], "use iconv"),
        (
            &["-t", "latin1", "--bom", "add", "a"],
            "has no byte order mark",
        ),
    ] {
        let output = f.run(args, b"");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {printed}");
        assert!(printed.contains(said), "{args:?}: {printed}");
    }
    assert_eq!(f.names(), ["a"]);
    let said = f.failed(&["."], b"");
    assert!(
        said.contains("`.` cannot be read: it is a directory"),
        "{said}"
    );
}
