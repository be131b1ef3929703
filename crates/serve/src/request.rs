//! [`Request`]: a request as it is passed to a handler.

use std::net::SocketAddr;

use onecopy_wire::http::{RequestHead, Version};

pub use crate::awaited::RequestBody;
use crate::response_writer::{AnswerOrigin, ResponseWriter};

/// A request with a complete and well-formed head. Its body was received completely, or is
/// [awaited](RequestBody::Awaited).
///
/// All parts of the request are borrowed from the buffers of the connection, without a copy.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    head: Head<'a>,
    body: &'a [u8],
    peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    /// The connection of the request, and the position in the bytes sent on it at which the
    /// response starts. `None` if the handler must not begin the response before it returns.
    origin: Option<Origin<'a>>,
}

/// The connection of a request, and the position in the bytes sent on this connection at which the
/// response starts. A [`ResponseWriter`] needs both.
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
    /// Creates a request without a connection, for tests of handlers. The parts are not validated.
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

    /// Sets the connection of the request to `origin`, and returns the request. The handler may
    /// begin the response on this connection before it returns.
    pub(crate) fn from(mut self, origin: Option<Origin<'a>>) -> Request<'a> {
        self.origin = origin;
        self
    }

    /// Returns a writer with which the handler begins the response before it returns. Returns
    /// `None` if [`crate::Handler::begins_early`] returns `false`, and for a request made by
    /// [`Request::new`].
    #[must_use]
    pub fn writer(&self) -> Option<ResponseWriter> {
        let (connection, start) = self.origin?;
        Some(ResponseWriter::new(connection.sink(), start))
    }

    /// Returns this request with `body` as its body.
    #[must_use]
    pub fn with_body(mut self, body: &'a [u8]) -> Request<'a> {
        self.body = body;
        self
    }

    /// Returns the parsed head; `None` for a request made by [`Request::new`].
    #[must_use]
    pub fn head(&self) -> Option<RequestHead<'a>> {
        match self.head {
            Head::Parsed(head) => Some(head),
            Head::Given { .. } => None,
        }
    }

    /// Returns the method as the client sent it. Methods are case-sensitive (RFC 9110, section
    /// 9.1).
    #[must_use]
    pub fn method(&self) -> &'a str {
        match self.head {
            Head::Parsed(head) => head.method_name(),
            Head::Given { method, .. } => method,
        }
    }

    /// Returns the request target as the client sent it, in percent-encoded ASCII. It may be an
    /// absolute URL (RFC 9112, section 3.2.2).
    #[must_use]
    pub fn target(&self) -> &'a str {
        match self.head {
            Head::Parsed(head) => head.target(),
            Head::Given { target, .. } => target,
        }
    }

    /// Returns the percent-encoded path of the target, without the query. If the target is an
    /// absolute URL, returns the path of this URL.
    #[must_use]
    pub fn path(&self) -> &'a str {
        match self.head {
            Head::Parsed(head) => head.path(),
            Head::Given { target, .. } => target.split_once('?').map_or(target, |(path, _)| path),
        }
    }

    /// Returns the query, which is the part of the target after its first `?`; `None` if the target
    /// has no `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        match self.head {
            Head::Parsed(head) => head.query(),
            Head::Given { target, .. } => target.split_once('?').map(|(_, query)| query),
        }
    }

    /// Returns the host and port of the request. They come from the target if the target is an
    /// absolute URL, and otherwise from the `Host` field (RFC 9112, section 3.2.2).
    #[must_use]
    pub fn host(&self) -> Option<&'a [u8]> {
        match self.head {
            Head::Parsed(head) => head.authority().map(str::as_bytes),
            Head::Given { .. } => self.header("Host"),
        }
    }

    /// Returns `true` for HTTP/1.0; all other requests are HTTP/1.1.
    #[must_use]
    pub fn is_http_1_0(&self) -> bool {
        self.head()
            .is_some_and(|head| head.version() == Version::Http10)
    }

    /// Returns the value of the first header field with the name `name`, ignoring letter case.
    /// White space around the value is removed. Bytes that are not ASCII are Latin-1 by convention.
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

    /// Returns the names and values of all header fields, in the order in which the client sent
    /// them.
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

    /// Returns the body, without the framing of the chunked coding. It is empty if the request has
    /// no body.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Returns the address of the client; `None` for a unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Returns the local address of the connection, to which the client connected; `None` for a
    /// unix socket.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        self.local
    }
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither the query nor header values are printed: they may contain secrets.
        write!(f, "{} {}", self.method(), self.path())
    }
}

/// The way in which the body of a request is received. The handler selects it after the head was
/// received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPolicy {
    /// A request with a body gets a 413, and its connection is closed. The handler is not called.
    Refuse,
    /// The body is received completely before the handler is called. A request whose body is longer
    /// than [`crate::Limits::body_bytes`] gets a 413. A body longer than
    /// [`crate::Limits::body_memory_bytes`] is written to a file. If the client waits for
    /// `100 Continue`, the server sends it immediately.
    Read,
    /// If the client waits for `100 Continue`, the handler is called immediately, and requests the
    /// body if it needs it ([`RequestBody::Awaited`]). Otherwise the body is received as for
    /// `Read`. A handler that requests the body may wait for its client. Therefore at most half of
    /// the handler threads ([`crate::Config::handler_threads`]) run such handlers. For further
    /// requests, and if there is only one handler thread, the body is received as for `Read`.
    OnDemand,
}
