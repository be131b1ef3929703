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

/// The treatment of a target that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// The export fails.
    Refuse,
    /// The target is replaced when the export is complete.
    Replace,
}

/// A file that gets its name when all rows are written, followed by its manifest.
#[derive(Debug)]
pub struct FileTarget {
    file: AtomicFile,
    path: PathBuf,
    if_exists: IfExists,
    with_manifest: bool,
}

impl FileTarget {
    /// Creates a temporary file for `path`, and writes the manifest only if `with_manifest`.
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

    /// Writes all rows of `statement`, syncs and renames the file, then the manifest. `query` is
    /// the SQL for the manifest.
    ///
    /// # Errors
    /// The errors of [`write_rows`] and of [`FileTarget::create`]. The target is then unchanged,
    /// except if the rename of the manifest fails.
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
        // The manifest is written and synced before a file gets its name, so that a full disk
        // changes nothing.
        let manifest_file = match self.with_manifest {
            true => Some(manifest_file(&manifest_path, &manifest)?),
            false => None,
        };
        if self.if_exists == IfExists::Replace {
            // A manifest of other bytes must not be next to the file at any time.
            remove_if_present(&manifest_path)?;
        }
        commit(self.file, self.if_exists)?;
        if let Some(file) = manifest_file {
            commit(file, self.if_exists)?;
        }
        Ok(manifest)
    }
}

/// Returns the path of the manifest of one file: its name with `.manifest.json`.
#[must_use]
pub fn manifest_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(".manifest.json");
    path.with_file_name(name)
}

/// Writes all rows into a file that was created.
pub(crate) fn write_file(
    file: &mut AtomicFile,
    statement: Statement,
    options: &RowOptions,
    observer: &mut dyn Observer,
) -> Result<Written, Error> {
    write_rows(statement, options, file, true, observer)
}

/// Returns the entry of a file in a manifest.
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

/// Returns a manifest without files.
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

/// Creates the file of a manifest with a temporary name.
pub(crate) fn manifest_file(path: &Path, manifest: &Manifest) -> Result<AtomicFile, Error> {
    let mut file = AtomicFile::create(path, OnFailure::Remove)?;
    file.write_all(manifest.to_json().as_bytes())
        .map_err(Error::Write)?;
    let synced = file.as_file().sync_all();
    synced.map_err(Error::path("sync the manifest", path))?;
    Ok(file)
}

/// Syncs a file and gives it its name.
pub(crate) fn commit(file: AtomicFile, if_exists: IfExists) -> Result<(), Error> {
    let path = file.path().to_owned();
    match if_exists {
        IfExists::Replace => Ok(file.commit()?),
        IfExists::Refuse => match file.commit_new() {
            // Another process has created it since.
            Err(onecopy_files::Error::Exists { .. }) => Err(Error::Exists(path)),
            done => Ok(done?),
        },
    }
}

fn refuse_existing(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(Error::Exists(path.to_owned())),
        // Another error is reported when the file is created.
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
