//! A request head that was accepted: everything borrows from the buffer it was read in.

use super::field;
use super::index::HeadIndex;

/// HTTP versions that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunked coding, closes by default.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// Methods by name (RFC 9110, section 9; RFC 5789).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// GET.
    Get,
    /// HEAD: answered as GET, with no body.
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
    /// Any other token; its name is [`RequestHead::method_name`].
    Other,
}

/// The form of a target (RFC 9112, section 3.2). The authority form is that of CONNECT, which is
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`.
    Origin,
    /// `http://host/path?query`: its host replaces the value of `Host`.
    Absolute,
    /// `*`, with OPTIONS.
    Asterisk,
}

/// How the body is delimited (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body.
    None,
    /// So many bytes; 0 where the request says so itself.
    Length(u64),
    /// The chunked coding: [`super::ChunkedReader`].
    Chunked,
}

/// What the peer wants of the connection behind the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// The next request may come.
    KeepAlive,
    /// No other will come: close behind the answer.
    Close,
}

/// A request head: a view of the buffer it was read in. Copies: none.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    index: &'a HeadIndex,
    buffer: &'a [u8],
}

/// ASCII that was checked when the head was read.
fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the parser lets only ASCII through here")
}

impl<'a> RequestHead<'a> {
    /// The head that `index` was made from `buffer` for.
    pub(super) fn new(index: &'a HeadIndex, buffer: &'a [u8]) -> RequestHead<'a> {
        RequestHead { index, buffer }
    }

    /// The method, where it has a name here.
    #[must_use]
    pub fn method(&self) -> Method {
        self.index.method_kind
    }

    /// The method as it was sent: methods are case-sensitive.
    #[must_use]
    pub fn method_name(&self) -> &'a str {
        ascii(&self.buffer[self.index.method.clone()])
    }

    /// The target as it was sent, percent-encoded: visible ASCII.
    #[must_use]
    pub fn target(&self) -> &'a str {
        ascii(&self.buffer[self.index.target.clone()])
    }

    /// Which form the target has.
    #[must_use]
    pub fn target_form(&self) -> TargetForm {
        self.index.form
    }

    /// The path, percent-encoded; `/` for an absolute form without one, `*` for the asterisk.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let target = self.path_and_query();
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        if path.is_empty() && self.index.form == TargetForm::Absolute {
            return "/";
        }
        path
    }

    /// What stands behind the first `?`, percent-encoded; `None` where there is no `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        self.path_and_query()
            .split_once('?')
            .map(|(_, query)| query)
    }

    fn path_and_query(&self) -> &'a str {
        ascii(&self.buffer[self.index.target_path..self.index.target.end])
    }

    /// Path and query as [`RequestHead::path`] and [`RequestHead::query`] give them, in bytes: visible ASCII.
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

    /// Host and port that the request is for: of the target in absolute form, or else of `Host`;
    /// `None` in HTTP/1.0 without either. Checked to be an authority.
    #[must_use]
    pub fn authority(&self) -> Option<&'a str> {
        self.index
            .authority
            .clone()
            .map(|range| ascii(&self.buffer[range]))
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.index.version
    }

    /// Number of header fields.
    #[must_use]
    pub fn n_headers(&self) -> usize {
        self.index.fields.len()
    }

    /// Names and values in the order they were sent; the value of `Host` is the authority of a
    /// target in absolute form, as RFC 9112, section 3.2.2, requires. A name is a token in the case
    /// it was sent in; a value has no blanks around it and holds no control but tab: Latin-1 by the
    /// RFC, UTF-8 by habit.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let buffer = self.buffer;
        self.index
            .fields
            .iter()
            .map(move |f| (ascii(f.name(buffer)), f.value(buffer)))
    }

    /// As [`RequestHead::headers`], with the names in bytes.
    pub fn header_bytes(
        &self,
    ) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let buffer = self.buffer;
        let fields = self.index.fields.iter();
        fields.map(move |f| (f.name(buffer), f.value(buffer)))
    }

    /// The first value of the header `name`, whatever its case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.index
            .fields
            .iter()
            .find(|f| f.name(self.buffer).eq_ignore_ascii_case(name.as_bytes()))
            .map(|f| f.value(self.buffer))
    }

    /// Whether the header `name` occurs and one of its comma-separated elements is `token`, whatever its case.
    #[must_use]
    pub fn header_has_token(&self, name: &str, token: &str) -> bool {
        self.index
            .fields
            .iter()
            .filter(|f| f.name(self.buffer).eq_ignore_ascii_case(name.as_bytes()))
            .flat_map(|f| f.value(self.buffer).split(|b| *b == b','))
            .any(|element| field::trim(element).eq_ignore_ascii_case(token.as_bytes()))
    }

    /// How the body is delimited.
    #[must_use]
    pub fn framing(&self) -> BodyFraming {
        self.index.framing
    }

    /// What the peer wants of the connection.
    #[must_use]
    pub fn connection(&self) -> Connection {
        self.index.connection
    }

    /// Whether the peer waits for `100 Continue` before it sends the body.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.index.expects_continue
    }

    /// Length of the head in bytes, its empty line included: where the body begins.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.index.len_bytes
    }
}
