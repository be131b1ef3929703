//! [`RequestHead`]: a valid request head, borrowed from the buffer in which it was received.

use super::field;
use super::index::HeadIndex;

/// The HTTP versions that the parser accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0. It has no chunked coding, and the connection is closed after a response by
    /// default.
    Http10,
    /// HTTP/1.1. The connection stays open after a response by default.
    Http11,
}

/// The request methods that handlers can match on (RFC 9110, section 9; RFC 5789).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// The method GET.
    Get,
    /// The method HEAD. Its response is that of GET without the body.
    Head,
    /// The method POST.
    Post,
    /// The method PUT.
    Put,
    /// The method DELETE.
    Delete,
    /// The method OPTIONS.
    Options,
    /// The method PATCH.
    Patch,
    /// The method TRACE.
    Trace,
    /// A method without a variant of its own. [`RequestHead::method_name`] returns its name.
    Other,
}

/// The form of a request target (RFC 9112, section 3.2). The authority form does not occur, because
/// only CONNECT uses it, and CONNECT is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// The origin form, `/path?query`.
    Origin,
    /// The absolute form, `http://host/path?query`. The host in this URL replaces the value of the
    /// `Host` field.
    Absolute,
    /// The asterisk form, `*`, which only OPTIONS may use.
    Asterisk,
}

/// The way in which a request declares the length of its body (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// The request has no body.
    None,
    /// The request has a `Content-Length` field with this value, which may be 0.
    Length(u64),
    /// The body is in the chunked coding, which [`super::ChunkedReader`] decodes.
    Chunked,
}

/// The state of the connection after the response, as the client has requested it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The connection stays open for the next request.
    KeepAlive,
    /// The connection is closed after the response.
    Close,
}

/// A request head as a view of the buffer in which it was received. Its parts are not copied.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    index: &'a HeadIndex,
    buffer: &'a [u8],
}

/// Returns `bytes` as a string. The parser has already validated that they are ASCII.
fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the parser lets only ASCII through here")
}

impl<'a> RequestHead<'a> {
    /// Creates the view of a head in `buffer`. `index` must have been made by parsing the same
    /// bytes.
    pub(super) fn new(index: &'a HeadIndex, buffer: &'a [u8]) -> RequestHead<'a> {
        RequestHead { index, buffer }
    }

    /// Returns the method, or [`Method::Other`] if [`Method`] has no variant for it.
    #[must_use]
    pub fn method(&self) -> Method {
        self.index.method_kind
    }

    /// Returns the name of the method as the client sent it. Names of methods are case-sensitive.
    #[must_use]
    pub fn method_name(&self) -> &'a str {
        ascii(&self.buffer[self.index.method.clone()])
    }

    /// Returns the target as the client sent it. It is percent-encoded and consists of visible
    /// ASCII.
    #[must_use]
    pub fn target(&self) -> &'a str {
        ascii(&self.buffer[self.index.target.clone()])
    }

    /// Returns the form of the target.
    #[must_use]
    pub fn target_form(&self) -> TargetForm {
        self.index.form
    }

    /// Returns the percent-encoded path. It is `/` for a target in absolute form without a path,
    /// and `*` for a target in asterisk form.
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

    /// Returns the path and the query of the target as bytes. Both are visible ASCII, and equal to
    /// the results of [`RequestHead::path`] and [`RequestHead::query`].
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

    /// Returns the validated host and port of the request. They come from a target in absolute
    /// form, or otherwise from the `Host` field. Returns `None` if an HTTP/1.0 request has neither
    /// of them.
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

    /// Returns the names and values of the header fields in the order in which the client sent
    /// them. If the target is in absolute form, the value of `Host` is the authority of the target,
    /// as RFC 9112, section 3.2.2, requires.
    ///
    /// A name is a token in its original case. A value has no white space at its ends, and no
    /// control characters except tab. Bytes from 0x80 on are Latin-1 in old versions of HTTP (RFC
    /// 9110, section 5.5), but UTF-8 is common.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let buffer = self.buffer;
        self.index
            .fields
            .iter()
            .map(move |f| (ascii(f.name(buffer)), f.value(buffer)))
    }

    /// Returns the same fields as [`RequestHead::headers`], with the names as bytes.
    pub fn header_bytes(
        &self,
    ) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let buffer = self.buffer;
        let fields = self.index.fields.iter();
        fields.map(move |f| (f.name(buffer), f.value(buffer)))
    }

    /// Returns the value of the first header field with the name `name`, whose letter case is
    /// ignored; `None` if the request has no such field.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.index
            .fields
            .iter()
            .find(|f| f.name(self.buffer).eq_ignore_ascii_case(name.as_bytes()))
            .map(|f| f.value(self.buffer))
    }

    /// Returns `true` if `token` is one of the comma-separated elements of the header fields with
    /// the name `name`. Letter case is ignored in both.
    #[must_use]
    pub fn header_has_token(&self, name: &str, token: &str) -> bool {
        self.index
            .fields
            .iter()
            .filter(|f| f.name(self.buffer).eq_ignore_ascii_case(name.as_bytes()))
            .flat_map(|f| f.value(self.buffer).split(|b| *b == b','))
            .any(|element| field::trim(element).eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Returns the framing of the body: its declared length or the chunked coding.
    #[must_use]
    pub fn framing(&self) -> BodyFraming {
        self.index.framing
    }

    /// Returns [`Connection`], the state of the connection after the response, as the client has
    /// requested it.
    #[must_use]
    pub fn connection(&self) -> Connection {
        self.index.connection
    }

    /// Returns `true` if the client waits for `100 Continue` before it sends the body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.index.expects_continue
    }

    /// Returns the length of the head in bytes, including the empty line at its end. This is also
    /// the position in the buffer at which the body starts.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.index.len_bytes
    }
}
