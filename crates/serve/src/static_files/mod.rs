//! A folder over HTTP: what is asked for is found in it, and nothing beyond. The kernel moves the bytes.
//!
//! | file | what it holds |
//! |---|---|
//! | `served.rs` | [`Options`], [`Ask`]: the folder and a request for a file |
//! | `mod.rs` | [`Files`]; a request to a file, a folder, or a refusal |
//! | `path.rs` | the path of a request as that of a file, strictly |
//! | `found.rs` | a file that was found: its fields, its tag, its variants |
//! | `listing.rs` | the page of a folder's names |

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
use crate::sys::{Folder, Opening};
use found::Found;
pub use path::{PathError, decoded, encoded};
use served::ServedFolder;
pub use served::{Ask, Options};

/// The regular files below a folder, as a [`Handler`] or behind another one. Clones serve the same folder.
///
/// Each is opened below the folder by openat2(2): neither `..` nor a symbolic link leads out, whatever is renamed meanwhile.
/// Copies: none of a file's bytes (sendfile(2)); under TLS those of its records.
#[derive(Clone)]
pub struct Files(Arc<ServedFolder>);

/// A folder that cannot be served.
#[derive(Debug)]
#[non_exhaustive]
pub enum FilesError {
    /// It cannot be opened, or is none.
    Open(io::Error),
    /// [`Options::cache_control`] is no value of a field.
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
    /// The files below `folder`, which is opened now and held: to move it away changes nothing.
    ///
    /// # Errors
    /// [`FilesError`].
    pub fn new(folder: &Path, options: Options) -> Result<Files, FilesError> {
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

    /// Answers `ask`. It reads the file's head alone (its kind, length and times), and blocks for no longer than the disk.
    #[must_use]
    pub fn answer(&self, ask: &Ask<'_>) -> Response {
        if !matches!(ask.method, "GET" | "HEAD") {
            let refused = Response::problem(405, "Method Not Allowed", "files are read alone");
            let allowed = refused.header("Allow", "GET, HEAD");
            return allowed.expect("a literal field");
        }
        let Some(path) = path::relative(ask.path, self.0.options.hidden) else {
            return not_found();
        };
        self.find(ask, path).unwrap_or_else(|error| failed(&error))
    }

    fn find(&self, ask: &Ask<'_>, path: &[u8]) -> io::Result<Response> {
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
        let file = self.0.folder.file(path, Opening::Read)?;
        let about = file.metadata()?;
        Ok((file, about))
    }

    fn found(
        &self,
        ask: &Ask<'_>,
        path: &[u8],
        file: File,
        about: Metadata,
    ) -> io::Result<Response> {
        if !about.is_file() {
            // FIFOs, devices and the like are closed again; so is a folder named `index.html`.
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut found = Found::new(path, file, about);
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
        self.answer(&Ask {
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

/// To the same path with a `/`, so that what a page of the folder names is found in it. The path begins with one `/` alone: it is
/// taken for no other host.
fn redirect(ask: &Ask<'_>) -> Response {
    let query = ask
        .query
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let location = format!("{}/{query}", ask.location);
    match Response::new(301).header("Location", location) {
        Ok(response) => response
            .content_type("text/plain")
            .body("a folder: its path ends with `/`\n"),
        // Nobody could write such a target.
        Err(_) => not_found(),
    }
}

/// Whether nobody is to know more than that there is no such file.
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
        // A loop of links, a socket, a device without a driver.
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
