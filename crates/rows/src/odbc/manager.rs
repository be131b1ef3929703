//! `Manager`: the ODBC driver manager, loaded at run time.
//!
//! This crate does not link the driver manager, so SQLite works without it. If the driver manager
//! is missing, opening an ODBC connection fails with an error that names the package to install.
//! The environment variable `ONECOPY_ODBC_MANAGER` names a file to load instead of the default
//! files.

#[cfg(unix)]
use std::ffi::CStr;
use std::ffi::c_void;
#[cfg(unix)]
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::ptr;
use std::sync::Mutex;

use onecopy_wire::lock::lock;

use super::ffi::{self, Functions, Handle};
use crate::error::{Error, ErrorKind};

/// The environment variable with the path of the driver manager.
pub(crate) const MANAGER_VARIABLE: &str = "ONECOPY_ODBC_MANAGER";

/// The file names of the driver manager's library, in the order in which they are tried. On Unix
/// all are names of unixODBC, which encodes 16-bit text as UTF-16.
#[cfg(target_os = "macos")]
const FILES: &[&str] = &[
    "libodbc.2.dylib",
    "/opt/homebrew/lib/libodbc.2.dylib",
    "/usr/local/lib/libodbc.2.dylib",
    "/opt/local/lib/libodbc.2.dylib",
];
#[cfg(windows)]
const FILES: &[&str] = &["odbc32.dll"];
#[cfg(not(any(target_os = "macos", windows)))]
const FILES: &[&str] = &["libodbc.so.2", "libodbc.so.1", "libodbc.so"];

/// A loaded driver manager, with the environment handle that all connections share.
pub(crate) struct Manager {
    /// The table of the driver manager's functions.
    pub(crate) call: Functions,
    /// The ODBC environment handle.
    pub(crate) environment: Handle,
    /// The file name under which the driver manager was loaded, for `describe`.
    pub(crate) file: String,
    /// The lock for `SQLDrivers`. All threads share the environment handle, and `SQLDrivers` stores
    /// in it how far the enumeration of drivers has advanced.
    pub(crate) enumeration: Mutex<()>,
}

// SAFETY: the driver manager is thread-safe by the ODBC reference ("Multithreading"); the
// environment handle is never freed, and its only state that a call changes (the position of
// `SQLDrivers`) is guarded by `enumeration`.
unsafe impl Send for Manager {}
// SAFETY: as for Send; the driver manager's own locks allow calls from several threads at a time.
unsafe impl Sync for Manager {}

impl Manager {
    /// Returns the path of the driver manager with symbolic links resolved, if the system reports
    /// it.
    pub(super) fn path(&self) -> Option<PathBuf> {
        #[cfg(unix)]
        {
            let mut about = MaybeUninit::<libc::Dl_info>::uninit();
            // SAFETY: dladdr accepts any address. It writes `about` only if it finds the library,
            // and its result reports that. The name in `about` lives as long as the library, which
            // is never unloaded.
            let name = unsafe {
                if libc::dladdr(self.call.alloc_handle as *const c_void, about.as_mut_ptr()) == 0 {
                    return None;
                }
                let name = about.assume_init().dli_fname;
                if name.is_null() {
                    return None;
                }
                CStr::from_ptr(name)
            };
            let name = PathBuf::from(name.to_str().ok()?);
            Some(std::fs::canonicalize(&name).unwrap_or(name))
        }
        #[cfg(not(unix))]
        None
    }
}

/// Loads a driver as the driver manager would, to find out why opening a connection fails. The
/// driver is never unloaded, because it may have started threads or registered exit handlers.
///
/// # Errors
/// The loader's error message, for example that the driver or a library that it needs is
/// missing.
pub(super) fn why_it_does_not_load(driver: &str) -> Result<(), String> {
    // SAFETY: loading runs the library's initialisers. The file is a driver by its name or by its
    // registration with the driver manager, and a connect would load it in the same way.
    let library = unsafe { libloading::Library::new(driver) };
    library
        .map(std::mem::forget)
        .map_err(|error| error.to_string())
}

/// The driver manager of this process; `None` before it was loaded. It is never unloaded, because
/// drivers may have started threads and registered exit handlers. After a failed load, the next
/// call to [`manager`] tries again, so that a driver manager can be installed while a service runs.
static LOADED: Mutex<Option<&'static Manager>> = Mutex::new(None);

/// Returns the driver manager; the first call loads it.
///
/// # Errors
/// [`ErrorKind::Connect`]; the message names the files that were tried and the package to install.
pub(crate) fn manager() -> Result<&'static Manager, Error> {
    let mut loaded = lock(&LOADED);
    if let Some(manager) = *loaded {
        return Ok(manager);
    }
    let manager: &'static Manager = Box::leak(Box::new(load()?));
    *loaded = Some(manager);
    Ok(manager)
}

fn load() -> Result<Manager, Error> {
    let chosen = std::env::var(MANAGER_VARIABLE)
        .ok()
        .filter(|f| !f.is_empty());
    let files: Vec<&str> = match &chosen {
        Some(file) => vec![file.as_str()],
        None => FILES.to_vec(),
    };
    let mut reasons = Vec::new();
    for file in files {
        match open(file) {
            Ok(manager) => return Ok(manager),
            Err(reason) => reasons.push(format!("  `{file}`: {reason}")),
        }
    }
    Err(missing(&reasons, chosen.is_some()))
}

fn open(file: &str) -> Result<Manager, String> {
    // SAFETY: loading a library runs its initialisers; those of a driver manager are known to be
    // harmless, and the user vouches for a file that `ONECOPY_ODBC_MANAGER` names.
    let library = unsafe { libloading::Library::new(file) }.map_err(|e| e.to_string())?;
    // SAFETY: the file is a driver manager by its name, or the user vouches for it; the library is
    // leaked below, so it stays loaded.
    let call = unsafe { Functions::load(&library) }.map_err(|e| e.to_string())?;
    std::mem::forget(library);
    let environment = environment(&call)?;
    Ok(Manager {
        call,
        environment,
        file: file.to_owned(),
        enumeration: Mutex::new(()),
    })
}

/// Allocates an environment of ODBC 3.80, or of ODBC 3 if the driver manager does not support 3.80.
///
/// If only the driver does not support 3.80, the driver manager passes version 3 to the driver.
/// Each time a connection is opened, unixODBC then adds a warning 01000 that has no consequence.
fn environment(call: &Functions) -> Result<Handle, String> {
    let mut environment: Handle = ptr::null_mut();
    // SAFETY: an environment needs no parent; the out pointer is a live local.
    let rc = unsafe { (call.alloc_handle)(ffi::HANDLE_ENV, ptr::null_mut(), &raw mut environment) };
    if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
        return Err(format!("it gave no environment handle (return code {rc})"));
    }
    for version in [ffi::OV_ODBC3_80, ffi::OV_ODBC3] {
        // SAFETY: the handle was made above; this attribute's value is an integer, passed as the
        // pointer.
        let rc = unsafe {
            (call.set_env_attr)(
                environment,
                ffi::ATTR_ODBC_VERSION,
                version as *mut c_void,
                ffi::IS_UINTEGER,
            )
        };
        if rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO {
            return Ok(environment);
        }
    }
    // SAFETY: the handle was made above and has no connections.
    unsafe { (call.free_handle)(ffi::HANDLE_ENV, environment) };
    Err("it knows neither ODBC 3.80 nor ODBC 3".to_owned())
}

fn missing(reasons: &[String], chosen: bool) -> Error {
    let remedy = if chosen {
        format!("The environment variable {MANAGER_VARIABLE} names this file: correct or unset it.")
    } else if cfg!(target_os = "macos") {
        "Install it: `brew install unixodbc`.".to_owned()
    } else {
        "Install it: `apt-get install unixodbc` (Debian, Ubuntu), `dnf install unixODBC` (Fedora, RHEL), \
         `apk add unixodbc` (Alpine)."
            .to_owned()
    };
    Error::new(
        ErrorKind::Connect,
        format!(
            "no ODBC driver manager (unixODBC) can be loaded; tried\n{}\n{remedy}\n\
             `sqlite:` databases need none.",
            reasons.join("\n")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_manager_says_what_to_install_and_that_sqlite_works() {
        let error = missing(&["  `libodbc.so.2`: not there".to_owned()], false);
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(error.message.contains("unixodbc"));
        assert!(error.message.contains("`sqlite:` databases need none"));
    }

    #[test]
    fn a_file_that_is_no_driver_manager_is_refused_by_its_missing_functions() {
        let reason = open("libc.so.6").err().expect("libc has no ODBC functions");
        assert!(reason.contains("SQLAllocHandle"), "{reason}");
    }
}
