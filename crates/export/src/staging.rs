//! [`Staging`]: an export of several parts into a folder, until it is complete.
//!
//! Each complete part is in the hidden folder `.onecopy-export` inside the target folder, with its
//! manifest. So a reader of the target folder finds no files of an unfinished export.
//!
//! When all parts are complete, [`Staging::finish`] writes the manifest of the complete export into
//! the hidden folder, moves the files to the target folder, and writes the manifest there last.
//! Each of these operations can be repeated: if the process is killed at any point, another process
//! can continue.
//!
//! Several processes can write different parts. Each process has a shared lock of the target
//! folder, and an exclusive lock of the part that it writes. The process that completes the last
//! part finishes the export, for which it needs the exclusive lock of the folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use onecopy_files::{AtomicFile, OnFailure};
use onecopy_rows::connect::Statement;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::Error;
use crate::file::{FileTarget, IfExists, commit, manifest_file, manifest_path, remove_if_present};
use crate::folder::{Contents, MANIFEST, STAGING, new_folder, part_name, remove_staging};
use crate::manifest::Manifest;
use crate::observer::Observer;
use crate::plan::{PartSpec, Plan};
use crate::settings::Settings;
use crate::writer::RowOptions;

/// The name of the plan's file, inside [`STAGING`].
const PLAN: &str = "plan.json";
/// The name of the settings' file, inside [`STAGING`].
const SETTINGS: &str = "settings.json";

/// The behaviour of [`Staging::open`] if the target folder contains a complete or unfinished
/// export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// An unfinished export is an error.
    New,
    /// An unfinished export is removed. A complete one is replaced when the new export is complete.
    Again,
    /// An unfinished export of the same plan is continued. If there is none, a new export begins.
    Resume,
    /// An unfinished export of the same plan is continued. If there is none, a new export begins.
    /// Unlike with [`Begin::Resume`], other processes can write other parts at the same time.
    Join,
}

/// An export of the parts of a plan into a folder, until it is complete.
#[derive(Debug)]
pub struct Staging {
    folder: PathBuf,
    path: PathBuf,
    /// The open target folder, which this process has locked. Closing it releases the lock.
    lock: File,
    plan: Plan,
    settings: Settings,
    is_new_folder: bool,
}

impl Staging {
    /// Returns the plan of the unfinished export in `folder`; `None` if the folder has no
    /// unfinished export.
    ///
    /// # Errors
    /// [`Error::Path`] or [`Error::Usage`] if the plan cannot be read.
    pub fn plan_of(folder: &Path) -> Result<Option<Plan>, Error> {
        let path = folder.join(STAGING).join(PLAN);
        match fs::read_to_string(&path) {
            Ok(text) => Plan::from_json(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::path("read the plan", &path)(error)),
        }
    }

    /// Creates the target folder if it does not exist, and locks it. Then begins the export of
    /// `plan`, or continues it.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process exports into the folder; [`Error::Exists`] if it has a
    /// complete export that must not be replaced; [`Error::Unfinished`] if it has an unfinished one
    /// that must not be continued; [`Error::Usage`] if the unfinished export has another plan or
    /// other settings; [`Error::NotOurs`]; [`Error::Path`].
    pub fn open(
        folder: &Path,
        plan: Plan,
        settings: Settings,
        begin: Begin,
        if_exists: IfExists,
    ) -> Result<Staging, Error> {
        let is_new_folder = match fs::create_dir(folder) {
            Ok(()) => true,
            Err(_) if folder.is_dir() => false,
            Err(error) => return Err(Error::path("create the folder", folder)(error)),
        };
        let lock = File::open(folder).map_err(Error::path("open the folder", folder))?;
        let operation = match begin {
            Begin::Join => FlockOperation::NonBlockingLockShared,
            _ => FlockOperation::NonBlockingLockExclusive,
        };
        lock_file(&lock, operation, folder)?
            .then_some(())
            .ok_or_else(|| Error::Locked(folder.to_owned()))?;
        let staging = Staging {
            folder: folder.to_owned(),
            path: folder.join(STAGING),
            lock,
            plan,
            settings,
            is_new_folder,
        };
        let contents = Contents::of(folder)?;
        if contents.is_staged {
            match begin {
                Begin::New => return Err(Error::Unfinished(folder.to_owned())),
                Begin::Again => remove_staging(folder)?,
                Begin::Resume | Begin::Join => {
                    staging.compare()?;
                    return Ok(staging);
                }
            }
        }
        if !contents.exported.is_empty() && if_exists == IfExists::Refuse {
            return Err(Error::Exists(folder.to_owned()));
        }
        staging.create()?;
        Ok(staging)
    }

    /// Creates the hidden folder, which contains the plan and the settings. The folder is created
    /// under another name and then renamed, so that other processes never see it incomplete.
    fn create(&self) -> Result<(), Error> {
        let failed = || Error::path("create the folder", &self.path);
        let new = new_folder(&self.folder)?;
        write_new(&new.path().join(PLAN), &self.plan.to_json())?;
        write_new(&new.path().join(SETTINGS), &self.settings.to_json())?;
        match fs::rename(new.path(), &self.path) {
            Ok(()) => {
                let _ = new.keep();
                sync_folder(&self.folder)
            }
            // Another process has begun an export in this folder; it must be the same one.
            Err(_) if self.path.is_dir() => self.compare(),
            Err(error) => Err(failed()(error)),
        }
    }

    /// Returns an error if the unfinished export in the folder has a different plan or different
    /// settings than this one.
    fn compare(&self) -> Result<(), Error> {
        let path = self.path.join(SETTINGS);
        let text = fs::read_to_string(&path).map_err(Error::path("read the settings", &path))?;
        let found = Settings::from_json(&text)?;
        let plan = Staging::plan_of(&self.folder)?;
        if plan.as_ref().map(Plan::id) != Some(self.plan.id()) {
            return Err(Error::Usage(format!(
                "the folder `{}` has the unfinished export of another plan\n\
                 use another folder, or `--overwrite` to begin again",
                self.folder.display()
            )));
        }
        match found.difference(&self.settings) {
            None => Ok(()),
            Some(difference) => Err(Error::Usage(format!(
                "the unfinished export in `{}` was begun with {difference}\n\
                 use the same options, or `--overwrite` to begin again",
                self.folder.display()
            ))),
        }
    }

    /// Returns the plan whose parts are exported.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the manifest of a part, which lists one file; `None` if the part is not complete.
    ///
    /// # Errors
    /// [`Error::Path`] or [`Error::Manifest`].
    pub fn complete(&self, part: &PartSpec) -> Result<Option<Manifest>, Error> {
        let path = self.path.join(self.name_of(part));
        let manifest = match Manifest::read(&manifest_path(&path)) {
            Err(Error::Path { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            manifest => manifest?,
        };
        // If an earlier call of `finish` was interrupted, the file may already be in the target
        // folder.
        let places = [path, self.folder.join(self.name_of(part))];
        let n_bytes = places.iter().find_map(|path| fs::metadata(path).ok());
        let is_whole = n_bytes.is_some_and(|found| found.len() == manifest.n_bytes());
        Ok(is_whole.then_some(manifest))
    }

    fn name_of(&self, part: &PartSpec) -> String {
        part_name(part.number - 1, self.settings.file)
    }

    /// Locks a part, and creates the temporary file for its rows. Also deletes temporary files of
    /// this part that earlier processes left because they were killed.
    ///
    /// # Errors
    /// [`Error::PartLocked`] if another process writes this part; [`Error::File`]; [`Error::Path`].
    pub fn begin_part(&self, part: &PartSpec) -> Result<StagedPart, Error> {
        let name = self.name_of(part);
        let lock_path = self.path.join(format!("{name}.lock"));
        let failed = || Error::path("lock the part", &lock_path);
        let lock = File::create(&lock_path).map_err(failed())?;
        if !lock_file(&lock, FlockOperation::NonBlockingLockExclusive, &lock_path)? {
            return Err(Error::PartLocked(part.number));
        }
        for found in fs::read_dir(&self.path).map_err(failed())? {
            let found = found.map_err(failed())?.file_name();
            let found = found.to_string_lossy();
            if found.starts_with(&format!(".{name}.")) && found.ends_with(".partial") {
                remove_if_present(&self.path.join(&*found))?;
            }
        }
        let target = FileTarget::create(&self.path.join(&name), IfExists::Replace, true)?;
        Ok(StagedPart {
            target,
            _lock: lock,
        })
    }

    /// Finishes the export and returns its manifest. Returns `None` if a part is not complete, or
    /// if another process is still writing a part. `check` is called with the manifest before any
    /// file is moved; an error of `check` is returned and leaves the export unfinished.
    ///
    /// # Errors
    /// [`Error::Usage`] if the parts have columns of different types; the error of `check`;
    /// [`Error::Path`], [`Error::File`]. The export can then be resumed.
    pub fn finish(
        self,
        check: &mut dyn FnMut(&Manifest) -> Result<(), Error>,
    ) -> Result<Option<Manifest>, Error> {
        if self.all_complete()?.is_none() {
            return Ok(None);
        }
        // The change to an exclusive lock releases the shared lock even if it fails. So of several
        // processes that finish at the same time, the last one succeeds.
        let operation = FlockOperation::NonBlockingLockExclusive;
        if !lock_file(&self.lock, operation, &self.folder)? {
            return Ok(None);
        }
        if !self.path.is_dir() {
            // Another process has finished the export.
            return Manifest::read(&self.folder.join(MANIFEST)).map(Some);
        }
        let path = self.path.join(MANIFEST);
        let manifest = match path.exists() {
            true => Manifest::read(&path)?,
            false => {
                // The parts are checked again with the exclusive lock, because another process may
                // have changed one since.
                let Some(parts) = self.all_complete()? else {
                    return Ok(None);
                };
                let manifest = self.whole(parts)?;
                check(&manifest)?;
                commit(manifest_file(&path, &manifest)?, IfExists::Replace)?;
                manifest
            }
        };
        self.move_files(&manifest)?;
        Ok(Some(manifest))
    }

    /// Returns the manifests of all parts; `None` if at least one part is not complete.
    fn all_complete(&self) -> Result<Option<Vec<Manifest>>, Error> {
        let parts = self.plan.parts.iter();
        parts.map(|part| self.complete(part)).collect()
    }

    /// Combines the manifests of all parts into the manifest of the complete export.
    fn whole(&self, parts: Vec<Manifest>) -> Result<Manifest, Error> {
        let mut columns: Option<&Manifest> = None;
        for part in &parts {
            match columns {
                Some(first) if first.columns != part.columns => {
                    return Err(self.different(first, part));
                }
                _ => columns = columns.or(Some(part)),
            }
        }
        Ok(Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            query: self.plan.sql.clone(),
            snapshot: self.plan.parts.first().and_then(|p| p.snapshot.clone()),
            plan: Some(self.plan.id().to_owned()),
            format: self.settings.file,
            columns: columns.map_or_else(Vec::new, |part| part.columns.clone()),
            files: parts.into_iter().flat_map(|part| part.files).collect(),
        })
    }

    fn different(&self, first: &Manifest, other: &Manifest) -> Error {
        let mut pairs = first.columns.iter().zip(&other.columns);
        let pair = pairs.find(|(a, b)| a != b);
        let type_of = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
        let files = [first, other].map(|part| part.files.first().map_or("", |file| &file.name));
        Error::Usage(match pair {
            Some((a, b)) => format!(
                "column `{}` has the type {} in `{}` and {} in `{}`\n\
                 begin again with its type: `--overwrite --types '{}=TYPE'`",
                a.name,
                type_of(&a.data_type),
                files[0],
                type_of(&b.data_type),
                files[1],
                a.name
            ),
            None => "the parts have different numbers of columns\nmake a new plan".to_owned(),
        })
    }

    /// Moves the files to the target folder, deletes the files that they replace, and writes the
    /// manifest last. If an earlier call was interrupted, this call completes it.
    fn move_files(&self, manifest: &Manifest) -> Result<(), Error> {
        let last = self.folder.join(MANIFEST);
        let is_same = Manifest::read(&last).is_ok_and(|found| found == *manifest);
        if !is_same {
            // The old manifest is deleted first, because a reader treats a folder without a
            // manifest as incomplete.
            remove_if_present(&last)?;
            for file in &manifest.files {
                let (from, to) = (self.path.join(&file.name), self.folder.join(&file.name));
                match fs::rename(&from, &to) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound && to.exists() => {}
                    renamed => renamed.map_err(Error::path("move a file to", &to))?,
                }
            }
            for name in Contents::of(&self.folder)?.exported {
                if !manifest.files.iter().any(|file| file.name == name) {
                    remove_if_present(&self.folder.join(name))?;
                }
            }
            sync_folder(&self.folder)?;
            commit(manifest_file(&last, manifest)?, IfExists::Replace)?;
        }
        Contents::of(&self.folder)?.remove_leftovers(&self.folder)?;
        remove_staging(&self.folder)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.is_new_folder {
            // `remove_dir` deletes only an empty folder.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// A part that this process has locked, and whose file it writes.
#[derive(Debug)]
pub struct StagedPart {
    target: FileTarget,
    _lock: File,
}

impl StagedPart {
    /// Writes the rows of the part, then its manifest.
    ///
    /// # Errors
    /// The errors of [`FileTarget::write`].
    pub fn write(
        self,
        statement: Statement,
        part: &PartSpec,
        options: &RowOptions,
        observer: &mut dyn Observer,
    ) -> Result<Manifest, Error> {
        self.target.write(statement, &part.sql, options, observer)
    }
}

/// Tries to lock an open file or folder. Returns `false` if another process has locked it. Error
/// messages contain `path`.
fn lock_file(file: &File, operation: FlockOperation, path: &Path) -> Result<bool, Error> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(Error::path("lock", path)(error.into())),
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), Error> {
    let mut file = AtomicFile::create(path, OnFailure::Remove)?;
    io::Write::write_all(&mut file, text.as_bytes()).map_err(Error::Write)?;
    commit(file, IfExists::Replace)
}

fn sync_folder(path: &Path) -> Result<(), Error> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(Error::path("sync the folder", path))
}
