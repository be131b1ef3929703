//! [`FolderTarget`]: a folder of exported files, named `part-00000.csv` and so on, with one manifest.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use onecopy_files::{AtomicFile, OnFailure};
use onecopy_rows::connect::Statement;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::Error;
use crate::file::{
    IfExists, commit, description, entry, manifest_file, remove_if_present, write_file,
};
use crate::format::FileFormat;
use crate::manifest::Manifest;
use crate::observer::Observer;
use crate::writer::RowOptions;

/// The name of a folder's manifest.
pub const MANIFEST: &str = "manifest.json";
/// The name of the folder of an unfinished export of several parts, inside its target folder.
pub(crate) const STAGING: &str = ".onecopy-export";

/// A locked folder, into which no other process can export until the lock is released.
#[derive(Debug)]
pub struct FolderTarget {
    path: PathBuf,
    if_exists: IfExists,
    /// The open and locked folder. Closing the folder releases the lock.
    _lock: File,
    /// The names of the files of an earlier export in the folder, which this export replaces.
    replaced: Vec<String>,
    /// `true` if this export has created the folder, which is then deleted after a failure.
    is_new: bool,
    is_finished: bool,
}

impl FolderTarget {
    /// Creates the folder if it does not exist, locks it, and deletes the temporary files of
    /// exports that were killed.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process exports into the folder; [`Error::Exists`] if it
    /// contains an export that must not be replaced; [`Error::NotOurs`] if it contains other
    /// files; [`Error::Path`].
    pub fn open(path: &Path, if_exists: IfExists) -> Result<FolderTarget, Error> {
        let is_new = match fs::create_dir(path) {
            Ok(()) => true,
            Err(_) if path.is_dir() => false,
            Err(error) => return Err(Error::path("create the folder", path)(error)),
        };
        let lock = File::open(path).map_err(Error::path("open the folder", path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::Locked(path.to_owned())),
            Err(error) => return Err(Error::path("lock the folder", path)(error.into())),
        }
        // If a check below fails, the drop of `target` deletes a folder that is new.
        let mut target = FolderTarget {
            path: path.to_owned(),
            if_exists,
            _lock: lock,
            replaced: Vec::new(),
            is_new,
            is_finished: false,
        };
        let contents = Contents::of(path)?;
        if if_exists == IfExists::Refuse {
            if contents.is_staged {
                return Err(Error::Unfinished(path.to_owned()));
            }
            if !contents.exported.is_empty() {
                return Err(Error::Exists(path.to_owned()));
            }
        }
        if contents.is_staged {
            remove_staging(path)?;
        }
        contents.remove_leftovers(path)?;
        target.replaced = contents.exported;
        Ok(target)
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the temporary file of the part with the number `n`, counted from 0.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn create_part(&self, n: usize, format: FileFormat) -> Result<AtomicFile, Error> {
        let path = self.path.join(part_name(n, format));
        Ok(AtomicFile::create(path, OnFailure::Remove)?)
    }

    /// Writes all rows of `statement` into one file, and then the manifest. `query` is the SQL that
    /// the manifest records.
    ///
    /// # Errors
    /// The errors of [`crate::write_rows`] and [`FolderTarget::finish`].
    pub fn write(
        self,
        statement: Statement,
        query: &str,
        options: &RowOptions,
        observer: &mut dyn Observer,
    ) -> Result<Manifest, Error> {
        let mut part = self.create_part(0, options.file)?;
        let written = write_file(&mut part, statement, options, observer)?;
        let manifest = Manifest {
            files: vec![entry(part_name(0, options.file), &written)],
            ..description(query, options, &written)
        };
        self.finish(vec![part], &manifest)?;
        Ok(manifest)
    }

    /// Gives all parts their final names, deletes the files of an earlier export, and writes the
    /// manifest last.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Exists`] or [`Error::Path`]. After an error, the folder is either
    /// unchanged or has no manifest.
    pub fn finish(mut self, parts: Vec<AtomicFile>, manifest: &Manifest) -> Result<(), Error> {
        let last = manifest_file(&self.path.join(MANIFEST), manifest)?;
        // The old manifest is deleted first, because a reader treats a folder without a manifest as
        // incomplete.
        remove_if_present(&self.path.join(MANIFEST))?;
        for part in parts {
            commit(part, self.if_exists)?;
        }
        for name in &self.replaced {
            if name != MANIFEST && !manifest.files.iter().any(|file| file.name == *name) {
                remove_if_present(&self.path.join(name))?;
            }
        }
        commit(last, self.if_exists)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for FolderTarget {
    fn drop(&mut self) {
        if self.is_new && !self.is_finished {
            // `remove_dir` deletes only an empty folder.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Deletes the temporary files and folders of exports that were killed. Deletes nothing if another
/// process exports into the folder.
///
/// # Errors
/// [`Error::NotOurs`], [`Error::Path`].
pub fn remove_leftovers(folder: &Path) -> Result<(), Error> {
    let lock = File::open(folder).map_err(Error::path("open the folder", folder))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Contents::of(folder)?.remove_leftovers(folder),
        Err(_) => Ok(()),
    }
}

/// The contents of a target folder, classified by their purpose.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The names of the exported files in the folder, and of their manifest.
    pub(crate) exported: Vec<String>,
    /// `true` if the folder has an unfinished export of several parts.
    pub(crate) is_staged: bool,
    /// The names of temporary files and folders, which a killed process may have left.
    leftovers: Vec<String>,
}

impl Contents {
    /// Lists the files of a folder.
    ///
    /// # Errors
    /// [`Error::NotOurs`] if the folder contains a file that no export has written;
    /// [`Error::Path`].
    pub(crate) fn of(folder: &Path) -> Result<Contents, Error> {
        let failed = || Error::path("read the folder", folder);
        let mut contents = Contents::default();
        for found in fs::read_dir(folder).map_err(failed())? {
            let name = found.map_err(failed())?.file_name();
            let name = name.to_string_lossy().into_owned();
            if is_ours(&name) {
                contents.exported.push(name);
            } else if name == STAGING {
                contents.is_staged = true;
            } else if is_temporary(&name) {
                contents.leftovers.push(name);
            } else if !name.starts_with('.') {
                return Err(Error::NotOurs {
                    folder: folder.to_owned(),
                    file: name,
                });
            }
        }
        Ok(contents)
    }

    /// Deletes the temporary files and folders. No process uses them, because the caller has the
    /// exclusive lock of the folder.
    pub(crate) fn remove_leftovers(&self, folder: &Path) -> Result<(), Error> {
        for name in &self.leftovers {
            let path = folder.join(name);
            match path.is_dir() {
                true => fs::remove_dir_all(&path).map_err(Error::path("delete", &path))?,
                false => remove_if_present(&path)?,
            }
        }
        Ok(())
    }
}

/// Creates a folder with a temporary name inside a target folder.
pub(crate) fn new_folder(folder: &Path) -> Result<tempfile::TempDir, Error> {
    // The permissions of `mkdir`: users who can write into the target folder can then also write
    // parts into this folder, subject to the umask.
    let made = tempfile::Builder::new()
        .prefix(&format!("{STAGING}."))
        .permissions(fs::Permissions::from_mode(0o777))
        .tempdir_in(folder);
    made.map_err(Error::path("create a folder in", folder))
}

/// Removes the unfinished export of a folder. The export is renamed before it is deleted. If the
/// process is killed, the folder therefore contains the complete unfinished export or none.
pub(crate) fn remove_staging(folder: &Path) -> Result<(), Error> {
    let path = folder.join(STAGING);
    let failed = || Error::path("remove the folder", &path);
    let removed = new_folder(folder)?;
    fs::rename(&path, removed.path().join("removed")).map_err(failed())?;
    removed.close().map_err(failed())
}

/// Returns the file name of the part with the number `n`, counted from 0.
#[must_use]
pub fn part_name(n: usize, format: FileFormat) -> String {
    format!("part-{n:05}.{}", format.ending())
}

/// Returns `true` if `name` is the name of a part or of a manifest, which are the files that an
/// export writes into a folder.
fn is_ours(name: &str) -> bool {
    let of_part = || {
        let (digits, _) = name.strip_prefix("part-")?.split_once('.')?;
        let is_number = digits.len() >= 5 && digits.bytes().all(|b| b.is_ascii_digit());
        (is_number && FileFormat::of_path(Path::new(name)).is_ok()).then_some(())
    };
    name == MANIFEST || of_part().is_some()
}

/// Returns `true` for the name of the temporary file of a part or of a manifest, and for the name
/// of a folder that [`new_folder`] has created.
fn is_temporary(name: &str) -> bool {
    if name
        .strip_prefix(STAGING)
        .is_some_and(|rest| rest.starts_with('.'))
    {
        return true;
    }
    let inner = || {
        let inner = name.strip_prefix('.')?.strip_suffix(".partial")?;
        Some(inner.rsplit_once('.')?.0)
    };
    inner().is_some_and(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_are_recognised() {
        for name in ["manifest.json", "part-00000.csv", "part-123456.ndjson.zst"] {
            assert!(is_ours(name), "{name}");
            assert!(
                is_temporary(&format!(".{name}.abcdefghijklm.partial")),
                "{name}"
            );
        }
        for name in [
            "part-0.csv",
            "part-00000.txt",
            "part-00000",
            "x.csv",
            "part-0000a.csv",
            "",
        ] {
            assert!(!is_ours(name) && !is_temporary(name), "{name}");
        }
    }

    #[test]
    fn a_folder_is_locked_until_its_export_ends_and_deleted_if_it_stayed_empty() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("out");
        let first = FolderTarget::open(&path, IfExists::Refuse).unwrap();
        for if_exists in [IfExists::Refuse, IfExists::Replace] {
            let second = FolderTarget::open(&path, if_exists);
            assert!(matches!(second, Err(Error::Locked(_))), "{second:?}");
        }
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_with_an_export_or_with_other_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join(".part-00000.csv.abcdefghijklm.partial"), "killed").unwrap();
        fs::write(path.join(".hidden"), "").unwrap();
        drop(FolderTarget::open(path, IfExists::Refuse).unwrap());
        assert_eq!(fs::read_dir(path).unwrap().count(), 1);
        fs::write(path.join("part-00000.csv"), "a").unwrap();
        let refused = FolderTarget::open(path, IfExists::Refuse);
        assert!(matches!(refused, Err(Error::Exists(_))), "{refused:?}");
        drop(FolderTarget::open(path, IfExists::Replace).unwrap());
        fs::write(path.join("notes.txt"), "a").unwrap();
        let refused = FolderTarget::open(path, IfExists::Replace);
        assert!(matches!(refused, Err(Error::NotOurs { .. })), "{refused:?}");
    }
}
