//! Whole connections: a server on loopback is sent any bytes, at once and one by one. It closes each connection, answers both the
//! same, and as a plain reading of the bytes says: which requests come to the handler, with which bodies, and what is refused.
#![no_main]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use onecopy_serve::{
    BodyPolicy, Config, Handler, Limits, Request, RequestBody, Response, Server,
};
use onecopy_wire::http::{
    BodyFraming, ChunkedLimits, ChunkedReader, Connection, HeadLimits, HeadParser, Method, Piece,
};

const MOST_BODY_BYTES: usize = 3000;
const MOST_HEAD_BYTES: usize = 2048;
const MOST_FIELDS: usize = 16;
/// A server that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells what it was asked.
struct Echo;

impl Handler for Echo {
    fn handle(&self, request: Request<'_>) -> Response {
        self.handle_body(request, RequestBody::None)
    }

    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        let body = match body {
            RequestBody::None => Vec::new(),
            RequestBody::Memory(chunk) => chunk.to_vec(),
            RequestBody::File(..) => panic!("bodies stay in memory here"),
        };
        Response::new(200).body(told(request.method(), request.target(), &body))
    }

    fn body_policy(&self, _: Request<'_>) -> BodyPolicy {
        BodyPolicy::Read
    }
}

fn told(method: &str, target: &str, body: &[u8]) -> Vec<u8> {
    let sum = body
        .iter()
        .fold(0_u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(*b)));
    format!("{method} {target} {} {sum}", body.len()).into_bytes()
}

fn server() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let mut limits = Limits::default();
        limits.body_bytes = MOST_BODY_BYTES;
        limits.head_bytes = MOST_HEAD_BYTES;
        limits.n_fields = MOST_FIELDS;
        let mut config = Config::default();
        config.limits = limits;
        config.handler_threads = 1;
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), config).expect("a port");
        let address = server.local_addr();
        std::thread::spawn(|| server.run(Echo).expect("serves"));
        address
    })
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

/// An answer: its status, and its body.
type Answer = (u16, Vec<u8>);

/// What a plain reading expects: the answers, and whether more bytes are wanted behind the last (then the server may say so).
#[derive(Debug)]
struct Expected {
    answers: Vec<Answer>,
    is_cut_off: bool,
}

/// A refusal's words are the server's own.
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

/// Sends bytes, so many at once, and reads to the end of the connection.
fn ask(bytes: &[u8], at_once: usize) -> Vec<Answer> {
    let mut stream = TcpStream::connect(server()).expect("listens");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    for part in bytes.chunks(at_once.max(1)) {
        // It may have closed: what it said before stays readable.
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
    answers(&all)
}

/// Takes the answers apart; panics where they are none.
fn answers(mut all: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !all.is_empty() {
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut head = httparse::Response::new(&mut fields);
        let n = match head.parse(all) {
            Ok(httparse::Status::Complete(n)) => n,
            other => panic!("no answer: {other:?} {all:?}"),
        };
        let status = head.code.expect("complete");
        let value = |name: &str| {
            let found = head.headers.iter().find(|f| f.name.eq_ignore_ascii_case(name));
            found.map(|f| str::from_utf8(f.value).expect("ASCII"))
        };
        all = &all[n..];
        if status == 100 {
            continue;
        }
        let len: usize = value("content-length").map_or(0, |v| v.parse().expect("a length"));
        // Of HEAD the length alone is told: the next answer, or the end, stands there.
        let is_head = all.len() < len || len > 0 && all.starts_with(b"HTTP/1.1 ");
        let body = if is_head { &[][..] } else { &all[..len] };
        answers.push((status, body.to_vec()));
        all = &all[body.len()..];
    }
    answers
}

/// What the bytes say, read from the first to the last with all of them there.
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
        let behind = &rest[n..];
        let (body, used) = match head.framing() {
            BodyFraming::None | BodyFraming::Length(0) => (Vec::new(), 0),
            BodyFraming::Length(len) if len > MOST_BODY_BYTES as u64 => return ended(answers, 413),
            BodyFraming::Length(len) => match behind.get(..len as usize) {
                Some(body) => (body.to_vec(), body.len()),
                None => return cut_off(answers),
            },
            BodyFraming::Chunked => match chunked(behind) {
                Ok(Some(read)) => read,
                Ok(None) => return cut_off(answers),
                Err(status) => return ended(answers, status),
            },
        };
        let told = match head.method() {
            Method::Head => Vec::new(),
            _ => told(head.method_name(), head.target(), &body),
        };
        answers.push((200, told));
        if head.connection() == Connection::Close {
            return Expected {
                answers,
                is_cut_off: false,
            };
        }
        rest = &behind[used..];
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
            Piece::Data(data) => body.extend_from_slice(data),
            Piece::NeedMore => return Ok(None),
            Piece::End => return Ok(Some((body, used))),
        }
    }
}
