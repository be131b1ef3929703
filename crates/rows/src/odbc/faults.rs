//! Known faults of drivers, by version. The command `doctor` reports them. Some settings in the
//! module `quirks` are workarounds for them.
//!
//! Each fault was reproduced in this project, or its source is cited. Faults that are reported at
//! every connect are in `quirks::Quirks::notices`.

/// A known fault of an ODBC driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The versions of the driver that have the fault, as the numbers with which they begin: `3.1`
    /// includes 3.1.15, and `13.02` is the same as `13.2`. Empty if all known versions have the
    /// fault.
    pub versions: &'static str,
    /// The affected operating system (`macos`); empty for all systems.
    pub system: &'static str,
    /// The effect of the fault on the user.
    pub what: &'static str,
    /// The workaround in this crate, or the remedy for the user.
    pub remedy: &'static str,
    /// `true` if onecopy works around the fault, so that the user need not act.
    pub is_handled: bool,
}

const EVERYWHERE: Fault = Fault {
    versions: "",
    system: "",
    what: "",
    remedy: "",
    is_handled: false,
};

/// Known faults of both psqlodbc drivers.
pub(super) const PSQLODBC: &[Fault] = &[
    Fault {
        versions: "13.02",
        what: "crashes the process, by a null pointer in `SQLFetch`, in about one of ten times \
               that its connection dies in the middle of an answer",
        remedy: "serve through `onecopy serve`, which outlives it; install a later psqlodbc if available",
        ..EVERYWHERE
    },
    Fault {
        versions: "13.02",
        what: "uses freed memory, where a table has a column of type `bit`, and a table is dropped \
               or altered by a connection that has more than one statement of that table",
        remedy: "onecopy closes all statements of such a connection, and their results, before it \
                 drops or alters a table",
        is_handled: true,
        ..EVERYWHERE
    },
    Fault {
        what: "gives 9999-12-31 23:59:59 for the time stamp `infinity`",
        remedy: "onecopy looks at each value of that form again, and says that it is an infinity",
        is_handled: true,
        ..EVERYWHERE
    },
    Fault {
        what: "drops the era of a date before Christ",
        remedy: "where a column may hold one, select it as text: `column::text`",
        ..EVERYWHERE
    },
    Fault {
        what: "takes the encoding from the locale, and under `LC_ALL=C` loses text that is no ASCII",
        remedy: "onecopy asks the server for UTF-8 whatever the locale",
        is_handled: true,
        ..EVERYWHERE
    },
];

/// Known faults of MariaDB Connector/ODBC.
pub(super) const MARIADB: &[Fault] = &[
    Fault {
        versions: "3.1",
        what: "drops the last characters of text that is read as UTF-16 and is not only ASCII",
        remedy: "onecopy reads the text as UTF-8, which takes a quarter longer",
        is_handled: true,
        ..EVERYWHERE
    },
    Fault {
        versions: "3.1",
        what: "can crash the process if another thread cancels a statement while its rows are read",
        remedy: "limit the time of a query on the server (`max_statement_time`), or serve it by \
                 `onecopy serve`, which restarts a process that has crashed",
        ..EVERYWHERE
    },
    Fault {
        versions: "3.1",
        what: "reports a value that the server has refused (error 1265) as a warning, if the \
               statement has parameters",
        remedy: "onecopy raises the error",
        is_handled: true,
        ..EVERYWHERE
    },
    Fault {
        versions: "3.1",
        what: "returns the columns of a changed table with their old names, if a prepared query \
               with `*` is executed again",
        remedy: "onecopy prepares such a query for each execution",
        is_handled: true,
        ..EVERYWHERE
    },
];

/// Known faults of SQLite's ODBC driver.
pub(super) const SQLITE: &[Fault] = &[Fault {
    what: "returns wrong values from the first query after another connection has changed the \
           columns of its table",
    remedy: "open the file with `sqlite:PATH`, which needs no driver",
    ..EVERYWHERE
}];

/// Known faults of Microsoft's driver in C.
pub(super) const MICROSOFT: &[Fault] = &[Fault {
    versions: "18",
    system: "macos",
    what: "returned wrong bytes over TLS on Apple silicon \
           (reported by users: microsoft/mssql-python, issue 668; not reproduced)",
    remedy: "compare a sum over the rows with the server's",
    ..EVERYWHERE
}];

/// Known faults of FreeTDS.
pub(super) const FREETDS: &[Fault] = &[
    Fault {
        versions: "1.3",
        what: "hangs if another thread cancels it between two reads of the network",
        remedy: "onecopy cancels a call of it only when that has lasted a quarter of a second",
        is_handled: true,
        ..EVERYWHERE
    },
    Fault {
        versions: "1.3",
        what: "sends each date before 1600 as the day before it",
        remedy: "onecopy sends such dates as text, which the server turns into dates",
        is_handled: true,
        ..EVERYWHERE
    },
];

impl Fault {
    /// Returns `true` if the fault affects this version of the driver on this system. If `version`
    /// is `None`, returns `true` only for faults that affect all versions.
    pub(crate) fn is_of(&self, version: Option<&str>) -> bool {
        let here = self.system.is_empty() || self.system == std::env::consts::OS;
        here && (self.versions.is_empty()
            || version.is_some_and(|v| numbers(v).starts_with(&numbers(self.versions))))
    }
}

/// Returns the numbers in a version string. For example, `13.02.0000`, `1:13.02-1+b1` (Debian's
/// epoch is skipped) and `13.2` all begin with the numbers 13 and 2.
fn numbers(version: &str) -> Vec<u32> {
    let version = version.split_once(':').map_or(version, |(_, v)| v);
    let upstream = version.split(['-', '+', '~', ' ']).next().unwrap_or("");
    upstream
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let crash = PSQLODBC[0];
        for version in ["13.02.0000", "1:13.02.0000-2+b1", "13.2"] {
            assert!(crash.is_of(Some(version)), "{version}");
        }
        for version in [
            Some("13.00.0000"),
            Some("16.00.0000"),
            Some("1.3"),
            Some("x"),
            None,
        ] {
            assert!(!crash.is_of(version), "{version:?}");
        }
        assert!(FREETDS[0].is_of(Some("01.03.0017")) && FREETDS[0].is_of(Some("1.3.17+ds-2")));
        let mut of_all = PSQLODBC.iter().filter(|fault| fault.versions.is_empty());
        assert!(
            of_all.next().is_some_and(|fault| fault.is_of(None)),
            "what all versions have needs no version"
        );
    }

    #[test]
    fn each_fault_says_what_happens_and_what_to_do() {
        for fault in [PSQLODBC, MARIADB, SQLITE, MICROSOFT, FREETDS].concat() {
            assert!(!fault.what.is_empty() && !fault.remedy.is_empty());
        }
    }
}
