//! The receiver's folder. Every file and folder is reached from the descriptor of the folder it is in, by one name, and no link is
//! followed: so nothing that a sender says, and nobody who moves folders about meanwhile, makes a write land elsewhere.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT,
    fchmod, flock, fstatvfs, fsync, futimens, mkdirat, open, openat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{Error, Reason};
use crate::message::{FileHead, Time};
use crate::name::PARTS;

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What stands under a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum There {
    /// Nothing, or a file that may be replaced.
    Free,
    /// The file itself: the same length, modified at the same moment.
    Same,
}

/// The folder, and where in it the sender is.
pub(crate) struct Folder {
    path: PathBuf,
    root: OwnedFd,
    /// Where parts are kept.
    parts: Option<OwnedFd>,
    /// The folders it is in; `None` for one that is not there.
    inner: Vec<Option<OwnedFd>>,
    replace: bool,
}

/// Two files of one transfer: its bytes so far, and its journal.
pub(crate) struct Part {
    pub(crate) file: File,
    name: String,
}

impl Folder {
    /// Opens it, makes it where its own folder is there.
    pub(crate) fn open(path: &Path, replace: bool) -> Result<Folder, Error> {
        match fs::create_dir(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::file("make the folder", path)(e));
            }
            _ => {}
        }
        // The folder that the user named may be a link.
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            open(path, flags, Mode::empty()).map_err(Error::errno("open the folder", path))?;
        Ok(Folder {
            path: path.to_owned(),
            root,
            parts: None,
            inner: Vec::new(),
            replace,
        })
    }

    /// Begins again at the top.
    pub(crate) fn rewind(&mut self) {
        self.inner.clear();
    }

    fn here(&self) -> Option<BorrowedFd<'_>> {
        match self.inner.last() {
            None => Some(self.root.as_fd()),
            Some(inner) => inner.as_ref().map(AsFd::as_fd),
        }
    }

    /// Goes into a folder of the present one, `path` in messages. `make`: it is made where it is not there.
    pub(crate) fn enter(&mut self, name: &str, path: &str, make: Option<u16>) -> Result<(), Error> {
        let Some(here) = self.here() else {
            self.inner.push(None);
            return Ok(());
        };
        if let Some(mode) = make {
            // Its owner can always write in it: what is in it comes yet.
            let mode = Mode::from_raw_mode(u32::from(mode) | 0o700);
            match mkdirat(here, name, mode) {
                Ok(()) => {
                    let made = openat(here, name, FOLDER, Mode::empty())
                        .map_err(Error::errno("open the folder", path))?;
                    // Whatever the umask says.
                    fchmod(&made, mode).map_err(Error::errno("set the permissions of", path))?;
                }
                Err(Errno::EXIST) => {}
                Err(e) => return Err(Error::errno("make the folder", path)(e)),
            }
        }
        let inner = match openat(here, name, FOLDER, Mode::empty()) {
            Ok(inner) => Some(inner),
            Err(Errno::NOENT) if make.is_none() => None,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(Error::Refusing(
                    Reason::Exists,
                    format!("`{path}` is there and is no folder\nmove it away"),
                ));
            }
            Err(e) => return Err(Error::errno("open the folder", path)(e)),
        };
        self.inner.push(inner);
        Ok(())
    }

    /// Leaves a folder; with `modified` it is synced first and gets its time.
    pub(crate) fn leave(&mut self, modified: Option<Time>) -> Result<(), Error> {
        if let (Some(Some(inner)), Some(modified)) = (self.inner.pop(), modified) {
            let failed = |e: Errno| Error::errno("sync the folder", &self.path)(e);
            sync_folder(&inner).map_err(failed)?;
            futimens(&inner, &times(modified)).map_err(failed)?;
        }
        Ok(())
    }

    /// Syncs the names in the topmost folder.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        sync_folder(&self.root).map_err(Error::errno("sync the folder", &self.path))
    }

    /// What stands where a file is to stand.
    pub(crate) fn look(&self, head: &FileHead, name: &str, path: &str) -> Result<There, Error> {
        let Some(here) = self.here() else {
            return Ok(There::Free);
        };
        let found = match statat(here, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(There::Free),
            Err(e) => return Err(Error::errno("look at", path)(e)),
        };
        let refused = |what: &str| {
            let words = format!("`{path}` is there{what}");
            Err(Error::Refusing(Reason::Exists, words))
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return refused(" and is a folder\nmove it away"),
            FileType::Symlink => return refused(" and is a symbolic link\nmove it away"),
            _ => return refused(" and is no file\nmove it away"),
        }
        let modified = Time {
            seconds: found.st_mtime,
            nanoseconds: found.st_mtime_nsec as u32,
        };
        if (found.st_size as u64, modified) == (head.len_bytes, head.modified) {
            return Ok(There::Same);
        }
        match self.replace {
            true => Ok(There::Free),
            false => {
                refused(" and is another file\nmove it away, or give `--replace` to the receiver")
            }
        }
    }

    /// Bytes that its file system has for this user.
    pub(crate) fn free_bytes(&self) -> Result<u64, Error> {
        let found = fstatvfs(&self.root).map_err(Error::errno("look at", &self.path))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Bytes of the part of a file that is there from an earlier run.
    pub(crate) fn part_bytes(&self, path: &str) -> u64 {
        let name = part_name(path, "part");
        let found = openat(&self.root, PARTS, FOLDER, Mode::empty())
            .and_then(|parts| statat(&parts, name, AtFlags::SYMLINK_NOFOLLOW));
        found.map_or(0, |found| found.st_size as u64)
    }

    /// Makes the place of parts, and keeps it from other receivers.
    pub(crate) fn open_parts(&mut self) -> Result<(), Error> {
        let path = self.path.join(PARTS);
        match mkdirat(&self.root, PARTS, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(Error::errno("make the folder", path)(e)),
        }
        let parts = openat(&self.root, PARTS, FOLDER, Mode::empty())
            .map_err(Error::errno("open the folder", &path))?;
        match flock(&parts, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::Refusing(
                    Reason::Busy,
                    "another transfer into the same folder is under way\nwait until it has ended"
                        .to_owned(),
                ));
            }
            Err(e) => return Err(Error::errno("lock the folder", path)(e)),
        }
        self.parts = Some(parts);
        Ok(())
    }

    /// Lets the place of parts go, and removes it where no part of an earlier run is in it.
    pub(crate) fn close_parts(&mut self) {
        if self.parts.take().is_some() {
            let _ = unlinkat(&self.root, PARTS, AtFlags::REMOVEDIR);
        }
    }

    fn parts(&self) -> Result<BorrowedFd<'_>, Error> {
        match &self.parts {
            Some(parts) => Ok(parts.as_fd()),
            None => Err(Error::file("open the folder", PARTS)(
                io::ErrorKind::NotFound.into(),
            )),
        }
    }

    /// The part of a file, or its journal (`kind`), made where it is not there.
    pub(crate) fn part(&self, path: &str, kind: &str) -> Result<Part, Error> {
        let name = part_name(path, kind);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let shown = self.path.join(PARTS).join(&name);
        let opened = openat(self.parts()?, &name, flags, Mode::from_raw_mode(0o600))
            .map_err(Error::errno("create", shown))?;
        Ok(Part {
            file: File::from(opened),
            name,
        })
    }

    /// Removes what there is of a file.
    pub(crate) fn discard(&self, path: &str) {
        if let Ok(parts) = self.parts() {
            for kind in ["part", "journal"] {
                let _ = unlinkat(parts, part_name(path, kind), AtFlags::empty());
            }
        }
    }

    /// Gives a whole file its permissions, time and name: synced first, and at once.
    pub(crate) fn place(
        &self,
        part: &Part,
        head: &FileHead,
        name: &str,
        path: &str,
    ) -> Result<(), Error> {
        let here = self.here().ok_or_else(|| {
            Error::file("open the folder of", path)(io::ErrorKind::NotFound.into())
        })?;
        fchmod(&part.file, Mode::from_raw_mode(u32::from(head.mode)))
            .map_err(Error::errno("set the permissions of", path))?;
        futimens(&part.file, &times(head.modified))
            .map_err(Error::errno("set the time of", path))?;
        fsync(&part.file).map_err(Error::errno("sync", path))?;
        let parts = self.parts()?;
        let mut renamed = match self.replace {
            true => renameat(parts, &part.name, here, name),
            false => renameat_with(parts, &part.name, here, name, RenameFlags::NOREPLACE),
        };
        if matches!(renamed, Err(Errno::INVAL | Errno::NOSYS)) {
            // A file system without the flag: it was free when it was looked at.
            renamed = renameat(parts, &part.name, here, name);
        }
        match renamed {
            Ok(()) => {
                let _ = unlinkat(parts, part_name(path, "journal"), AtFlags::empty());
                Ok(())
            }
            Err(Errno::EXIST) => Err(Error::Refusing(
                Reason::Exists,
                format!("`{path}` has come to be there meanwhile\nmove it away"),
            )),
            Err(e) => Err(Error::errno("rename the part to", path)(e)),
        }
    }
}

/// Names that lead nowhere, are short enough whatever the path is, and the same at the next run.
fn part_name(path: &str, kind: &str) -> String {
    let hash = blake3::hash(path.as_bytes()).to_hex();
    format!("{}.{kind}", &hash[..32])
}

fn sync_folder(folder: &OwnedFd) -> Result<(), Errno> {
    match fsync(folder) {
        // Some network file systems cannot.
        Err(Errno::INVAL) => Ok(()),
        done => done,
    }
}

fn times(modified: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: i64::from(modified.nanoseconds),
        },
    }
}
