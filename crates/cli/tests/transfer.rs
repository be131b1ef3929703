//! Tests `onecopy send` and `onecopy receive` as processes: they are killed and resumed, and they
//! get signals, wrong codes and full disks.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A running `onecopy receive`, which listens at `address`.
struct Receiver {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
    address: String,
}

impl Receiver {
    fn start(folder: &Path, options: &[&str]) -> Receiver {
        Receiver::from(
            Command::new(env!("CARGO_BIN_EXE_onecopy"))
                .args(["receive", "inbox", "--bind", "127.0.0.1:0"])
                .args(options)
                .current_dir(folder),
        )
    }

    fn from(command: &mut Command) -> Receiver {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line);
        Receiver {
            address: address.to_owned(),
            child,
            said,
        }
    }

    fn code(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().strip_prefix("code: ").expect(&line).to_owned()
    }

    /// Waits until the process ends. Returns its exit code and the rest of its stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Receiver {
    /// Kills the process if a test has failed before the process ended.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(folder: &Path, to: &str, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onecopy"))
        .args(["send", "--to", to, "--block-log2", "10"])
        .args(if options.contains(&"--retries") {
            &[][..]
        } else {
            &["--retries", "0"]
        })
        .args(options)
        .env_remove("ONECOPY_CODE")
        .current_dir(folder)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..n).map(next).collect()
}

/// Starts a proxy that passes `n_bytes` bytes of a sender to `receiver` and then kills the
/// receiver. Returns the proxy's address, and a thread that returns the number of passed bytes.
fn kill_after(receiver: Receiver, n_bytes: usize) -> (String, std::thread::JoinHandle<usize>) {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || {
        let (sender, _) = proxy.accept().unwrap();
        let there = TcpStream::connect(&receiver.address).unwrap();
        let (mut back_from, mut back_to) =
            (there.try_clone().unwrap(), sender.try_clone().unwrap());
        let back = std::thread::spawn(move || {
            let _ = std::io::copy(&mut back_from, &mut back_to);
            let _ = back_to.shutdown(std::net::Shutdown::Both);
        });
        let mut passed = 0;
        let mut buffer = [0; 700];
        while passed < n_bytes {
            let most = buffer.len().min(n_bytes - passed);
            match (&sender).read(&mut buffer[..most]) {
                Ok(n @ 1..) if (&there).write_all(&buffer[..n]).is_ok() => passed += n,
                _ => break,
            }
        }
        receiver.kill();
        let _ = there.shutdown(std::net::Shutdown::Both);
        back.join().unwrap();
        passed
    });
    (address, thread)
}

#[test]
fn a_receiver_killed_at_a_hundred_points_resumes_to_what_one_clean_run_gives() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    std::fs::create_dir_all(top.join("inner")).unwrap();
    let names = ["a", "inner/b", "inner/c", "d", "e"];
    for (name, n) in names.iter().zip([30_000, 100, 20_480, 0, 9000]) {
        std::fs::write(top.join(name), bytes(n, n as u64)).unwrap();
    }
    let mut state = 7_u64;
    let (mut n_kills, mut n_runs) = (0, 0);
    while n_kills < 100 {
        // One run: the receiver is killed up to eight times, at random points of the transfer, and
        // then the transfer is completed.
        let _ = std::fs::remove_dir_all(folder.path().join("inbox"));
        let hashed: &[&str] = if n_runs % 4 == 3 { &["--no-hash"] } else { &[] };
        for _ in 0..8 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let point = (state >> 33) as usize % 25_000;
            let (address, killed) = kill_after(Receiver::start(folder.path(), &[]), point);
            let sent = send(folder.path(), &address, &[&["top"], hashed].concat());
            n_kills += 1;
            assert!(killed.join().unwrap() <= point);
            // A file with its final name is complete.
            for name in names {
                if let Ok(there) = std::fs::read(folder.path().join("inbox/top").join(name)) {
                    assert!(there == std::fs::read(top.join(name)).unwrap(), "{name}");
                }
            }
            if sent.status.success() {
                break;
            }
        }
        let receiver = Receiver::start(folder.path(), &[]);
        let sent = send(
            folder.path(),
            &receiver.address,
            &[&["top"], hashed].concat(),
        );
        assert!(sent.status.success(), "{}", stderr(&sent));
        assert_eq!(receiver.end().0, Some(0));
        for name in names {
            let (a, b) = (top.join(name), folder.path().join("inbox/top").join(name));
            assert!(
                std::fs::read(&a).unwrap() == std::fs::read(&b).unwrap(),
                "{name}"
            );
            let modified = |p| std::fs::metadata(p).unwrap().modified().unwrap();
            assert_eq!(modified(a), modified(b));
        }
        let there = std::fs::read_dir(folder.path().join("inbox")).unwrap();
        assert_eq!(there.count(), 1, "parts are left");
        n_runs += 1;
    }
    assert!(n_runs > 10);
}

#[test]
fn a_connection_that_breaks_is_made_again_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), bytes(200_000, 1)).unwrap();
    let receiver = Receiver::start(folder.path(), &[]);
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, there) = (proxy.local_addr().unwrap(), receiver.address.clone());
    let counting = std::thread::spawn(move || {
        let mut passed = Vec::new();
        // The first transfer is interrupted, and the second one is not.
        for most in [120_000, u64::MAX] {
            let (sender, _) = proxy.accept().unwrap();
            let there = TcpStream::connect(&there).unwrap();
            let (mut from, mut to) = (there.try_clone().unwrap(), sender.try_clone().unwrap());
            let back = std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            let n = std::io::copy(&mut (&sender).take(most), &mut &there);
            passed.push(n.unwrap());
            let _ = there.shutdown(std::net::Shutdown::Write);
            if most < u64::MAX {
                let _ = sender.shutdown(std::net::Shutdown::Both);
            }
            let _ = back.join();
        }
        passed
    });
    let sent = send(
        folder.path(),
        &address.to_string(),
        &["file", "--retries", "1"],
    );
    assert!(sent.status.success(), "{}", stderr(&sent));
    assert!(
        stderr(&sent).contains("retry 1 of 1 in"),
        "{}",
        stderr(&sent)
    );
    let (code, said) = receiver.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("still listening"), "{said}");
    let passed = counting.join().unwrap();
    assert!(passed[1] < 120_000, "{passed:?}");
    assert!(std::fs::read(folder.path().join("inbox/file")).unwrap() == bytes(200_000, 1));
}

#[test]
fn a_full_disk_is_an_error_on_both_sides_and_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("big"), bytes(300_000, 1)).unwrap();
    std::fs::create_dir(folder.path().join("inbox")).unwrap();
    std::fs::write(folder.path().join("inbox/big"), "old").unwrap();
    for hashed in [&[][..], &["--no-hash"]] {
        // A file is limited to 100 KiB. Further bytes are refused as on a full disk.
        let line =
            "trap '' XFSZ; ulimit -f 100; exec \"$0\" receive inbox --bind 127.0.0.1:0 --replace";
        let receiver = Receiver::from(
            Command::new("bash")
                .args(["-c", line, env!("CARGO_BIN_EXE_onecopy")])
                .current_dir(folder.path()),
        );
        let sent = send(
            folder.path(),
            &receiver.address,
            &[&["big"], hashed].concat(),
        );
        assert_eq!(sent.status.code(), Some(1));
        let (code, said) = receiver.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("cannot write `big`"), "{said}");
        assert!(
            stderr(&sent).contains("cannot write `big`"),
            "{}",
            stderr(&sent)
        );
        assert_eq!(
            std::fs::read(folder.path().join("inbox/big")).unwrap(),
            b"old"
        );
    }
    // With enough space, the transfer continues where it stopped.
    let receiver = Receiver::start(folder.path(), &["--replace"]);
    let sent = send(folder.path(), &receiver.address, &["big"]);
    assert!(sent.status.success(), "{}", stderr(&sent));
    receiver.end();
    assert!(std::fs::read(folder.path().join("inbox/big")).unwrap() == bytes(300_000, 1));
}

#[test]
fn three_wrong_codes_end_the_receiver_and_the_right_one_is_told_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let mut receiver = Receiver::start(folder.path(), &["--code"]);
    let code = receiver.code();
    for option in [&["file"][..], &["file", "--code", "abcd-efgh"], &["file"]] {
        let sent = send(folder.path(), &receiver.address, option);
        assert_eq!(sent.status.code(), Some(1));
        assert!(stderr(&sent).contains("code"), "{}", stderr(&sent));
    }
    let (end, said) = receiver.end();
    assert_eq!(end, Some(1));
    assert!(
        said.contains("too many wrong codes") && !said.contains(&code),
        "{said}"
    );
    assert!(!folder.path().join("inbox").exists());
}

#[test]
fn tls_and_its_code_are_enough_and_both_are_wanted_where_others_can_come() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), bytes(100_000, 1)).unwrap();
    let mut receiver = Receiver::start(folder.path(), &["--tls"]);
    let code = receiver.code();
    let sent = send(folder.path(), &receiver.address, &["file", "--code", &code]);
    assert!(sent.status.success(), "{}", stderr(&sent));
    assert_eq!(receiver.end().0, Some(0));
    assert!(std::fs::read(folder.path().join("inbox/file")).unwrap() == bytes(100_000, 1));

    let refused = Command::new(env!("CARGO_BIN_EXE_onecopy"))
        .args(["receive", "--bind", "0.0.0.0:0"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--tls"), "{}", stderr(&refused));
    let mut receiver = Receiver::from(
        Command::new(env!("CARGO_BIN_EXE_onecopy"))
            .args(["receive", "inbox", "--bind", "0.0.0.0:0", "--tls"])
            .current_dir(folder.path()),
    );
    assert!(receiver.code().contains('.'));
    receiver.kill();
}

#[test]
fn senders_that_do_not_greet_are_named_and_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "bytes").unwrap();
    for tls in [&["--code"][..], &["--tls"]] {
        let mut receiver = Receiver::start(folder.path(), &[tls, &["--replace"]].concat());
        let code = receiver.code();
        let silent: Vec<TcpStream> = (0..2)
            .map(|_| TcpStream::connect(&receiver.address).unwrap())
            .collect();
        let sent = send(folder.path(), &receiver.address, &["file", "--code", &code]);
        assert!(sent.status.success(), "{}", stderr(&sent));
        let (code, said) = receiver.end();
        assert_eq!(code, Some(0), "{said}");
        for stream in &silent {
            let name = stream.local_addr().unwrap();
            assert!(said.contains(&format!("{name} has connected")), "{said}");
        }
        assert!(
            said.contains("has connected; 2 others have not completed their handshakes"),
            "{said}"
        );
        std::fs::write(folder.path().join("file"), "other bytes").unwrap();
    }
}

#[test]
fn a_receiver_without_a_code_says_who_can_send_and_names_are_shown_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    // The receiver already has a file of this name. Unescaped, the name would end in `.txt`.
    let name = "bill\u{202e}txt.exe";
    std::fs::write(folder.path().join(name), "new").unwrap();
    std::fs::create_dir(folder.path().join("inbox")).unwrap();
    std::fs::write(folder.path().join("inbox").join(name), "older").unwrap();
    let receiver = Receiver::start(folder.path(), &[]);
    let sent = send(folder.path(), &receiver.address, &[name]);
    assert_eq!(sent.status.code(), Some(1));
    let (code, said) = receiver.end();
    assert_eq!(code, Some(1));
    assert!(
        said.contains("every user of this machine can send files here"),
        "{said}"
    );
    for said in [said, stderr(&sent)] {
        assert!(said.contains("bill\\u{202e}txt.exe"), "{said}");
        assert!(!said.contains('\u{202e}'), "{said}");
    }
    let quiet = Receiver::start(folder.path(), &["--quiet"]);
    let sent = send(folder.path(), &quiet.address, &[name]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(!quiet.end().1.contains("every user"));
}

#[test]
fn exit_codes_tell_what_was_wrong() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("a")).unwrap();
    std::fs::create_dir_all(folder.path().join("b")).unwrap();
    std::fs::write(folder.path().join("a/x"), "1").unwrap();
    std::fs::write(folder.path().join("b/x"), "2").unwrap();
    // A port on which nothing listens.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (options, code, words) in [
        (&["a"][..], 3, "no receiver answers"),
        (&["a/x", "b/x"], 2, "the same name"),
        (&["a", "--code", "nope"], 2, "not a code"),
        (&[], 2, "required"),
    ] {
        let sent = send(folder.path(), &free.to_string(), options);
        assert_eq!(sent.status.code(), Some(code), "{}", stderr(&sent));
        assert!(stderr(&sent).contains(words), "{}", stderr(&sent));
    }
    let receiver = Receiver::start(folder.path(), &["--max-bytes", "0", "--quiet"]);
    let sent = send(folder.path(), &receiver.address, &["a", "--quiet"]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(
        stderr(&sent).contains("more than 0 bytes"),
        "{}",
        stderr(&sent)
    );
    assert_eq!(receiver.end().0, Some(1));
    let receiver = Receiver::start(folder.path(), &[]);
    let sent = send(folder.path(), &receiver.address, &["nowhere"]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(
        stderr(&sent).contains("cannot look at `nowhere`"),
        "{}",
        stderr(&sent)
    );
    assert_eq!(receiver.end().0, Some(1));
}

#[test]
fn a_signal_ends_a_receiver_that_waits_with_130() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path(), &[]);
    let pid = receiver.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(receiver.end().0, Some(130));
}
