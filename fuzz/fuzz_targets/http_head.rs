//! The parser of request heads: it never panics, and its result does not depend on how the bytes
//! are divided. An accepted head that is written again is parsed to the same result, and httparse
//! finds the same request. (httparse accepts a bare LF, so it is no oracle for refused heads.)
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_wire::http::{HeadError, HeadLimits, HeadParser, RequestHead, TargetForm, Version};

const LIMITS: HeadLimits = HeadLimits {
    max_head_bytes: 4096,
    max_target_bytes: 512,
    max_headers: 32,
    underscores: true,
};

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes, &[]);
    assert_eq!(read(bytes, &[bytes.len() / 3, bytes.len() / 3 * 2]), whole);
    let every: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(read(bytes, &every), whole);

    let mut parser = HeadParser::new(LIMITS);
    let Ok(Some(len)) = parser.advance(bytes) else {
        return;
    };
    let head = parser.head(bytes).expect("complete");
    assert!(len <= LIMITS.max_head_bytes && head.target().len() <= LIMITS.max_target_bytes);
    // Calls every accessor, which must not panic.
    let _ = (
        head.path(),
        head.query(),
        head.authority(),
        head.framing(),
        head.connection(),
    );
    let again = write_again(&head);
    assert_eq!(without_length(read(&again, &[])), without_length(whole));
    compare_with_httparse(bytes, len, &head);
});

/// Returns the parser's result when the bytes arrive in parts that end at `cuts`.
fn read(bytes: &[u8], cuts: &[usize]) -> Result<Option<(usize, String)>, HeadError> {
    let mut parser = HeadParser::new(LIMITS);
    for &cut in cuts.iter().chain([&bytes.len()]) {
        if let Some(len) = parser.advance(&bytes[..cut.min(bytes.len())])? {
            let head = parser.head(bytes).expect("complete");
            let fields: Vec<_> = head.headers().collect();
            let text = format!(
                "{} {} {:?} {:?} {:?} {:?} {:?} {} {fields:?}",
                head.method_name(),
                head.target(),
                head.target_form(),
                head.authority(),
                head.version(),
                head.framing(),
                head.connection(),
                head.expects_continue()
            );
            return Ok(Some((len, text)));
        }
    }
    Ok(None)
}

fn without_length(read: Result<Option<(usize, String)>, HeadError>) -> String {
    read.expect("accepted").expect("complete").1
}

fn version(head: &RequestHead<'_>) -> u8 {
    match head.version() {
        Version::Http10 => 0,
        Version::Http11 => 1,
    }
}

fn write_again(head: &RequestHead<'_>) -> Vec<u8> {
    let (method, target) = (head.method_name(), head.target());
    let mut out = format!("{method} {target} HTTP/1.{}\r\n", version(head)).into_bytes();
    for (name, value) in head.headers() {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn compare_with_httparse(bytes: &[u8], len: usize, head: &RequestHead<'_>) {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut oracle = httparse::Request::new(&mut fields);
    let parsed = oracle.parse(bytes).expect("httparse takes what we take");
    assert_eq!(parsed, httparse::Status::Complete(len));
    assert_eq!(oracle.method, Some(head.method_name()));
    assert_eq!(oracle.path, Some(head.target()));
    assert_eq!(oracle.version, Some(version(head)));
    // RFC 9112, section 3.2.2: the host of a target in absolute form replaces the field's value.
    let host = head
        .authority()
        .filter(|_| head.target_form() == TargetForm::Absolute);
    let theirs: Vec<_> = oracle
        .headers
        .iter()
        .map(|h| match host {
            Some(host) if h.name.eq_ignore_ascii_case("host") => (h.name, host.as_bytes()),
            _ => (h.name, h.value),
        })
        .collect();
    let ours: Vec<_> = head.headers().collect();
    assert_eq!(ours, theirs);
}
