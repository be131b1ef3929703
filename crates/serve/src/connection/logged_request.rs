//! [`LoggedRequest`]: a copy of those fields of a request's head that the access log needs. Later
//! requests reuse its memory.

use crate::access::Keep;
use crate::request::Request;

/// A copy of the parts of a request that the access log needs. They are concatenated in `bytes`.
/// The other fields of this struct are the indexes in `bytes` at which the parts end.
#[derive(Default)]
pub(crate) struct LoggedRequest {
    bytes: Vec<u8>,
    /// The index in `bytes` at which the HTTP method ends. The next three fields of this struct are
    /// the indexes at which the path, the query and the `Referer` field end. The `User-Agent` field
    /// is the rest of `bytes`.
    method: usize,
    path: usize,
    query: usize,
    referer: usize,
    has_query: bool,
}

/// The largest capacity in bytes with which a [`LoggedRequest`] is kept for later requests. A
/// larger one is freed.
const MOST_KEPT_BYTES: usize = 4096;

impl LoggedRequest {
    /// Copies the fields of `request` that the access log needs, as selected by `keep`, into the
    /// memory of `self`.
    pub(super) fn of(mut self, request: &Request<'_>, keep: Keep) -> LoggedRequest {
        self.bytes.clear();
        self.method = self.put(request.method().as_bytes());
        self.path = self.put(request.path().as_bytes());
        let query = request.query().filter(|_| keep.query);
        self.has_query = query.is_some();
        self.query = self.put(query.unwrap_or("").as_bytes());
        let field = |name| request.header(name).filter(|_| keep.agent);
        self.referer = self.put(field("referer").unwrap_or(b""));
        self.put(field("user-agent").unwrap_or(b""));
        self
    }

    fn put(&mut self, bytes: &[u8]) -> usize {
        self.bytes.extend_from_slice(bytes);
        self.bytes.len()
    }

    pub(super) fn is_worth_keeping(&self) -> bool {
        self.bytes.capacity() <= MOST_KEPT_BYTES
    }

    pub(super) fn method(&self) -> &str {
        text(&self.bytes[..self.method])
    }

    pub(super) fn path(&self) -> &str {
        text(&self.bytes[self.method..self.path])
    }

    pub(super) fn query(&self) -> Option<&str> {
        let query = text(&self.bytes[self.path..self.query]);
        self.has_query.then_some(query)
    }

    pub(super) fn referer(&self) -> &[u8] {
        &self.bytes[self.query..self.referer]
    }

    pub(super) fn user_agent(&self) -> &[u8] {
        &self.bytes[self.referer..]
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("put in as a str")
}
