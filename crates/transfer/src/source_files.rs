//! Finds the files that a sender sends: the files and folders that the user named, and the contents
//! of these folders.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::Error;
use crate::message::{FileHead, FileTime};
use crate::name;

/// An entry that [`walk`] has found: a folder or its end, a file, or a file that is not sent.
pub(crate) enum WalkStep<'a> {
    /// A folder. Its contents follow, and then a `FolderEnd`.
    Folder { name: &'a str, mode: u16 },
    /// The step after the last entry of a folder.
    FolderEnd { modified: FileTime },
    /// A file. `follows` is `true` if the user named this file. If such a file is a symbolic link,
    /// its target is sent. A symbolic link inside a folder is not sent.
    File {
        path: &'a Path,
        name: &'a str,
        follows: bool,
    },
    /// A file that is not sent; `what` is its kind, such as a symbolic link.
    LeftOut { path: &'a Path, what: &'static str },
}

/// Calls `step` for each file and folder in `roots`, and for each entry inside these folders. The
/// call for a folder precedes the calls for its contents.
pub(crate) fn walk(
    roots: &[PathBuf],
    step: &mut impl FnMut(WalkStep<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for root in roots {
        let name = name_of_root(root)?;
        let found = fs::metadata(root).map_err(Error::file("look at", root))?;
        one(root, &name, &found, true, step)?;
    }
    Ok(())
}

/// Returns the name of a file or folder that the user named. For a path such as `.` or `..`, it is
/// the name of the folder to which the path refers.
fn name_of_root(root: &Path) -> Result<String, Error> {
    let name = match root.file_name() {
        Some(name) => name.to_owned(),
        None => {
            let whole = fs::canonicalize(root).map_err(Error::file("look at", root))?;
            match whole.file_name() {
                Some(name) => name.to_owned(),
                None => {
                    return Err(Error::Name {
                        path: root.to_owned(),
                        what: "it has no name\nname what is in it".to_owned(),
                    });
                }
            }
        }
    };
    Ok(checked(root, &name)?.to_owned())
}

fn checked<'a>(path: &Path, name: &'a OsStr) -> Result<&'a str, Error> {
    name::check(name.as_bytes()).map_err(|problem| Error::Name {
        path: path.to_owned(),
        what: format!("its name {problem}\nrename it"),
    })
}

fn one(
    path: &Path,
    name: &str,
    found: &Metadata,
    follows: bool,
    step: &mut impl FnMut(WalkStep<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if found.is_file() {
        return step(WalkStep::File {
            path,
            name,
            follows,
        });
    }
    if !found.is_dir() {
        let what = match found.is_symlink() {
            true => "a symbolic link",
            false => "not a regular file",
        };
        return step(WalkStep::LeftOut { path, what });
    }
    step(WalkStep::Folder {
        name,
        mode: (found.mode() & 0o777) as u16,
    })?;
    for entry in fs::read_dir(path).map_err(Error::file("read the folder", path))? {
        let entry = entry.map_err(Error::file("read the folder", path))?;
        let inner = entry.path();
        let name = entry.file_name();
        let name = checked(&inner, &name)?;
        let found = entry.metadata().map_err(Error::file("look at", &inner))?;
        one(&inner, name, &found, false, step)?;
    }
    step(WalkStep::FolderEnd {
        modified: modified(found),
    })
}

/// Returns the time of the last modification of a file, from the metadata of the file.
pub(crate) fn modified(found: &Metadata) -> FileTime {
    FileTime {
        seconds: found.mtime(),
        nanoseconds: found.mtime_nsec() as u32,
    }
}

/// An open file, and the metadata that the file had when it was opened. After the file was sent,
/// this metadata is compared with the file's current metadata.
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    path: PathBuf,
    found: Metadata,
}

impl OpenedFile {
    /// Opens a regular file. If another process has replaced the file with a pipe, the call returns
    /// an error and does not wait for a writer of the pipe.
    pub(crate) fn open(path: &Path, follows: bool) -> Result<OpenedFile, Error> {
        let mut flags = OFlags::NONBLOCK;
        if !follows {
            flags |= OFlags::NOFOLLOW;
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .map_err(Error::file("open", path))?;
        let found = file.metadata().map_err(Error::file("look at", path))?;
        if !found.is_file() {
            return Err(changed(path, "it is not a regular file any more"));
        }
        Ok(OpenedFile {
            file,
            path: path.to_owned(),
            found,
        })
    }

    /// Returns the file's length, modification time, permissions and name, which are announced to
    /// the receiver.
    pub(crate) fn head(&self, name: &str) -> FileHead {
        FileHead {
            len_bytes: self.found.len(),
            modified: modified(&self.found),
            mode: (self.found.mode() & 0o777) as u16,
            name: name.as_bytes().to_vec(),
        }
    }

    /// Returns a function that converts an error of the system to an [`Error`] with the path of the
    /// file.
    pub(crate) fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::file("read", &self.path)
    }

    /// Returns the error for a file that was truncated while it was sent.
    pub(crate) fn shorter(&self) -> Error {
        changed(&self.path, "it became shorter")
    }

    /// Checks that the file has not changed since it was opened, and that its path still refers to
    /// it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let now = self.file.metadata().map_err(self.failed())?;
        if now.len() != self.found.len() {
            return Err(match now.len() < self.found.len() {
                true => self.shorter(),
                false => changed(&self.path, "it grew"),
            });
        }
        if modified(&now) != modified(&self.found) {
            return Err(changed(&self.path, "it was written to"));
        }
        match fs::metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (now.dev(), now.ino()) => Ok(()),
            _ => Err(changed(&self.path, "another file has its name now")),
        }
    }
}

fn changed(path: &Path, what: &'static str) -> Error {
    Error::Changed {
        path: path.to_owned(),
        what,
    }
}
