//! A report of the ODBC installation of this machine: driver manager, drivers, packages and load
//! errors. The command `doctor` prints the report; connections do not use it.

use std::path::PathBuf;

use super::drivers::{self, Found};
use super::faults::Fault;
use super::manager::{self, MANAGER_VARIABLE};
use super::packages::{self, Package};
use super::quirks::{self, Quirks, Width};
use super::shared::SharedConnection;
use crate::error::Error;

/// The driver manager that this process uses.
#[derive(Clone, Debug)]
pub struct InstalledManager {
    /// The file name under which the driver manager was loaded.
    pub name: String,
    /// The path of the driver manager's file, if the system reports it.
    pub file: Option<PathBuf>,
    /// The package that installed the driver manager; `None` if it is unknown.
    pub package: Option<Package>,
}

/// An ODBC driver that was found on this machine.
#[derive(Clone, Debug)]
pub struct InstalledDriver {
    /// The value of `Driver=` in a connection string: a path, or a registered name.
    pub driver: String,
    /// The names under which the driver is registered in `odbcinst.ini`; empty for a driver that is
    /// not registered, which can be used by its path.
    pub registered: Vec<String>,
    /// The driver's name in the table of differences between drivers (`Quirks`); `None` for a
    /// driver that is not in the table. Such a driver is used as the ODBC reference requires.
    pub known_as: Option<&'static str>,
    /// The URL schemes that select this driver, for example `mysql`, or `postgresql` with the
    /// prefix `odbc+`.
    pub schemes: &'static [&'static str],
    /// The package that installed the driver; `None` if it is unknown.
    pub package: Option<Package>,
    /// `true` if the driver's file exists; a registered name may refer to a missing file.
    pub is_file: bool,
    /// The reason why the driver cannot be loaded (a missing file or library); `None` if it can be
    /// loaded.
    pub broken: Option<String>,
    /// The known faults of this version of the driver. If the version is unknown, these are only
    /// the faults that all versions have.
    pub faults: Vec<Fault>,
    /// The warnings about this driver that are shown each time a connection is opened.
    pub notices: &'static [&'static str],
}

/// The ODBC installation of this machine.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The driver manager that this process uses.
    pub manager: InstalledManager,
    /// The drivers, in the order in which they are preferred for a URL; unknown drivers are last.
    pub drivers: Vec<InstalledDriver>,
}

/// The names and versions of the driver and the database of an open connection, and the settings
/// with which this crate uses the driver.
#[derive(Clone, Debug)]
pub struct Portrait {
    /// The name and the version of the database, as the driver reports them.
    pub database: String,
    /// The file name and the version of the driver, as the driver reports them.
    pub driver: String,
    /// The version of the driver, as the driver reports it.
    pub driver_version: String,
    /// The name of the driver in the table of differences between drivers (`Quirks`).
    pub known_as: &'static str,
    /// The encoding of text between this crate and the driver: UTF-8 or UTF-16.
    pub width: Width,
    /// The keywords and values that were added to the connection string, because the user did not
    /// set them.
    pub keywords: &'static [(&'static str, &'static str)],
    /// The known faults of this version of the driver.
    pub faults: Vec<Fault>,
}

impl Portrait {
    pub(super) fn of(shared: &SharedConnection) -> Portrait {
        let facts = &shared.facts;
        Portrait {
            database: format!("{} {}", facts.dbms, facts.dbms_version),
            driver: format!("{} {}", facts.driver, facts.driver_version),
            driver_version: facts.driver_version.clone(),
            known_as: shared.quirks.name,
            width: shared.width,
            keywords: shared.quirks.connect,
            faults: of_version(shared.quirks, Some(&facts.driver_version)),
        }
    }
}

/// A URL scheme of a database, and the package to install for it.
#[derive(Clone, Copy, Debug)]
pub struct UrlScheme {
    /// The scheme, such as `mysql`.
    pub scheme: &'static str,
    /// The instruction to install a driver, with the commands to type.
    pub to_install: &'static str,
}

/// Returns the URL schemes that require an ODBC driver: `mysql` for MySQL and MariaDB, and `mssql`
/// for SQL Server.
#[must_use]
pub fn url_schemes() -> Vec<UrlScheme> {
    ["mysql", "mssql"]
        .map(|scheme| UrlScheme {
            scheme,
            to_install: drivers::to_install(scheme),
        })
        .to_vec()
}

/// Returns `true` if an environment variable names the file of the driver manager. If that file is
/// missing, the user must correct the variable, not install a package.
#[must_use]
pub fn manager_is_chosen() -> bool {
    std::env::var_os(MANAGER_VARIABLE).is_some_and(|v| !v.is_empty())
}

/// Examines the ODBC installation of this machine. The library of each driver is loaded in the same
/// way as for a connection. If a library cannot be loaded, the report contains the reason.
///
/// # Errors
/// [`crate::ErrorKind::Connect`] if no driver manager can be loaded; the message names the package
/// to install.
pub fn survey() -> Result<Survey, Error> {
    let manager = manager::manager()?;
    let manager_file = manager.path();
    let registered = drivers::registered(manager);
    let mut found: Vec<(Found, Vec<String>)> = drivers::found(manager)
        .into_iter()
        .map(|f| {
            let names = names_of(&f, &registered);
            (f, names)
        })
        .collect();
    found.sort_by_key(|(f, _)| {
        let place = f
            .quirks()
            .and_then(|q| quirks::DRIVERS.iter().position(|d| std::ptr::eq(d, q)));
        place.unwrap_or(usize::MAX)
    });
    let mut files: Vec<PathBuf> = found
        .iter()
        .map(|(f, _)| PathBuf::from(file_of(f)))
        .collect();
    files.push(manager_file.clone().unwrap_or_default());
    let mut packages = packages::owners(&files);
    let manager = InstalledManager {
        name: manager.file.clone(),
        file: manager_file,
        package: packages.pop().flatten(),
    };
    let drivers = found
        .into_iter()
        .zip(packages)
        .map(|((found, registered), package)| installed(&found, registered, package))
        .collect();
    Ok(Survey { manager, drivers })
}

fn installed(found: &Found, registered: Vec<String>, package: Option<Package>) -> InstalledDriver {
    let quirks = found.quirks();
    let version = package.as_ref().map(|p| p.version.clone());
    InstalledDriver {
        driver: found.driver.clone(),
        known_as: quirks.map(|q| q.name),
        schemes: quirks.map_or(&[], |q| q.schemes),
        is_file: drivers::resolved(file_of(found)).is_some(),
        broken: manager::why_it_does_not_load(file_of(found)).err(),
        faults: quirks.map_or_else(Vec::new, |q| of_version(q, version.as_deref())),
        notices: quirks.map_or(&[], |q| q.notices),
        registered,
        package,
    }
}

/// Returns the known faults of this version of a driver. If `version` is `None`, returns only the
/// faults that all versions have.
pub(super) fn of_version(quirks: &Quirks, version: Option<&str>) -> Vec<Fault> {
    let faults = quirks.faults.iter();
    faults.filter(|f| f.is_of(version)).copied().collect()
}

/// Returns the file of a registered driver; for any other driver, the value of `Driver=`.
fn file_of(found: &Found) -> &str {
    found.file.as_deref().unwrap_or(&found.driver)
}

/// Returns the names under which the file of the driver `found` is registered.
fn names_of(found: &Found, registered: &[Found]) -> Vec<String> {
    let file = drivers::resolved(file_of(found));
    registered
        .iter()
        .filter(|r| file.is_some() && r.file.as_deref().and_then(drivers::resolved) == file)
        .map(|r| r.driver.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_knows_the_names_it_is_registered_under() {
        let found = |driver: &str, file: Option<&str>| Found {
            driver: driver.to_owned(),
            file: file.map(str::to_owned),
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (file, link, other) = (path("driver-1.2.so"), path("driver.so"), path("other.so"));
        std::fs::write(&file, "x").expect("a file");
        std::fs::write(&other, "x").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let registered = [
            found("Mine", Some(&link)),
            found("Also mine", Some(&file)),
            found("Another", Some(&other)),
            found("Gone", Some("/nowhere/driver.so")),
            found("Empty", None),
        ];
        assert_eq!(
            names_of(&found(&file, None), &registered),
            ["Mine", "Also mine"]
        );
        assert!(names_of(&found("/nowhere/driver.so", None), &registered).is_empty());
    }

    #[test]
    fn each_scheme_has_its_line_of_installing() {
        for scheme in url_schemes() {
            assert!(
                scheme.to_install.starts_with("Install "),
                "{}",
                scheme.scheme
            );
        }
    }
}
