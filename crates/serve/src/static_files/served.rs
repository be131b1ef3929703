//! [`FilesOptions`] and [`FileRequest`]: the options of a served folder, and a request for one of
//! its files.

use onecopy_wire::http::Conditions;

use crate::headers::FieldLine;
use crate::sys::Folder;

/// The options of a served folder. By default, a request for a folder gets the folder's
/// `index.html`, folders are not listed, and paths in which a name begins with a dot are not
/// served.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FilesOptions {
    /// `true` to list folders. A request for a folder without `index.html` then gets a page with
    /// the names in the folder.
    pub listing: bool,
    /// `true` to serve names that begin with a dot.
    pub hidden: bool,
    /// `true` to send the precompressed variant `name.br`, `name.zst` or `name.gz` instead of the
    /// file `name`. A variant is sent only if the client accepts its content coding and the variant
    /// is not older than the file.
    pub precompressed: bool,
    /// The value of the `Cache-Control` field for all files; `None` to send no such field.
    pub cache_control: Option<String>,
}

/// A request for a file, parsed by the server or by a WSGI application.
#[derive(Debug)]
pub struct FileRequest<'a> {
    /// The method of the request. Only `GET` and `HEAD` are accepted.
    pub method: &'a str,
    /// The percent-decoded path of the request, with its first `/`.
    pub path: &'a [u8],
    /// The percent-encoded path as the client sent it. A redirect to a folder adds a `/` to this
    /// path.
    pub location: &'a str,
    /// The query string of the request, if any.
    pub query: Option<&'a str>,
    /// The conditional header fields of the request, such as `If-None-Match` and `Range`.
    pub conditions: Conditions<'a>,
    /// The values of the request's `Accept-Encoding` fields.
    pub codings: Vec<&'a [u8]>,
}

/// A served folder, with its options and the header fields that each of its responses has.
pub(super) struct ServedFolder {
    pub(super) folder: Folder,
    pub(super) options: FilesOptions,
    /// The `Cache-Control` field for the response of each file; `None` if no such field is sent.
    pub(super) cache_control: Option<FieldLine>,
    pub(super) no_sniff: FieldLine,
    pub(super) vary: FieldLine,
}
