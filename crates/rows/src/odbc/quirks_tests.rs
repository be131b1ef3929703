//! Tests that the quirks table identifies drivers by their names.

use super::*;

#[test]
fn drivers_are_known_by_file_path_registered_name_and_driver_name() {
    for (hint, name) in [
        ("psqlodbcw.so", "psqlodbc (Unicode)"),
        (
            "/usr/lib/x86_64-linux-gnu/odbc/psqlodbca.so",
            "psqlodbc (ANSI)",
        ),
        ("PostgreSQL Unicode", "psqlodbc (Unicode)"),
        ("PostgreSQL ANSI", "psqlodbc (ANSI)"),
        ("libmaodbc.so", "MariaDB Connector/ODBC"),
        ("MariaDB Unicode", "MariaDB Connector/ODBC"),
        (
            "libmsodbcsql-18.6.so.2.1",
            "Microsoft ODBC Driver for SQL Server",
        ),
        (
            "ODBC Driver 17 for SQL Server",
            "Microsoft ODBC Driver for SQL Server",
        ),
        ("/x/mssqlodbc.so", "Microsoft's Rust driver for SQL Server"),
        ("libtdsodbc.so", "FreeTDS"),
        ("FreeTDS", "FreeTDS"),
        ("sqlite3odbc.so", "SQLite ODBC"),
        ("libmyodbc8w.so", "MySQL Connector/ODBC"),
    ] {
        assert_eq!(known(hint).map(|q| q.name), Some(name), "{hint}");
    }
    assert!(known("libsomething.so").is_none());
}

#[test]
fn every_scheme_has_a_driver() {
    for scheme in [
        "postgresql",
        "postgres",
        "mysql",
        "mariadb",
        "mssql",
        "sqlserver",
    ] {
        assert!(
            DRIVERS.iter().any(|d| d.schemes.contains(&scheme)),
            "{scheme}"
        );
    }
}
