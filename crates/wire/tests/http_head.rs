//! Tests the request head: heads that must be rejected, with the reason, and the contents of
//! accepted heads.

use onecopy_wire::http::{
    BodyFraming, Connection, HeadError, HeadLimits, HeadParser, Method, RequestHead, TargetForm,
    Version,
};

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
fn malformed_lines_are_refused() {
    use HeadError::{BareCr, BareLf, Control, FieldName, Folded};
    for (lines, expected) in [
        ("Content-Length : 5", FieldName),
        ("X : a", FieldName),
        ("X\t: a", FieldName),
        ("X: a\r\n b", Folded),
        ("X: a\r\n\tb", Folded),
        ("X: a\nY: b", BareLf),
        ("X: a\n\nTransfer-Encoding: chunked", BareLf),
        ("X: a\rY: b", BareCr),
        ("X: a\r\r", BareCr),
        ("X: a\0b", Control),
        ("X\0Y: a", Control),
        ("X: a\x07b", Control),
        ("X: a\x7fb", Control),
        ("X[]: a", FieldName),
        ("X Y: a", FieldName),
        ("X\u{e9}: a", FieldName),
        (": a", FieldName),
        ("no colon", FieldName),
        ("\"X\": a", FieldName),
        ("X@: a", FieldName),
    ] {
        assert_eq!(refusal(&request(lines)), expected, "{lines:?}");
    }
    assert_eq!(refusal(b"GET / HTTP/1.1\r\n Host: a\r\n\r\n"), Folded);
    assert_eq!(refusal(b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"), Folded);
    assert_eq!(refusal(b"GET / HTTP/1.1\nHost: a\n\n"), BareLf);
    assert_eq!(refusal(b"GET / HTTP/1.1\rHost: a\r\r"), BareCr);
}

#[test]
fn request_lines_have_three_parts_and_two_spaces() {
    use HeadError::{Control, Method, RequestLine, Target, Version};
    for (line, expected) in [
        ("GET / HTTP/9.9", Version),
        ("GET / HTTP/2.0", Version),
        ("GET / HTTP/1.2", Version),
        ("GET / HTTP/0.9", Version),
        ("PRI * HTTP/2.0", Version),
        ("GET / HTTP/1.11", RequestLine),
        ("GET / HTTP/11.1", RequestLine),
        ("GET / http/1.1", RequestLine),
        ("GET / HTTP/1", RequestLine),
        ("GET / HTTP/1.x", RequestLine),
        ("GET / XTTP/1.1", RequestLine),
        ("GET /", RequestLine),
        ("GET", RequestLine),
        ("GET  / HTTP/1.1", RequestLine),
        ("GET /  HTTP/1.1", RequestLine),
        (" GET / HTTP/1.1", RequestLine),
        ("GET / HTTP/1.1 ", RequestLine),
        ("GET\t/ HTTP/1.1", RequestLine),
        ("GET /\tHTTP/1.1", RequestLine),
        ("GET /a b HTTP/1.1", RequestLine),
        ("G[ET / HTTP/1.1", RequestLine),
        ("AAAAAAAAAABBBBBBBBBBCCCCCDD / HTTP/1.1", Method),
        ("GET /a\0b HTTP/1.1", Control),
        ("GET /a\x7fb HTTP/1.1", Control),
        ("GET /caf\u{e9} HTTP/1.1", Target),
        ("GET /a#b HTTP/1.1", Target),
        ("GET /a\tb HTTP/1.1", Target),
        ("GET a HTTP/1.1", Target),
        ("GET * HTTP/1.1", Target),
        ("OPTIONS ** HTTP/1.1", Target),
        ("GET ftp://a/ HTTP/1.1", Target),
        ("GET a:80 HTTP/1.1", Target),
        ("CONNECT / HTTP/1.1", Method),
        ("CONNECT a:443 HTTP/1.1", Method),
        ("GET http:///x HTTP/1.1", HeadError::Authority),
        ("GET http://u@a/ HTTP/1.1", HeadError::Authority),
        ("GET http://a:b/ HTTP/1.1", HeadError::Authority),
    ] {
        let head = format!("{line}\r\nHost: a\r\n\r\n");
        assert_eq!(refusal(head.as_bytes()), expected, "{line:?}");
    }
    assert_eq!(
        refusal(b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        RequestLine
    );
    // The first bytes of TLS are rejected as soon as they arrive.
    assert_eq!(refusal(b"\x16\x03\x01"), Control);
}

#[test]
fn a_name_with_an_underscore_is_refused_where_cgi_sees_it() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nX_U: 1\r\n\r\n";
    assert!(HeadParser::new(HeadLimits::default()).advance(head).is_ok());
    let strict = HeadLimits {
        underscores: false,
        ..HeadLimits::default()
    };
    let refused = HeadParser::new(strict).advance(head);
    assert_eq!(refused, Err(HeadError::Underscore));
}

#[test]
fn every_limit_has_its_own_refusal() {
    let limits = HeadLimits {
        max_head_bytes: 200,
        max_target_bytes: 50,
        max_headers: 3,
        underscores: true,
    };
    let refused = |head: &[u8]| {
        HeadParser::new(limits)
            .advance(head)
            .expect_err("past a limit")
    };
    let target = |n: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(n - 1));
    assert!(
        HeadParser::new(limits)
            .advance(target(50).as_bytes())
            .is_ok()
    );
    assert_eq!(refused(target(51).as_bytes()), HeadError::TargetTooLong);
    assert_eq!(
        refused("x".repeat(300).as_bytes()),
        HeadError::TargetTooLong
    );
    let fields = |n: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
            "X: y\r\n".repeat(n - 1)
        )
    };
    assert!(
        HeadParser::new(limits)
            .advance(fields(3).as_bytes())
            .is_ok()
    );
    assert_eq!(refused(fields(4).as_bytes()), HeadError::TooManyHeaders);
    let value = |n: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
            "y".repeat(n - 32)
        )
    };
    assert_eq!(value(200).len(), 200);
    assert!(
        HeadParser::new(limits)
            .advance(value(200).as_bytes())
            .is_ok()
    );
    assert_eq!(refused(value(201).as_bytes()), HeadError::HeadTooLarge);
    // A head without an end is rejected as soon as it exceeds the limit.
    assert_eq!(
        refused(&value(400).as_bytes()[..200]),
        HeadError::HeadTooLarge
    );
    assert_eq!(HeadError::TargetTooLong.status(), 414);
    assert_eq!(HeadError::HeadTooLarge.status(), 431);
}

/// A first line that exceeds its limit causes the same error for every division of its bytes. (A
/// bug found by fuzzing: if the line arrived at once, it was reported as malformed.)
#[test]
fn a_line_past_its_limit_is_told_the_same_however_it_comes() {
    let limits = HeadLimits {
        max_target_bytes: 50,
        ..HeadLimits::default()
    };
    let lines = [
        "x".repeat(200),
        format!("GET /{} \u{1} HTTP/1.1", "y".repeat(200)),
        format!("{} / HTTP/1.1", "M".repeat(200)),
    ];
    for line in lines {
        let head = format!("{line}\r\nHost: a\r\n\r\n").into_bytes();
        assert_eq!(
            HeadParser::new(limits).advance(&head),
            Err(HeadError::TargetTooLong)
        );
        let mut dribble = HeadParser::new(limits);
        let first = (1..=head.len()).find_map(|n| dribble.advance(&head[..n]).err());
        assert_eq!(first, Some(HeadError::TargetTooLong));
    }
}

#[test]
fn bytes_behind_the_head_do_not_count_against_it() {
    let limits = HeadLimits {
        max_head_bytes: 64,
        ..HeadLimits::default()
    };
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let len = bytes.len();
    bytes.extend([b'\n'; 1000]);
    assert_eq!(HeadParser::new(limits).advance(&bytes), Ok(Some(len)));
}

#[test]
fn an_accepted_head_is_seen_as_it_was_sent() {
    let head = b"GET /a%20b?x=1&y=? HTTP/1.1\r\nHost: example.com:8000\r\nX-Latin:\t caf\xE9 \r\nX-Empty:\r\nx-list: a, B\r\n\r\nrest";
    with(head, |h| {
        assert_eq!(h.method(), Method::Get);
        assert_eq!(h.method_name(), "GET");
        assert_eq!(h.target(), "/a%20b?x=1&y=?");
        assert_eq!(h.target_form(), TargetForm::Origin);
        assert_eq!((h.path(), h.query()), ("/a%20b", Some("x=1&y=?")));
        assert_eq!(h.authority(), Some("example.com:8000"));
        assert_eq!(h.version(), Version::Http11);
        let fields: Vec<_> = h.headers().collect();
        assert_eq!(fields[1], ("X-Latin", &b"caf\xE9"[..]));
        assert_eq!(fields[2], ("X-Empty", &b""[..]));
        assert_eq!(h.n_headers(), 4);
        assert_eq!(h.header("x-empty"), Some(&b""[..]));
        assert_eq!(h.header("missing"), None);
        assert!(h.header_has_token("X-List", "b") && !h.header_has_token("X-List", "c"));
        assert_eq!(h.framing(), BodyFraming::None);
        assert_eq!(h.connection(), Connection::KeepAlive);
        assert_eq!(h.len_bytes(), head.len() - 4);
    });
}

#[test]
fn the_forms_of_a_target_are_distinguished() {
    let seen = |line: &str| {
        let head = format!("{line}\r\nHost: other\r\n\r\n");
        with(head.as_bytes(), |h| {
            (
                h.target_form(),
                h.path().to_owned(),
                h.query().map(str::to_owned),
                h.authority().map(str::to_owned),
            )
        })
    };
    let s = |s: &str| Some(s.to_owned());
    assert_eq!(
        seen("GET // HTTP/1.1"),
        (TargetForm::Origin, "//".into(), None, s("other"))
    );
    assert_eq!(
        seen("OPTIONS * HTTP/1.1"),
        (TargetForm::Asterisk, "*".into(), None, s("other"))
    );
    assert_eq!(
        seen("GET HTTP://a:1/p?q HTTP/1.1"),
        (TargetForm::Absolute, "/p".into(), s("q"), s("a:1"))
    );
    assert_eq!(
        seen("GET https://[::1]?q HTTP/1.1"),
        (TargetForm::Absolute, "/".into(), s("q"), s("[::1]"))
    );
    assert_eq!(
        seen("GET http://a HTTP/1.1"),
        (TargetForm::Absolute, "/".into(), None, s("a"))
    );
}

#[test]
fn connection_and_expectation_follow_the_version() {
    let seen = |version: &str, lines: &str| {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n");
        with(head.as_bytes(), |h| {
            (
                h.connection() == Connection::KeepAlive,
                h.expects_continue(),
            )
        })
    };
    assert_eq!(seen("1.1", ""), (true, false));
    assert_eq!(seen("1.0", ""), (false, false));
    assert_eq!(seen("1.1", "Connection: close\r\n"), (false, false));
    assert_eq!(
        seen("1.1", "Connection: upgrade, Close\r\n"),
        (false, false)
    );
    assert_eq!(
        seen("1.1", "Connection: keep-alive\r\nConnection: close\r\n"),
        (false, false)
    );
    assert_eq!(seen("1.0", "Connection: Keep-Alive\r\n"), (true, false));
    assert_eq!(
        seen("1.0", "Connection: close, keep-alive\r\n"),
        (false, false)
    );
    assert_eq!(seen("1.1", "Expect: 100-Continue\r\n"), (true, true));
    assert_eq!(seen("1.0", "Expect: 100-continue\r\n"), (false, false));
    assert_eq!(
        refusal(&request("Expect: something")),
        HeadError::Expectation
    );
}

#[test]
fn bodies_are_framed_by_length_or_chunks() {
    let framing = |lines: &str| with(&request(lines), |h| h.framing());
    assert_eq!(
        framing("Content-Length: 18446744073709551615"),
        BodyFraming::Length(u64::MAX)
    );
    assert_eq!(framing("Content-Length: 0"), BodyFraming::Length(0));
    assert_eq!(framing("Transfer-Encoding: Chunked"), BodyFraming::Chunked);
    assert_eq!(framing("X: y"), BodyFraming::None);
}

#[test]
fn one_parser_reads_pipelined_requests() {
    let bytes = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n";
    let mut parser = HeadParser::default();
    let first = parser.advance(bytes).expect("accepted").expect("complete");
    assert_eq!(parser.advance(bytes), Ok(Some(first)));
    let kept = parser.take().expect("complete");
    assert!(!parser.has_begun());
    let rest = &bytes[first..];
    let second = parser.advance(rest).expect("accepted").expect("complete");
    assert_eq!(second, rest.len());
    assert_eq!(parser.head(rest).map(|h| h.target()), Some("/2"));
    assert_eq!(parser.head(rest).and_then(|h| h.authority()), Some("b"));
    assert_eq!(kept.view(bytes).target(), "/1");
    parser.reset();
    assert!(parser.head(rest).is_none());
}

#[test]
fn a_refusal_stays() {
    let mut parser = HeadParser::default();
    assert_eq!(parser.advance(b"GET / HTTP/1.1\n"), Err(HeadError::BareLf));
    assert_eq!(
        parser.advance(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        Err(HeadError::BareLf)
    );
    assert!(parser.head(b"").is_none() && parser.take().is_none());
}
