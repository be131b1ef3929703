//! [`Response`]: the response that a handler returns. [`Body`]: the types of response bodies.

use std::fmt;
use std::sync::Arc;

use onecopy_text::ledger::Ledger;
use onecopy_wire::{ChunkError, ChunkSource};

pub use crate::body::{BodyPart, FileBody, SharedBytes};
use crate::headers::{FieldLine, HeaderError, Headers};
pub use crate::items::{Items, NoItems, Pulled, Pushed};
pub use crate::stream_end::{Breaker, StreamEnd};

/// A response: a status, header fields and a body. The server adds the framing fields, `Date` and
/// `Connection`.
#[derive(Debug)]
pub struct Response {
    pub(crate) status: u16,
    /// The reason phrase that the application has set; `None` for that of RFC 9110.
    pub(crate) reason: Option<Box<[u8]>>,
    pub(crate) headers: Headers,
    /// The length of the body in bytes that the application has announced; `None` if it has
    /// announced no length.
    pub(crate) announced: Option<u64>,
    pub(crate) body: Body,
    /// `true` if the connection is closed after the response.
    pub(crate) closes: bool,
    /// The name of the first header field that was omitted because an application may not set it;
    /// `None` if no field was omitted.
    pub(crate) left_out: Option<Box<str>>,
}

impl Response {
    /// Creates a response with `status`, no header fields and no body.
    ///
    /// # Panics
    /// If `status` is not in 200..=599. Only the server sends a status below 200, and no status is
    /// above 599.
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

    /// Sets the reason phrase of the response, instead of the phrase in RFC 9110.
    ///
    /// # Errors
    /// [`HeaderError::Value`] if the phrase contains a control character.
    pub fn reason(mut self, reason: &[u8]) -> Result<Response, HeaderError> {
        if reason != onecopy_wire::http::reason_phrase(self.status).as_bytes() {
            Headers::check_value("status", reason)?;
            self.reason = Some(reason.into());
        }
        Ok(self)
    }

    /// Adds a header field of an application. `Content-Length` announces the length of the body,
    /// and `Date` replaces the server's `Date`. Hop-by-hop fields (RFC 9110, section 7.6.1) are
    /// omitted, because only the server controls the connection. `Connection: close` is omitted
    /// too, but the connection is closed after the response.
    ///
    /// # Errors
    /// The errors of [`Response::header`]. Also an error if `Content-Length` is not a number, or
    /// contradicts an earlier `Content-Length`.
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

    /// Adds a header field that was validated when `line` was created. Its bytes are copied once.
    pub fn line(&mut self, line: &FieldLine) {
        self.headers.push_line(line);
    }

    /// Adds a header field.
    ///
    /// # Errors
    /// [`HeaderError`] if the name is not a token, the value contains CR, LF, NUL or another
    /// control character, or only the server may write the field.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Response, HeaderError> {
        self.headers.push(name, value.as_ref())?;
        Ok(self)
    }

    /// Sets `Content-Type` to `value`, a string constant in the source code.
    #[must_use]
    pub fn content_type(mut self, value: &'static str) -> Response {
        self.headers
            .push("Content-Type", value.as_bytes())
            .expect("a literal media type holds no control character");
        self
    }

    /// Returns the name of the first header field that [`Response::field`] has omitted; `None` if
    /// it has omitted none.
    #[must_use]
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// Announces the length of the body in bytes. Has no effect if a length was already announced.
    pub fn announce(&mut self, n_bytes: u64) {
        self.announced.get_or_insert(n_bytes);
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into();
        self
    }

    /// Creates a problem document (RFC 9457): a response of the type `application/problem+json`
    /// with `title` and `detail`. All error responses of the server are problem documents.
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

    /// Returns the status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the header fields set so far.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Returns a reference to the body.
    #[must_use]
    pub fn body_ref(&self) -> &Body {
        &self.body
    }

    /// Returns the status, the header fields and the body. This method is meant for tests of
    /// handlers, and for handlers that wrap other handlers.
    #[must_use]
    pub fn into_parts(self) -> (u16, Headers, Body) {
        (self.status, self.headers, self.body)
    }
}

/// The body of a response. The kernel reads the bytes from the memory or file that contains them,
/// without a copy in this process. Only [`BodyPart::Bytes`] and short bodies are copied.
#[derive(Default)]
#[non_exhaustive]
pub enum Body {
    /// No body. The server sends `Content-Length: 0` if the status permits a body.
    #[default]
    Empty,
    /// Bytes that belong to this response only.
    Bytes(Vec<u8>),
    /// Bytes that several responses share.
    Shared(Arc<[u8]>),
    /// Bytes that are a constant of the program.
    Static(&'static [u8]),
    /// Bytes in the memory of another object, such as a Python `bytes`.
    SharedBytes(SharedBytes),
    /// Bytes of several objects, which are sent one after the other.
    Parts(Vec<SharedBytes>),
    /// A range of a file.
    File(FileBody),
    /// Ranges of files and other bytes, in the order in which they are sent.
    Pieces(Vec<BodyPart>),
    /// Items that the application produces one by one, on a thread for handlers.
    Items(Box<dyn Items>),
    /// A row stream, which is sent chunk by chunk.
    Chunks(Box<Chunks>),
}

impl Body {
    /// Returns the length of the body in bytes; `None` if it is not known before the body is sent.
    #[must_use]
    pub fn len_bytes(&self) -> Option<usize> {
        match self {
            Body::Empty => Some(0),
            Body::Bytes(b) => Some(b.len()),
            Body::Shared(b) => Some(b.len()),
            Body::Static(b) => Some(b.len()),
            Body::SharedBytes(b) => Some(b.len()),
            Body::Parts(parts) => Some(parts.iter().map(|part| part.len()).sum()),
            Body::File(file) => Some(file.n_bytes),
            Body::Pieces(pieces) => Some(pieces.iter().map(BodyPart::len_bytes).sum()),
            Body::Items(_) | Body::Chunks(_) => None,
        }
    }
}

impl Body {
    /// Returns the bytes of the body if they are contiguous in memory; otherwise `None`.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Body::Bytes(bytes) => Some(bytes),
            Body::Shared(bytes) => Some(bytes),
            Body::Static(bytes) => Some(bytes),
            Body::SharedBytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Shortens a body of known length to its first `len` bytes. Has no effect on other bodies.
    pub(crate) fn cut(&mut self, len: usize) {
        match self {
            Body::Bytes(b) => b.truncate(len),
            Body::Shared(b) if b.len() > len => *b = Arc::from(&b[..len]),
            Body::Static(b) => *b = &b[..len.min(b.len())],
            Body::SharedBytes(b) => b.cut(len),
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

    /// Converts the body to [`Items`], which return its bytes one after another. A file or a row
    /// stream cannot be converted; the returned items then fail.
    pub(crate) fn into_items(self) -> Box<dyn Items> {
        let held = match self {
            Body::Items(items) => return items,
            Body::Parts(parts) => parts,
            Body::Empty => Vec::new(),
            Body::Bytes(bytes) => vec![SharedBytes::new(bytes)],
            Body::Shared(bytes) => vec![SharedBytes::new(bytes)],
            Body::Static(bytes) => vec![SharedBytes::new(bytes)],
            Body::SharedBytes(bytes) => vec![bytes],
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

/// The function that is called once, when a row stream has ended. The source of the stream was
/// dropped before the call, unless a [`Breaker`] has ended the stream. In that case, the source may
/// still exist.
pub type OnEnd = Box<dyn FnOnce(StreamEnd) + Send>;

/// The function that returns the response to send instead of a row stream whose first chunk could
/// not be filled.
pub type OnError = Box<dyn FnOnce(&ChunkError) -> Response + Send>;

/// A body that a [`ChunkSource`] produces on a worker thread, chunk by chunk.
///
/// The head is sent together with the first chunk. While a chunk is sent, at most one further chunk
/// is filled.
pub struct Chunks {
    pub(crate) source: Box<dyn ChunkSource>,
    pub(crate) begun: Option<SharedBytes>,
    pub(crate) on_end: Option<OnEnd>,
    pub(crate) on_error: Option<OnError>,
    pub(crate) breaker: Option<Breaker>,
    pub(crate) ledger: Ledger,
}

impl Chunks {
    /// Creates a stream of the chunks that `source` fills.
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

    /// Sets bytes that are sent before the first chunk. They are bytes that the application has
    /// already read from the source.
    #[must_use]
    pub fn begun(mut self, bytes: SharedBytes) -> Chunks {
        self.begun = (!bytes.is_empty()).then_some(bytes);
        self
    }

    /// Sets a function that is called exactly once, when the stream has ended, with the outcome of
    /// the stream. It runs on a thread of the server and must not block.
    #[must_use]
    pub fn on_end(mut self, on_end: impl FnOnce(StreamEnd) + Send + 'static) -> Chunks {
        self.on_end = Some(Box::new(on_end));
        self
    }

    /// Sets a function that returns the response if the first chunk cannot be filled. Without such
    /// a function, the response is the server's own error response.
    #[must_use]
    pub fn on_error(
        mut self,
        on_error: impl FnOnce(&ChunkError) -> Response + Send + 'static,
    ) -> Chunks {
        self.on_error = Some(Box::new(on_error));
        self
    }

    /// Connects `breaker` to this stream. The breaker can end the stream with an error, even while
    /// a worker waits for the source.
    #[must_use]
    pub fn breaker(mut self, breaker: &Breaker) -> Chunks {
        self.breaker = Some(breaker.clone());
        self
    }

    /// Sets the ledger in which the server counts the copied bytes of this response. The server
    /// copies only the bytes of the head. The source counts the conversions and copies of the body.
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

/// Appends `text` as a JSON string. This function is only for short messages of the server; rows
/// are written by `wire::json`.
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
