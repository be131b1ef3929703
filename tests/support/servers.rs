//! The databases of the tests, for Rust: `#[path = "../../../tests/support/servers.rs"] mod servers;`.
//!
//! `make test` starts them and puts a connection string into `ONECOPY_TEST_<PROFILE>` (`POSTGRES`, `POSTGRES_ANSI`,
//! `MARIADB`, `SQLITE_ODBC`, `TDS_FREETDS`, `TDS_MSODBC`, `TDS_RUST`); for a plain `cargo test`:
//! `eval "$(python3 -m tests.support.servers env)"`.

/// The ODBC connection string of `profile` (`"postgres"`), or `None` where it cannot be had here.
///
/// Say `let Some(database) = need("postgres") else { return };`: the reason is printed.
///
/// # Panics
///
/// Under `CI=true`, where a skip is a failure.
pub fn need(profile: &str) -> Option<String> {
    let key = format!("ONECOPY_TEST_{}", profile.to_uppercase());
    if let Ok(string) = std::env::var(&key) {
        return Some(string);
    }
    let reason = std::env::var(format!("{key}_MISSING"))
        .unwrap_or_else(|_| format!("`{key}` is not set; `make test` sets it"));
    assert!(
        !matches!(std::env::var("CI").as_deref(), Ok("1" | "true" | "yes")),
        "under CI=true a skip is a failure: {reason}"
    );
    eprintln!("skipped: {reason}");
    None
}
