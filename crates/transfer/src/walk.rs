//! The sender's files: what was named, and what is in the folders of it.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::Error;
use crate::message::{FileHead, Time};
use crate::name;

/// What stands on the way.
pub(crate) enum Step<'a> {
    /// A folder begins.
    Folder { name: &'a str, mode: u16 },
    /// It ends.
    FolderEnd { modified: Time },
    /// A file. A link that was named is followed, one inside of a folder is none.
    File {
        path: &'a Path,
        name: &'a str,
        follows: bool,
    },
    /// Something that is not sent.
    LeftOut { path: &'a Path, what: &'static str },
}

/// Goes through all that was named, folders before what is in them.
pub(crate) fn walk(
    roots: &[PathBuf],
    step: &mut impl FnMut(Step<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for root in roots {
        let name = name_of_root(root)?;
        let found = fs::metadata(root).map_err(Error::file("look at", root))?;
        one(root, &name, &found, true, step)?;
    }
    Ok(())
}

/// The name that what was named has: `.` and `..` have one too.
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
    step: &mut impl FnMut(Step<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if found.is_file() {
        return step(Step::File {
            path,
            name,
            follows,
        });
    }
    if !found.is_dir() {
        let what = match found.is_symlink() {
            true => "a symbolic link",
            false => "no regular file",
        };
        return step(Step::LeftOut { path, what });
    }
    step(Step::Folder {
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
    step(Step::FolderEnd {
        modified: modified(found),
    })
}

/// When something was modified.
pub(crate) fn modified(found: &Metadata) -> Time {
    Time {
        seconds: found.mtime(),
        nanoseconds: found.mtime_nsec() as u32,
    }
}

/// A file as it is when it is opened, to be compared with how it is when it was sent.
pub(crate) struct Opened {
    pub(crate) file: File,
    path: PathBuf,
    found: Metadata,
}

impl Opened {
    /// Opens a regular file; one that became a pipe meanwhile is not waited for.
    pub(crate) fn open(path: &Path, follows: bool) -> Result<Opened, Error> {
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
            return Err(changed(path, "it is no regular file any more"));
        }
        Ok(Opened {
            file,
            path: path.to_owned(),
            found,
        })
    }

    /// What is told of it.
    pub(crate) fn head(&self, name: &str) -> FileHead {
        FileHead {
            len_bytes: self.found.len(),
            modified: modified(&self.found),
            mode: (self.found.mode() & 0o777) as u16,
            name: name.as_bytes().to_vec(),
        }
    }

    /// An error of the system with the path.
    pub(crate) fn failed(&self) -> impl FnOnce(io::Error) -> Error {
        Error::file("read", &self.path)
    }

    /// It has fewer bytes than it had.
    pub(crate) fn shorter(&self) -> Error {
        changed(&self.path, "it became shorter")
    }

    /// Looks whether it is as it was, and still stands under its name.
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
            _ => Err(changed(&self.path, "another file stands under its name")),
        }
    }
}

fn changed(path: &Path, what: &'static str) -> Error {
    Error::Changed {
        path: path.to_owned(),
        what,
    }
}
