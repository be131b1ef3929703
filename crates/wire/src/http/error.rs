//! [`HeadError`], [`ChunkedError`] and [`ResponseError`]: the reasons why an HTTP message is
//! rejected. Each error of a request determines the HTTP status of the error response.

use std::fmt;

use onecopy_text::SinkFull;

/// The reason why [`super::HeadParser::advance`] rejects a request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeadError {
    /// The request line is not `method SP target SP HTTP/d.d`.
    RequestLine,
    /// The method is longer than 24 bytes, or is CONNECT. No registered method is that long.
    /// CONNECT would turn the connection into a tunnel (RFC 9110, section 9.3.6), and this server
    /// is not a proxy.
    Method,
    /// The target contains `#` or a byte that is not visible ASCII, or it is in none of the forms
    /// of [`super::TargetForm`].
    Target,
    /// The HTTP version is syntactically valid, but neither 1.0 nor 1.1.
    Version,
    /// A line ends with an LF without a CR before it.
    BareLf,
    /// The head contains a CR that is not followed by LF.
    BareCr,
    /// The head contains NUL, DEL or another control character that is not permitted.
    Control,
    /// A field line begins with a space or tab: obsolete line folding (RFC 9112, section 5.2).
    Folded,
    /// A field line has no colon, an empty name, or a name with a byte that is not permitted in a
    /// token, such as a space before the colon.
    FieldName,
    /// The name of a field contains `_`, and [`super::HeadLimits::underscores`] is `false`.
    Underscore,
    /// An HTTP/1.1 request has no `Host` field, or a request of any version has more than one.
    Host,
    /// The value of `Host`, or the host and port in the target, is empty or invalid.
    Authority,
    /// A field that RFC 9110 permits only once (such as `Content-Type`, `Authorization` or `Range`)
    /// occurs more than once. Parsers differ in which of the values they use.
    Repeated,
    /// `Content-Length` occurs more than once, is not a sequence of digits, or exceeds 64 bits.
    ContentLength,
    /// `Transfer-Encoding` has another coding after `chunked`, or is malformed.
    TransferEncoding,
    /// `Transfer-Encoding` occurs together with `Content-Length`. Two servers may differ in which
    /// of the two fields they use, which permits request smuggling (RFC 9112, section 6.1).
    CodingAndLength,
    /// `Transfer-Encoding` occurs in an HTTP/1.0 request. A server that implements only HTTP/1.0
    /// ignores the field, and therefore finds a different end of the body (RFC 9112, section 6.1).
    CodingInHttp10,
    /// The request has a transfer coding other than `chunked`. This server supports no other
    /// transfer coding.
    UnknownCoding,
    /// The request has an `Expect` field with a value other than `100-continue`.
    Expectation,
    /// The target is longer than [`super::HeadLimits::max_target_bytes`].
    TargetTooLong,
    /// The head is longer than [`super::HeadLimits::max_head_bytes`].
    HeadTooLarge,
    /// The head has more fields than [`super::HeadLimits::max_headers`].
    TooManyHeaders,
}

impl HeadError {
    /// All variants. Tests use this list to check each error.
    pub const ALL: [HeadError; 22] = [
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
        HeadError::CodingAndLength,
        HeadError::CodingInHttp10,
        HeadError::UnknownCoding,
        HeadError::Expectation,
        HeadError::TargetTooLong,
        HeadError::HeadTooLarge,
        HeadError::TooManyHeaders,
    ];

    /// Returns the HTTP status of the response to a head with this error. After the response, the
    /// server closes the connection.
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
            HeadError::BareLf => "a line of the head ends with LF without CR",
            HeadError::BareCr => "a CR in the head is not followed by LF",
            HeadError::Control => "the head contains a control character",
            HeadError::Folded => "a header is folded over two lines",
            HeadError::FieldName => "a header name is not a token",
            HeadError::Underscore => {
                "a header name contains `_`, which CGI cannot distinguish from `-`"
            }
            HeadError::Host => "exactly one `Host` header is needed",
            HeadError::Authority => "the host is not valid",
            HeadError::Repeated => "a header that has one value occurs twice",
            HeadError::ContentLength => "`Content-Length` is not one number",
            HeadError::TransferEncoding => {
                "`Transfer-Encoding` is malformed, or has a coding after `chunked`"
            }
            HeadError::CodingAndLength => {
                "the request has both `Transfer-Encoding` and `Content-Length`"
            }
            HeadError::CodingInHttp10 => "HTTP/1.0 has no `Transfer-Encoding`",
            HeadError::UnknownCoding => "the transfer coding is not known",
            HeadError::Expectation => "the expectation is not known",
            HeadError::TargetTooLong => "the request target is too long",
            HeadError::HeadTooLarge => "the request head is too large",
            HeadError::TooManyHeaders => "the request has too many headers",
        })
    }
}

impl std::error::Error for HeadError {}

/// The reason why [`super::ChunkedReader::next`] rejects a request body in the chunked coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkedError {
    /// The size of a chunk does not consist of 1 to 16 hexadecimal digits.
    Size,
    /// A chunk extension contains an invalid byte, or the extensions together are longer than their
    /// limit.
    Extension,
    /// A size line or trailer line does not end with CR LF.
    LineEnd,
    /// The data of a chunk is not followed by CR LF.
    DataEnd,
    /// A trailer field is malformed or not permitted, or the trailer is longer than its limit.
    Trailer,
    /// The body is longer than [`super::ChunkedLimits::max_body_bytes`].
    BodyTooLarge,
}

impl ChunkedError {
    /// All variants. Tests use this list to check each error.
    pub const ALL: [ChunkedError; 6] = [
        ChunkedError::Size,
        ChunkedError::Extension,
        ChunkedError::LineEnd,
        ChunkedError::DataEnd,
        ChunkedError::Trailer,
        ChunkedError::BodyTooLarge,
    ];

    /// Returns the HTTP status of the response to this error. After the response, the server closes
    /// the connection.
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
            ChunkedError::Size => "a chunk size does not consist of 1 to 16 hexadecimal digits",
            ChunkedError::Extension => "a chunk extension is malformed or too long",
            ChunkedError::LineEnd => "a line of the chunked coding does not end with CR LF",
            ChunkedError::DataEnd => "a chunk is longer than its size",
            ChunkedError::Trailer => "the trailer is malformed or too long",
            ChunkedError::BodyTooLarge => "the request body is too large",
        })
    }
}

impl std::error::Error for ChunkedError {}

/// The reason why [`super::ResponseHead`] refuses to write a response head. The cause is usually a
/// bug in the application, such as an invalid field name or value. For example, a field value with
/// a line break would add another field to the head. After an error, the sink is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseError {
    /// The status is not 100 to 999.
    Status(u16),
    /// The reason phrase contains a control character.
    Reason,
    /// The name of a field is not a token (RFC 9110). The string is the name, with unprintable
    /// characters escaped.
    Name(String),
    /// The value of a field contains CR, LF, NUL or another control character. The string is the
    /// name of the field.
    Value(String),
    /// The sink cannot grow to contain the head.
    SinkFull(SinkFull),
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseError::Status(status) => write!(f, "`{status}` is not an HTTP status"),
            ResponseError::Reason => f.write_str("the reason phrase contains a control character"),
            ResponseError::Name(name) => write!(f, "`{name}` is not a header name"),
            ResponseError::Value(name) => {
                write!(
                    f,
                    "the value of header `{name}` contains a control character"
                )
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
