//! [`Files`] serves the files below a folder over HTTP, and no file outside it. Without TLS, the
//! kernel copies the bytes of a file directly to the socket.
//!
//! | file | contents |
//! |---|---|
//! | `served.rs` | [`FilesOptions`], [`FileRequest`]: the folder and a request for a file |
//! | `mod.rs` | [`Files`]; answers with a file, a folder listing, or a refusal |
//! | `path.rs` | checks the path of a request and converts it to a file path |
//! | `found.rs` | a file that was found: its header fields, entity tag and precompressed variants |
//! | `listing.rs` | the listing of a folder |

mod found;
mod listing;
mod path;
mod served;

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

use onecopy_wire::http::Conditions;

use crate::handler::Handler;
use crate::headers::{FieldLine, HeaderError};
use crate::request::Request;
use crate::response::Response;
use crate::sys::{Folder, OpenPurpose};
use found::FoundFile;
pub use path::{PathError, decoded, encoded};
use served::ServedFolder;
pub use served::{FileRequest, FilesOptions};

/// Serves the regular files below a folder, either as the [`Handler`] of a server or by calls from
/// another handler ([`Files::answer`]). Clones serve the same folder.
///
/// Each file is opened by openat2(2) relative to the folder. Neither `..` nor a symbolic link can
/// lead out of the folder, even if files are renamed during the call. Copies: the kernel sends the
/// bytes of a file (sendfile(2)), and this process does not copy them. With TLS, the bytes are
/// copied twice: into a buffer and into the TLS records.
#[derive(Clone)]
pub struct Files(Arc<ServedFolder>);

/// The reason why a folder cannot be served.
#[derive(Debug)]
#[non_exhaustive]
pub enum FilesError {
    /// The path cannot be opened, or is not a folder.
    Open(io::Error),
    /// [`FilesOptions::cache_control`] is not a valid field value.
    CacheControl(HeaderError),
}

impl std::fmt::Display for FilesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FilesError::Open(e) => e.fmt(f),
            FilesError::CacheControl(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for FilesError {}

impl Files {
    /// Opens `folder` and creates a value that serves the files below it. The folder stays open, so
    /// a later rename of the folder has no effect.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn new(folder: &Path, options: FilesOptions) -> Result<Files, FilesError> {
        let line = |value: &String| FieldLine::new("Cache-Control", value.as_bytes());
        let cache_control = options.cache_control.as_ref().map(line).transpose();
        let known = |name, value| FieldLine::new(name, value).expect("literals of ASCII");
        Ok(Files(Arc::new(ServedFolder {
            folder: Folder::open(folder).map_err(FilesError::Open)?,
            cache_control: cache_control.map_err(FilesError::CacheControl)?,
            no_sniff: known("X-Content-Type-Options", b"nosniff"),
            vary: known("Vary", b"Accept-Encoding"),
            options,
        })))
    }

    /// Returns the response to the request `ask`. The call reads only the file's metadata (type,
    /// length and times), and waits only for the disk.
    #[must_use]
    pub fn answer(&self, ask: &FileRequest<'_>) -> Response {
        if !matches!(ask.method, "GET" | "HEAD") {
            let refused = Response::problem(405, "Method Not Allowed", "files are read-only");
            let allowed = refused.header("Allow", "GET, HEAD");
            return allowed.expect("a literal field");
        }
        let Some(path) = path::relative(ask.path, self.0.options.hidden) else {
            return not_found();
        };
        self.find(ask, path).unwrap_or_else(|error| failed(&error))
    }

    fn find(&self, ask: &FileRequest<'_>, path: &[u8]) -> io::Result<Response> {
        let is_folder = path.is_empty() || path.ends_with(b"/");
        if !is_folder {
            let (file, about) = self.open(path)?;
            if about.is_dir() {
                return Ok(redirect(ask));
            }
            return self.found(ask, path, file, about);
        }
        let index = [path, b"index.html"].concat();
        match self
            .open(&index)
            .and_then(|(file, about)| self.found(ask, &index, file, about))
        {
            Err(error) if self.0.options.listing && is_not_there(&error) => {
                let (folder, about) = self.open(path)?;
                match about.is_dir() {
                    true => listing::page(&self.0, ask, path, folder),
                    false => Err(io::ErrorKind::NotFound.into()),
                }
            }
            found => found,
        }
    }

    fn open(&self, path: &[u8]) -> io::Result<(File, Metadata)> {
        let file = self.0.folder.file(path, OpenPurpose::Read)?;
        let about = file.metadata()?;
        Ok((file, about))
    }

    fn found(
        &self,
        ask: &FileRequest<'_>,
        path: &[u8],
        file: File,
        about: Metadata,
    ) -> io::Result<Response> {
        if !about.is_file() {
            // FIFOs, devices and other special files are not served; nor is a folder named
            // `index.html`.
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut found = FoundFile::new(path, file, about);
        if self.0.options.precompressed {
            found.take_variant(&self.0.folder, path, &ask.codings);
        }
        Ok(found.response(&self.0, ask))
    }
}

impl Handler for Files {
    fn is_quick(&self) -> bool {
        true
    }

    fn handle(&self, request: Request<'_>) -> Response {
        let (location, query) = (request.path(), request.query());
        let path = match decoded(location.as_bytes()) {
            Ok(path) => path,
            Err(PathError::Malformed) => {
                return Response::problem(
                    400,
                    "Bad Request",
                    "the path is not percent-encoded as a path is",
                );
            }
            Err(PathError::Slash) => return not_found(),
        };
        let codings = match self.0.options.precompressed {
            true => request
                .headers()
                .filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"))
                .map(|(_, value)| value)
                .collect(),
            false => Vec::new(),
        };
        self.answer(&FileRequest {
            method: request.method(),
            path: &path,
            location,
            query,
            conditions: Conditions::of(request.headers()),
            codings,
        })
    }
}

fn not_found() -> Response {
    Response::problem(404, "Not Found", "there is no such file")
}

/// Redirects to the requested path with an additional `/` at the end. Relative links in the
/// folder's page then resolve inside the folder. The path begins with exactly one `/`, so that a
/// client never parses its start as a host name.
fn redirect(ask: &FileRequest<'_>) -> Response {
    let query = ask
        .query
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let location = format!("{}/{query}", ask.location);
    match Response::new(301).header("Location", location) {
        Ok(response) => response
            .content_type("text/plain")
            .body("a folder: its path ends with `/`\n"),
        // A path that is not a valid field value cannot have been sent by a client.
        Err(_) => not_found(),
    }
}

/// Returns `true` if the client gets a 404 response for `error`, which occurred when a file was
/// opened. This applies to a missing file, and to a file that exists but cannot be served, such as
/// an unreadable one.
fn is_not_there(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::NotADirectory
            | Kind::PermissionDenied
            | Kind::CrossesDevices
            | Kind::InvalidFilename
            | Kind::InvalidInput
    ) || matches!(
        error.raw_os_error(),
        // The path is a loop of symbolic links, a socket, or a device without a driver.
        Some(libc::ELOOP | libc::ENXIO | libc::ENODEV)
    )
}

fn failed(error: &io::Error) -> Response {
    if is_not_there(error) {
        return not_found();
    }
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN) => {
            let busy = Response::problem(503, "Service Unavailable", "too many files are open");
            busy.header("Retry-After", "1").expect("a literal field")
        }
        _ => Response::problem(500, "Internal Server Error", "the file cannot be read"),
    }
}
