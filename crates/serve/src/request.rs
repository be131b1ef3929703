//! What a handler is given.

use std::net::SocketAddr;

/// A request whose head is whole and well formed, and whose body, if there is one, has been read to its end.
///
/// Everything is borrowed from the connection's buffers. Copies: none.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) http_1_0: bool,
    pub(crate) fields: &'a [(&'a str, &'a [u8])],
    pub(crate) body: &'a [u8],
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

impl<'a> Request<'a> {
    /// A request that came through no socket: for tests of handlers.
    #[must_use]
    pub fn new(method: &'a str, target: &'a str, fields: &'a [(&'a str, &'a [u8])]) -> Request<'a> {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Request {
            method,
            target,
            http_1_0: false,
            fields,
            body: &[],
            peer: nowhere,
            local: nowhere,
        }
    }

    /// The same request with a body.
    #[must_use]
    pub fn with_body(mut self, body: &'a [u8]) -> Request<'a> {
        self.body = body;
        self
    }

    /// The method, as sent: methods are case-sensitive (RFC 9110 9.1).
    #[must_use]
    pub fn method(&self) -> &'a str {
        self.method
    }

    /// The request target as sent, still percent-encoded, ASCII.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.target
    }

    /// The target up to its `?`, still percent-encoded.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.target.split('?').next().unwrap_or(self.target)
    }

    /// What follows the first `?` of the target, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Whether the request is HTTP/1.0; all others are 1.1.
    #[must_use]
    pub fn is_http_1_0(&self) -> bool {
        self.http_1_0
    }

    /// The value of the first header field `name`, whatever its case. The bytes are those sent, without the white
    /// space around them; what is not ASCII is Latin-1 by custom.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.fields
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// All header fields in the order sent.
    #[must_use]
    pub fn headers(&self) -> &'a [(&'a str, &'a [u8])] {
        self.fields
    }

    /// The body; empty when there is none. Chunked bodies are decoded.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The client's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The server's address the client connected to.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // No query and no header values: they may hold secrets.
        write!(f, "{} {}", self.method, self.path())
    }
}

/// What the server does with the body of a request, decided when its head is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPolicy {
    /// Requests with a body are answered with 413 and the connection is closed; the handler is not called.
    Refuse,
    /// Bodies are read whole before the handler is called, up to [`crate::Limits::body_bytes`]; longer ones get 413.
    /// `Expect: 100-continue` is answered before reading.
    Read,
}
