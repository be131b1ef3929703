//! Complete connections: a server on loopback receives any bytes, once all together and once one by
//! one. It closes each connection, and its responses are the same both times. They are compared
//! with those of a reference implementation: the requests that reach the handler, their bodies, and
//! the refused requests.
#![no_main]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::exchange::{
    Answer, MOST_BODY_BYTES, MOST_FIELDS, MOST_HEAD_BYTES, PATIENCE, answers, serve, echo,
};
use onecopy_wire::http::{
    BodyFraming, ChunkedLimits, ChunkedReader, Connection, HeadLimits, HeadParser, Method, BodyChunk,
};

fn server() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| serve(None))
}

fuzz_target!(|bytes: &[u8]| {
    let bytes = &bytes[..bytes.len().min(6000)];
    let at_once = ask(bytes, bytes.len());
    let expected = expected(bytes);
    assert!(
        agree(&at_once, &expected),
        "{at_once:?}\nexpected {expected:?}"
    );
    if bytes.len() <= 400 {
        assert_eq!(ask(bytes, 1), at_once);
    }
});

/// The result of the reference implementation: the responses, and true if the bytes end inside a
/// request. In this case the server may send one more response with status 400.
#[derive(Debug)]
struct Expected {
    answers: Vec<Answer>,
    is_cut_off: bool,
}

/// Compares responses with the expected ones; the bodies of refusals are not compared.
fn agree(got: &[Answer], expected: &Expected) -> bool {
    let n = expected.answers.len();
    if got.len() < n {
        return false;
    }
    let is_same = |(got, wanted): (&Answer, &Answer)| {
        got.0 == wanted.0 && (wanted.0 != 200 || got.1 == wanted.1)
    };
    let rest = &got[n..];
    got.iter().zip(&expected.answers).all(is_same)
        && (rest.is_empty() || expected.is_cut_off && rest.len() == 1 && rest[0].0 == 400)
}

/// Sends the bytes in parts of `at_once` bytes; returns all responses up to the end of the
/// connection.
fn ask(bytes: &[u8], at_once: usize) -> Vec<Answer> {
    let mut stream = TcpStream::connect(server()).expect("listens");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    for part in bytes.chunks(at_once.max(1)) {
        // The server may have closed the connection; its responses can still be read.
        if stream.write_all(part).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::ConnectionReset => {}
        Err(e) => panic!("the server does not close: {e}; so far {all:?}"),
    }
    answers(&all, false)
}

/// Returns the expected responses: parses the requests with all bytes available.
fn expected(mut rest: &[u8]) -> Expected {
    let mut answers = Vec::new();
    loop {
        let mut parser = HeadParser::new(HeadLimits {
            max_head_bytes: MOST_HEAD_BYTES,
            max_headers: MOST_FIELDS,
            ..HeadLimits::default()
        });
        let n = match parser.advance(rest) {
            Ok(Some(n)) => n,
            Ok(None) => return cut_off(answers),
            Err(error) => return ended(answers, error.status()),
        };
        let head = parser.head(rest).expect("complete");
        let after_head = &rest[n..];
        let (body, used) = match head.framing() {
            BodyFraming::None | BodyFraming::Length(0) => (Vec::new(), 0),
            BodyFraming::Length(len) if len > MOST_BODY_BYTES as u64 => return ended(answers, 413),
            BodyFraming::Length(len) => match after_head.get(..len as usize) {
                Some(body) => (body.to_vec(), body.len()),
                None => return cut_off(answers),
            },
            BodyFraming::Chunked => match chunked(after_head) {
                Ok(Some(read)) => read,
                Ok(None) => return cut_off(answers),
                Err(status) => return ended(answers, status),
            },
        };
        let body = match head.method() {
            Method::Head => Vec::new(),
            _ => echo(head.method_name(), head.target(), &body),
        };
        answers.push((200, body));
        if head.connection() == Connection::Close {
            return Expected {
                answers,
                is_cut_off: false,
            };
        }
        rest = &after_head[used..];
    }
}

fn cut_off(answers: Vec<Answer>) -> Expected {
    Expected {
        answers,
        is_cut_off: true,
    }
}

fn ended(mut answers: Vec<Answer>, status: u16) -> Expected {
    answers.push((status, Vec::new()));
    Expected {
        answers,
        is_cut_off: false,
    }
}

fn chunked(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, u16> {
    let mut reader = ChunkedReader::new(ChunkedLimits {
        max_body_bytes: MOST_BODY_BYTES as u64,
        ..ChunkedLimits::default()
    });
    let (mut body, mut used) = (Vec::new(), 0);
    loop {
        let (n, piece) = reader
            .next(&bytes[used..])
            .map_err(|error| error.status())?;
        used += n;
        match piece {
            BodyChunk::Data(data) => body.extend_from_slice(data),
            BodyChunk::NeedMore => return Ok(None),
            BodyChunk::End => return Ok(Some((body, used))),
        }
    }
}
