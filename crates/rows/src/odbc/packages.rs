//! Finds the name and the version of the package that installed a file, for the command `doctor`.
//! It reads the records of Debian's package manager and of pip, and executes nothing. For a file of
//! another package manager it finds no package.

use std::path::{Path, PathBuf};

/// The package of the operating system or of Python that installed a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The name of the package in the records of the package manager.
    pub name: String,
    /// The version of the package in the records of the package manager.
    pub version: String,
}

/// The directory of the records of dpkg, Debian's package manager.
const DPKG: &str = "/var/lib/dpkg";

/// Returns the package that installed each of `files`, in the same order; `None` if it is unknown.
pub(super) fn owners(files: &[PathBuf]) -> Vec<Option<Package>> {
    let mut owners: Vec<Option<Package>> = files.iter().map(|f| wheel(f)).collect();
    if owners.iter().any(Option::is_none) {
        let debian = debian(Path::new(DPKG), files);
        for (owner, found) in owners.iter_mut().zip(debian) {
            *owner = owner.take().or(found);
        }
    }
    owners
}

/// Returns, for each file, the package to which it belongs according to the records of dpkg.
fn debian(records: &Path, files: &[PathBuf]) -> Vec<Option<Package>> {
    let mut names: Vec<Option<String>> = vec![None; files.len()];
    // The list may contain the file by the name of a symbolic link to it, or by a path without
    // `/usr`.
    let forms: Vec<Vec<String>> = files.iter().map(|f| forms(f)).collect();
    let lists = std::fs::read_dir(records.join("info"))
        .into_iter()
        .flatten();
    for list in lists.flatten().map(|entry| entry.path()) {
        if list.extension().is_none_or(|e| e != "list") {
            continue;
        }
        let (Ok(text), Some(package)) = (std::fs::read_to_string(&list), list.file_stem()) else {
            continue;
        };
        for (name, forms) in names.iter_mut().zip(&forms) {
            if name.is_none() && text.lines().any(|line| forms.iter().any(|f| f == line)) {
                *name = Some(package.to_string_lossy().into_owned());
            }
        }
    }
    let status = std::fs::read_to_string(records.join("status")).unwrap_or_default();
    let package = |name: Option<String>| {
        // The list `libodbc2:amd64.list` belongs to `Package: libodbc2`.
        let name = name?;
        let name = name.split(':').next()?.to_owned();
        let version = debian_version(&status, &name)?;
        Some(Package { name, version })
    };
    names.into_iter().map(package).collect()
}

fn forms(file: &Path) -> Vec<String> {
    let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut all = Vec::new();
    for path in [file.to_owned(), real] {
        let path = path.to_string_lossy().into_owned();
        all.extend(path.strip_prefix("/usr").map(str::to_owned));
        all.push(path);
    }
    all
}

/// Returns the version of a package from dpkg's status file; `None` if the package is not in the
/// file.
fn debian_version(status: &str, name: &str) -> Option<String> {
    status
        .split("\n\n")
        .find(|entry| entry.lines().next() == Some(&format!("Package: {name}")))?
        .lines()
        .find_map(|line| line.strip_prefix("Version: "))
        .map(str::to_owned)
}

/// Returns the installed Python package to which a file belongs, according to the package's list of
/// files (`RECORD`, PEP 376). Only packages with `mssql` in their name are searched. Returns `None`
/// if none of them contains the file.
fn wheel(file: &Path) -> Option<Package> {
    for folder in file.ancestors().skip(1) {
        let (Ok(inside), Ok(entries)) = (file.strip_prefix(folder), std::fs::read_dir(folder))
        else {
            continue;
        };
        let inside = inside.to_string_lossy();
        for entry in entries.flatten().map(|entry| entry.path()) {
            let name = entry.file_name()?.to_string_lossy().into_owned();
            let Some((name, version)) = name
                .strip_suffix(".dist-info")
                .and_then(|n| n.split_once('-'))
            else {
                continue;
            };
            // Only the packages of drivers are read, because the lists of other packages are long.
            if !name.to_lowercase().contains("mssql") {
                continue;
            }
            let record = std::fs::read_to_string(entry.join("RECORD")).unwrap_or_default();
            if record
                .lines()
                .any(|line| line.split(',').next() == Some(&*inside))
            {
                return Some(Package {
                    name: name.replace('_', "-"),
                    version: version.to_owned(),
                });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_debian_package_is_found_under_any_of_its_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = folder.path().join("info");
        std::fs::create_dir(&info).expect("a folder");
        std::fs::write(
            info.join("tdsodbc:amd64.list"),
            "/.\n/usr/lib/x/libtdsodbc.so\n",
        )
        .expect("a file");
        std::fs::write(info.join("libodbc2.list"), "/lib/libodbc.so.2\n").expect("a file");
        std::fs::write(
            folder.path().join("status"),
            "Package: libodbc2\nStatus: ok\nVersion: 2.3.11-2\n\nPackage: tdsodbc\nVersion: 1.3.17+ds-2\n\
             ",
        )
        .expect("a file");
        let files = [
            PathBuf::from("/usr/lib/x/libtdsodbc.so"),
            PathBuf::from("/usr/lib/libodbc.so.2"),
            PathBuf::from("/opt/other.so"),
        ];
        let package = |name: &str, version: &str| {
            Some(Package {
                name: name.to_owned(),
                version: version.to_owned(),
            })
        };
        assert_eq!(
            debian(folder.path(), &files),
            [
                package("tdsodbc", "1.3.17+ds-2"),
                package("libodbc2", "2.3.11-2"),
                None
            ]
        );
    }

    #[test]
    fn a_file_of_a_wheel_is_found_by_the_wheels_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let wheel_folder = folder.path().join("mssql_python_rs-0.3.0.dist-info");
        std::fs::create_dir(&wheel_folder).expect("a folder");
        std::fs::write(
            wheel_folder.join("RECORD"),
            "mssql_py_core/libs/mssqlodbc.so,sha256=x,1\n",
        )
        .expect("a file");
        let file = folder.path().join("mssql_py_core/libs/mssqlodbc.so");
        assert_eq!(
            wheel(&file),
            Some(Package {
                name: "mssql-python-rs".to_owned(),
                version: "0.3.0".to_owned()
            })
        );
        assert_eq!(wheel(&folder.path().join("other.so")), None);
    }
}
