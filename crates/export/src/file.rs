//! [`FileTarget`]: one exported file with its manifest.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

use onecopy_files::{AtomicFile, OnFailure};
use onecopy_rows::connect::Statement;

use crate::error::Error;
use crate::manifest::{FileEntry, Manifest};
use crate::observer::Observer;
use crate::writer::{RowOptions, Written, write_rows};

/// The behaviour of an export whose target file or folder exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// The export fails with [`Error::Exists`].
    Refuse,
    /// The target is replaced when the export is complete.
    Replace,
}

/// An exported file with a temporary name. [`FileTarget::write`] gives it its final name after all
/// rows were written, and then writes its manifest.
#[derive(Debug)]
pub struct FileTarget {
    file: AtomicFile,
    path: PathBuf,
    if_exists: IfExists,
    with_manifest: bool,
}

impl FileTarget {
    /// Creates a temporary file for `path`. If `with_manifest`, [`FileTarget::write`] also writes a
    /// manifest.
    ///
    /// # Errors
    /// [`Error::Exists`] if the file or its manifest exists and must not be replaced;
    /// [`Error::File`] if the file cannot be created.
    pub fn create(
        path: &Path,
        if_exists: IfExists,
        with_manifest: bool,
    ) -> Result<FileTarget, Error> {
        if if_exists == IfExists::Refuse {
            refuse_existing(path)?;
            refuse_existing(&manifest_path(path))?;
        }
        Ok(FileTarget {
            file: AtomicFile::create(path, OnFailure::Remove)?,
            path: path.to_owned(),
            if_exists,
            with_manifest,
        })
    }

    /// Writes all rows of `statement`, syncs the file, gives it its final name, and then writes the
    /// manifest. `query` is the SQL that the manifest records.
    ///
    /// # Errors
    /// The errors of [`write_rows`] and of [`FileTarget::create`]. The target file is then
    /// unchanged, except if only the rename of the manifest failed. The old manifest may have been
    /// deleted.
    pub fn write(
        mut self,
        statement: Statement,
        query: &str,
        options: &RowOptions,
        observer: &mut dyn Observer,
    ) -> Result<Manifest, Error> {
        let written = write_file(&mut self.file, statement, options, observer)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let manifest = Manifest {
            files: vec![entry(name.into_owned(), &written)],
            ..description(query, options, &written)
        };
        let manifest_path = manifest_path(&self.path);
        // The manifest is written to a temporary file and synced before the rows get their final
        // name, so that a full disk leaves the target unchanged.
        let manifest_file = match self.with_manifest {
            true => Some(manifest_file(&manifest_path, &manifest)?),
            false => None,
        };
        if self.if_exists == IfExists::Replace {
            // The old manifest is deleted first: it must not describe the new file at any time.
            remove_if_present(&manifest_path)?;
        }
        commit(self.file, self.if_exists)?;
        if let Some(file) = manifest_file {
            commit(file, self.if_exists)?;
        }
        Ok(manifest)
    }
}

/// Returns the path of the manifest of the file `path`: its name followed by `.manifest.json`.
#[must_use]
pub fn manifest_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(".manifest.json");
    path.with_file_name(name)
}

/// Writes all rows of `statement` to `file`, and computes the hash of the written bytes.
pub(crate) fn write_file(
    file: &mut AtomicFile,
    statement: Statement,
    options: &RowOptions,
    observer: &mut dyn Observer,
) -> Result<Written, Error> {
    write_rows(statement, options, file, true, observer)
}

/// Returns the manifest's entry for the file `name`. `written` describes the contents of this file.
pub(crate) fn entry(name: String, written: &Written) -> FileEntry {
    FileEntry {
        name,
        n_rows: written.n_rows,
        n_bytes: written.n_bytes,
        blake3: written
            .hash
            .map(|hash| hash.to_hex().to_string())
            .unwrap_or_default(),
    }
}

/// Returns a manifest that lists no files yet.
pub(crate) fn description(query: &str, options: &RowOptions, written: &Written) -> Manifest {
    Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        query: query.to_owned(),
        snapshot: None,
        plan: None,
        format: options.file,
        columns: written.columns.clone(),
        files: Vec::new(),
    }
}

/// Writes a manifest to a synced temporary file, which [`commit`] renames to `path`.
pub(crate) fn manifest_file(path: &Path, manifest: &Manifest) -> Result<AtomicFile, Error> {
    let mut file = AtomicFile::create(path, OnFailure::Remove)?;
    file.write_all(manifest.to_json().as_bytes())
        .map_err(Error::Write)?;
    let synced = file.as_file().sync_all();
    synced.map_err(Error::path("sync the manifest", path))?;
    Ok(file)
}

/// Syncs a temporary file and gives it its final name.
pub(crate) fn commit(file: AtomicFile, if_exists: IfExists) -> Result<(), Error> {
    let path = file.path().to_owned();
    match if_exists {
        IfExists::Replace => Ok(file.commit()?),
        IfExists::Refuse => match file.commit_new() {
            // Another process has created the file since [`FileTarget::create`] checked it.
            Err(onecopy_files::Error::Exists { .. }) => Err(Error::Exists(path)),
            done => Ok(done?),
        },
    }
}

fn refuse_existing(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(Error::Exists(path.to_owned())),
        // Any other error, such as a missing folder, occurs again when the file is created, and is
        // reported then.
        Err(_) => Ok(()),
    }
}

pub(crate) fn remove_if_present(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::path("delete", path)(error))
        }
        _ => Ok(()),
    }
}
