//! Tests a folder served over HTTP: files that are found and files that are not, ranges,
//! conditional requests, precompressed variants, and files that change while they are sent.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

mod common;
mod folder;

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

use common::TestServer;
use folder::Folder;
use onecopy_serve::Files;
use onecopy_serve::static_files::FilesOptions;

#[test]
fn files_are_found_with_their_types_and_validators() {
    let f = Folder::serving(|_| ());
    let answer = f.get("/a.txt?x=y");
    assert_eq!((answer.status, answer.text()), (200, "0123456789"));
    assert_eq!(
        answer.field("Content-Type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(answer.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(answer.field("X-Content-Type-Options"), Some("nosniff"));
    assert!(answer.field("Last-Modified").unwrap().ends_with(" GMT"));
    assert!(answer.field("ETag").is_some() && answer.field("Vary").is_none());
    assert_eq!(f.get("/empty").field("Content-Length"), Some("0"));
    assert_eq!(f.get("/sub/deep/b%20c%C3%A9.css").text(), "p{}");
    assert_eq!(f.get("/inside").text(), "0123456789");
    assert_eq!(f.get("http://x/a.txt").text(), "0123456789");
}

#[test]
fn nothing_leads_out_of_the_folder() {
    let f = Folder::serving(|options| options.listing = true);
    for target in [
        "/../secret",
        "/sub/../../secret",
        "/%2e%2e/secret",
        "/%2E%2E/secret",
        "/.%2e/secret",
        "/..%2fsecret",
        "/..%2Fsecret",
        "/%2e%2e%2fsecret",
        "/%252e%252e/secret",
        "/%252e%252e%252fsecret",
        "/..%5csecret",
        "/..\\secret",
        "/sub%2findex.html",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/sub//index.html",
        "/./a.txt",
        "/sub/./index.html",
        "/out",
        "/up/secret",
        "/up/",
        "/whole/etc/passwd",
        "/whole/",
        "/.git/config",
        "/.env",
        "/%2egit/config",
        "/.git/",
        "/a.txt/",
        "/a.txt/x",
        "/..",
        "/.",
        "/...",
        "/%c0%ae%c0%ae/secret",
        "/..;/secret",
        "/nothing",
        "/bare/nothing/",
    ] {
        let answer = f.get(target);
        assert_eq!(answer.status, 404, "{target}: {answer:?}");
        assert!(
            answer.text().contains(r#""title":"Not Found""#),
            "{answer:?}"
        );
        assert!(
            !answer.text().contains("secret") && !answer.text().contains("root"),
            "{target}"
        );
    }
    for target in ["/%00", "/a.txt%00.html", "/%", "/%zz", "/a%2"] {
        assert_eq!(f.get(target).status, 400, "{target}");
    }
    let long = format!("/{}", "a".repeat(5000));
    assert_eq!(f.get(&long).status, 404);
}

#[test]
fn other_methods_are_refused() {
    let f = Folder::serving(|_| ());
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        let mut client = f.server.connect();
        client.send(format!("{method} /a.txt HTTP/1.1\r\nHost: x\r\n\r\n"));
        let answer = client.answer();
        assert_eq!(
            (answer.status, answer.field("Allow")),
            (405, Some("GET, HEAD")),
            "{method}"
        );
    }
}

#[test]
fn what_is_no_file_is_not_found_and_blocks_nobody() {
    let f = Folder::serving(|_| ());
    let fifo = std::process::Command::new("mkfifo")
        .arg(f.root("fifo"))
        .status();
    assert!(fifo.unwrap().success());
    let _socket = UnixListener::bind(f.root("socket")).unwrap();
    for target in ["/fifo", "/socket", "/fifo/"] {
        assert_eq!(f.get(target).status, 404, "{target}");
    }
}

#[test]
fn folders_are_asked_for_with_a_slash() {
    let f = Folder::serving(|_| ());
    let answer = f.get("/sub?a=b");
    assert_eq!(
        (answer.status, answer.field("Location")),
        (301, Some("/sub/?a=b"))
    );
    assert_eq!(f.get("/sub/").text(), "<p>index");
    assert_eq!(
        f.get("/sub/").field("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!((f.get("/bare/").status, f.get("/").status), (404, 404));
}

#[test]
fn a_listing_names_what_is_found_and_escapes_it() {
    let f = Folder::serving(|options| options.listing = true);
    assert_eq!(f.get("/sub/").text(), "<p>index");
    let page = f.get("/");
    assert_eq!(page.status, 200);
    assert!(
        page.field("Content-Security-Policy")
            .unwrap()
            .contains("default-src 'none'")
    );
    let text = page.text();
    assert!(
        text.contains("<a href=\"./a.txt\">a.txt</a>")
            && text.contains("<a href=\"./bare/\">bare/</a>")
    );
    for unseen in [".git", ".env", "secret", "out", "whole", "../"] {
        assert!(!text.contains(unseen), "{unseen}");
    }
    let page = f.get("/bare/");
    let text = page.text();
    assert!(
        text.contains("href=\"./x%26%3Cy%3E%22.txt\">x&amp;&lt;y&gt;&quot;.txt</a>"),
        "{text}"
    );
    assert!(text.contains("href=\"./scheme%3Aa\"") && text.contains("href=\"../\""));
    assert!(!text.contains("<y>") && !text.to_lowercase().contains("<script"));
    assert_eq!(f.get("/bare/x%26%3Cy%3E%22.txt").text(), "x");
    let f = Folder::serving(|options| (options.listing, options.hidden) = (true, true));
    assert!(f.get("/").text().contains(".env"));
    assert_eq!(f.get("/.env").text(), "hidden");
}

#[test]
fn ranges_are_parts_of_the_file() {
    let f = Folder::serving(|_| ());
    for (range, body, place) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=-99", "0123456789", "bytes 0-9/10"),
        ("bytes=9-99999999999999999999", "9", "bytes 9-9/10"),
        ("bytes=0-3,2-5", "012345", "bytes 0-5/10"),
        ("bytes=3-4,40-50", "34", "bytes 3-4/10"),
    ] {
        let answer = f.ask("/a.txt", &format!("Range: {range}\r\n"));
        assert_eq!((answer.status, answer.text()), (206, body), "{range}");
        assert_eq!(answer.field("Content-Range"), Some(place), "{range}");
        assert!(answer.field("ETag").is_some() && answer.field("Last-Modified").is_some());
    }
    for range in [
        "bytes=10-",
        "bytes=-0",
        "bytes=99-100",
        "bytes=0-,0-,0-",
        &format!("bytes={}0-0", "2-2,".repeat(20)),
    ] {
        let answer = f.ask("/a.txt", &format!("Range: {range}\r\n"));
        assert_eq!(
            (answer.status, answer.field("Content-Range")),
            (416, Some("bytes */10")),
            "{range}"
        );
        assert!(answer.field("ETag").is_none() && answer.text().contains("416"));
    }
    for range in ["bytes=5-2", "bytes=x", "lines=0-1", "bytes 0-1"] {
        let answer = f.ask("/a.txt", &format!("Range: {range}\r\n"));
        assert_eq!(
            (answer.status, answer.text()),
            (200, "0123456789"),
            "{range}"
        );
    }
    let twice = f.ask("/a.txt", "Range: bytes=0-1\r\nRange: bytes=2-3\r\n");
    assert_eq!(twice.status, 400);
    assert_eq!(
        f.ask("/empty", "Range: bytes=0-0\r\n")
            .field("Content-Range"),
        Some("bytes */0")
    );
    assert_eq!(f.ask("/empty", "Range: bytes=-1\r\n").status, 200);
}

#[test]
fn several_ranges_are_parts_between_boundaries() {
    let f = Folder::serving(|_| ());
    let mut client = f.server.connect();
    client.send("GET /a.txt HTTP/1.1\r\nHost: x\r\nRange: bytes=7-8, 0-1\r\n\r\n");
    let answer = client.answer();
    let content_type = answer.field("Content-Type").unwrap();
    let boundary = content_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let part = |place: &str, bytes: &str| {
        format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {place}/10\r\n\r\n{bytes}"
        )
    };
    let expected = format!(
        "{}{}\r\n--{boundary}--\r\n",
        part("7-8", "78"),
        part("0-1", "01")
    );
    assert_eq!((answer.status, answer.text()), (206, &*expected));
    assert_eq!(answer.field("Content-Range"), None);
    // The body has its full length, so the connection can be used again.
    assert_eq!(client.get("/a.txt").text(), "0123456789");
    let again = f.ask("/a.txt", "Range: bytes=7-8, 0-1\r\n");
    assert!(
        !again.field("Content-Type").unwrap().ends_with(boundary),
        "no boundary is foreseen"
    );
}

#[test]
fn head_tells_what_get_would_and_takes_no_range() {
    let f = Folder::serving(|_| ());
    let mut client = f.server.connect();
    for fields in ["", "Range: bytes=0-1\r\n"] {
        client.send(format!("HEAD /a.txt HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        let (status, head) = client.head().unwrap();
        assert!(
            status == 200 && head.contains("Content-Length: 10\n"),
            "{head}"
        );
        assert!(head.contains("Accept-Ranges: bytes\n"));
    }
    assert_eq!(client.get("/a.txt").text(), "0123456789");
}

/// A file that was last changed before this test was built. So its entity tag is strong.
const SETTLED: &str = "/Cargo.toml";

#[test]
fn conditions_are_held_against_tag_and_date() {
    let mut options = FilesOptions::default();
    options.cache_control = Some("no-cache".into());
    let files = Files::new(std::path::Path::new(env!("CARGO_MANIFEST_DIR")), options).unwrap();
    let server = TestServer::start(files);
    let ask = |fields: &str| {
        let mut client = server.connect();
        client.send(format!("GET {SETTLED} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        client.answer()
    };
    let now = ask("");
    let (tag, date) = (
        now.field("ETag").unwrap(),
        now.field("Last-Modified").unwrap(),
    );
    let status = |fields: &str| ask(fields).status;
    assert!(tag.starts_with('"'));
    assert_eq!(status(&format!("If-None-Match: {tag}\r\n")), 304);
    assert_eq!(status(&format!("If-None-Match: \"x\", W/{tag}\r\n")), 304);
    assert_eq!(status("If-None-Match: \"x\"\r\n"), 200);
    assert_eq!(status("If-None-Match: *\r\n"), 304);
    assert_eq!(status(&format!("If-Modified-Since: {date}\r\n")), 304);
    assert_eq!(
        status(&format!(
            "If-None-Match: \"x\"\r\nIf-Modified-Since: {date}\r\n"
        )),
        200
    );
    assert_eq!(status(&format!("If-Match: {tag}\r\n")), 200);
    assert_eq!(status(&format!("If-Match: W/{tag}\r\n")), 412);
    assert_eq!(status("If-Match: \"x\"\r\n"), 412);
    assert_eq!(
        status("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        412
    );
    assert_eq!(status(&format!("If-Unmodified-Since: {date}\r\n")), 200);
    let range = |condition: &str| status(&format!("Range: bytes=0-1\r\nIf-Range: {condition}\r\n"));
    assert_eq!((range(tag), range(date)), (206, 206));
    assert_eq!(
        (
            range("\"x\""),
            range(&format!("W/{tag}")),
            range("yesterday")
        ),
        (200, 200, 200)
    );
    assert_eq!(
        status(&format!("Range: bytes=0-1\r\nIf-None-Match: {tag}\r\n")),
        304
    );
    let kept = ask(&format!("If-None-Match: {tag}\r\n"));
    assert_eq!(
        (kept.field("ETag"), kept.field("Cache-Control")),
        (Some(tag), Some("no-cache"))
    );
    assert!(
        kept.field("Content-Length").is_none()
            && kept.field("Content-Type").is_none()
            && kept.body.is_empty()
    );
}

#[test]
fn a_file_in_the_place_of_another_one_is_known_by_its_tag() {
    let f = Folder::serving(|_| ());
    let tag = f.get("/a.txt").field("ETag").unwrap().to_owned();
    let same = format!("If-None-Match: {tag}\r\n");
    assert_eq!(f.ask("/a.txt", &same).status, 304);
    // The file was changed just now and may change again within the resolution of its time stamp,
    // so its tag is weak. Ranges of the file are not sent for a weak tag.
    assert!(tag.starts_with("W/"));
    assert_eq!(
        f.ask(
            "/a.txt",
            &format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n")
        )
        .status,
        200
    );
    let about = fs::metadata(f.root("a.txt")).unwrap();
    fs::write(f.root("new"), "9876543210").unwrap();
    let new = File::options().write(true).open(f.root("new")).unwrap();
    new.set_modified(about.modified().unwrap()).unwrap();
    fs::rename(f.root("new"), f.root("a.txt")).unwrap();
    assert_eq!(f.ask("/a.txt", &same).text(), "9876543210");
}

#[test]
fn variants_stand_for_the_file_where_the_client_takes_them() {
    let f = Folder::serving(|options| options.precompressed = true);
    let now = SystemTime::now();
    for (name, text, age_s) in [
        ("a.txt.gz", "gz", 0),
        ("a.txt.br", "br", 0),
        ("empty.gz", "stale", 3600),
    ] {
        fs::write(f.root(name), text).unwrap();
        let file = File::options().write(true).open(f.root(name)).unwrap();
        file.set_modified(now + Duration::from_secs(10) - Duration::from_secs(age_s))
            .unwrap();
    }
    for (takes, coding, body) in [
        ("gzip", Some("gzip"), "gz"),
        ("gzip, br", Some("br"), "br"),
        ("gzip;q=0.9, br;q=0.8, zstd", Some("gzip"), "gz"),
        ("*", Some("br"), "br"),
        ("br;q=0, *;q=0.1", Some("gzip"), "gz"),
        ("zstd", None, "0123456789"),
        ("gzip;q=0", None, "0123456789"),
        ("identity", None, "0123456789"),
        ("gzip;q=0.5, identity;q=1", None, "0123456789"),
        ("identity, gzip;q=0.999", None, "0123456789"),
        ("gzip;q=0.5, br;q=0.2, identity;q=0.3", Some("gzip"), "gz"),
        ("gzip;q=0.5, *", Some("br"), "br"),
        ("gzip;q=0.5, br;q=0, zstd;q=0, *", None, "0123456789"),
        ("gzip, identity", Some("gzip"), "gz"),
        ("gzip;q=0.5, identity;q=0", Some("gzip"), "gz"),
        ("x-gzip", Some("gzip"), "gz"),
        ("X-GZIP;q=0.5, identity", None, "0123456789"),
    ] {
        let answer = f.ask("/a.txt", &format!("Accept-Encoding: {takes}\r\n"));
        assert_eq!(
            (answer.field("Content-Encoding"), answer.text()),
            (coding, body),
            "{takes}"
        );
        assert_eq!(answer.field("Vary"), Some("Accept-Encoding"));
        assert_eq!(
            answer.field("Content-Type"),
            Some("text/plain; charset=utf-8")
        );
    }
    let plain = f.get("/a.txt");
    assert_eq!(
        (plain.field("Content-Encoding"), plain.field("Vary")),
        (None, Some("Accept-Encoding"))
    );
    let packed = f.ask("/a.txt", "Accept-Encoding: gzip\r\n");
    assert_ne!(packed.field("ETag"), plain.field("ETag"));
    let part = f.ask("/a.txt", "Accept-Encoding: gzip\r\nRange: bytes=1-\r\n");
    assert_eq!(
        (part.text(), part.field("Content-Range")),
        ("z", Some("bytes 1-1/2"))
    );
    let stale = f.ask("/empty", "Accept-Encoding: gzip\r\n");
    assert_eq!((stale.field("Content-Encoding"), stale.text()), (None, ""));
}

#[test]
fn a_value_of_cache_control_that_is_none_is_refused_at_once() {
    let mut options = FilesOptions::default();
    options.cache_control = Some("a\r\nX: y".into());
    assert!(Files::new(std::path::Path::new("."), options).is_err());
    let none = Files::new(
        std::path::Path::new("/nothing/there"),
        FilesOptions::default(),
    );
    assert!(none.is_err());
}
