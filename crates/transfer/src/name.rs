//! [`check`] validates the names that a sender has sent. A name must be a single path component, so
//! that it cannot denote an entry of another folder.

use std::fmt;

/// The length in bytes of the longest name on common file systems.
pub const MAX_NAME_BYTES: usize = 255;
/// The length in bytes of the longest path below the receiver's folder. Linux has the same limit
/// (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4095;
/// The largest number of nested folders, from the receiver's folder to a file.
pub const MAX_DEPTH: usize = 128;
/// The name of the folder for partial files, which is in the receiver's folder.
pub const PARTS: &str = ".onecopy-receive";

/// The reason why a name is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameProblem {
    /// The name is empty.
    Empty,
    /// The name is `.` or `..`.
    Dots,
    /// The name contains a `/`, so it is a path.
    Path,
    /// The name contains NUL or another control character, which could control a terminal.
    Control,
    /// The name has more than 255 bytes.
    Long,
    /// The name is not valid UTF-8.
    NotUtf8,
    /// The name is that of a device on Windows (such as `CON` or `nul.txt`), which is reserved in
    /// every folder.
    Device,
    /// The name is that of the receiver's folder for partial files.
    Reserved,
}

impl fmt::Display for NameProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameProblem::Empty => "is empty",
            NameProblem::Dots => "leads out of its folder",
            NameProblem::Path => "is a path, with a `/` in it",
            NameProblem::Control => "has a control character in it",
            NameProblem::Long => "is longer than 255 bytes",
            NameProblem::NotUtf8 => "is not valid UTF-8",
            NameProblem::Device => "is the name of a device on Windows",
            NameProblem::Reserved => "is used by `onecopy receive` for partial files",
        })
    }
}

/// Validates the name of a file or folder.
///
/// # Errors
/// The first problem that is found.
pub fn check(name: &[u8]) -> Result<&str, NameProblem> {
    if name.is_empty() {
        return Err(NameProblem::Empty);
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(NameProblem::Long);
    }
    if name == b"." || name == b".." {
        return Err(NameProblem::Dots);
    }
    if name.contains(&b'/') {
        return Err(NameProblem::Path);
    }
    let name = str::from_utf8(name).map_err(|_| NameProblem::NotUtf8)?;
    if name.chars().any(char::is_control) {
        return Err(NameProblem::Control);
    }
    if name == PARTS {
        return Err(NameProblem::Reserved);
    }
    if is_device(name) {
        return Err(NameProblem::Device);
    }
    Ok(name)
}

/// Returns `true` if Windows treats the name as the name of a device. Windows compares only the
/// part before the first dot, without trailing spaces, and ignores case.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ');
    let stem = stem.to_ascii_uppercase();
    match stem.as_str() {
        "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" => true,
        stem => {
            let number = stem
                .strip_prefix("COM")
                .or_else(|| stem.strip_prefix("LPT"));
            matches!(
                number,
                Some("1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for (name, problem) in [
            (&b""[..], NameProblem::Empty),
            (b".", NameProblem::Dots),
            (b"..", NameProblem::Dots),
            (b"/etc/passwd", NameProblem::Path),
            (b"a/../../b", NameProblem::Path),
            (b"a\0b", NameProblem::Control),
            (b"a\nb", NameProblem::Control),
            ("a\u{9b}b".as_bytes(), NameProblem::Control),
            (b"\xff", NameProblem::NotUtf8),
            (b".onecopy-receive", NameProblem::Reserved),
            (b"nul", NameProblem::Device),
            (b"Con.txt", NameProblem::Device),
            (b"AUX .tar.gz", NameProblem::Device),
            (b"com1", NameProblem::Device),
            ("LPT²".as_bytes(), NameProblem::Device),
        ] {
            assert_eq!(check(name), Err(problem), "{}", name.escape_ascii());
        }
        assert_eq!(check(&[b'x'; 256]), Err(NameProblem::Long));
        for name in [
            "a",
            "...",
            "..a",
            ".hidden",
            "com",
            "com10",
            "console",
            "東京 😀",
            "a\\b",
        ] {
            assert_eq!(check(name.as_bytes()), Ok(name));
        }
        assert!(check(&[b'x'; 255]).is_ok());
    }
}
