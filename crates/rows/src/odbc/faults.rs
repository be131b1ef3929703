//! Faults of drivers that people should know of, by version: what `doctor` tells, and why `quirks` has some of its rows.
//!
//! Each was seen by us, or says who reports it. Faults that are told at every connect stand in `quirks::Quirks::notices`.

/// What a driver gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The versions it was seen in: those that begin with these numbers (`13.02` is 13.2 too); empty: all we know of.
    pub versions: &'static str,
    /// Systems it is reported for (`macos`), empty: all.
    pub system: &'static str,
    /// What happens.
    pub what: &'static str,
    /// What is done about it here, or what the user can do.
    pub remedy: &'static str,
    /// Whether nothing is left for the user to do: onecopy works round it.
    pub is_handled: bool,
}

const EVERYWHERE: Fault = Fault {
    versions: "",
    system: "",
    what: "",
    remedy: "",
    is_handled: false,
};

/// Of both psqlodbc drivers.
pub(super) const PSQLODBC: &[Fault] = &[
    Fault {
        versions: "13.02",
        what: "crashes the process, by a null pointer in `SQLFetch`, in about one of ten times that its connection dies in \
               the middle of an answer",
        remedy: "serve through `onecopy serve`, which outlives it; install a later psqlodbc where there is one",
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

/// Of MariaDB Connector/ODBC.
pub(super) const MARIADB: &[Fault] = &[Fault {
    versions: "3.1",
    what: "drops the last characters of text that is read as UTF-16 and holds more than ASCII",
    remedy: "onecopy reads it as UTF-8, which is right and costs a quarter",
    is_handled: true,
    ..EVERYWHERE
}];

/// Of Microsoft's driver written in C.
pub(super) const MICROSOFT: &[Fault] = &[Fault {
    versions: "18",
    system: "macos",
    what: "gave wrong bytes over TLS on Apple silicon (reported by users: microsoft/mssql-python, issue 668; not seen by us)",
    remedy: "compare a sum over the rows with the server's",
    ..EVERYWHERE
}];

/// Of FreeTDS.
pub(super) const FREETDS: &[Fault] = &[
    Fault {
        versions: "1.3",
        what: "waits for ever where another thread cancels just while it is between two reads of the network",
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
    /// Whether it is one of a driver of this version on this system; of an unknown version only what all versions have.
    pub(crate) fn is_of(&self, version: Option<&str>) -> bool {
        let here = self.system.is_empty() || self.system == std::env::consts::OS;
        here && (self.versions.is_empty()
            || version.is_some_and(|v| numbers(v).starts_with(&numbers(self.versions))))
    }
}

/// The numbers of a version: `13.02.0000`, `1:13.02-1+b1` (Debian's epoch counts for nothing) and `13.2` begin alike.
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
        for fault in [PSQLODBC, MARIADB, MICROSOFT, FREETDS].concat() {
            assert!(!fault.what.is_empty() && !fault.remedy.is_empty());
        }
    }
}
