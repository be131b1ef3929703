//! Tests the fields on which framing and routing depend, and those that may occur only once in a
//! request.

use onecopy_wire::http::{HeadError, HeadParser, RequestHead};

fn refusal(head: &[u8]) -> HeadError {
    HeadParser::default()
        .advance(head)
        .expect_err(&head.escape_ascii().to_string())
}

fn with<R>(head: &[u8], look: impl FnOnce(RequestHead<'_>) -> R) -> R {
    let mut parser = HeadParser::default();
    let len = parser.advance(head).expect("accepted").expect("complete");
    let view = parser.head(head).expect("complete");
    assert_eq!(view.len_bytes(), len);
    look(view)
}

/// Returns a request with these lines, and `Host`, between the request line and the empty line.
fn request(lines: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n").into_bytes()
}

#[test]
fn framing_that_two_readers_could_take_two_ways_is_refused() {
    use HeadError::{
        CodingAndLength, CodingInHttp10, ContentLength, TransferEncoding, UnknownCoding,
    };
    for (lines, expected) in [
        ("Content-Length: 5\r\nContent-Length: 6", ContentLength),
        ("Content-Length: 5\r\nContent-Length: 5", ContentLength),
        ("Content-Length: 5, 6", ContentLength),
        ("Content-Length: 5, 5", ContentLength),
        ("Content-Length: +5", ContentLength),
        ("Content-Length: -5", ContentLength),
        ("Content-Length: 0x5", ContentLength),
        ("Content-Length: 1_0", ContentLength),
        ("Content-Length:", ContentLength),
        ("Content-Length: 5abc", ContentLength),
        ("Content-Length: 18446744073709551621", ContentLength),
        ("Content-Length: 18446744073709551616", ContentLength),
        ("Content-Length: 5 5", ContentLength),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            CodingAndLength,
        ),
        (
            "Transfer-Encoding: chunked\r\ncontent-length: 0",
            CodingAndLength,
        ),
        ("Transfer-Encoding: xchunked", UnknownCoding),
        ("Transfer-Encoding: identity", UnknownCoding),
        ("Transfer-Encoding: gzip", UnknownCoding),
        ("Transfer-Encoding: chunked, identity", TransferEncoding),
        ("Transfer-Encoding: gzip, chunked", UnknownCoding),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            UnknownCoding,
        ),
        ("Transfer-Encoding: gzip, br", UnknownCoding),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: br",
            UnknownCoding,
        ),
        ("Transfer-Encoding: chunked, gzip", TransferEncoding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
            TransferEncoding,
        ),
        ("Transfer-Encoding: gzip, a b", TransferEncoding),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: a b",
            TransferEncoding,
        ),
        (
            "Transfer-Encoding: gzip\r\nContent-Length: 5",
            CodingAndLength,
        ),
        ("Transfer-Encoding: chunked, chunked", TransferEncoding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            TransferEncoding,
        ),
        (
            "Transfer-Encoding: ,chunked\r\nContent-Length: 5",
            TransferEncoding,
        ),
        ("Transfer-Encoding: \"chunked\"", TransferEncoding),
        ("Transfer-Encoding: chunked;q=1", TransferEncoding),
        ("Transfer-Encoding:", TransferEncoding),
        ("Transfer-Encoding: \x0bchunked", HeadError::Control),
    ] {
        assert_eq!(refusal(&request(lines)), expected, "{lines:?}");
    }
    let in_10 = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refusal(in_10), CodingInHttp10);
    let in_10 = b"POST / HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n";
    assert_eq!(refusal(in_10), CodingInHttp10);
}

#[test]
fn an_error_of_framing_names_the_field_at_fault() {
    let text = |bytes: &[u8]| refusal(bytes).to_string();
    assert_eq!(
        text(&request("Content-Length: 5\r\nTransfer-Encoding: chunked")),
        "the request has both `Transfer-Encoding` and `Content-Length`"
    );
    assert_eq!(
        text(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "HTTP/1.0 has no `Transfer-Encoding`"
    );
    assert_eq!(
        text(&request("Transfer-Encoding: chunked, chunked")),
        "`Transfer-Encoding` is malformed, or has a coding after `chunked`"
    );
}

#[test]
fn host_stands_exactly_once_in_1_1() {
    assert_eq!(refusal(b"GET / HTTP/1.1\r\n\r\n"), HeadError::Host);
    assert_eq!(refusal(b"GET http://a/ HTTP/1.1\r\n\r\n"), HeadError::Host);
    assert_eq!(refusal(&request("Host: b")), HeadError::Host);
    assert_eq!(refusal(&request("hOST: a")), HeadError::Host);
    assert_eq!(
        refusal(b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
        HeadError::Host
    );
    for host in [
        "", " ", "a b", "a,b c", "u@a", "a:x", "a/b", "[::1", "\u{e9}",
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(refusal(head.as_bytes()), HeadError::Authority, "{host:?}");
    }
    assert_eq!(
        with(b"GET / HTTP/1.0\r\n\r\n", |h| h
            .authority()
            .map(str::to_owned)),
        None
    );
}

#[test]
fn the_host_of_a_target_in_absolute_form_replaces_the_field() {
    for (head, expected) in [
        ("GET http://b:99/p HTTP/1.1\r\nX: y\r\nhOST: a", "b:99"),
        ("GET http://b HTTP/1.0\r\nHost: a", "b"),
        ("GET /http://b/ HTTP/1.1\r\nHost: a", "a"),
    ] {
        with(format!("{head}\r\n\r\n").as_bytes(), |h| {
            assert_eq!(h.header("Host"), Some(expected.as_bytes()), "{head}");
            assert_eq!(h.authority(), Some(expected), "{head}");
        });
    }
    // A `Host` field that is ignored must be valid too (RFC 9112, section 3.2).
    let invalid = b"GET http://b/ HTTP/1.1\r\nHost: a b\r\n\r\n";
    assert_eq!(refusal(invalid), HeadError::Authority);
    with(b"GET http://b/ HTTP/1.0\r\n\r\n", |h| {
        assert_eq!((h.header("Host"), h.authority()), (None, Some("b")));
    });
}

#[test]
fn a_field_of_one_value_that_occurs_twice_is_refused() {
    for name in [
        "Authorization",
        "Content-Location",
        "Content-Range",
        "content-type",
        "Date",
        "From",
        "If-Modified-Since",
        "If-Range",
        "If-Unmodified-Since",
        "Max-Forwards",
        "Origin",
        "Proxy-Authorization",
        "Range",
        "Referer",
        "USER-AGENT",
    ] {
        let twice = format!("{name}: a/b\r\nX: y\r\n{}: a/b", name.to_lowercase());
        assert_eq!(refusal(&request(&twice)), HeadError::Repeated, "{name}");
    }
    for name in [
        "Accept",
        "Cookie",
        "If-None-Match",
        "Via",
        "X-Forwarded-For",
    ] {
        let lines = format!("{name}: a\r\n{name}: b");
        assert_eq!(with(&request(&lines), |h| h.n_headers()), 3, "{name}");
    }
}
