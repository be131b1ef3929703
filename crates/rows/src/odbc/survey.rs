//! What this machine has for ODBC: the driver manager, the drivers, where they came from and whether they load. For
//! `doctor`, which shows it to people; a connection needs none of it.

use std::path::PathBuf;

use super::drivers::{self, Found};
use super::faults::Fault;
use super::manager::{self, MANAGER_VARIABLE};
use super::packages::{self, Package};
use super::quirks::{self, Quirks, Width};
use super::shared::Shared;
use crate::error::Error;

/// The driver manager in use.
#[derive(Clone, Debug)]
pub struct InstalledManager {
    /// The name it was loaded by.
    pub name: String,
    /// Its file, where the system tells.
    pub file: Option<PathBuf>,
    /// The package it came with.
    pub package: Option<Package>,
}

/// A driver of this machine.
#[derive(Clone, Debug)]
pub struct InstalledDriver {
    /// What goes behind `Driver=`: a path, or a registered name.
    pub driver: String,
    /// The names it is registered under (`odbcinst.ini`); none is needed.
    pub registered: Vec<String>,
    /// Its name in the quirks table; `None` for a driver we do not know, which is used with safe defaults.
    pub known_as: Option<&'static str>,
    /// The schemes of URLs that come to such a driver: `postgresql`.
    pub schemes: &'static [&'static str],
    /// The package it came with.
    pub package: Option<Package>,
    /// Whether its file was found; a registered name may lead nowhere.
    pub is_file: bool,
    /// Why it cannot be loaded: a file that is not there, a library that it needs.
    pub broken: Option<String>,
    /// What this version of it gets wrong; where the version is not known, what all versions do.
    pub faults: Vec<Fault>,
    /// What onecopy tells at each connect.
    pub notices: &'static [&'static str],
}

/// What there is.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The driver manager.
    pub manager: InstalledManager,
    /// The drivers, in the order in which one is chosen for a URL; those we do not know last.
    pub drivers: Vec<InstalledDriver>,
}

/// What a connection goes through.
#[derive(Clone, Debug)]
pub struct Portrait {
    /// The database's name and version, as the driver has them.
    pub database: String,
    /// The driver's file and version, as it has them.
    pub driver: String,
    /// Its version alone.
    pub driver_version: String,
    /// Its name in the quirks table.
    pub known_as: &'static str,
    /// The form in which text passes.
    pub width: Width,
    /// Keywords that were added to the connection string, where the user gives no others.
    pub keywords: &'static [(&'static str, &'static str)],
    /// What this version of the driver gets wrong.
    pub faults: Vec<Fault>,
}

impl Portrait {
    pub(super) fn of(shared: &Shared) -> Portrait {
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

/// A kind of database that is reached by URL, and what to install for it.
#[derive(Clone, Copy, Debug)]
pub struct UrlScheme {
    /// `postgresql`.
    pub scheme: &'static str,
    /// A sentence with the lines to type.
    pub to_install: &'static str,
}

/// The databases that URLs name, each under its first scheme.
#[must_use]
pub fn url_schemes() -> Vec<UrlScheme> {
    ["postgresql", "mysql", "mssql"]
        .map(|scheme| UrlScheme {
            scheme,
            to_install: drivers::to_install(scheme),
        })
        .to_vec()
}

/// Whether the environment names the driver manager, so that a missing one is a mistake and not a choice.
#[must_use]
pub fn manager_is_chosen() -> bool {
    std::env::var_os(MANAGER_VARIABLE).is_some_and(|v| !v.is_empty())
}

/// Looks at this machine. Each driver found is loaded, as a connect would do it.
///
/// # Errors
/// [`crate::ErrorKind::Connect`] where no driver manager can be loaded, with what to install.
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

/// What a driver of this version gets wrong.
pub(super) fn of_version(quirks: &Quirks, version: Option<&str>) -> Vec<Fault> {
    let faults = quirks.faults.iter();
    faults.filter(|f| f.is_of(version)).copied().collect()
}

/// The file of a driver, or what stands for it.
fn file_of(found: &Found) -> &str {
    found.file.as_deref().unwrap_or(&found.driver)
}

/// The names that a file is registered under.
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
