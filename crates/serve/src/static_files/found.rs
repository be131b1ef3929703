//! A file that was found: what is told of it, and which of its variants is sent.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use onecopy_wire::http::{EntityTag, Validators, Verdict, coding_quality, date_text};

use super::served::{Ask, ServedFolder};
use crate::body::FileBody;
use crate::response::{Body, Response};
use crate::sys::{self, Folder, Opening};

/// For so long after its last change a file may change again and have the same times: file systems keep them by ticks of their own, the
/// coarsest by two seconds.
const UNSETTLED_S: u64 = 2;

/// Codings by what stands behind the name; of those that are taken alike, the first.
const VARIANTS: [(&str, &str); 3] = [("br", ".br"), ("zstd", ".zst"), ("gzip", ".gz")];

/// An open regular file.
pub(super) struct Found {
    file: File,
    about: Metadata,
    content_type: String,
    /// That of the variant.
    coding: Option<&'static str>,
}

impl Found {
    pub(super) fn new(path: &[u8], file: File, about: Metadata) -> Found {
        Found {
            file,
            about,
            content_type: content_type(path),
            coding: None,
        }
    }

    /// Takes the variant that the client likes best instead, if one lies beside and is not older: what was made of another file is of no
    /// use.
    pub(super) fn take_variant(&mut self, folder: &Folder, path: &[u8], codings: &[&[u8]]) {
        let quality = |coding: &str| coding_quality(codings.iter().copied(), coding);
        let mut liked: Vec<_> = VARIANTS
            .iter()
            .map(|(coding, ending)| (quality(coding), *coding, ending))
            .filter(|(quality, ..)| *quality > 0)
            .collect();
        liked.sort_by_key(|(quality, ..)| std::cmp::Reverse(*quality));
        let changed = |about: &Metadata| (about.mtime(), about.mtime_nsec());
        for (_, coding, ending) in liked {
            let beside = [path, ending.as_bytes()].concat();
            let Ok(file) = folder.file(&beside, Opening::Read) else {
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

    /// The answer: the file, parts of it, or that the client has it.
    pub(super) fn response(self, of: &ServedFolder, ask: &Ask<'_>) -> Response {
        let tag = tag(&self.about, sys::unix_seconds());
        // Before 1970: as good as then.
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

/// The tag of these bytes. A change gives a file another time of change, which nobody can set back, or it is another file; only where
/// the last one is so near that a further one may have the same time, the tag is weak.
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

/// The media type by the name's ending; text is taken for UTF-8.
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
        // Another file of the same length and time of modification.
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
