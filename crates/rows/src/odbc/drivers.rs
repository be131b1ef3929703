//! Finds the ODBC drivers of this machine: registered drivers, and driver files in the system's
//! library folders and in Python packages.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use onecopy_wire::lock::lock;

use super::connection_string::ConnectionString;
use super::ffi;
use super::manager::Manager;
use super::quirks::{self, Quirks};
use super::url;

/// The environment variable with additional folders, separated by `:`, in which drivers are
/// searched for.
pub(crate) const PATH_VARIABLE: &str = "ONECOPY_ODBC_DRIVERS";

/// A driver that was found on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The value of `Driver=` in a connection string: a registered name or a path.
    pub(crate) driver: String,
    /// The library file of the driver. `None` if the driver is not registered, or if its
    /// registration does not name a file.
    pub(crate) file: Option<String>,
}

impl Found {
    /// Returns the driver's entry in the table of differences between drivers ([`Quirks`]); `None`
    /// if the table does not contain the driver.
    pub(crate) fn quirks(&self) -> Option<&'static Quirks> {
        self.file
            .as_deref()
            .and_then(quirks::known)
            .or_else(|| quirks::known(&self.driver))
    }
}

/// The folders that the program has added by [`add_driver_folder`] (Python's `site-packages`).
static SEARCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds a folder that may contain drivers installed as Python packages (`site-packages`).
pub fn add_driver_folder(folder: impl Into<PathBuf>) {
    let folder = folder.into();
    let mut search = lock(&SEARCH);
    if !search.contains(&folder) {
        search.push(folder);
    }
}

/// Returns all drivers that were found. Driver files come first, because a path needs no
/// registration. After them come the registered drivers whose file is not among these files.
pub(crate) fn found(manager: &Manager) -> Vec<Found> {
    let mut all: Vec<Found> = files()
        .into_iter()
        .map(|path| Found {
            driver: path.to_string_lossy().into_owned(),
            file: None,
        })
        .collect();
    for registered in registered(manager) {
        let file = registered.file.as_deref().and_then(resolved);
        let seen = file.is_some_and(|file| {
            all.iter()
                .any(|f| resolved(&f.driver).as_ref() == Some(&file))
        });
        if !seen {
            all.push(registered);
        }
    }
    all
}

/// Returns the first installed driver for the scheme of a URL, in the order of the table
/// `quirks::DRIVERS`, with its entry in that table; `None` if no driver for the scheme is
/// installed.
pub(crate) fn for_scheme(manager: &Manager, scheme: &str) -> Option<(String, &'static Quirks)> {
    let found = found(manager);
    quirks::DRIVERS
        .iter()
        .filter(|q| q.schemes.contains(&scheme))
        .find_map(|q| {
            found
                .iter()
                .find(|f| f.quirks().is_some_and(|known| std::ptr::eq(known, q)))
                .map(|f| (f.driver.clone(), q))
        })
}

/// Returns a sentence that names the package to install for the scheme of a URL.
pub(crate) fn to_install(scheme: &str) -> &'static str {
    match scheme {
        "postgresql" | "postgres" => {
            "Install PostgreSQL's driver: `apt-get install odbc-postgresql`, `dnf install postgresql-odbc`, \
             `brew install psqlodbc`."
        }
        "mysql" | "mariadb" => {
            "Install MariaDB's driver: `apt-get install odbc-mariadb`, `dnf install mariadb-connector-odbc`, \
             `brew install mariadb-connector-odbc`."
        }
        "mssql" | "sqlserver" => {
            "Install a SQL Server driver: `pip install mssql-python-odbc` (Microsoft's, no registration needed), or \
             `apt-get install tdsodbc` (FreeTDS)."
        }
        _ => {
            "Known schemes: `postgresql`, `mysql`, `mariadb`, `mssql`; for any other database write an ODBC connection \
             string, `Driver=FILE;…`."
        }
    }
}

/// Returns a list of the installed drivers, one per line, for an error message.
pub(crate) fn list(manager: &Manager) -> String {
    let found = found(manager);
    if found.is_empty() {
        return "No ODBC driver was found on this machine.".to_owned();
    }
    let mut out = String::from("Drivers found:");
    for f in found {
        out.push_str("\n  `");
        out.push_str(&f.driver);
        out.push('`');
        if let Some(q) = f.quirks() {
            out.push_str(" (");
            out.push_str(q.name);
            out.push(')');
        }
    }
    out
}

/// Returns the drivers that are registered in `odbcinst.ini`, as `SQLDrivers` lists them.
pub(crate) fn registered(manager: &Manager) -> Vec<Found> {
    let _one_at_a_time = lock(&manager.enumeration);
    let mut all = Vec::new();
    let mut direction = ffi::FETCH_FIRST;
    while all.len() < 256 {
        let (mut name, mut attributes) = ([0u8; 256], [0u8; 2048]);
        let (mut name_len, mut attributes_len) = (0i16, 0i16);
        // SAFETY: the environment is never freed; all buffers are live locals with their true
        // sizes.
        let rc = unsafe {
            (manager.call.drivers)(
                manager.environment,
                direction,
                name.as_mut_ptr(),
                256,
                &raw mut name_len,
                attributes.as_mut_ptr(),
                2048,
                &raw mut attributes_len,
            )
        };
        if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
            break;
        }
        direction = ffi::FETCH_NEXT;
        let end = name.iter().position(|b| *b == 0).unwrap_or(0);
        let file = attributes
            .split(|b| *b == 0)
            .filter_map(|a| std::str::from_utf8(a).ok()?.split_once('='))
            .find(|(k, _)| k.eq_ignore_ascii_case("driver"))
            .map(|(_, v)| v.to_owned());
        all.push(Found {
            driver: String::from_utf8_lossy(&name[..end]).into_owned(),
            file,
        });
    }
    all
}

/// Returns the path of a registered driver's file with symbolic links resolved. A relative path is
/// searched for in the folders of [`PATH_VARIABLE`] and in the system's library folders. Returns
/// `None` if the file is not found.
pub(super) fn resolved(file: &str) -> Option<PathBuf> {
    let file = Path::new(file);
    if file.is_absolute() {
        return std::fs::canonicalize(file).ok();
    }
    folders()
        .iter()
        .find_map(|folder| std::fs::canonicalize(folder.join(file)).ok())
}

/// Returns the files in library folders and Python packages that have the file name of a known
/// driver.
fn files() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf| {
        let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let seen = found
            .iter()
            .any(|f| std::fs::canonicalize(f).unwrap_or_else(|_| f.clone()) == real);
        if !seen && std::fs::metadata(&path).is_ok_and(|m| m.len() > 0) {
            found.push(path);
        }
    };
    for folder in folders() {
        for path in entries(&folder) {
            if is_driver_file(&path) {
                add(path);
            }
        }
    }
    for packages in site_packages() {
        // The wheels `mssql-python-odbc` and `mssql-python-rs` contain one driver per platform
        // below these folders.
        for below in ["mssql_python_odbc/libs", "mssql_py_core/libs"] {
            for path in walk(&packages.join(below), 6) {
                if is_driver_file(&path) && fits_this_machine(&path) {
                    add(path);
                }
            }
        }
    }
    found
}

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os(PATH_VARIABLE)
        .map(|v| std::env::split_paths(&v).collect())
        .unwrap_or_default();
    let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
    folders.extend(
        [
            &format!("/usr/lib/{triple}/odbc"),
            "/usr/lib/odbc",
            "/usr/lib64",
            "/usr/lib64/odbc",
            "/usr/lib",
            "/usr/local/lib",
            "/usr/local/lib/odbc",
            "/opt/homebrew/lib",
            "/opt/microsoft/msodbcsql18/lib64",
            "/opt/microsoft/msodbcsql17/lib64",
        ]
        .map(PathBuf::from),
    );
    folders
}

fn site_packages() -> Vec<PathBuf> {
    let mut all = lock(&SEARCH).clone();
    all.extend(
        std::env::var_os(PATH_VARIABLE)
            .map(|v| std::env::split_paths(&v).collect::<Vec<_>>())
            .unwrap_or_default(),
    );
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(std::env::var_os)
    {
        for lib in entries(&Path::new(&root).join("lib")) {
            if lib
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("python3"))
            {
                all.push(lib.join("site-packages"));
            }
        }
    }
    all
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|d| d.flatten().map(|e| e.path()).collect())
        .unwrap_or_default();
    all.sort();
    all
}

fn walk(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in entries(folder) {
        if path.is_dir() && depth > 0 {
            all.extend(walk(&path, depth - 1));
        } else {
            all.push(path);
        }
    }
    all
}

fn is_driver_file(path: &Path) -> bool {
    let Some(name) = path.file_name().map(|n| n.to_string_lossy().to_lowercase()) else {
        return false;
    };
    let shared = name.contains(".so") || name.ends_with(".dylib") || name.ends_with(".dll");
    shared
        && quirks::DRIVERS
            .iter()
            .any(|d| d.files.iter().any(|f| name.contains(f)))
}

/// Returns `true` if the path of a driver file contains the name of the platform of this machine.
/// (A wheel may contain driver files for several platforms.)
fn fits_this_machine(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let os = if cfg!(target_os = "macos") {
        "/macos/"
    } else {
        "/linux/"
    };
    let arch = match std::env::consts::ARCH {
        "aarch64" => ["arm64", "aarch64"],
        other => [other, "universal2"],
    };
    if !path.contains(os) || !arch.iter().any(|a| path.contains(a)) {
        return false;
    }
    if cfg!(target_os = "macos") {
        return true;
    }
    // The wheel contains a build for each family of Linux distributions. A family is recognised by
    // a file that only this family has.
    let family = if Path::new("/etc/alpine-release").exists() {
        ["alpine", "musl"]
    } else if Path::new("/etc/SuSE-release").exists() || Path::new("/etc/products.d").exists() {
        ["suse", "glibc"]
    } else if Path::new("/etc/redhat-release").exists() {
        ["rhel", "glibc"]
    } else {
        ["debian_ubuntu", "glibc"]
    };
    family.iter().any(|f| path.contains(f))
}

/// Returns the [`Quirks`] of the driver of `target`, if the URL scheme or the keyword `Driver` of
/// `target` identifies the driver. Loads no driver.
pub(crate) fn quirks_of(target: &str) -> Option<&'static Quirks> {
    match url::scheme(target) {
        Some(scheme) => {
            let scheme = scheme.to_ascii_lowercase();
            let scheme = scheme.split('+').next().unwrap_or(&scheme);
            quirks::for_scheme(scheme)
        }
        None => quirks::known(ConnectionString::parse(target).get("Driver")?),
    }
}

/// Returns the name of the driver of `target`, for messages. It is the name in the quirks table, or
/// the value of `Driver` if the table does not contain the driver. For a data source it is the name
/// of the data source, for a URL the scheme. Loads no driver, and returns no other part of the
/// target.
pub(crate) fn named_in(target: &str) -> String {
    if let Some(scheme) = url::scheme(target) {
        return format!("{scheme}://");
    }
    let string = ConnectionString::parse(target);
    match (string.get("Driver"), string.get("DSN")) {
        (Some(driver), _) => quirks::known(driver).map_or(driver, |q| q.name).to_owned(),
        (None, Some(dsn)) => format!("DSN={dsn}"),
        (None, None) => "no driver named".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_files_are_known_by_their_names() {
        assert!(is_driver_file(Path::new("/x/psqlodbcw.so")));
        assert!(is_driver_file(Path::new("/x/libmsodbcsql-18.6.so.2.1")));
        assert!(!is_driver_file(Path::new("/x/libc.so.6")));
        assert!(!is_driver_file(Path::new("/x/psqlodbcw.la")));
    }

    #[test]
    fn what_a_target_says_of_its_driver_holds_no_secret() {
        for (target, said) in [
            ("Pwd=hush;Driver=/x/psqlodbcw.so", "psqlodbc (Unicode)"),
            ("driver={Some Driver};Pwd=hush", "Some Driver"),
            ("DSN=sales;Pwd=hush", "DSN=sales"),
            ("mssql://sa:hush@db/x", "mssql://"),
            ("hush", "no driver named"),
        ] {
            assert_eq!(named_in(target), said);
        }
    }
}
