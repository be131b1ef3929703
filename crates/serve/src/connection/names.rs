//! What an access log is told of a request's head: one copy, into memory that later requests use again.

use crate::access::Keep;
use crate::request::Request;

/// Texts of a head, one behind the other.
#[derive(Default)]
pub(crate) struct LoggedRequest {
    bytes: Vec<u8>,
    /// Where the method, the path and the query end; from there the two fields.
    method: usize,
    path: usize,
    query: usize,
    referer: usize,
    has_query: bool,
}

/// Memory of that size is not kept.
const MOST_KEPT_BYTES: usize = 4096;

impl LoggedRequest {
    /// Those of `request`, as far as `keep` asks for them, in the memory of `self`.
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
