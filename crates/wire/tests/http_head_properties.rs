//! Tests properties of the request parser: the result does not depend on how the bytes are divided,
//! and an accepted head that is written again is parsed to the same result.

use onecopy_wire::http::{HeadError, HeadParser, RequestHead, Version};
use proptest::prelude::*;

/// Returns the result of the parser for `bytes` divided at the given cuts; the fields of the index
/// are returned as text.
fn in_cuts(bytes: &[u8], cuts: &[usize]) -> Result<Option<String>, HeadError> {
    let mut parser = HeadParser::default();
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let seen = &bytes[..cut.min(bytes.len())];
        if let Some(len) = parser.advance(seen)? {
            let head = parser.head(bytes).expect("complete");
            return Ok(Some(format!(
                "{len} {} {} {:?} {:?} {:?}",
                head.method_name(),
                head.target(),
                head.framing(),
                head.authority(),
                head.headers().collect::<Vec<_>>()
            )));
        }
    }
    Ok(None)
}

fn heads() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("Host: a".to_owned()),
        Just("Content-Length: 3".to_owned()),
        Just("Transfer-Encoding: chunked".to_owned()),
        "[A-Za-z-]{1,8}:[ \t]{0,2}[ -~]{0,20}[ \t]{0,2}",
        "[\\x00-\\x7f]{0,12}",
    ];
    let end = prop::sample::select(vec!["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r"]);
    let first = prop_oneof![
        4 => Just("GET /x?y HTTP/1.1".to_owned()),
        1 => "[A-Z]{1,5} [!-~]{1,9} HTTP/1\\.[01]",
        1 => "[ -~]{0,20}",
    ];
    (first, prop::collection::vec((line, end), 0..6)).prop_map(|(first, lines)| {
        let mut head = format!("{first}\r\n");
        for (line, end) in lines {
            head += &line;
            head += end;
        }
        (head + "\r\nbody").into_bytes()
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_answer(bytes in heads(), mut cuts in prop::collection::vec(0..150_usize, 0..8)) {
        cuts.sort_unstable();
        let whole = in_cuts(&bytes, &[]);
        prop_assert_eq!(in_cuts(&bytes, &cuts), whole.clone());
        let every: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(in_cuts(&bytes, &every), whole);
    }

    #[test]
    fn accepted_heads_written_again_are_read_the_same(bytes in heads()) {
        let mut parser = HeadParser::default();
        if let Ok(Some(_)) = parser.advance(&bytes) {
            let head = parser.head(&bytes).expect("complete");
            let again = write_again(&head);
            let (first, second) = (in_cuts(&bytes, &[]), in_cuts(&again, &[]));
            let text = |r: Result<Option<String>, HeadError>| {
                r.expect("accepted").expect("complete").split_once(' ').expect("a length").1.to_owned()
            };
            prop_assert_eq!(text(first), text(second));
        }
    }

    #[test]
    fn any_bytes_are_answered_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut parser = HeadParser::default();
        let _ = parser.advance(&bytes);
        let _ = parser.head(&bytes).map(|h| (h.path(), h.query(), h.headers().count()));
    }
}

fn write_again(head: &RequestHead<'_>) -> Vec<u8> {
    let version = match head.version() {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
    };
    let mut out = format!(
        "{} {} HTTP/{version}\r\n",
        head.method_name(),
        head.target()
    )
    .into_bytes();
    for (name, value) in head.headers() {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}
