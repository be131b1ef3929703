//! Why a message is refused, and the status that says so.

use std::fmt;

use onecopy_text::SinkFull;

/// A request head is refused. After any of them the connection is of no more use: where the next request would begin is
/// not known. Emitted by [`super::HeadParser::advance`]; the peer's request is at fault, or an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeadError {
    /// The request line is not `method SP target SP HTTP/d.d`.
    RequestLine,
    /// The method is longer than any that is known (24 bytes), or CONNECT: RFC 9110, section 9.3.6,
    /// would make a tunnel of the connection, and this is no proxy.
    Method,
    /// The target holds a byte that no URI may, or has none of the four forms (RFC 9112, section 3.2).
    Target,
    /// The version is well-formed, but neither 1.0 nor 1.1.
    Version,
    /// A line ends with LF alone.
    BareLf,
    /// A CR that no LF follows.
    BareCr,
    /// NUL, another control or DEL.
    Control,
    /// A field line that begins with space or tab: the obsolete line folding (RFC 9112, section 5.2).
    Folded,
    /// A field line with no colon, an empty name, or a name with a byte that no token may hold, space before the colon
    /// included.
    FieldName,
    /// A name with `_`, where [`super::HeadLimits::underscores`] says no.
    Underscore,
    /// HTTP/1.1 without `Host`, or any version with more than one.
    Host,
    /// `Host`, or the target's authority, is empty or no authority.
    Authority,
    /// A field of one value (RFC 9110: `Content-Type`, `Authorization`, `Range`, …) occurs twice:
    /// readers differ in which one they take.
    Repeated,
    /// `Content-Length` stands more than once, is no plain number, or is past 64 bits.
    ContentLength,
    /// `Transfer-Encoding` together with `Content-Length`, in HTTP/1.0, with `chunked` before
    /// another coding, or malformed.
    TransferEncoding,
    /// A transfer coding other than `chunked`, in one field line or several.
    UnknownCoding,
    /// An expectation other than `100-continue`.
    Expectation,
    /// The target is longer than [`super::HeadLimits::max_target_bytes`].
    TargetTooLong,
    /// The head is longer than [`super::HeadLimits::max_head_bytes`].
    HeadTooLarge,
    /// More fields than [`super::HeadLimits::max_headers`].
    TooManyHeaders,
}

impl HeadError {
    /// Every kind, for tables that must be complete.
    pub const ALL: [HeadError; 20] = [
        HeadError::RequestLine,
        HeadError::Method,
        HeadError::Target,
        HeadError::Version,
        HeadError::BareLf,
        HeadError::BareCr,
        HeadError::Control,
        HeadError::Folded,
        HeadError::FieldName,
        HeadError::Underscore,
        HeadError::Host,
        HeadError::Authority,
        HeadError::Repeated,
        HeadError::ContentLength,
        HeadError::TransferEncoding,
        HeadError::UnknownCoding,
        HeadError::Expectation,
        HeadError::TargetTooLong,
        HeadError::HeadTooLarge,
        HeadError::TooManyHeaders,
    ];

    /// The status to answer with before closing.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            HeadError::TargetTooLong => 414,
            HeadError::Expectation => 417,
            HeadError::HeadTooLarge | HeadError::TooManyHeaders => 431,
            HeadError::Method | HeadError::UnknownCoding => 501,
            HeadError::Version => 505,
            _ => 400,
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeadError::RequestLine => "the request line is not `method target HTTP/1.1`",
            HeadError::Method => "the method is not supported",
            HeadError::Target => "the request target is not valid\npercent-encode it",
            HeadError::Version => "the HTTP version is not supported\nuse HTTP/1.1",
            HeadError::BareLf => "a line of the head ends with LF alone",
            HeadError::BareCr => "a CR in the head is not followed by LF",
            HeadError::Control => "the head holds a control character",
            HeadError::Folded => "a header is folded over two lines",
            HeadError::FieldName => "a header name is not a token",
            HeadError::Underscore => "a header name holds `_`, which CGI cannot tell from `-`",
            HeadError::Host => "exactly one `Host` header is needed",
            HeadError::Authority => "the host is not valid",
            HeadError::Repeated => "a header that has one value occurs twice",
            HeadError::ContentLength => "`Content-Length` is not one number",
            HeadError::TransferEncoding => "`Transfer-Encoding` is not `chunked`",
            HeadError::UnknownCoding => "the transfer coding is not known",
            HeadError::Expectation => "the expectation is not known",
            HeadError::TargetTooLong => "the request target is too long",
            HeadError::HeadTooLarge => "the request head is too large",
            HeadError::TooManyHeaders => "the request has too many headers",
        })
    }
}

impl std::error::Error for HeadError {}

/// A chunked body is refused. Emitted by [`super::ChunkedReader::next`]; the peer's request is at fault. A body that ends
/// early is no such error: the reader has not said [`super::Piece::End`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkedError {
    /// The size is not 1 to 16 hexadecimal digits.
    Size,
    /// A chunk extension holds what it must not, or extensions are past their limit.
    Extension,
    /// A line ends otherwise than with CR LF.
    LineEnd,
    /// Behind a chunk's data stands something other than CR LF.
    DataEnd,
    /// A trailer field is malformed, or the trailer is past its limit.
    Trailer,
    /// The body is longer than [`super::ChunkedLimits::max_body_bytes`].
    BodyTooLarge,
}

impl ChunkedError {
    /// Every kind, for tables that must be complete.
    pub const ALL: [ChunkedError; 6] = [
        ChunkedError::Size,
        ChunkedError::Extension,
        ChunkedError::LineEnd,
        ChunkedError::DataEnd,
        ChunkedError::Trailer,
        ChunkedError::BodyTooLarge,
    ];

    /// The status to answer with before closing.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            ChunkedError::BodyTooLarge => 413,
            _ => 400,
        }
    }
}

impl fmt::Display for ChunkedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChunkedError::Size => "a chunk size is not a hexadecimal number",
            ChunkedError::Extension => "a chunk extension is malformed or too long",
            ChunkedError::LineEnd => "a line of the chunked coding does not end with CR LF",
            ChunkedError::DataEnd => "a chunk is longer than its size",
            ChunkedError::Trailer => "the trailer is malformed or too long",
            ChunkedError::BodyTooLarge => "the request body is too large",
        })
    }
}

impl std::error::Error for ChunkedError {}

/// A response head cannot be written: what was given would let a value break out of its line. Emitted by
/// [`super::ResponseHead`]; the application is at fault. The sink is then as it was before the head began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseError {
    /// The status is not 100 to 999.
    Status(u16),
    /// The reason phrase holds a control character.
    Reason,
    /// A name is no token; as given, with what is not printable escaped.
    Name(String),
    /// The value of this header holds CR, LF, NUL or another control.
    Value(String),
    /// The sink cannot grow.
    SinkFull(SinkFull),
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseError::Status(status) => write!(f, "`{status}` is not an HTTP status"),
            ResponseError::Reason => f.write_str("the reason phrase holds a control character"),
            ResponseError::Name(name) => write!(f, "`{name}` is not a header name"),
            ResponseError::Value(name) => {
                write!(f, "the value of header `{name}` holds a control character")
            }
            ResponseError::SinkFull(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ResponseError {}

impl From<SinkFull> for ResponseError {
    fn from(e: SinkFull) -> Self {
        ResponseError::SinkFull(e)
    }
}
