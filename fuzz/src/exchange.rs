//! Helpers of the targets with complete connections: the limits of the server, a handler that
//! echoes the request, and a parser of responses.

use std::time::Duration;

use onecopy_serve::{BodyPolicy, Config, Handler, Limits, Request, RequestBody, Response, Server, Tls};

pub const MOST_BODY_BYTES: usize = 3000;
pub const MOST_HEAD_BYTES: usize = 2048;
pub const MOST_FIELDS: usize = 16;
/// A server that sends nothing for this time is considered to hang.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A handler that echoes the request.
struct Echo;

impl Handler for Echo {
    fn handle(&self, request: Request<'_>) -> Response {
        self.handle_body(request, RequestBody::None)
    }

    fn handle_body(&self, request: Request<'_>, body: RequestBody) -> Response {
        let body = match body {
            RequestBody::None => Vec::new(),
            RequestBody::Memory(chunk) => chunk.to_vec(),
            // Bytes that arrive one by one cause 100 Continue; bytes that arrive together do
            // not. The response is the same.
            RequestBody::Awaited(body) => {
                return match body.receive() {
                    Ok(body) => self.handle_body(request, body),
                    Err(error) => self.refuse(error.status(), &error.to_string()),
                };
            }
            RequestBody::File(..) => panic!("bodies stay in memory here"),
        };
        Response::new(200).body(echo(request.method(), request.target(), &body))
    }

    fn body_policy(&self, _: Request<'_>) -> BodyPolicy {
        BodyPolicy::OnDemand
    }
}

/// Returns the body of the handler's response to a request.
pub fn echo(method: &str, target: &str, body: &[u8]) -> Vec<u8> {
    let sum = body
        .iter()
        .fold(0_u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(*b)));
    format!("{method} {target} {} {sum}", body.len()).into_bytes()
}

/// Starts a server on a free port of loopback; returns its address.
pub fn serve(tls: Option<Tls>) -> std::net::SocketAddr {
    let mut limits = Limits::default();
    limits.body_bytes = MOST_BODY_BYTES;
    limits.head_bytes = MOST_HEAD_BYTES;
    limits.n_fields = MOST_FIELDS;
    let mut config = Config::default();
    config.limits = limits;
    config.handler_threads = 2; // One of them may wait for a body.
    config.tls = tls;
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(any.into(), config).expect("a port");
    let address = server.address().ip().expect("TCP");
    std::thread::spawn(|| server.run(Echo).expect("serves"));
    address
}

/// A response: its status and its body.
pub type Answer = (u16, Vec<u8>);

/// Parses responses; panics if the bytes are not responses. With `may_be_cut` the last one may be
/// incomplete and is then omitted.
pub fn answers(mut all: &[u8], may_be_cut: bool) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !all.is_empty() {
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let mut head = httparse::Response::new(&mut fields);
        let n = match head.parse(all) {
            Ok(httparse::Status::Complete(n)) => n,
            Ok(httparse::Status::Partial) if may_be_cut => return answers,
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
        // A response to HEAD has a length but no body; another response or the end follows.
        let is_head = all.len() < len || len > 0 && all.starts_with(b"HTTP/1.1 ");
        let body = if is_head { &[][..] } else { &all[..len] };
        answers.push((status, body.to_vec()));
        all = &all[body.len()..];
    }
    answers
}
