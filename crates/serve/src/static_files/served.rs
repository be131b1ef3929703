//! A folder that is served, and a request for one of its files.

use onecopy_wire::http::Conditions;

use crate::headers::FieldLine;
use crate::sys::Folder;

/// Options by which a folder is served. The default: only files, none whose name or folder begins
/// with a dot, `index.html` for a folder.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Folders without an index page are answered with their names.
    pub listing: bool,
    /// Names that begin with a dot are served like others.
    pub hidden: bool,
    /// `name.br`, `name.zst` and `name.gz` are sent for `name` if the client accepts them, unless they are older.
    pub precompressed: bool,
    /// The value of `Cache-Control` of all files.
    pub cache_control: Option<String>,
}

/// The request, by whichever component has read it: the server itself, or a WSGI application.
#[derive(Debug)]
pub struct Ask<'a> {
    /// `GET`, `HEAD`, or what is refused.
    pub method: &'a str,
    /// The path, decoded, from its `/` on.
    pub path: &'a [u8],
    /// The path as the client wrote it, percent-encoded, where redirects go to with a `/` more.
    pub location: &'a str,
    /// The query string.
    pub query: Option<&'a str>,
    /// The request's fields that make it conditional.
    pub conditions: Conditions<'a>,
    /// The values of its fields `Accept-Encoding`.
    pub codings: Vec<&'a [u8]>,
}

/// A folder, and what its files are served with.
pub(super) struct ServedFolder {
    pub(super) folder: Folder,
    pub(super) options: Options,
    /// Fields of each file.
    pub(super) cache_control: Option<FieldLine>,
    pub(super) no_sniff: FieldLine,
    pub(super) vary: FieldLine,
}
