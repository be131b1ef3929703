//! `Folder`: the receiver's folder. Every file and folder is opened by a single path component,
//! relative to the descriptor of its parent, and symbolic links are not followed. So neither a name
//! that the sender chose, nor a folder that is moved meanwhile, can redirect a write to a file
//! outside the receiver's folder.

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
use crate::message::{FileHead, FileTime};
use crate::name::PARTS;

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The entry in the receiver's folder at the path of a file that will be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExistingEntry {
    /// No file exists at the path, or the existing file may be replaced.
    Free,
    /// A file with the length and the modification time of the file to receive. It is treated as
    /// already received.
    Same,
}

/// The receiver's folder, and the open folders from there down to the current one. The sender's
/// next messages are about entries of the current folder.
pub(crate) struct Folder {
    path: PathBuf,
    root: OwnedFd,
    /// The folder of partial files; `None` before [`Folder::open_parts`] and after
    /// [`Folder::close_parts`].
    parts: Option<OwnedFd>,
    /// The open folders inside the receiver's folder, from the outermost to the current one. An
    /// entry is `None` if that folder does not exist.
    inner: Vec<Option<OwnedFd>>,
    replace: bool,
}

/// An open file in the folder of partial files: a partial file, or the journal of one.
pub(crate) struct PartialFile {
    pub(crate) file: File,
    name: String,
}

impl Folder {
    /// Opens the folder at `path`. If the folder does not exist but its parent does, creates the
    /// folder.
    pub(crate) fn open(path: &Path, replace: bool) -> Result<Folder, Error> {
        match fs::create_dir(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::file("make the folder", path)(e));
            }
            _ => {}
        }
        // This path may be a symbolic link, because the user specified it and not the sender.
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

    /// Makes the receiver's folder itself the current folder.
    pub(crate) fn rewind(&mut self) {
        self.inner.clear();
    }

    fn here(&self) -> Option<BorrowedFd<'_>> {
        match self.inner.last() {
            None => Some(self.root.as_fd()),
            Some(inner) => inner.as_ref().map(AsFd::as_fd),
        }
    }

    /// Enters the folder `name` inside the current folder. `path` is its path for error messages.
    /// If `make` is given and the folder is missing, creates the folder with the permissions
    /// `make`, and with all permissions for its owner.
    pub(crate) fn enter(&mut self, name: &str, path: &str, make: Option<u16>) -> Result<(), Error> {
        let Some(here) = self.here() else {
            self.inner.push(None);
            return Ok(());
        };
        if let Some(mode) = make {
            // The owner always gets write permission, because files are created in the folder next.
            let mode = Mode::from_raw_mode(u32::from(mode) | 0o700);
            match mkdirat(here, name, mode) {
                Ok(()) => {
                    let made = openat(here, name, FOLDER, Mode::empty())
                        .map_err(Error::errno("open the folder", path))?;
                    // The permissions are set explicitly, so that the umask does not change them.
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
                    format!("`{path}` exists and is not a folder\nmove it away"),
                ));
            }
            Err(e) => return Err(Error::errno("open the folder", path)(e)),
        };
        self.inner.push(inner);
        Ok(())
    }

    /// Leaves the current folder. Its parent becomes the current folder. If `modified` is given,
    /// the folder that is left is synced to disk and gets this modification time.
    pub(crate) fn leave(&mut self, modified: Option<FileTime>) -> Result<(), Error> {
        if let (Some(Some(inner)), Some(modified)) = (self.inner.pop(), modified) {
            let failed = |e: Errno| Error::errno("sync the folder", &self.path)(e);
            sync_folder(&inner).map_err(failed)?;
            futimens(&inner, &times(modified)).map_err(failed)?;
        }
        Ok(())
    }

    /// Syncs the receiver's folder to disk: the list of its entries, but not the contents of its
    /// files.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        sync_folder(&self.root).map_err(Error::errno("sync the folder", &self.path))
    }

    /// Examines the entry at the path of the file that `head` announces. Returns an error if this
    /// entry must not be replaced.
    pub(crate) fn look(
        &self,
        head: &FileHead,
        name: &str,
        path: &str,
    ) -> Result<ExistingEntry, Error> {
        let Some(here) = self.here() else {
            return Ok(ExistingEntry::Free);
        };
        let found = match statat(here, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(ExistingEntry::Free),
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
        let modified = FileTime {
            seconds: found.st_mtime,
            nanoseconds: found.st_mtime_nsec as u32,
        };
        if (found.st_size as u64, modified) == (head.len_bytes, head.modified) {
            return Ok(ExistingEntry::Same);
        }
        match self.replace {
            true => Ok(ExistingEntry::Free),
            false => {
                refused(" and is another file\nmove it away, or give `--replace` to the receiver")
            }
        }
    }

    /// Returns the number of bytes of free disk space that the user of this process may use.
    pub(crate) fn free_bytes(&self) -> Result<u64, Error> {
        let found = fstatvfs(&self.root).map_err(Error::errno("look at", &self.path))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Returns the size in bytes of the partial file for `path` that an earlier transfer left; 0 if
    /// no such file exists.
    pub(crate) fn part_bytes(&self, path: &str) -> u64 {
        let name = part_name(path, "part");
        let found = openat(&self.root, PARTS, FOLDER, Mode::empty())
            .and_then(|parts| statat(&parts, name, AtFlags::SYMLINK_NOFOLLOW));
        found.map_or(0, |found| found.st_size as u64)
    }

    /// Opens the folder of partial files, and locks it against other receivers. Creates the folder
    /// if it does not exist.
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

    /// Releases the lock on the folder of partial files, and deletes this folder if it is empty.
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

    /// Opens the partial file for `path`, or its journal: `kind` is `part` or `journal`. Creates a
    /// missing file.
    pub(crate) fn part(&self, path: &str, kind: &str) -> Result<PartialFile, Error> {
        let name = part_name(path, kind);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let shown = self.path.join(PARTS).join(&name);
        let opened = openat(self.parts()?, &name, flags, Mode::from_raw_mode(0o600))
            .map_err(Error::errno("create", shown))?;
        Ok(PartialFile {
            file: File::from(opened),
            name,
        })
    }

    /// Deletes the partial file for `path` and its journal.
    pub(crate) fn discard(&self, path: &str) {
        if let Ok(parts) = self.parts() {
            for kind in ["part", "journal"] {
                let _ = unlinkat(parts, part_name(path, kind), AtFlags::empty());
            }
        }
    }

    /// Completes a received file: gives it its permissions and modification time, syncs it, and
    /// moves it from the folder of partial files to its final path.
    pub(crate) fn place(
        &self,
        part: &PartialFile,
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
            // The file system cannot rename without replacing. No file had this name when it was
            // checked.
            renamed = renameat(parts, &part.name, here, name);
        }
        match renamed {
            Ok(()) => {
                let _ = unlinkat(parts, part_name(path, "journal"), AtFlags::empty());
                Ok(())
            }
            Err(Errno::EXIST) => Err(Error::Refusing(
                Reason::Exists,
                format!("`{path}` was created in the meantime\nmove it away"),
            )),
            Err(e) => Err(Error::errno("rename the part to", path)(e)),
        }
    }
}

/// Returns the name of the partial file for `path`, or of its journal. The name is a hash of
/// `path`: it is short and contains no separator.
fn part_name(path: &str, kind: &str) -> String {
    let hash = blake3::hash(path.as_bytes()).to_hex();
    format!("{}.{kind}", &hash[..32])
}

fn sync_folder(folder: &OwnedFd) -> Result<(), Errno> {
    match fsync(folder) {
        // Some network file systems cannot sync a folder.
        Err(Errno::INVAL) => Ok(()),
        done => done,
    }
}

fn times(modified: FileTime) -> Timestamps {
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
