//! [`verify()`]: compares exported files with their manifest.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::compress::decoder;
use crate::count::{RowCounter, count_columns};
use crate::error::Error;
use crate::file::manifest_path;
use crate::folder::{MANIFEST, STAGING};
use crate::format::FileFormat;
use crate::manifest::{FileEntry, Manifest};
use crate::observer::Observer;

/// The number of bytes that one read requests.
const PART_BYTES: usize = 256 << 10;

/// The result of a verification.
#[derive(Debug)]
pub struct Report {
    /// The manifest with which the files were compared.
    pub manifest: Manifest,
    /// The differences found. Each is one line that begins with the name of a file.
    pub problems: Vec<String>,
}

/// Compares the files of an export with their manifest: the length, the BLAKE3 hash and the number
/// of rows of each file. Two files with identical bytes are also reported as a difference, because
/// rows were then exported twice. `path` is a folder, an exported file or a manifest. In a folder,
/// a file that the manifest does not list is a difference too.
///
/// # Errors
/// [`Error::Path`] or [`Error::Manifest`] if the manifest cannot be read; [`Error::Unfinished`] if
/// the folder has an unfinished export of parts; [`Error::Stopped`].
pub fn verify(path: &Path, observer: &mut dyn Observer) -> Result<Report, Error> {
    let (manifest_path, is_folder) = manifest_of(path);
    let manifest = match Manifest::read(&manifest_path) {
        Err(Error::Path { .. }) if is_folder && path.join(STAGING).is_dir() => {
            return Err(Error::Unfinished(path.to_owned()));
        }
        manifest => manifest?,
    };
    // The name of the first file with each hash.
    let mut by_hash = HashMap::new();
    let folder = manifest_path.parent().unwrap_or(Path::new("."));
    let mut problems = Vec::new();
    let mut names = HashSet::new();
    let mut before = (0, 0);
    for entry in &manifest.files {
        if !names.insert(entry.name.as_str()) {
            problems.push(format!(
                "{}: it is in the manifest more than once",
                entry.name
            ));
            continue;
        }
        let found = check_file(
            &folder.join(&entry.name),
            entry,
            manifest.format,
            before,
            observer,
        )?;
        problems.extend(
            found
                .into_iter()
                .map(|what| format!("{}: {what}", entry.name)),
        );
        if entry.n_rows > 0 {
            // Two files with the same bytes mean that rows were exported twice.
            let first = by_hash.entry(&entry.blake3).or_insert(&entry.name);
            if *first != &entry.name {
                problems.push(format!("{}: it has the same bytes as {first}", entry.name));
            }
        }
        before = (before.0 + entry.n_rows, before.1 + entry.n_bytes);
    }
    if is_folder {
        problems.extend(unlisted(folder, &names)?);
    }
    Ok(Report { manifest, problems })
}

/// Returns the path of the manifest for `path`, and `true` if the manifest describes a whole
/// folder.
fn manifest_of(path: &Path) -> (PathBuf, bool) {
    if path.is_dir() {
        return (path.join(MANIFEST), true);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.ends_with(".manifest.json") || name == MANIFEST {
        true => (path.to_owned(), name == MANIFEST),
        false => (manifest_path(path), false),
    }
}

/// Checks a file of an export, and returns its differences from its entry in the manifest. `before`
/// are the numbers of rows and bytes of the files checked before it; the reported progress includes
/// them.
fn check_file(
    path: &Path,
    entry: &FileEntry,
    format: FileFormat,
    before: (u64, u64),
    observer: &mut dyn Observer,
) -> Result<Vec<String>, Error> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(vec!["the file is missing".to_owned()]);
        }
        Err(error) => return Ok(vec![format!("it cannot be read: {error}")]),
    };
    if !metadata.is_file() {
        return Ok(vec!["it is not a file".to_owned()]);
    }
    let mut problems = Vec::new();
    if metadata.len() != entry.n_bytes {
        let (found, listed) = (metadata.len(), entry.n_bytes);
        problems.push(format!("it has {found} bytes, and the manifest {listed}"));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return Ok(vec![format!("it cannot be read: {error}")]),
    };
    let mut hashed = HashedRead {
        file,
        hasher: blake3::Hasher::new(),
        n_bytes: 0,
        before,
        observer,
    };
    let counted = match format.format().compresses_itself() {
        true => Ok(None),
        false => count_text(&mut hashed, format).map(Some),
    };
    // If the decoder failed, some bytes of the file were not read; they are part of the hash too.
    let rest = io::copy(&mut hashed, &mut io::sink());
    if hashed.observer.stops() {
        return Err(Error::Stopped);
    }
    if let Err(error) = rest {
        problems.push(format!("it cannot be read: {error}"));
        return Ok(problems);
    }
    let hash = hashed.hasher.finalize().to_hex().to_string();
    if hash != entry.blake3 {
        let listed = &entry.blake3;
        problems.push(format!(
            "its BLAKE3 hash is {hash}, and in the manifest {listed}"
        ));
    }
    let counted = match counted {
        Ok(Some(n_rows)) => Ok(n_rows),
        Ok(None) => match File::open(path) {
            Ok(file) => count_columns(format.format(), file),
            Err(error) => Err(error.to_string()),
        },
        Err(error) => Err(error),
    };
    match counted {
        Ok(n_rows) if n_rows == entry.n_rows => {}
        Ok(n_rows) => {
            let listed = entry.n_rows;
            problems.push(format!("it has {n_rows} rows, and the manifest {listed}"));
        }
        Err(error) => problems.push(format!("its rows cannot be counted: {error}")),
    }
    Ok(problems)
}

fn count_text(hashed: &mut HashedRead<'_>, format: FileFormat) -> Result<u64, String> {
    let mut counter = RowCounter::new(format.format());
    let mut part = vec![0; PART_BYTES];
    let failed = |error: io::Error| error.to_string();
    let mut reader = decoder(format.compression(), hashed).map_err(failed)?;
    loop {
        match reader.read(&mut part) {
            Ok(0) => break,
            Ok(n) => counter.count(&part[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    counter
        .finish()
        .ok_or_else(|| "it ends within a row".to_owned())
}

/// A reader of a file that hashes its bytes and reports the progress.
struct HashedRead<'o> {
    file: File,
    hasher: blake3::Hasher,
    n_bytes: u64,
    before: (u64, u64),
    observer: &'o mut dyn Observer,
}

impl Read for HashedRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.observer.stops() {
            return Ok(0);
        }
        let n = self.file.read(buffer)?;
        self.hasher.update(&buffer[..n]);
        self.n_bytes += n as u64;
        let (n_rows, n_bytes) = self.before;
        self.observer.progress(n_rows, n_bytes + self.n_bytes);
        Ok(n)
    }
}

/// Returns a difference for each file in the folder that the manifest does not list.
fn unlisted(folder: &Path, listed: &HashSet<&str>) -> Result<Vec<String>, Error> {
    let failed = || Error::path("read the folder", folder);
    let mut problems = Vec::new();
    for found in fs::read_dir(folder).map_err(failed())? {
        let name = found.map_err(failed())?.file_name();
        let name = name.to_string_lossy();
        if name != MANIFEST && !name.starts_with('.') && !listed.contains(&*name) {
            problems.push(format!("{name}: it is not in the manifest"));
        }
    }
    problems.sort();
    Ok(problems)
}
