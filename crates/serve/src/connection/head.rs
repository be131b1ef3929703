//! [`write_head`] writes the head of a response, including the fields that determine the framing of
//! the body.

use onecopy_wire::http::ResponseHead;

use super::exchange::Exchange;
use crate::date::HttpDate;
use crate::headers::Headers;
use crate::output_queue::OutQueue;

/// The size in bytes of the largest body that is copied into the buffer of the response head.
/// Copying a body of this size costs less than passing a second buffer to the kernel.
pub(super) const FEW_BYTES: usize = 1024;

/// The way in which the client determines the end of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// No framing field is sent. Either the status excludes a body, or the end of the connection is
    /// the end of the body.
    Nothing,
    Length(u64),
    /// The body is sent in the chunked coding, because its length is unknown. If `trailer` is
    /// `true`, the head announces trailer fields.
    Chunked {
        trailer: bool,
    },
}

impl Framing {
    /// Returns the framing of a row stream: the chunked coding, or the end of the connection for
    /// HTTP/1.0. `Content-Length` is never sent, because the length of a row stream is not known in
    /// advance.
    pub(super) fn of_stream(exchange: &Exchange) -> Framing {
        match exchange.http_1_0 {
            true => Framing::Nothing,
            false => Framing::Chunked { trailer: true },
        }
    }

    /// Returns the framing of a body that the handler produces in several items. `announced` is the
    /// length of the body in bytes, if the handler has given it.
    pub(super) fn of_items(exchange: &Exchange, announced: Option<u64>) -> Framing {
        match (announced, exchange.http_1_0) {
            (Some(n), _) => Framing::Length(n),
            (None, true) => Framing::Nothing,
            (None, false) => Framing::Chunked { trailer: false },
        }
    }
}

/// The status of a response, and the properties of the request and response that determine the
/// `Connection` field.
pub(super) struct HeadStart<'a> {
    pub(super) status: u16,
    pub(super) reason: Option<&'a [u8]>,
    pub(super) keep_alive: bool,
    pub(super) http_1_0: bool,
}

/// Queues the head of a response, including the empty line at its end, and then `after`, the first
/// bytes of the body. Returns the position of the first byte of the body. Positions count the bytes
/// of all responses on the connection.
pub(super) fn write_head(
    out: &mut OutQueue,
    date: &mut HttpDate,
    start: &HeadStart<'_>,
    headers: Headers,
    framing: Framing,
    after: &[u8],
) -> u64 {
    let date = (!headers.has_date()).then(|| date.line());
    let connection = match (start.keep_alive, start.http_1_0) {
        (false, _) => Some("close"),
        (true, true) => Some("keep-alive"),
        (true, false) => None,
    };
    out.frame(|out| {
        let begun = match start.reason {
            None => ResponseHead::begin(start.status, out),
            Some(reason) => ResponseHead::begin_with_reason(start.status, reason, out),
        };
        let written = begun.and_then(|mut head| {
            head = match framing {
                Framing::Nothing => head,
                Framing::Length(n) => head.content_length(n)?,
                Framing::Chunked { trailer: true } => {
                    head.chunked()?.field("Trailer", b"onecopy-status")?
                }
                Framing::Chunked { trailer: false } => head.chunked()?,
            };
            match connection {
                Some(option) => head.field("Connection", option.as_bytes()),
                None => Ok(head),
            }
        });
        written
            .expect("status and phrase were checked when the answer was made; the fields are ours");
        out.extend_from_slice(date.unwrap_or_default().as_bytes());
    });
    let mut fields = headers.into_wire();
    let body_start = out.n_pushed() + fields.len() as u64 + 2;
    if fields.len() <= FEW_BYTES {
        out.frame(|out| {
            out.extend_from_slice(&fields);
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(after);
        });
    } else {
        fields.extend_from_slice(b"\r\n");
        fields.extend_from_slice(after);
        out.owned(fields);
    }
    body_start
}
