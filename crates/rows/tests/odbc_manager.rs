//! Tests without a usable ODBC driver manager. SQLite works, and the error for an ODBC connection
//! names the library file that was tried. A process loads the driver manager only once, so each
//! case runs in a child process, which executes one test of this binary.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::process::Command;

use onecopy_rows::ConnectOptions;
use onecopy_rows::ErrorKind;
use onecopy_rows::connect::Connection;

#[test]
fn a_missing_or_wrong_manager_is_an_error_that_says_so() {
    let wrong = std::env::current_exe().unwrap();
    for file in ["/nonexistent/libodbc.so.2", wrong.to_str().unwrap()] {
        let output = Command::new(&wrong)
            .args(["--exact", "child_without_a_manager", "--ignored"])
            .env("ONECOPY_ODBC_MANAGER", file)
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && shown.contains("1 passed"),
            "{file}:\n{shown}"
        );
    }
}

#[test]
#[ignore = "run by a_missing_or_wrong_manager_is_an_error_that_says_so, in a child with another manager"]
fn child_without_a_manager() {
    let file = std::env::var("ONECOPY_ODBC_MANAGER").unwrap();
    for target in [
        "Driver=psqlodbcw.so;Server=h;Pwd=hunter22",
        "DSN=x;Pwd=hunter22",
        "odbc+postgresql://u:hunter22@h/d",
    ] {
        let error = Connection::open(target, &ConnectOptions::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(
            error.message.contains(&file) && error.message.contains("ONECOPY_ODBC_MANAGER"),
            "{error}"
        );
        assert!(
            error.message.contains("`sqlite:` databases need none"),
            "{error}"
        );
        assert!(!error.message.contains("hunter22"));
    }
    Connection::open("sqlite::memory:", &ConnectOptions::default()).unwrap();
}
