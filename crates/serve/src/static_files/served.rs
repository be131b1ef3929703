//! [`FilesOptions`] and [`FileRequest`]: the options of a served folder, and a request for one of
//! its files.

use onecopy_wire::http::Conditions;

use crate::headers::FieldLine;
use crate::sys::Folder;

/// The options of a served folder. By default, files are served, `index.html` is served for a
/// folder, and paths in which a name begins with a dot are not served.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FilesOptions {
    /// `true` to list folders: if a folder has no index page, a request for the folder is answered
    /// with a list of the names in it.
    pub listing: bool,
    /// `true` to serve names that begin with a dot.
    pub hidden: bool,
    /// `true` to send the variant `name.br`, `name.zst` or `name.gz` instead of the file `name`. A
    /// variant is sent only if the client accepts its content coding and it is not older than the
    /// file.
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
    /// The percent-encoded path as the client sent it, to which a redirect adds a `/`.
    pub location: &'a str,
    /// The query string of the request, if any.
    pub query: Option<&'a str>,
    /// The conditional fields of the request.
    pub conditions: Conditions<'a>,
    /// The values of the request's `Accept-Encoding` fields.
    pub codings: Vec<&'a [u8]>,
}

/// A folder, and the options for its files.
pub(super) struct ServedFolder {
    pub(super) folder: Folder,
    pub(super) options: FilesOptions,
    /// The `Cache-Control` field of each file's response.
    pub(super) cache_control: Option<FieldLine>,
    pub(super) no_sniff: FieldLine,
    pub(super) vary: FieldLine,
}
