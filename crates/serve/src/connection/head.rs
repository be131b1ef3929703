//! Heads of responses.

use onecopy_wire::http::ResponseHead;

use super::exchange::Exchange;
use crate::date::Date;
use crate::headers::Headers;
use crate::out::OutQueue;

/// Up to so many bytes are copied after the head: a part of their own costs the kernel more than that.
pub(super) const FEW_BYTES: usize = 1024;

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// No field: the status has no body, or its end is the end of the connection.
    Nothing,
    Length(u64),
    /// Of unknown length; with a `trailer` announced.
    Chunked {
        trailer: bool,
    },
}

impl Framing {
    /// Of a stream. Its end shows whether it is whole, whatever length was announced.
    pub(super) fn of_stream(exchange: &Exchange) -> Framing {
        match exchange.http_1_0 {
            true => Framing::Nothing,
            false => Framing::Chunked { trailer: true },
        }
    }

    /// Of a body that is made item by item.
    pub(super) fn of_items(exchange: &Exchange, announced: Option<u64>) -> Framing {
        match (announced, exchange.http_1_0) {
            (Some(n), _) => Framing::Length(n),
            (None, true) => Framing::Nothing,
            (None, false) => Framing::Chunked { trailer: false },
        }
    }
}

/// The first line of a head, and what becomes of the connection.
pub(super) struct HeadStart<'a> {
    pub(super) status: u16,
    pub(super) reason: Option<&'a [u8]>,
    pub(super) keep_alive: bool,
    pub(super) http_1_0: bool,
}

/// Queues a head, and `after` following its empty line. Returns the position where the body starts,
/// counted over the connection's life.
pub(super) fn write_head(
    out: &mut OutQueue,
    date: &mut Date,
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
