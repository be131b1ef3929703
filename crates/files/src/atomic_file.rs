//! A file that appears under its name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::{Action, Error};

/// What becomes of the temporary file when the writing fails or is given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It is removed.
    #[default]
    Remove,
    /// It stays under its temporary name, to be looked at or resumed.
    Keep,
}

/// Links followed from the target's name, as Linux does (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// Longest name on the usual file systems, in bytes.
const MAX_NAME: usize = 255;

/// A file under a temporary name in its target's directory, until [`AtomicFile::commit`] syncs it and renames it.
///
/// Writes go straight to the system: give them whole chunks. The file gets the permissions a plain create would give it
/// (0666 less the umask), or those of the file it replaces, and that one's owner and group where the process may set them. A
/// symbolic link stays: the file it leads to is replaced. Hard links to a replaced file keep the old one.
///
/// Dropped without a commit, it never appears under its name. Copies: none here; the kernel's one into its cache.
#[derive(Debug)]
pub struct AtomicFile {
    /// Where it will stand: links are resolved.
    target: PathBuf,
    temporary: PathBuf,
    file: File,
    /// What is replaced, where there was a file at the start.
    replaced: Option<Metadata>,
    on_failure: OnFailure,
    len_bytes: u64,
    /// Renamed: nothing is to be removed any more.
    renamed: bool,
}

impl AtomicFile {
    /// Begins a file that is to stand under `path`.
    ///
    /// # Errors
    /// [`Error::NoDirectory`], [`Error::NotAFile`], [`Error::Denied`], or [`Error::Io`] with the path.
    pub fn create(path: impl AsRef<Path>, on_failure: OnFailure) -> Result<AtomicFile, Error> {
        let path = path.as_ref();
        let (target, replaced) = resolve(path)?;
        // `Path` overlooks a slash at the end; the rename would not.
        if target.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Error::NotAFile {
                path: path.to_owned(),
                what: "the name of a directory",
            });
        }
        let (Some(name), directory) = (target.file_name(), directory_of(&target)) else {
            return Err(Error::NotAFile {
                path: path.to_owned(),
                what: "a directory",
            });
        };
        if !directory.is_dir() {
            return match fs::metadata(directory) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    Err(Error::io(Action::Inspect, path, e))
                }
                _ => Err(Error::NoDirectory {
                    directory: directory.to_owned(),
                }),
            };
        }
        // Nobody may read what will be private before it is: the old file's permissions come at the commit.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let random = RandomState::new();
        let mut attempt = 0_u32;
        loop {
            let temporary = directory.join(temporary_name(name, random.hash_one(attempt)));
            let created = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&temporary);
            match created {
                Ok(file) => {
                    return Ok(AtomicFile {
                        target,
                        temporary,
                        file,
                        replaced,
                        on_failure,
                        len_bytes: 0,
                        renamed: false,
                    });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
                Err(e) => return Err(Error::io(Action::Create, path, e)),
            }
        }
    }

    /// Where it will stand.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Where it stands until then.
    #[must_use]
    pub fn temporary_path(&self) -> &Path {
        &self.temporary
    }

    /// The file itself, for what is written past [`Write`]: by the kernel, say.
    #[must_use]
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Puts the data on the disk, renames the file to its name and puts the name on the disk.
    ///
    /// # Errors
    /// [`Error::Full`] where the disk turns out to be full only now, [`Error::Denied`], [`Error::Io`]. The name then shows
    /// what it showed before, but for [`Action::SyncDirectory`].
    pub fn commit(mut self) -> Result<(), Error> {
        let at = |action| move |e, path: &Path| Error::io(action, path, e);
        if let Some(replaced) = &self.replaced {
            // The owner first: a change of owner takes set-user-ID bits away. Only root may give files away.
            let _ = fchown(&self.file, Some(replaced.uid()), Some(replaced.gid()));
            let permissions = fs::Permissions::from_mode(replaced.mode() & 0o7777);
            self.file
                .set_permissions(permissions)
                .map_err(|e| at(Action::SetPermissions)(e, &self.target))?;
        }
        self.file
            .sync_all()
            .map_err(|e| at(Action::Sync)(e, &self.target))?;
        fs::rename(&self.temporary, &self.target)
            .map_err(|e| at(Action::Rename)(e, &self.target))?;
        self.renamed = true;
        let synced = File::open(directory_of(&self.target)).and_then(|d| d.sync_all());
        match synced {
            // Some network file systems cannot sync a directory, and one may be writable but not readable.
            Err(e) if !is_unsupported(&e) => Err(at(Action::SyncDirectory)(e, &self.target)),
            _ => Ok(()),
        }
    }

    /// Gives it up: as a drop, in so many words.
    pub fn abandon(self) {}
}

impl Write for AtomicFile {
    /// The error of a failed write wraps an [`Error`] with the path.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self.file.write(buf) {
            Ok(n) => {
                self.len_bytes += n as u64;
                Ok(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => Err(Error::io(Action::Write, &self.target, e).into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.renamed && self.on_failure == OnFailure::Remove {
            // Nothing can be told from here; what stays has a temporary name.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Where `path` leads past its symbolic links, and the file that stands there, if one does.
fn resolve(path: &Path) -> Result<(PathBuf, Option<Metadata>), Error> {
    let inspect = |e| Error::io(Action::Inspect, path, e);
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(found) if found.is_symlink() => {
                let link = fs::read_link(&target).map_err(inspect)?;
                target = directory_of(&target).join(link);
            }
            Ok(found) if found.is_file() => return Ok((target, Some(found))),
            Ok(found) => {
                return Err(Error::NotAFile {
                    path: path.to_owned(),
                    what: what_is(found.file_type()),
                });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((target, None)),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                return Err(Error::NoDirectory {
                    directory: directory_of(&target).to_owned(),
                });
            }
            Err(e) => return Err(inspect(e)),
        }
    }
    Err(Error::NotAFile {
        path: path.to_owned(),
        what: "a circle of symbolic links",
    })
}

fn what_is(file_type: FileType) -> &'static str {
    if file_type.is_dir() {
        "a directory"
    } else if file_type.is_fifo() {
        "a pipe"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// The directory that `path` stands in; `.` for a bare name.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `.name.<13 letters>.partial`, the name cut where it would grow too long.
fn temporary_name(name: &OsStr, mut random: u64) -> OsString {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut tail = vec![b'.'];
    for _ in 0..13 {
        tail.push(LETTERS[(random % 32) as usize]);
        random /= 32;
    }
    tail.extend_from_slice(b".partial");
    let kept = name.len().min(MAX_NAME - 1 - tail.len());
    let mut temporary = vec![b'.'];
    temporary.extend_from_slice(&name.as_bytes()[..kept]);
    temporary.extend_from_slice(&tail);
    OsString::from_vec(temporary)
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_are_hidden_distinct_and_not_too_long() {
        let a = temporary_name(OsStr::new("rows.csv"), u64::MAX);
        let b = temporary_name(OsStr::new("rows.csv"), u64::MAX - 1);
        assert_ne!(a, b);
        let a = a.to_str().unwrap();
        assert!(
            a.starts_with(".rows.csv.") && a.ends_with(".partial"),
            "{a}"
        );
        assert_eq!(
            temporary_name(&OsString::from("é".repeat(127)), 1).len(),
            MAX_NAME
        );
    }
}
