//! [`RequestHead`]: an accepted request head, borrowed from the buffer in which it was received.

use super::field;
use super::index::HeadIndex;

/// The supported HTTP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0, without the chunked coding; the connection is closed by default.
    Http10,
    /// HTTP/1.1; the connection is kept open by default.
    Http11,
}

/// The methods that have a variant (RFC 9110, section 9; RFC 5789).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// GET.
    Get,
    /// HEAD: the response is that of GET, but without the body.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
    /// PATCH.
    Patch,
    /// TRACE.
    Trace,
    /// A method that has no variant; see [`RequestHead::method_name`].
    Other,
}

/// The form of a request target (RFC 9112, section 3.2). The authority form does not occur, because
/// it is only for CONNECT, which is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// Origin form: `/path?query`.
    Origin,
    /// Absolute form: `http://host/path?query`. Its host is used instead of the value of `Host`.
    Absolute,
    /// Asterisk form: `*`, for the method OPTIONS.
    Asterisk,
}

/// The way in which a request declares the length of its body (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// The request declares no body.
    None,
    /// The body has this number of bytes, which is 0 only if the request declares the length 0.
    Length(u64),
    /// The body is in the chunked coding, which [`super::ChunkedReader`] decodes.
    Chunked,
}

/// The state of the connection after the response, as the peer requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The connection stays open for the next request.
    KeepAlive,
    /// The connection is closed after the response.
    Close,
}

/// A request head, as a view of the buffer in which it was received. Nothing is copied.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    index: &'a HeadIndex,
    buffer: &'a [u8],
}

/// Returns the bytes as text. They were checked to be ASCII when the head was parsed.
fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the parser lets only ASCII through here")
}

impl<'a> RequestHead<'a> {
    /// Creates the view from `index` and `buffer`; `index` must have been made from the same bytes.
    pub(super) fn new(index: &'a HeadIndex, buffer: &'a [u8]) -> RequestHead<'a> {
        RequestHead { index, buffer }
    }

    /// Returns the method; [`Method::Other`] if the method has no variant.
    #[must_use]
    pub fn method(&self) -> Method {
        self.index.method_kind
    }

    /// Returns the method as it was sent (methods are case-sensitive).
    #[must_use]
    pub fn method_name(&self) -> &'a str {
        ascii(&self.buffer[self.index.method.clone()])
    }

    /// Returns the target as it was sent: percent-encoded, visible ASCII.
    #[must_use]
    pub fn target(&self) -> &'a str {
        ascii(&self.buffer[self.index.target.clone()])
    }

    /// Returns the form of the target.
    #[must_use]
    pub fn target_form(&self) -> TargetForm {
        self.index.form
    }

    /// Returns the percent-encoded path; `/` for an absolute form without a path, `*` for the
    /// asterisk form.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let target = self.path_and_query();
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        if path.is_empty() && self.index.form == TargetForm::Absolute {
            return "/";
        }
        path
    }

    /// Returns the percent-encoded query, which is the part of the target after the first `?`;
    /// `None` if the target has no `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.path_and_query()
            .split_once('?')
            .map(|(_, query)| query)
    }

    fn path_and_query(&self) -> &'a str {
        ascii(&self.buffer[self.index.target_path..self.index.target.end])
    }

    /// Returns [`RequestHead::path`] and [`RequestHead::query`] as bytes, which are visible ASCII.
    #[must_use]
    pub fn path_and_query_bytes(&self) -> (&'a [u8], Option<&'a [u8]>) {
        let target = &self.buffer[self.index.target_path..self.index.target.end];
        let (path, query) = match target.iter().position(|b| *b == b'?') {
            Some(at) => (&target[..at], Some(&target[at + 1..])),
            None => (target, None),
        };
        if path.is_empty() && self.index.form == TargetForm::Absolute {
            return (b"/", query);
        }
        (path, query)
    }

    /// Returns the validated host and port of the request. They are those of a target in absolute
    /// form, and otherwise those of the field `Host`. Returns `None` if an HTTP/1.0 request has
    /// neither.
    #[must_use]
    pub fn authority(&self) -> Option<&'a str> {
        self.index
            .authority
            .clone()
            .map(|range| ascii(&self.buffer[range]))
    }

    /// Returns the HTTP version of the request.
    #[must_use]
    pub fn version(&self) -> Version {
        self.index.version
    }

    /// Returns the number of header fields.
    #[must_use]
    pub fn n_headers(&self) -> usize {
        self.index.fields.len()
    }

    /// Returns the names and values of the header fields in the order in which they were sent. For
    /// a target in absolute form, the value of `Host` is the authority of the target, as RFC 9112,
    /// section 3.2.2, requires. A name is a token in its original case. A value has no surrounding
    /// white space and no control characters except tab. Its bytes from 0x80 on may be Latin-1, as
    /// in old versions of HTTP (RFC 9110, section 5.5), or UTF-8, which is common.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let buffer = self.buffer;
        self.index
            .fields
            .iter()
            .map(move |f| (ascii(f.name(buffer)), f.value(buffer)))
    }

    /// Returns the fields that [`RequestHead::headers`] returns, with their names as bytes.
    pub fn header_bytes(
        &self,
    ) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let buffer = self.buffer;
        let fields = self.index.fields.iter();
        fields.map(move |f| (f.name(buffer), f.value(buffer)))
    }

    /// Returns the value of the first header field `name`, whose case is ignored.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.index
            .fields
            .iter()
            .find(|f| f.name(self.buffer).eq_ignore_ascii_case(name.as_bytes()))
            .map(|f| f.value(self.buffer))
    }

    /// Returns `true` if `token` is one of the comma-separated elements of the header field `name`;
    /// letter case is ignored.
    #[must_use]
    pub fn header_has_token(&self, name: &str, token: &str) -> bool {
        self.index
            .fields
            .iter()
            .filter(|f| f.name(self.buffer).eq_ignore_ascii_case(name.as_bytes()))
            .flat_map(|f| f.value(self.buffer).split(|b| *b == b','))
            .any(|element| field::trim(element).eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Returns the way in which the request declares the length of its body.
    #[must_use]
    pub fn framing(&self) -> BodyFraming {
        self.index.framing
    }

    /// Returns whether the peer requests to keep the connection open after the response.
    #[must_use]
    pub fn connection(&self) -> Connection {
        self.index.connection
    }

    /// Returns `true` if the peer waits for `100 Continue` before it sends the body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.index.expects_continue
    }

    /// Returns the length of the head in bytes, including its empty line. The body starts at this
    /// position of the buffer.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.index.len_bytes
    }
}
