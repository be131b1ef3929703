//! [`page`]: a page that lists a folder, as plain HTML without scripts and styles.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;

use onecopy_wire::http::date_text;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::served::{FileRequest, ServedFolder};
use crate::response::Response;
use crate::sys::{OpenPurpose, names_in};

/// The largest number of names on a page. If the folder has more names, the page states that it is
/// incomplete.
const MOST_NAMES: usize = 10_000;

/// The characters of a name that are percent-encoded in a link: all except the unreserved
/// characters of RFC 3986, section 2.3.
const NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

struct ListingEntry {
    name: Vec<u8>,
    is_folder: bool,
    n_bytes: u64,
    changed_s: u64,
}

/// Returns a page that lists the files and folders in `folder`, except those that the server would
/// not serve. `path` is the path of `folder` relative to the served folder.
pub(super) fn page(
    of: &ServedFolder,
    ask: &FileRequest<'_>,
    path: &[u8],
    folder: File,
) -> io::Result<Response> {
    let mut names = names_in(folder, MOST_NAMES + 1)?;
    let is_cut = names.len() > MOST_NAMES;
    names.truncate(MOST_NAMES);
    let mut entries: Vec<ListingEntry> = names
        .into_iter()
        .map(OsStringExt::into_vec)
        .filter(|name| (of.options.hidden || !name.starts_with(b".")) && !name.contains(&b'\\'))
        .filter_map(|name| entry(of, path, name))
        .collect();
    entries.sort_by(|a, b| (!a.is_folder, &a.name).cmp(&(!b.is_folder, &b.name)));
    let html = html(ask.path, &entries, is_cut);
    let mut response = Response::new(200).content_type("text/html; charset=utf-8");
    for (name, value) in [
        (
            "Content-Security-Policy",
            "default-src 'none'; base-uri 'none'; form-action 'none'",
        ),
        ("Cache-Control", "no-cache"),
    ] {
        response = response.header(name, value).expect("literal fields");
    }
    response.line(&of.no_sniff);
    Ok(response.body(html))
}

fn entry(of: &ServedFolder, path: &[u8], name: Vec<u8>) -> Option<ListingEntry> {
    let about = of
        .folder
        .file(&[path, &name].concat(), OpenPurpose::Look)
        .ok()?;
    let about = about.metadata().ok()?;
    (about.is_file() || about.is_dir()).then(|| ListingEntry {
        name,
        is_folder: about.is_dir(),
        n_bytes: about.len(),
        changed_s: u64::try_from(about.mtime()).unwrap_or(0),
    })
}

fn html(path: &[u8], entries: &[ListingEntry], is_cut: bool) -> String {
    let title = escaped(path);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<h1>{title}</h1>\n<table>\n"
    );
    if path != b"/" {
        out.push_str("<tr><td><a href=\"../\">../</a></td></tr>\n");
    }
    for entry in entries {
        let slash = if entry.is_folder { "/" } else { "" };
        // With the prefix `./`, a name that contains a colon is not interpreted as a URL scheme.
        let _ = writeln!(
            out,
            "<tr><td><a href=\"./{}{slash}\">{}{slash}</a></td><td align=\"right\">{}</td><td>{}</td></tr>",
            percent_encode(&entry.name, NAME),
            escaped(&entry.name),
            if entry.is_folder {
                String::new()
            } else {
                entry.n_bytes.to_string()
            },
            date_text(entry.changed_s),
        );
    }
    out.push_str("</table>\n");
    if is_cut {
        let _ = writeln!(
            out,
            "<p>There are more than {MOST_NAMES} names; these are some of them.</p>"
        );
    }
    out.push_str("</html>\n");
    out
}

/// Escapes text for HTML content and for attribute values. Invalid UTF-8 becomes U+FFFD.
fn escaped(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for c in String::from_utf8_lossy(name).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // These characters could reverse the direction of a displayed name or hide its end.
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                out.push('\u{FFFD}');
            }
            c => out.push(c),
        }
    }
    out
}
