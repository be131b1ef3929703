//! [`ResponseHead`]: a writer of response heads, which validates the fields.

use onecopy_text::ByteSink;
use onecopy_text::sink::Mark;

use super::chunk_writer::write_field;
use super::error::ResponseError;
use super::field;

/// A writer of a status line and header fields to a sink. If a field cannot be written, the
/// complete head is removed from the sink, so that an incomplete head cannot be sent.
///
/// The caller determines whether the response needs the fields `Date`, `Content-Length` or
/// `Transfer-Encoding`, and `Connection`.
#[derive(Debug)]
pub struct ResponseHead<'s, S: ByteSink> {
    sink: &'s mut S,
    start: Mark,
}

impl<'s, S: ByteSink> ResponseHead<'s, S> {
    /// Begins an HTTP/1.1 response with the reason phrase that RFC 9110 defines for `status`.
    ///
    /// # Errors
    /// Returns [`ResponseError::Status`] or [`ResponseError::SinkFull`].
    pub fn begin(status: u16, sink: &'s mut S) -> Result<ResponseHead<'s, S>, ResponseError> {
        ResponseHead::begin_with_reason(status, reason_phrase(status).as_bytes(), sink)
    }

    /// Begins an HTTP/1.1 response with a reason phrase that the application has chosen. WSGI
    /// applications need this.
    ///
    /// # Errors
    /// Returns [`ResponseError::Status`], [`ResponseError::Reason`] or [`ResponseError::SinkFull`].
    pub fn begin_with_reason(
        status: u16,
        reason: &[u8],
        sink: &'s mut S,
    ) -> Result<ResponseHead<'s, S>, ResponseError> {
        if !(100..=999).contains(&status) {
            return Err(ResponseError::Status(status));
        }
        if !field::is_value(reason) {
            return Err(ResponseError::Reason);
        }
        let start = sink.mark();
        let mut window = sink.window("HTTP/1.1 200 \r\n".len() + reason.len())?;
        window.put(b"HTTP/1.1 ");
        window.put(&[
            b'0' + (status / 100) as u8,
            b'0' + (status / 10 % 10) as u8,
            b'0' + (status % 10) as u8,
            b' ',
        ]);
        window.put(reason);
        window.put(b"\r\n");
        drop(window);
        Ok(ResponseHead { sink, start })
    }

    /// Appends a field. `value` is the bytes to send. They are Latin-1 if a WSGI application has
    /// set the field, and otherwise ASCII.
    ///
    /// # Errors
    /// Returns [`ResponseError::Name`], [`ResponseError::Value`] or [`ResponseError::SinkFull`].
    /// The complete head is then removed from the sink.
    pub fn field(self, name: &str, value: &[u8]) -> Result<Self, ResponseError> {
        match write_field(name.as_bytes(), value, self.sink) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.sink.rewind(self.start);
                Err(error)
            }
        }
    }

    /// Appends the field `Content-Length`.
    ///
    /// # Errors
    /// Returns [`ResponseError::SinkFull`] if the sink has no space. The head is then removed from
    /// the sink.
    pub fn content_length(self, len_bytes: u64) -> Result<Self, ResponseError> {
        let digits = crate::inline_text::InlineText::of_u64(len_bytes, false);
        let put = put_line(b"Content-Length: ", digits.as_bytes(), self.sink);
        if let Err(error) = put {
            self.sink.rewind(self.start);
            return Err(error);
        }
        Ok(self)
    }

    /// Appends the field `Transfer-Encoding: chunked`.
    ///
    /// # Errors
    /// Returns [`ResponseError::SinkFull`] if the sink has no space. The head is then removed from
    /// the sink.
    pub fn chunked(self) -> Result<Self, ResponseError> {
        self.field("Transfer-Encoding", b"chunked")
    }

    /// Ends the head by the empty line after its fields.
    ///
    /// # Errors
    /// Returns [`ResponseError::SinkFull`] if the sink has no space. The head is then removed from
    /// the sink.
    pub fn end(self) -> Result<(), ResponseError> {
        self.sink.put(b"\r\n").map_err(|error| {
            self.sink.rewind(self.start);
            error.into()
        })
    }
}

/// Appends a field line. The name (with colon and space) and the value must be valid.
fn put_line<S: ByteSink>(name: &[u8], value: &[u8], sink: &mut S) -> Result<(), ResponseError> {
    let mut window = sink.window(name.len() + value.len() + 2)?;
    window.put(name);
    window.put(value);
    window.put(b"\r\n");
    Ok(())
}

/// Returns the reason phrase that RFC 9110 or RFC 6585 defines for a status. Returns an empty
/// string for any other status, and for the rarely used 305, 402, 407 and 511.
#[must_use]
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{ChunkedError, HeadError};

    #[test]
    fn a_head_is_written_in_order() {
        let mut sink = Vec::new();
        ResponseHead::begin(200, &mut sink)
            .and_then(|h| h.field("Content-Type", b"text/csv"))
            .and_then(|h| h.content_length(42))
            .and_then(ResponseHead::end)
            .expect("valid");
        assert_eq!(
            sink,
            b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 42\r\n\r\n"
        );
    }

    #[test]
    fn values_that_would_break_their_line_take_the_head_back() {
        let bad: [(&str, &[u8]); 7] = [
            ("X", b"a\r\nSet-Cookie: x"),
            ("X", b"a\nb"),
            ("X", b"a\rb"),
            ("X", b"a\0b"),
            ("X", b"a\x7F"),
            ("X\r\nY", b"a"),
            ("X Y", b"a"),
        ];
        for (name, value) in bad {
            let mut sink = b"before".to_vec();
            let head = ResponseHead::begin(200, &mut sink).and_then(|h| h.field("A", b"b"));
            assert!(head.and_then(|h| h.field(name, value)).is_err());
            assert_eq!(sink, b"before");
        }
    }

    #[test]
    fn a_status_line_that_would_break_is_refused() {
        for status in [0, 99, 1000] {
            let error = ResponseHead::begin(status, &mut Vec::new()).err();
            assert_eq!(error, Some(ResponseError::Status(status)));
        }
        let error = ResponseHead::begin_with_reason(200, b"OK\r\nX: y", &mut Vec::new()).err();
        assert_eq!(error, Some(ResponseError::Reason));
    }

    #[test]
    fn every_refusal_has_a_status_with_a_phrase() {
        for error in HeadError::ALL {
            assert!(!reason_phrase(error.status()).is_empty(), "{error:?}");
        }
        for error in ChunkedError::ALL {
            assert!(!reason_phrase(error.status()).is_empty(), "{error:?}");
        }
    }
}
