//! Opens an ODBC connection: chooses the driver, its keywords and the text width (UTF-8 or UTF-16).

use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr;

use super::connection::Connection;
use super::connection_string::ConnectionString;
use super::ffi::{self, Handle};
use super::manager::{Manager, manager};
use super::quirks::{self, Quirks, Streams, Width};
use super::secrets::Secrets;
use super::shared::DriverFacts;
use super::unit::written;
use super::url::{self, DatabaseUrl};
use super::{diag, drivers, first_connect};
use crate::codes;
use crate::database::{ConnectOptions, DatabaseConnection};
use crate::error::{Error, ErrorKind};
use crate::fork;
use crate::odbc::block::buffer;
use crate::sql::dialect::Dialect;

/// Opens a URL, ODBC string or `DSN=name`. If the text width is `None`, a test query determines it.
pub(crate) fn open(
    target: &str,
    options: &ConnectOptions,
    width: Option<Width>,
) -> Result<Connection, Error> {
    if options.read_only && options.autocommit {
        return Err(Error::new(
            ErrorKind::NotSupported,
            "a read-only connection has no autocommit: its transaction is always rolled back\n\
             Give one of the two.",
        ));
    }
    buffer::keep_freed_pages();
    fork::watch_forks();
    let (manager, mut string, hint) = resolve(target)?;
    // A copy without the keywords added below, in case another driver is loaded than expected.
    let given = string.clone();
    let mut quirks = hint.unwrap_or(&quirks::UNKNOWN);
    add_defaults(&mut string, quirks, options)?;
    let mut dbc = connect(manager, &string, quirks, width, options)?;
    let driver = dbc.text_info(ffi::DRIVER_NAME, width.unwrap_or(quirks.width));
    if let Some(actual) = quirks::known(&driver).filter(|q| !ptr::eq(*q, quirks)) {
        // Another driver was loaded than expected: connect again, with that driver's keywords.
        quirks = actual;
        string = given;
        add_defaults(&mut string, quirks, options)?;
        dbc = connect(manager, &string, quirks, width, options)?;
    }
    let mut connection = dbc.finish(&string, quirks, width.unwrap_or(quirks.width), options)?;
    if width.is_none()
        && let Some(width) = first_connect::better_width(&connection)
    {
        drop(connection);
        let dbc = connect(manager, &string, quirks, Some(width), options)?;
        connection = dbc.finish(&string, quirks, width, options)?;
    }
    session(&mut connection, &string)?;
    first_connect::check_answers(&connection)?;
    if options.read_only {
        for sql in quirks.read_only {
            connection.execute(sql, &[])?;
        }
    }
    // Autocommit is switched off only if the database supports transactions.
    if (options.read_only || !options.autocommit) && connection.shared.facts.transactions {
        connection.set_autocommit(false)?;
    }
    Ok(connection)
}

/// Returns the connection string for `target`, and the quirks of its driver, if that is known.
fn resolve(
    target: &str,
) -> Result<(&'static Manager, ConnectionString, Option<&'static Quirks>), Error> {
    if url::scheme(target).is_some() {
        let url = DatabaseUrl::parse(target)?;
        let manager = manager()?;
        let Some((driver, quirks)) = drivers::for_scheme(manager, &url.scheme) else {
            return Err(Error::new(
                ErrorKind::Connect,
                format!(
                    "no driver for `{}://` was found\n{}\n{}",
                    url.scheme,
                    drivers::list(manager),
                    drivers::to_install(&url.scheme)
                ),
            ));
        };
        return Ok((
            manager,
            url.connection_string(&driver, quirks),
            Some(quirks),
        ));
    }
    let string = ConnectionString::parse(target);
    let named = ["Driver", "DSN", "FILEDSN"]
        .iter()
        .any(|k| string.get(k).is_some_and(|v| !v.is_empty()));
    if !named {
        return Err(Error::new(
            ErrorKind::Connect,
            "this names no database: it has neither `Driver=` nor `DSN=`, and is no URL\n\
             Write `sqlite:PATH`, `postgresql://…`, `mysql://…`, `mssql://…`, or an ODBC connection string.",
        ));
    }
    let manager = manager()?;
    let quirks = match (string.get("Driver"), string.get("DSN")) {
        (Some(driver), _) => quirks::known(driver).or_else(|| {
            drivers::registered(manager)
                .iter()
                .find(|f| f.driver.eq_ignore_ascii_case(driver))
                .and_then(drivers::Found::quirks)
        }),
        (None, Some(dsn)) => dsn_driver(dsn).and_then(|driver| {
            quirks::known(&driver).or_else(|| {
                drivers::registered(manager)
                    .iter()
                    .find(|f| f.driver.eq_ignore_ascii_case(&driver))
                    .and_then(drivers::Found::quirks)
            })
        }),
        _ => None,
    };
    Ok((manager, string, quirks))
}

/// Adds to `string` the keywords that `quirks` and `options` require and the user has not set.
fn add_defaults(
    string: &mut ConnectionString,
    quirks: &Quirks,
    options: &ConnectOptions,
) -> Result<(), Error> {
    match (options.stream, quirks.streams) {
        (Some(true), Streams::Never) => {
            let message = format!(
                "{} reads the whole result into memory before the first row, and has no option to stream\n\
                 Leave `stream` out, and read large tables in parts, by a key.",
                quirks.name
            );
            return Err(Error::new(ErrorKind::NotSupported, message));
        }
        (Some(false), Streams::By { keyword, off }) => string.add_default(keyword, off),
        _ => {}
    }
    if options.local_infile && quirks.name == "MySQL Connector/ODBC" {
        string.add_default("ENABLE_LOCAL_INFILE", "1");
    }
    for (keyword, value) in quirks.connect {
        string.add_default(keyword, value);
    }
    Ok(())
}

/// Returns the `Driver` entry of a data source in the user's or the system's `odbc.ini`. Without
/// this entry, the driver is known only after connecting, and a second connection may be necessary.
fn dsn_driver(dsn: &str) -> Option<String> {
    let mut files: Vec<PathBuf> = Vec::new();
    files.extend(std::env::var_os("ODBCINI").map(PathBuf::from));
    files.extend(std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".odbc.ini")));
    files.extend(std::env::var_os("ODBCSYSINI").map(|h| PathBuf::from(h).join("odbc.ini")));
    files.push(PathBuf::from("/etc/odbc.ini"));
    files.push(PathBuf::from("/usr/local/etc/odbc.ini"));
    files
        .iter()
        .filter_map(|f| std::fs::read(f).ok())
        .find_map(|text| ini_entry(&String::from_utf8_lossy(&text), dsn, "Driver"))
}

fn ini_entry(text: &str, section: &str, key: &str) -> Option<String> {
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            inside = name.trim().eq_ignore_ascii_case(section);
        } else if inside
            && let Some((k, v)) = line.split_once('=')
            && k.trim().eq_ignore_ascii_case(key)
        {
            return Some(v.trim().to_owned());
        }
    }
    None
}

/// A connection handle. When dropped, it is disconnected and freed, unless `finish` has moved it.
struct Dbc {
    manager: &'static Manager,
    raw: Handle,
    connected: bool,
}

impl Drop for Dbc {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle, which has no statements; it is null after `finish`.
        unsafe {
            if self.connected {
                (self.manager.call.disconnect)(self.raw);
            }
            if !self.raw.is_null() {
                (self.manager.call.free_handle)(ffi::HANDLE_DBC, self.raw);
            }
        }
    }
}

fn connect(
    manager: &'static Manager,
    string: &ConnectionString,
    quirks: &Quirks,
    width: Option<Width>,
    options: &ConnectOptions,
) -> Result<Dbc, Error> {
    let width = width.unwrap_or(quirks.width);
    let secrets = string.secrets();
    let mut dbc = Dbc {
        manager,
        raw: ptr::null_mut(),
        connected: false,
    };
    // SAFETY: the environment is never freed; the out pointer is a live field.
    let rc = unsafe {
        (manager.call.alloc_handle)(ffi::HANDLE_DBC, manager.environment, &raw mut dbc.raw)
    };
    if !succeeded(rc) {
        return Err(diag::error(
            manager,
            ffi::HANDLE_ENV,
            manager.environment,
            Width::Narrow,
            quirks.dialect,
            &secrets,
            "SQLAllocHandle",
        ));
    }
    dbc.set(ffi::ATTR_LOGIN_TIMEOUT, options.login_timeout_s as usize);
    if options.read_only {
        dbc.set(ffi::ATTR_ACCESS_MODE, ffi::MODE_READ_ONLY);
    }
    let text = string.to_driver();
    let mut length = 0i16;
    let rc = match width {
        Width::Narrow => {
            let mut text = text.into_bytes();
            let len = length_of(text.len())?;
            text.push(0);
            let mut out = [0u8; 1024];
            // SAFETY: a live, unconnected handle; string and out buffer are live with these
            // lengths.
            unsafe {
                (manager.call.driver_connect)(
                    dbc.raw,
                    ptr::null_mut(),
                    text.as_ptr(),
                    len,
                    out.as_mut_ptr(),
                    1024,
                    &raw mut length,
                    ffi::DRIVER_NOPROMPT,
                )
            }
        }
        Width::Wide => {
            let mut text: Vec<u16> = text.encode_utf16().collect();
            let len = length_of(text.len())?;
            text.push(0);
            let mut out = [0u16; 1024];
            // SAFETY: the handle is open and the buffers outlive the call; the lengths are in
            // characters.
            unsafe {
                (manager.call.driver_connect_w)(
                    dbc.raw,
                    ptr::null_mut(),
                    text.as_ptr(),
                    len,
                    out.as_mut_ptr(),
                    1024,
                    &raw mut length,
                    ffi::DRIVER_NOPROMPT,
                )
            }
        }
    };
    if succeeded(rc) {
        dbc.connected = true;
        return Ok(dbc);
    }
    let error = diag::error(
        manager,
        ffi::HANDLE_DBC,
        dbc.raw,
        width,
        quirks.dialect,
        &secrets,
        "SQLDriverConnect",
    );
    Err(explain(error, manager, string, quirks, &secrets))
}

fn length_of(len: usize) -> Result<i16, Error> {
    i16::try_from(len).map_err(|_| {
        Error::new(
            ErrorKind::Connect,
            "the connection string is longer than the 32,767 characters that ODBC allows",
        )
    })
}

fn succeeded(rc: ffi::Return) -> bool {
    rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO
}

/// Adds the connection string, without secrets, to the error of a failed connect. If the driver is
/// missing, adds a list of the installed drivers. An error with an unknown code becomes transient.
fn explain(
    mut error: Error,
    manager: &Manager,
    string: &ConnectionString,
    quirks: &Quirks,
    secrets: &Secrets,
) -> Error {
    error.is_transient |= codes::meaning(quirks.dialect, &error.sqlstate, error.native).is_none();
    if error.kind != ErrorKind::Timeout {
        error.kind = ErrorKind::Connect;
    }
    error
        .message
        .push_str(&format!("\nconnecting to `{}`", string.redacted()));
    // unixODBC reports a missing file or library as 01000 "Can't open lib".
    let no_driver = matches!(
        error.sqlstate.as_str(),
        "IM002" | "IM003" | "IM004" | "01000"
    ) || error.message.contains("Can't open lib");
    if no_driver {
        let scheme = string
            .get("Driver")
            .and_then(quirks::known)
            .and_then(|q| q.schemes.first())
            .copied()
            .unwrap_or("");
        error.message.push('\n');
        error
            .message
            .push_str(&secrets.scrub(&drivers::list(manager)));
        if !scheme.is_empty() {
            error.message.push('\n');
            error.message.push_str(drivers::to_install(scheme));
        }
    }
    error
}

impl Dbc {
    /// Sets an integer attribute; ignores the error of a driver without this attribute.
    fn set(&self, attribute: i32, value: usize) {
        // SAFETY: a live handle; the attribute's value is an integer, passed as the pointer.
        unsafe {
            (self.manager.call.set_connect_attr)(
                self.raw,
                attribute,
                value as *mut c_void,
                ffi::IS_UINTEGER,
            )
        };
    }

    fn text_info(&self, what: u16, width: Width) -> String {
        let mut length = 0i16;
        match width {
            Width::Narrow => written::<u8, 512>(|out| {
                // SAFETY: a connected handle; the buffer has the size given, and one unit more.
                unsafe {
                    (self.manager.call.get_info)(self.raw, what, out.cast(), 511, &raw mut length)
                };
            }),
            Width::Wide => written::<u16, 512>(|out| {
                // SAFETY: a connected handle; the buffer has the size given, and one unit more:
                // SQLGetInfoW counts bytes.
                unsafe {
                    (self.manager.call.get_info_w)(
                        self.raw,
                        what,
                        out.cast(),
                        1022,
                        &raw mut length,
                    )
                };
            }),
        }
    }

    fn number_info(&self, what: u16) -> u32 {
        // Some of these values have 16 bits; the other bytes stay zero.
        let mut value = 0u32;
        let mut length = 0i16;
        // SAFETY: a connected handle; 16 and 32-bit results fit `value`.
        unsafe {
            (self.manager.call.get_info)(
                self.raw,
                what,
                (&raw mut value).cast(),
                4,
                &raw mut length,
            )
        };
        value
    }

    /// Converts this open ODBC handle to a `Connection` in autocommit mode.
    fn finish(
        mut self,
        string: &ConnectionString,
        quirks: &'static Quirks,
        width: Width,
        options: &ConnectOptions,
    ) -> Result<Connection, Error> {
        let keeps = u32::from(ffi::CB_PRESERVE);
        let ends = quirks.ends_cursors;
        let driver = self.text_info(ffi::DRIVER_NAME, width);
        let driver_version = self.text_info(ffi::DRIVER_VER, width);
        let name = [driver.as_str(), quirks.name][usize::from(driver.is_empty())];
        let facts = DriverFacts {
            driver_label: format!("{name} {driver_version}").trim_end().into(),
            driver,
            driver_version,
            dbms: self.text_info(ffi::DBMS_NAME, width),
            dbms_version: self.text_info(ffi::DBMS_VER, width),
            get_data: self.number_info(ffi::GETDATA_EXTENSIONS),
            commit_keeps: !ends && self.number_info(ffi::CURSOR_COMMIT_BEHAVIOR) == keeps,
            rollback_keeps: !ends && self.number_info(ffi::CURSOR_ROLLBACK_BEHAVIOR) == keeps,
            transactions: self.number_info(ffi::TXN_CAPABLE) != 0,
            target: string.redacted(),
            notices: quirks.notices.iter().map(|n| (*n).to_owned()).collect(),
        };
        self.connected = false;
        let raw = std::mem::replace(&mut self.raw, ptr::null_mut());
        let manager = self.manager;
        Ok(Connection::new(
            raw, manager, quirks, width, string, facts, options,
        ))
    }
}

/// Sets options of a PostgreSQL session for which psqlodbc has no keyword.
fn session(connection: &mut Connection, string: &ConnectionString) -> Result<(), Error> {
    if connection.shared.quirks.dialect != Dialect::Postgres {
        return Ok(());
    }
    // The `ConnSettings` of the user override those of this crate.
    let own_settings = string
        .get("ConnSettings")
        .unwrap_or_default()
        .to_lowercase();
    if connection.shared.width == Width::Narrow && !own_settings.contains("client_encoding") {
        connection.execute("SET CLIENT_ENCODING TO 'UTF8'", &[])?;
    }
    if connection.shared.quirks.hides_offset {
        let zone = first_connect::one_text(connection, "SELECT current_setting('TimeZone')")?;
        if !matches!(
            zone.as_str(),
            "UTC" | "Etc/UTC" | "GMT" | "Etc/GMT" | "Universal" | "Zulu"
        ) {
            connection.execute("SET TIME ZONE 'UTC'", &[])?;
            if let Some(shared) = std::sync::Arc::get_mut(&mut connection.shared) {
                shared.facts.notices.push(format!(
                    "the session's time zone is set from `{zone}` to UTC: \
                     psqlodbc returns `timestamptz` in its zone, without an offset"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_without_driver_or_dsn_is_refused_with_examples() {
        let error = open("Server=x;Pwd=hunter2", &ConnectOptions::default(), None)
            .err()
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(error.message.contains("`sqlite:PATH`"));
        assert!(!error.message.contains("hunter2"));
    }

    #[test]
    fn the_driver_of_a_data_source_is_read_from_its_section() {
        let ini = "[other]\nDriver=x\n[My Source]\n driver = psqlodbcw.so \n";
        assert_eq!(
            ini_entry(ini, "my source", "Driver").as_deref(),
            Some("psqlodbcw.so")
        );
        assert_eq!(ini_entry(ini, "absent", "Driver"), None);
    }
}
