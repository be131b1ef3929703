//! Tables of SQLSTATEs and of databases' own error codes. Each row of a table contains a code, the
//! kind of its error, and whether a retry can succeed.
//!
//! A code is transient if the same statement can succeed later without any change. Such codes
//! report connection exceptions, locks, deadlocks, serialization failures, exhausted resources, or
//! a server that starts or shuts down. An error whose code is in no table has the kind
//! `Operational` and is permanent. If an ODBC driver reports such an error while connecting, it has
//! the kind `Connect` and is transient.

use crate::error::{ErrorKind, Meaning};
use crate::sql::dialect::Dialect;
use crate::sqlite;

use ErrorKind::{
    Cancelled, Connect, Data, Integrity, Internal, NotSupported, Operational, Programming,
    ReadOnly, Timeout,
};

const fn permanent(kind: ErrorKind) -> Meaning {
    Meaning::permanent(kind)
}

const fn transient(kind: ErrorKind) -> Meaning {
    Meaning::transient(kind)
}

/// Returns the kind of an error, and whether the error is transient. The table of the database's
/// own codes has precedence over the tables of SQLSTATEs. Returns `None` if no table contains
/// `sqlstate` or `native`.
pub(crate) fn meaning(dialect: Dialect, sqlstate: &str, native: i32) -> Option<Meaning> {
    of_native(dialect, native).or_else(|| of_sqlstate(sqlstate))
}

/// Returns the entry of an SQLSTATE in [`STATES`]. If the SQLSTATE has none, returns the entry of
/// its class in [`CLASSES`], or `None` if the class has none either.
fn of_sqlstate(sqlstate: &str) -> Option<Meaning> {
    let class = sqlstate.get(..2)?;
    row(STATES, sqlstate).or_else(|| row(CLASSES, class))
}

/// Returns the kind of the error with the database's own code `native`, and whether the error is
/// transient. Returns `None` if the table of the database does not contain the code. These tables
/// contain only codes that are more specific than the SQLSTATE.
fn of_native(dialect: Dialect, native: i32) -> Option<Meaning> {
    match dialect {
        Dialect::Sqlite if native > 0 => Some(sqlite::meaning_of_code(native)),
        Dialect::MySql => of_group(MARIADB, native),
        Dialect::SqlServer => of_group(SQL_SERVER, native),
        _ => None,
    }
}

fn of_group(groups: &[(&[i32], Meaning)], native: i32) -> Option<Meaning> {
    let group = groups.iter().find(|(codes, _)| codes.contains(&native));
    group.map(|(_, meaning)| *meaning)
}

fn row(table: &[(&str, Meaning)], key: &str) -> Option<Meaning> {
    table.iter().find(|r| r.0 == key).map(|r| r.1)
}

/// The classes of SQLSTATE (its first two characters), each with the kind of the error and whether
/// a retry may succeed.
///
/// Source: ISO/IEC 9075-2, table "SQLSTATE class and subclass values"; the ODBC reference, appendix
/// A (HY and IM, and S0, S1, 37 and 70, which are classes of ODBC 2); PostgreSQL's appendix A (03,
/// 53 to 58, 72, F0, HV, P0, XX); MariaDB (70, XA). Class HY is missing, because a driver reports
/// HY000 for every error that has no specific SQLSTATE.
const CLASSES: &[(&str, Meaning)] = &[
    ("00", permanent(Operational)),
    ("01", permanent(Operational)),
    ("02", permanent(Operational)),
    ("03", permanent(Operational)),
    ("07", permanent(Programming)),
    ("08", transient(Operational)),
    ("09", permanent(Operational)),
    ("0A", permanent(NotSupported)),
    ("0B", permanent(Operational)),
    ("0D", permanent(Operational)),
    ("0E", permanent(Operational)),
    ("0F", permanent(Operational)),
    ("0K", permanent(Operational)),
    ("0L", permanent(Operational)),
    ("0M", permanent(Operational)),
    ("0N", permanent(Operational)),
    ("0P", permanent(Operational)),
    ("0S", permanent(Operational)),
    ("0T", permanent(Operational)),
    ("0U", permanent(Operational)),
    ("0V", permanent(Operational)),
    ("0W", permanent(Operational)),
    ("0X", permanent(Operational)),
    ("0Y", permanent(Operational)),
    ("0Z", permanent(Operational)),
    ("10", permanent(Operational)),
    ("20", permanent(Operational)),
    ("21", permanent(Programming)),
    ("22", permanent(Data)),
    ("23", permanent(Integrity)),
    ("24", permanent(Internal)),
    ("25", permanent(Internal)),
    ("26", permanent(Programming)),
    ("27", permanent(Operational)),
    // Class 28 is an invalid login: a retry with the same password is refused too.
    ("28", permanent(Operational)),
    ("2B", permanent(Internal)),
    ("2C", permanent(Operational)),
    ("2D", permanent(Programming)),
    ("2E", permanent(Operational)),
    ("2F", permanent(Operational)),
    ("2H", permanent(Operational)),
    ("30", permanent(Operational)),
    ("33", permanent(Operational)),
    ("34", permanent(Programming)),
    ("35", permanent(Operational)),
    ("36", permanent(Operational)),
    ("37", permanent(Programming)),
    ("38", permanent(Operational)),
    ("39", permanent(Operational)),
    ("3B", permanent(Operational)),
    ("3C", permanent(Programming)),
    ("3D", permanent(Programming)),
    ("3F", permanent(Programming)),
    ("40", transient(Operational)),
    ("42", permanent(Programming)),
    ("44", permanent(Integrity)),
    ("45", permanent(Operational)),
    ("46", permanent(Operational)),
    ("53", transient(Operational)),
    // SQLSTATE class 54: a statement that is too complex, or has too many columns, fails again.
    ("54", permanent(Operational)),
    ("55", permanent(Operational)),
    ("57", transient(Operational)),
    ("58", transient(Operational)),
    ("70", permanent(Operational)),
    ("72", transient(Operational)),
    ("F0", permanent(Operational)),
    ("HV", permanent(Operational)),
    ("HW", permanent(Operational)),
    ("HZ", permanent(Operational)),
    ("IM", permanent(Internal)),
    ("P0", permanent(Programming)),
    ("S0", permanent(Programming)),
    ("XA", permanent(Operational)),
    ("XX", permanent(Internal)),
];

/// SQLSTATEs whose meaning differs from the meaning of their class in [`CLASSES`].
const STATES: &[(&str, Meaning)] = &[
    ("08001", transient(Connect)),
    // 08002, "connection name in use", means that onecopy made a call at the wrong time.
    ("08002", permanent(Connect)),
    ("08004", transient(Connect)),
    ("25006", permanent(ReadOnly)),
    ("25P03", transient(Operational)),
    ("25P04", permanent(Timeout)),
    ("25S02", transient(Operational)),
    ("25S03", transient(Operational)),
    // A check of deferred constraints at the commit found a violation.
    ("40002", permanent(Integrity)),
    // Each execution of the statement exceeds PostgreSQL's `temp_file_limit`.
    ("53400", permanent(Operational)),
    ("55006", transient(Operational)),
    ("55P03", transient(Operational)),
    ("57014", permanent(Cancelled)),
    ("57P04", permanent(Operational)),
    ("58P01", permanent(Operational)),
    ("58P02", permanent(Operational)),
    ("58P03", permanent(Operational)),
    // SQLSTATE 70100 is the error of MariaDB and MySQL for a statement that `KILL QUERY` ended.
    ("70100", permanent(Cancelled)),
    ("HY001", transient(Operational)),
    ("HY008", permanent(Cancelled)),
    ("HY010", permanent(Internal)),
    ("HY011", permanent(Internal)),
    ("HY012", permanent(Internal)),
    ("HY013", transient(Operational)),
    ("HY014", transient(Operational)),
    ("HY017", permanent(Internal)),
    ("HY090", permanent(Programming)),
    ("HY104", permanent(Programming)),
    ("HY105", permanent(Programming)),
    ("HY117", transient(Operational)),
    ("HYC00", permanent(NotSupported)),
    ("HYT00", permanent(Timeout)),
    ("HYT01", permanent(Timeout)),
    ("IM001", permanent(NotSupported)),
    ("IM002", permanent(Connect)),
    ("IM003", permanent(Connect)),
    ("IM004", permanent(Connect)),
    ("IM005", permanent(Connect)),
    ("IM006", permanent(Connect)),
    ("IM012", permanent(Connect)),
    ("IM014", permanent(Connect)),
    ("S1001", transient(Operational)),
    ("S1008", permanent(Cancelled)),
    ("S1C00", permanent(NotSupported)),
    ("S1T00", permanent(Timeout)),
];

/// Error codes of MariaDB and MySQL that are more specific than the SQLSTATE of the error. For these
/// codes the SQLSTATE is only HY000, or 42000 if a limit of the server was reached.
///
/// Source: the error code references of MariaDB, and of MySQL for 3024, 3118, 4031 and the errors
/// of its client library from 2000 on.
const MARIADB: &[(&[i32], Meaning)] = &[
    // Disk full; out of resources; table full (also a temporary table); thread cannot be created;
    // limits of the user's connections and of resources per hour; limit of prepared statements;
    // limit of transactions.
    (
        &[1021, 1041, 1114, 1135, 1203, 1226, 1461, 1637],
        transient(Operational),
    ),
    // Row changed since it was read, or table definition changed; lock wait timeout; lock table
    // full; conflicting read lock; statement needs to be prepared again; lock aborted.
    (
        &[1020, 1205, 1206, 1223, 1412, 1615, 1689],
        transient(Operational),
    ),
    // Connection killed (its SQLSTATE 70100 is also that of `KILL QUERY`); client idle for too
    // long. Errors of the client library: no connection by socket or by TCP, unknown host, server
    // gone, connection lost in the handshake, connection lost, failed read or write of the socket.
    (
        &[
            1927, 4031, 2002, 2003, 2005, 2006, 2012, 2013, 2055, 5013, 5014,
        ],
        transient(Operational),
    ),
    // Out of sort memory is permanent: each execution needs more than `sort_buffer_size`. The
    // error's SQLSTATE, HY001, is transient for other errors.
    (&[1038], permanent(Operational)),
    // The host is blocked or may not connect; the password must be changed first; the account is
    // locked.
    (&[1129, 1130, 1820, 1862, 3118, 4151], permanent(Connect)),
    (&[1836], permanent(ReadOnly)),
    // A value that the column cannot hold. Their SQLSTATEs, 01000 and HY000, have other meanings.
    (&[1265, 1366], permanent(Data)),
    // The statement exceeded its time limit: `max_statement_time`, or MySQL's `max_execution_time`.
    (&[1969, 3024], permanent(Timeout)),
];

/// Error codes of SQL Server that are more specific than the SQLSTATE of the error. For example,
/// Microsoft's drivers report truncation (2628) as 42000, and FreeTDS reports an overflow as HY019.
///
/// Source: "Database Engine events and errors" of Microsoft's documentation; its list of transient
/// errors of Azure SQL; the errors that Microsoft.Data.SqlClient retries by default.
const SQL_SERVER: &[(&[i32], Meaning)] = &[
    // Overflow, conversion, truncation, division by zero.
    (
        &[220, 232, 241, 242, 245, 295, 2628, 8114, 8115, 8134, 8152],
        permanent(Data),
    ),
    (&[515, 547, 2601, 2627], permanent(Integrity)),
    (&[3906], permanent(ReadOnly)),
    // Transport errors: network name no longer available, semaphore timeout, overlapped I/O, no
    // process at the other end, connection reset, host unreachable.
    (
        &[64, 121, 233, 997, 10053, 10054, 10060, 10061, 11001],
        transient(Operational),
    ),
    // Locks, deadlocks, latches, conflicts of snapshots and of memory-optimized tables, rows that
    // moved during a scan.
    (
        &[
            601, 845, 1203, 1204, 1205, 1221, 1222, 3935, 3960, 3966, 41301, 41302, 41305, 41325,
            41839,
        ],
        transient(Operational),
    ),
    // No memory, memory grant, worker or connection is available; files or the log are full.
    (
        &[
            701, 802, 1101, 1105, 8628, 8645, 8651, 9002, 10922, 10928, 10929, 10930, 10936, 17809,
        ],
        transient(Operational),
    ),
    // The database is in recovery, being restored, offline, in transition or belongs to another
    // replica; the server starts, is paused or shuts down; the session was killed.
    (
        &[
            596, 615, 617, 669, 921, 922, 924, 927, 942, 952, 976, 978, 979, 981, 982, 983, 988,
            4060, 4221, 6005, 9001, 17142, 18401, 18451,
        ],
        transient(Operational),
    ),
    // Azure SQL: the service is busy, or the database is being moved.
    (
        &[
            40143, 40166, 40197, 40501, 40540, 40613, 42108, 42109, 49918, 49919, 49920,
        ],
        transient(Operational),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every SQLSTATE class of ISO/IEC 9075, ODBC 2 and 3, PostgreSQL and MariaDB, except HY, S1,
    /// and the classes that begin with 9.
    const ALL_CLASSES: &str = "00 01 02 03 07 08 09 0A 0B 0D 0E 0F 0K 0L 0M 0N 0P 0S 0T 0U 0V 0W \
        0X 0Y 0Z 10 20 21 22 23 24 25 26 27 28 2B 2C 2D 2E 2F 2H 30 33 34 35 36 37 38 39 3B 3C 3D \
        3F 40 42 44 45 46 53 54 55 57 58 70 72 F0 HV HW HZ IM P0 S0 XA XX";

    #[test]
    fn every_class_has_one_row_and_states_differ_from_theirs() {
        let classes: Vec<&str> = CLASSES.iter().map(|r| r.0).collect();
        assert_eq!(
            classes.join(" "),
            ALL_CLASSES.split_whitespace().collect::<Vec<_>>().join(" ")
        );
        for (i, (state, meaning)) in STATES.iter().enumerate() {
            assert_eq!(state.len(), 5);
            assert!(STATES[..i].iter().all(|r| r.0 < *state), "{state}");
            assert_ne!(row(CLASSES, &state[..2]), Some(*meaning), "{state}");
        }
    }

    #[test]
    fn a_native_code_is_in_one_group() {
        for groups in [MARIADB, SQL_SERVER] {
            let mut codes: Vec<i32> = groups.iter().flat_map(|r| r.0).copied().collect();
            let n_codes = codes.len();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), n_codes);
        }
    }

    #[test]
    fn a_retry_clears_connections_locks_and_resources_and_nothing_of_the_statement() {
        let transient: Vec<&str> = CLASSES
            .iter()
            .chain(STATES)
            .filter(|r| r.1.is_transient)
            .map(|r| r.0)
            .collect();
        let expected = "08 40 53 57 58 72 08001 08004 25P03 25S02 25S03 55006 55P03 HY001 HY013 \
            HY014 HY117 S1001";
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(transient, expected);
        // Errors of a wrong or refused statement have kinds that are never transient.
        for (_, meaning) in CLASSES.iter().chain(STATES) {
            let may_pass = matches!(meaning.kind, Operational | Connect);
            assert!(may_pass || !meaning.is_transient, "{meaning:?}");
        }
    }

    #[test]
    fn a_code_of_the_database_says_more_than_a_state_for_all() {
        for (dialect, native, state, expected) in [
            (Dialect::SqlServer, 2628, "42000", permanent(Data)),
            (Dialect::SqlServer, 2627, "42000", permanent(Integrity)),
            (Dialect::SqlServer, 1222, "42000", transient(Operational)),
            (Dialect::SqlServer, 156, "42000", permanent(Programming)),
            (Dialect::MySql, 1205, "HY000", transient(Operational)),
            (Dialect::MySql, 1265, "01000", permanent(Data)),
            (Dialect::MySql, 1203, "42000", transient(Operational)),
            (Dialect::MySql, 1038, "HY001", permanent(Operational)),
            (Dialect::MySql, 1969, "70100", permanent(Timeout)),
            (Dialect::MySql, 1317, "70100", permanent(Cancelled)),
            (Dialect::Sqlite, 1032, "HY000", permanent(ReadOnly)),
            (Dialect::Sqlite, 19, "HY000", permanent(Integrity)),
            (Dialect::Sqlite, 5, "HY000", transient(Operational)),
            (Dialect::Postgres, 1205, "42601", permanent(Programming)),
        ] {
            assert_eq!(meaning(dialect, state, native), Some(expected), "{native}");
        }
        for (dialect, state) in [
            (Dialect::Sqlite, "HY000"),
            (Dialect::Generic, ""),
            (Dialect::Generic, "€"),
        ] {
            assert_eq!(meaning(dialect, state, 0), None);
        }
    }

    #[test]
    fn states_have_the_meaning_of_their_class_or_their_own() {
        for (state, expected) in [
            ("42S02", permanent(Programming)),
            ("42601", permanent(Programming)),
            ("23505", permanent(Integrity)),
            ("22012", permanent(Data)),
            ("08S01", transient(Operational)),
            ("57P01", transient(Operational)),
            ("57014", permanent(Cancelled)),
            ("HY008", permanent(Cancelled)),
            ("HYT00", permanent(Timeout)),
            ("HYC00", permanent(NotSupported)),
            ("IM002", permanent(Connect)),
            ("25006", permanent(ReadOnly)),
            ("40001", transient(Operational)),
            ("40P01", transient(Operational)),
            ("28P01", permanent(Operational)),
            ("54001", permanent(Operational)),
            ("XX000", permanent(Internal)),
        ] {
            assert_eq!(of_sqlstate(state), Some(expected), "{state}");
        }
    }
}
