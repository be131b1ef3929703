//! [`AtomicFile`]: a file that gets its final name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::{Action, Error};

/// The treatment of the temporary file after an error, or if the [`AtomicFile`] is dropped without
/// a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The temporary file is deleted.
    #[default]
    Remove,
    /// The temporary file is kept, so that a user can examine it or a later transfer can continue
    /// it.
    Keep,
}

/// The largest number of symbolic links that are followed from a path to its file. Linux has the
/// same limit (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// The length in bytes of the longest file name on common file systems.
const MAX_NAME: usize = 255;

/// A file that is written under a temporary name in its target's directory. [`AtomicFile::commit`]
/// syncs the file and renames it to the target.
///
/// Writes are not buffered, so the caller should write whole chunks. A new file has the permissions
/// 0666 without the bits of the umask. A file that replaces another one gets the permissions of the
/// replaced file, and also its owner and group if the process may set them. A symbolic link is
/// kept, and the file that it refers to is replaced. Other hard links to a replaced file keep the
/// old contents.
///
/// If the value is dropped without a commit, the file never gets its final name. A write copies the
/// bytes once: the kernel copies them into its page cache.
#[derive(Debug)]
pub struct AtomicFile {
    /// The final path of the file, after all symbolic links were followed.
    target: PathBuf,
    temporary: PathBuf,
    file: File,
    /// The metadata of the file that is replaced; `None` if the target did not exist at the start.
    replaced: Option<Metadata>,
    on_failure: OnFailure,
    len_bytes: u64,
    /// `true` after the temporary file was renamed, so that no temporary file must be deleted.
    renamed: bool,
}

impl AtomicFile {
    /// Creates the temporary file for a file whose final path is `path`.
    ///
    /// # Errors
    /// [`Error::NoDirectory`], [`Error::NotAFile`], [`Error::Denied`], [`Error::Full`],
    /// [`Error::Io`].
    pub fn create(path: impl AsRef<Path>, on_failure: OnFailure) -> Result<AtomicFile, Error> {
        let path = path.as_ref();
        let (target, replaced) = resolve(path)?;
        // `Path` ignores a slash at the end of the path, but a rename to such a path would fail.
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
        // If the file replaces another one, it must not be readable for others before the commit
        // sets the permissions of that file.
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

    /// Returns the final path, after all symbolic links were followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Returns the path of the temporary file.
    #[must_use]
    pub fn temporary_path(&self) -> &Path {
        &self.temporary
    }

    /// Returns the open temporary file, for writes that do not use [`Write`], such as
    /// `sendfile(2)`.
    #[must_use]
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// Returns the number of bytes written by [`Write`] so far.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Syncs the data to disk, renames the file to its final path, and syncs the directory.
    ///
    /// # Errors
    /// [`Error::Full`] if the operating system reports a full disk only at the sync;
    /// [`Error::Denied`]; [`Error::Io`]. After an error, the final path still refers to the
    /// previous file, except after [`Action::SyncDirectory`].
    pub fn commit(self) -> Result<(), Error> {
        self.commit_by(|temporary, target| fs::rename(temporary, target))
    }

    /// Does the same as [`AtomicFile::commit`], but never replaces an existing file. Some file
    /// systems, such as NFS, do not support a rename that fails if the target exists. On these, a
    /// file that another process creates at the same time is replaced.
    ///
    /// # Errors
    /// The errors of [`AtomicFile::commit`]; [`Error::Exists`] if the final path exists.
    pub fn commit_new(self) -> Result<(), Error> {
        self.commit_by(|temporary, target| {
            match renameat_with(CWD, temporary, CWD, target, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS) => match fs::symlink_metadata(target) {
                    Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                    Err(_) => fs::rename(temporary, target),
                },
                renamed => Ok(renamed?),
            }
        })
    }

    fn commit_by(
        mut self,
        rename: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), Error> {
        let at = |action| move |e, path: &Path| Error::io(action, path, e);
        if let Some(replaced) = &self.replaced {
            // The owner is set before the permissions, because a change of the owner removes the
            // set-user-ID bits. Only root may change the owner.
            let _ = fchown(&self.file, Some(replaced.uid()), Some(replaced.gid()));
            let permissions = fs::Permissions::from_mode(replaced.mode() & 0o7777);
            self.file
                .set_permissions(permissions)
                .map_err(|e| at(Action::SetPermissions)(e, &self.target))?;
        }
        self.file
            .sync_all()
            .map_err(|e| at(Action::Sync)(e, &self.target))?;
        rename(&self.temporary, &self.target).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists {
                path: self.target.clone(),
            },
            _ => at(Action::Rename)(e, &self.target),
        })?;
        self.renamed = true;
        let synced = File::open(directory_of(&self.target)).and_then(|d| d.sync_all());
        match synced {
            // Some network file systems cannot sync a directory, and a directory may be writable
            // but not readable.
            Err(e) if !is_unsupported(&e) => Err(at(Action::SyncDirectory)(e, &self.target)),
            _ => Ok(()),
        }
    }

    /// Ends the writing without a commit. Dropping the value has the same effect.
    pub fn abandon(self) {}
}

impl Write for AtomicFile {
    /// Writes to the temporary file. If this fails, the returned `io::Error` contains an [`Error`]
    /// with the path.
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
            // A drop cannot report an error. The file that remains has a temporary name.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Follows the symbolic links of `path`. Returns the resulting path, and the metadata of the file
/// with this path if it exists.
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

/// Returns the directory part of `path`; `.` if it has none.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns the temporary name `.name.<13 letters>.partial`. `name` is truncated if the result would
/// be too long.
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
