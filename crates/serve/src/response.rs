//! What a handler answers with.

use std::fmt;
use std::sync::Arc;

use onecopy_text::ledger::Ledger;
use onecopy_wire::{ChunkError, ChunkSource};

pub use crate::body::{FileBody, Held, Piece};
use crate::headers::{FieldLine, HeaderError, Headers};
pub use crate::items::{Items, NoItems, Pulled, Pushed};
pub use crate::stream_end::{Breaker, StreamEnd};

/// A status, header fields and a body. The server adds the framing fields, `Date` and `Connection` itself.
#[derive(Debug)]
pub struct Response {
    pub(crate) status: u16,
    /// A phrase of the application's own.
    pub(crate) reason: Option<Box<[u8]>>,
    pub(crate) headers: Headers,
    /// The length that the application has announced.
    pub(crate) announced: Option<u64>,
    pub(crate) body: Body,
    /// The connection is closed after the answer.
    pub(crate) closes: bool,
    /// The name of the first field that was left out.
    pub(crate) left_out: Option<Box<str>>,
}

impl Response {
    /// An answer with `status`, no header fields and no body.
    ///
    /// # Panics
    /// If `status` is not one of 200..=599: 1xx is the server's, and there is nothing beyond.
    #[must_use]
    pub fn new(status: u16) -> Response {
        assert!(
            (200..600).contains(&status),
            "`{status}` is not the status of an answer"
        );
        Response {
            status,
            reason: None,
            headers: Headers::default(),
            announced: None,
            body: Body::Empty,
            closes: false,
            left_out: None,
        }
    }

    /// Sets the phrase behind the status, where it is not the one of RFC 9110.
    ///
    /// # Errors
    /// [`HeaderError::Value`] if it holds a control character.
    pub fn reason(mut self, reason: &[u8]) -> Result<Response, HeaderError> {
        if reason != onecopy_wire::http::reason_phrase(self.status).as_bytes() {
            Headers::check_value("status", reason)?;
            self.reason = Some(reason.into());
        }
        Ok(self)
    }

    /// Adds a header field of an application that may say what a server says: `Content-Length`
    /// announces the length, `Date` replaces the server's. Hop-by-hop fields (RFC 9110, section
    /// 7.6.1) are left out, since they describe the connection, which the application does not
    /// know; `Connection: close` closes it after the answer.
    ///
    /// # Errors
    /// As [`Response::header`]; a `Content-Length` that is no number, or another one than before.
    pub fn field(&mut self, name: &str, value: &[u8]) -> Result<(), HeaderError> {
        if Headers::is_hop_by_hop(name) {
            let mut options = value.split(|b| *b == b',').map(<[u8]>::trim_ascii);
            let is_close = |option: &[u8]| option.eq_ignore_ascii_case(b"close");
            if name.eq_ignore_ascii_case("connection") && options.any(is_close) {
                self.closes = true;
            } else {
                self.left_out.get_or_insert_with(|| name.into());
            }
            return Ok(());
        }
        if !name.eq_ignore_ascii_case("content-length") {
            return self.headers.push_with_date(name, value);
        }
        let value = value.trim_ascii();
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let number = str::from_utf8(value).ok().filter(|_| is_number);
        let number = number.and_then(|digits| digits.parse().ok());
        match number {
            Some(n) if self.announced.is_none_or(|before| before == n) => {
                self.announced = Some(n);
                Ok(())
            }
            _ => Err(HeaderError::Length(
                String::from_utf8_lossy(value).into_owned(),
            )),
        }
    }

    /// Adds a header field that was checked before. Copies: one, of its line.
    pub fn line(&mut self, line: &FieldLine) {
        self.headers.push_line(line);
    }

    /// Adds a header field.
    ///
    /// # Errors
    /// [`HeaderError`] if the name is no token, the value holds CR, LF, NUL or another control character, or the
    /// field is one that the server writes itself.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Response, HeaderError> {
        self.headers.push(name, value.as_ref())?;
        Ok(self)
    }

    /// Sets `Content-Type` to a type the program knows while it is written.
    #[must_use]
    pub fn content_type(mut self, value: &'static str) -> Response {
        self.headers
            .push("Content-Type", value.as_bytes())
            .expect("a literal media type holds no control character");
        self
    }

    /// The first header field that [`Response::field`] has left out, if any.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// Announces the length of the body, unless the application has done so.
    pub fn announce(&mut self, n_bytes: u64) {
        self.announced.get_or_insert(n_bytes);
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into();
        self
    }

    /// A problem of RFC 9457: `application/problem+json` with `title` and `detail`, the form of every error answer.
    #[must_use]
    pub fn problem(status: u16, title: &str, detail: &str) -> Response {
        let mut json = Vec::with_capacity(64 + title.len() + detail.len());
        json.extend_from_slice(b"{\"type\":\"about:blank\",\"title\":");
        push_json_string(&mut json, title);
        json.extend_from_slice(b",\"status\":");
        json.extend_from_slice(status.to_string().as_bytes());
        json.extend_from_slice(b",\"detail\":");
        push_json_string(&mut json, detail);
        json.extend_from_slice(b"}\n");
        Response::new(status)
            .content_type("application/problem+json")
            .body(json)
    }

    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The header fields set so far.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The body.
    #[must_use]
    pub fn body_ref(&self) -> &Body {
        &self.body
    }

    /// Takes the answer apart: for tests of handlers, and for handlers that wrap others.
    #[must_use]
    pub fn into_parts(self) -> (u16, Headers, Body) {
        (self.status, self.headers, self.body)
    }
}

/// The bytes of an answer. Copies: none, whatever the kind; a body is written from where it lies.
#[derive(Default)]
#[non_exhaustive]
pub enum Body {
    /// No bytes; `Content-Length: 0` where the status allows a body.
    #[default]
    Empty,
    /// Bytes made for this answer.
    Bytes(Vec<u8>),
    /// Bytes shared with other answers.
    Shared(Arc<[u8]>),
    /// Bytes of the program.
    Static(&'static [u8]),
    /// Bytes of somebody else's object.
    Held(Held),
    /// Bytes of several such objects, one behind the other.
    Parts(Vec<Held>),
    /// A part of a file.
    File(FileBody),
    /// Parts of files, and bytes between them.
    Pieces(Vec<Piece>),
    /// Items that are made one by one on a handler's thread.
    Items(Box<dyn Items>),
    /// A stream.
    Chunks(Box<Chunks>),
}

impl Body {
    /// The length in bytes where it is known before sending.
    #[must_use]
    pub fn len_bytes(&self) -> Option<usize> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(b) => Some(b.len()),
            Body::Shared(b) => Some(b.len()),
            Body::Static(b) => Some(b.len()),
            Body::Held(b) => Some(b.len()),
            Body::Parts(parts) => Some(parts.iter().map(|part| part.len()).sum()),
            Body::File(file) => Some(file.n_bytes),
            Body::Pieces(pieces) => Some(pieces.iter().map(Piece::len_bytes).sum()),
            Body::Items(_) | Body::Chunks(_) => None,
        }
    }
}

impl Body {
    /// The bytes of a body that is one piece of memory.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Body::Bytes(bytes) => Some(bytes),
            Body::Shared(bytes) => Some(bytes),
            Body::Static(bytes) => Some(bytes),
            Body::Held(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Leaves out what stands behind the first `len` bytes of a body of known length.
    pub(crate) fn cut(&mut self, len: usize) {
        match self {
            Body::Bytes(b) => b.truncate(len),
            Body::Shared(b) if b.len() > len => *b = Arc::from(&b[..len]),
            Body::Static(b) => *b = &b[..len.min(b.len())],
            Body::Held(b) => b.cut(len),
            Body::Parts(parts) => {
                let mut left = len;
                for part in parts {
                    part.cut(left);
                    left -= part.len();
                }
            }
            Body::File(file) => file.cut(len),
            Body::Pieces(pieces) => {
                let mut left = len;
                for piece in pieces {
                    piece.cut(left);
                    left -= piece.len_bytes();
                }
            }
            _ => {}
        }
    }

    /// The body as items. Those of files and of sources fail: such a body has to be the whole of an
    /// answer.
    pub(crate) fn into_items(self) -> Box<dyn Items> {
        let held = match self {
            Body::Items(items) => return items,
            Body::Parts(parts) => parts,
            Body::Empty => Vec::new(),
            Body::Bytes(bytes) => vec![Held::new(bytes)],
            Body::Shared(bytes) => vec![Held::new(bytes)],
            Body::Static(bytes) => vec![Held::new(bytes)],
            Body::Held(bytes) => vec![bytes],
            Body::File(_) | Body::Pieces(_) | Body::Chunks(_) => {
                return Box::new(NoItems);
            }
        };
        Box::new(held.into_iter())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Empty => f.write_str("Empty"),
            Body::Chunks(_) => f.write_str("Chunks"),
            Body::Items(_) => f.write_str("Items"),
            known => write!(f, "{} bytes", known.len_bytes().unwrap_or(0)),
        }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::Bytes(text.into_bytes())
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(bytes: Arc<[u8]>) -> Body {
        Body::Shared(bytes)
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Body {
        Body::Static(bytes)
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::Static(text.as_bytes())
    }
}

impl From<Chunks> for Body {
    fn from(chunks: Chunks) -> Body {
        Body::Chunks(Box::new(chunks))
    }
}

/// Called once with how a stream ended, after its source was dropped (but for one that a [`Breaker`] failed).
pub type OnEnd = Box<dyn FnOnce(StreamEnd) + Send>;

/// Makes the answer that is sent when the very first fill of a stream fails, while the status is still open.
pub type OnError = Box<dyn FnOnce(&ChunkError) -> Response + Send>;

/// A body that is pulled from a [`ChunkSource`], chunk by chunk, on a worker thread.
///
/// The head is held until the first chunk is filled. At most one chunk is being sent while the next is filled.
pub struct Chunks {
    pub(crate) source: Box<dyn ChunkSource>,
    pub(crate) begun: Option<Held>,
    pub(crate) on_end: Option<OnEnd>,
    pub(crate) on_error: Option<OnError>,
    pub(crate) breaker: Option<Breaker>,
    pub(crate) ledger: Ledger,
}

impl Chunks {
    /// A stream of what `source` fills.
    #[must_use]
    pub fn new(source: impl ChunkSource + 'static) -> Chunks {
        Chunks {
            source: Box::new(source),
            begun: None,
            on_end: None,
            on_error: None,
            breaker: None,
            ledger: Ledger::off(),
        }
    }

    /// Sends these bytes before all that the source fills: it was asked for them before.
    #[must_use]
    pub fn begun(mut self, bytes: Held) -> Chunks {
        self.begun = (!bytes.is_empty()).then_some(bytes);
        self
    }

    /// Calls `on_end` exactly once, with how the stream ended, on a thread of the server; it must not block.
    #[must_use]
    pub fn on_end(mut self, on_end: impl FnOnce(StreamEnd) + Send + 'static) -> Chunks {
        self.on_end = Some(Box::new(on_end));
        self
    }

    /// Answers with what `on_error` makes of the error if the first fill fails. Without it: 500 with no detail.
    #[must_use]
    pub fn on_error(
        mut self,
        on_error: impl FnOnce(&ChunkError) -> Response + Send + 'static,
    ) -> Chunks {
        self.on_error = Some(Box::new(on_error));
        self
    }

    /// Lets `breaker` fail this stream.
    #[must_use]
    pub fn breaker(mut self, breaker: &Breaker) -> Chunks {
        self.breaker = Some(breaker.clone());
        self
    }

    /// Counts into `ledger` what the server handles of this answer in user space: its head. Of the body that is nothing;
    /// what its source converts and copies, the source counts.
    #[must_use]
    pub fn ledger(mut self, ledger: &Ledger) -> Chunks {
        self.ledger = ledger.clone();
        self
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chunks")
    }
}

/// Writes `text` as a JSON string. The server's own messages are short; rows go through `wire::json`.
fn push_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            c if c < ' ' => out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_escapes_its_texts() {
        let (status, _, body) = Response::problem(400, "a \"b\"", "x\n\u{1}é").into_parts();
        assert_eq!(status, 400);
        let Body::Bytes(bytes) = body else {
            panic!("a problem has bytes")
        };
        let expected = "{\"type\":\"about:blank\",\"title\":\"a \\\"b\\\"\",\"status\":400,\
                        \"detail\":\"x\\n\\u0001é\"}\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
