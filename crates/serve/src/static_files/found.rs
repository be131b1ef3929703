//! [`FoundFile`]: an open file of a served folder, with its header fields and the choice among its
//! precompressed variants.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use onecopy_wire::http::{EntityTag, Validators, Verdict, coding_quality, date_text};

use super::served::{FileRequest, ServedFolder};
use crate::body::FileBody;
use crate::response::{Body, Response};
use crate::sys::{self, Folder, OpenPurpose};

/// The number of seconds within which two changes to a file may result in the same modification
/// time. Some file systems store times with a resolution of only two seconds.
const UNSETTLED_S: u64 = 2;

/// The content codings of precompressed files, each with the suffix of its file names. They are in
/// the server's order of preference.
const VARIANTS: [(&str, &str); 3] = [("br", ".br"), ("zstd", ".zst"), ("gzip", ".gz")];

/// An open regular file.
pub(super) struct FoundFile {
    file: File,
    about: Metadata,
    content_type: String,
    /// The content coding of the chosen precompressed variant; `None` if the file itself is sent.
    coding: Option<&'static str>,
}

impl FoundFile {
    pub(super) fn new(path: &[u8], file: File, about: Metadata) -> FoundFile {
        FoundFile {
            file,
            about,
            content_type: content_type(path),
            coding: None,
        }
    }

    /// Replaces the file with a precompressed variant (such as `name.br`) if one exists in a
    /// content coding that the client accepts. If several exist, the client's preferred coding
    /// determines the variant. If the client prefers `identity`, no variant is sent. A variant that
    /// is older than the file is ignored, because it was made from earlier contents.
    pub(super) fn take_variant(&mut self, folder: &Folder, path: &[u8], codings: &[&[u8]]) {
        let quality = |coding: &str| coding_quality(codings.iter().copied(), coding);
        // Without a weight of its own, `identity` is acceptable, but not preferred (RFC 9110, section
        // 12.5.3).
        let plain = quality("identity");
        let mut liked: Vec<_> = VARIANTS
            .iter()
            .map(|(coding, ending)| (quality(coding), *coding, ending))
            .filter(|(quality, ..)| *quality > 0 && *quality >= plain)
            .collect();
        liked.sort_by_key(|(quality, ..)| std::cmp::Reverse(*quality));
        let changed = |about: &Metadata| (about.mtime(), about.mtime_nsec());
        for (_, coding, ending) in liked {
            let variant = [path, ending.as_bytes()].concat();
            let Ok(file) = folder.file(&variant, OpenPurpose::Read) else {
                continue;
            };
            let Ok(about) = file.metadata() else {
                continue;
            };
            if about.is_file() && changed(&about) >= changed(&self.about) {
                (self.file, self.about, self.coding) = (file, about, Some(coding));
                return;
            }
        }
    }

    /// Returns the response for the file: the complete file, the requested ranges of it, a 304 if
    /// the client has the current version, or a 412 if a precondition fails.
    pub(super) fn response(self, of: &ServedFolder, ask: &FileRequest<'_>) -> Response {
        let tag = tag(&self.about, sys::unix_seconds());
        // A modification time before 1970 is treated as 1970.
        let modified = u64::try_from(self.about.mtime()).unwrap_or(0);
        let now = Validators {
            tag: EntityTag::parse(tag.as_bytes()),
            modified: Some(modified),
        };
        let status = match ask.conditions.verdict(&now, true) {
            Verdict::Proceed => 200,
            Verdict::NotModified => 304,
            Verdict::Failed => {
                return Response::problem(
                    412,
                    "Precondition Failed",
                    "the file is another one by now",
                );
            }
        };
        let mut response = Response::new(status);
        let modified = date_text(modified);
        let described = [
            ("Content-Type", &*self.content_type),
            ("Content-Encoding", self.coding.unwrap_or("")),
        ];
        let described = described
            .into_iter()
            .filter(|(_, value)| status == 200 && !value.is_empty());
        for (name, value) in described.chain([("ETag", &*tag), ("Last-Modified", &*modified)]) {
            let added = response.field(name, value.as_bytes());
            added.expect("types, tags and dates are made of ASCII");
        }
        if let Some(line) = &of.cache_control {
            response.line(line);
        }
        if of.options.precompressed {
            response.line(&of.vary);
        }
        response.line(&of.no_sniff);
        if status == 304 {
            return response;
        }
        let n_bytes = usize::try_from(self.about.len()).unwrap_or(usize::MAX);
        response
            .body(Body::File(FileBody::new(self.file, 0, n_bytes)))
            .in_ranges(&ask.conditions, ask.method == "GET")
    }
}

impl From<FileBody> for Body {
    fn from(file: FileBody) -> Body {
        Body::File(file)
    }
}

/// Returns the entity tag of a file. The tag contains the inode number and the change time (ctime),
/// which no program can set. The tag is weak if the last change is so recent that another change
/// could have the same time.
fn tag(about: &Metadata, now_s: u64) -> String {
    let changed_s = u64::try_from(about.ctime()).unwrap_or(0);
    let mark = match changed_s + UNSETTLED_S < now_s {
        true => "",
        false => "W/",
    };
    format!(
        "{mark}\"{:x}-{:x}-{:x}.{:x}-{:x}.{:x}\"",
        about.ino(),
        about.len(),
        about.mtime(),
        about.mtime_nsec(),
        about.ctime(),
        about.ctime_nsec()
    )
}

/// Returns the media type that belongs to the extension of the file name. For text, the result
/// includes `charset=utf-8`.
fn content_type(path: &[u8]) -> String {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let ending = match name.iter().rposition(|b| *b == b'.') {
        None | Some(0) => "",
        Some(at) => str::from_utf8(&name[at + 1..]).unwrap_or(""),
    };
    let media_type = mime_guess::from_ext(ending).first_raw();
    match media_type.unwrap_or("application/octet-stream") {
        text if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_endings() {
        for (path, expected) in [
            ("a.html", "text/html; charset=utf-8"),
            ("a/b.TXT", "text/plain; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mp4", "video/mp4"),
            ("a.json", "application/json"),
            ("a.tar.gz", "application/gzip"),
            ("a.svg", "image/svg+xml"),
            ("a.wasm", "application/wasm"),
            ("a", "application/octet-stream"),
            ("a.html/b", "application/octet-stream"),
            (".html", "application/octet-stream"),
            ("a.", "application/octet-stream"),
            ("a.nix-wie", "application/octet-stream"),
        ] {
            assert_eq!(content_type(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(content_type(b"a.\xFF"), "application/octet-stream");
    }

    #[test]
    fn a_tag_is_strong_once_no_change_can_hide_and_changes_with_every_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let about = std::fs::metadata(&path).unwrap();
        let changed_s = u64::try_from(about.ctime()).unwrap();
        for (now_s, is_weak) in [
            (0, true),
            (changed_s, true),
            (changed_s + 2, true),
            (changed_s + 3, false),
        ] {
            assert_eq!(tag(&about, now_s).starts_with("W/"), is_weak, "{now_s}");
        }
        let before = tag(&about, u64::MAX);
        // A different file with the same length and modification time.
        let other = folder.path().join("b");
        std::fs::write(&other, "two").unwrap();
        let set = File::options().write(true).open(&other).unwrap();
        set.set_modified(about.modified().unwrap()).unwrap();
        std::fs::rename(&other, &path).unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(
            (after.len(), after.mtime_nsec()),
            (about.len(), about.mtime_nsec())
        );
        assert_ne!(tag(&after, u64::MAX), before);
    }
}
