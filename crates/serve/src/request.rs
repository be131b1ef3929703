//! What a handler is given.

use std::net::SocketAddr;

use onecopy_wire::http::{RequestHead, Version};

pub use crate::awaited::RequestBody;
use crate::response_writer::{AnswerOrigin, ResponseWriter};

/// A request whose head is whole and well formed, and whose body, if there is one, has been read to its end, or is
/// [awaited](RequestBody::Awaited).
///
/// Everything is borrowed from the connection's buffers. Copies: none.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    head: Head<'a>,
    body: &'a [u8],
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    /// The connection, and where the answer starts, for a handler that may begin it.
    origin: Option<Origin<'a>>,
}

/// See [`ResponseWriter`].
type Origin<'a> = (&'a dyn AnswerOrigin, Option<u64>);

#[derive(Clone, Copy)]
enum Head<'a> {
    Parsed(RequestHead<'a>),
    Given {
        method: &'a str,
        target: &'a str,
        fields: &'a [(&'a str, &'a [u8])],
    },
}

impl<'a> Request<'a> {
    /// A request that came through no socket: for tests of handlers. Nothing is checked.
    #[must_use]
    pub fn new(method: &'a str, target: &'a str, fields: &'a [(&'a str, &'a [u8])]) -> Request<'a> {
        Request {
            head: Head::Given {
                method,
                target,
                fields,
            },
            body: &[],
            peer: None,
            local: None,
            origin: None,
        }
    }

    pub(crate) fn parsed(
        head: RequestHead<'a>,
        body: &'a [u8],
        peer: Option<SocketAddr>,
        local: Option<SocketAddr>,
    ) -> Request<'a> {
        Request {
            head: Head::Parsed(head),
            body,
            peer,
            local,
            origin: None,
        }
    }

    /// The same request of this connection.
    pub(crate) fn from(mut self, origin: Option<Origin<'a>>) -> Request<'a> {
        self.origin = origin;
        self
    }

    /// Begins the answer before the handler returns; `None` where [`crate::Handler::begins_early`]
    /// is false, and for a request made by [`Request::new`].
    #[must_use]
    pub fn writer(&self) -> Option<ResponseWriter> {
        let (connection, start) = self.origin?;
        Some(ResponseWriter::new(connection.sink(), start))
    }

    /// The same request with a body.
    #[must_use]
    pub fn with_body(mut self, body: &'a [u8]) -> Request<'a> {
        self.body = body;
        self
    }

    /// The head as it was parsed, with all it knows; `None` for a request made by [`Request::new`].
    #[must_use]
    pub fn head(&self) -> Option<RequestHead<'a>> {
        match self.head {
            Head::Parsed(head) => Some(head),
            Head::Given { .. } => None,
        }
    }

    /// The method, as sent: methods are case-sensitive (RFC 9110 9.1).
    #[must_use]
    pub fn method(&self) -> &'a str {
        match self.head {
            Head::Parsed(head) => head.method_name(),
            Head::Given { method, .. } => method,
        }
    }

    /// The request target as sent, still percent-encoded, ASCII. It may be a whole URL (RFC 9112 3.2.2).
    #[must_use]
    pub fn target(&self) -> &'a str {
        match self.head {
            Head::Parsed(head) => head.target(),
            Head::Given { target, .. } => target,
        }
    }

    /// The path of the target up to its `?`, still percent-encoded; of a target that is a whole
    /// URL, the path of that.
    #[must_use]
    pub fn path(&self) -> &'a str {
        match self.head {
            Head::Parsed(head) => head.path(),
            Head::Given { target, .. } => target.split_once('?').map_or(target, |(path, _)| path),
        }
    }

    /// The part of the target after its first `?`, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        match self.head {
            Head::Parsed(head) => head.query(),
            Head::Given { target, .. } => target.split_once('?').map(|(_, query)| query),
        }
    }

    /// The host and port that the request is for: of a target that is a whole URL, or else of
    /// `Host` (RFC 9112 3.2.2).
    #[must_use]
    pub fn host(&self) -> Option<&'a [u8]> {
        match self.head {
            Head::Parsed(head) => head.authority().map(str::as_bytes),
            Head::Given { .. } => self.header("Host"),
        }
    }

    /// Whether the request is HTTP/1.0; all others are 1.1.
    #[must_use]
    pub fn is_http_1_0(&self) -> bool {
        self.head()
            .is_some_and(|head| head.version() == Version::Http10)
    }

    /// The value of the first header field `name`, whatever its case. The bytes are those sent, without the white
    /// space around them; what is not ASCII is Latin-1 by custom.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        match self.head {
            Head::Parsed(head) => head.header(name),
            Head::Given { fields, .. } => fields
                .iter()
                .find(|(n, _)| n.eq_ignore_ascii_case(name))
                .map(|(_, value)| *value),
        }
    }

    /// All header fields in the order sent.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let (parsed, given) = match self.head {
            Head::Parsed(head) => (Some(head.headers()), None),
            Head::Given { fields, .. } => (None, Some(fields.iter().copied())),
        };
        parsed
            .into_iter()
            .flatten()
            .chain(given.into_iter().flatten())
    }

    /// The body; empty when there is none. Chunked bodies are decoded.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The client's address; `None` where it came through a unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The server's address the client connected to; `None` where it is a unix socket.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        self.local
    }
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // No query and no header values: they may hold secrets.
        write!(f, "{} {}", self.method(), self.path())
    }
}

/// What the server does with the body of a request, decided when its head is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPolicy {
    /// Requests with a body are answered with 413 and the connection is closed; the handler is not called.
    Refuse,
    /// Bodies are read whole before the handler is called, up to [`crate::Limits::body_bytes`]; longer ones get 413. Those above
    /// [`crate::Limits::body_memory_bytes`] wait in a file.
    /// `Expect: 100-continue` is answered before reading.
    Read,
    /// As `Read`, but the handler is called at once where the client waits to be asked for the body (`Expect: 100-continue`), and asks
    /// for it itself: [`RequestBody::Awaited`]. It may then wait for the client, so half of the handlers that may run at once
    /// ([`crate::Config::handler_threads`]) get such requests; past that, and with one alone, they are read first.
    OnDemand,
}
