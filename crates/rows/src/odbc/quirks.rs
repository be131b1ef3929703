//! `Quirks`: the table of all differences between ODBC drivers. A driver is identified by its file
//! name or registered name. Any other driver uses [`UNKNOWN`], which follows the ODBC reference.
//!
//! The user's keywords in a connection string override `Quirks::connect`.

use std::time::Duration;

use super::faults::{self, Fault};
use crate::sql::dialect::Dialect;

/// The encoding of all text that this crate and a driver exchange: arguments of calls, cells,
/// parameters and messages. Each driver uses one of the two encodings internally. With the other
/// encoding, the driver converts each text. This takes 2 to 5 times as long as without a
/// conversion, and some drivers lose data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// UTF-8, with the C type `SQL_C_CHAR`.
    Narrow,
    /// UTF-16, with the C type `SQL_C_WCHAR`.
    Wide,
}

impl Width {
    /// Returns `Wide` for `Narrow`, and `Narrow` for `Wide`.
    pub(crate) fn other(self) -> Width {
        match self {
            Width::Narrow => Width::Wide,
            Width::Wide => Width::Narrow,
        }
    }
}

/// The number of rows of the first block, and of the first request to a server-side cursor.
pub(crate) const FIRST_FETCH: usize = 32;

/// Which prepared statement handles of a driver may be executed again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CacheSupport {
    /// No prepared handle may be executed again.
    Nothing,
    /// Each prepared handle may be executed again, except that of a query with `*`: after its table
    /// was changed, the driver (MariaDB) returns the new columns, but with the column names from
    /// the time of the preparation.
    NamedColumns,
    /// A prepared handle may be executed again if it reads its rows without a server-side cursor,
    /// but only with the same parameter types. The attribute `attribute` switches cursors off.
    WithoutCursor { attribute: i32 },
}

/// How a driver returns the rows of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Streams {
    /// The driver always returns rows before it has read the whole result.
    ByItself,
    /// The driver returns rows before it has read the whole result if a keyword of the connection
    /// string (one of `Quirks::connect`) is set to a value other than `off`.
    By {
        keyword: &'static str,
        off: &'static str,
    },
    /// The driver always reads all rows before it returns the first one. No setting changes this.
    Never,
}

/// A setting of a driver that is on when a connection is opened, and that this crate can turn off
/// and on again while the connection is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// The number of the connection attribute that changes the setting.
    pub(crate) attribute: i32,
    /// The connection-string keyword of the setting. If the user sets it, this crate does not.
    pub(crate) keyword: &'static str,
}

/// How to set the number of rows that a driver fetches from the server at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchSize {
    /// The ODBC number of the connection attribute that sets how many rows are fetched at a time.
    pub(crate) attribute: i32,
    /// The keyword in a connection string that sets the number of rows. If the user's connection
    /// string contains this keyword, this crate does not change the number.
    pub(crate) keyword: &'static str,
    /// The initial number of rows per request, which `keyword` sets when the connection is opened.
    pub(crate) first: usize,
}

/// The properties of one ODBC driver, which decide how this crate uses the driver.
#[derive(Debug)]
pub(crate) struct Quirks {
    /// The name of the driver, for messages.
    pub(crate) name: &'static str,
    /// Lower-case substrings of the driver's file name; any of them identifies the driver.
    pub(crate) files: &'static [&'static str],
    /// Substrings of the names under which the driver is registered (`odbcinst.ini`).
    pub(crate) registered: &'static [&'static str],
    /// The URL schemes for which this driver is used.
    pub(crate) schemes: &'static [&'static str],
    /// The SQL dialect of the driver's database.
    pub(crate) dialect: Dialect,
    /// The text width that the driver prefers, because the driver uses this encoding internally.
    pub(crate) width: Width,
    /// `true` if the other text width is used when a sample text does not arrive unchanged.
    pub(crate) other_width: bool,
    /// Keywords that are added to the connection string unless the user sets them.
    pub(crate) connect: &'static [(&'static str, &'static str)],
    /// SQL statements that make the session refuse writes, for a read-only connection.
    pub(crate) read_only: &'static [&'static str],
    /// `true` if `SQLGetInfo` reports that `SQLGetData` can read the rest of a long value in any
    /// row of a block, but that call fails. Rows with a column that may exceed its buffer are then
    /// fetched one by one (with bound columns this costs almost nothing).
    pub(crate) block_tails_broken: bool,
    /// `true` if `SQLGetInfo` reports that `SQLGetData` may read any column, but the driver refuses
    /// a column before the last bound column.
    pub(crate) any_column_broken: bool,
    /// `true` to bind `time(n)` and `datetimeoffset` as `SQL_C_BINARY`, the only C type for them
    /// that FreeTDS supports. Microsoft's reference recommends it for applications without
    /// Microsoft's C types. `false` to bind these columns as Microsoft's C types.
    pub(crate) ss_as_binary: bool,
    /// `true` if `SQLGetData` can read a bound column while `SQL_ATTR_ROW_BIND_OFFSET_PTR` is set.
    /// If `false`, a block that needs both features has only one row. (SQLite's driver writes the
    /// indicator of a truncated value to the slot of the first row.)
    pub(crate) bind_offset: bool,
    /// `true` if no text or binary value exceeds the size that the driver reports for its column.
    /// If `false`, this crate treats each text or binary column as unlimited in size.
    pub(crate) sizes_hold: bool,
    /// `true` to request the type of each NULL parameter by `SQLDescribeParam`, because the server
    /// refuses an untyped NULL in some positions of a statement.
    pub(crate) describe_null: bool,
    /// `true` if UUID parameters are passed as `SQL_GUID`, `false` if as text.
    pub(crate) guid_parameters: bool,
    /// The first year whose dates the driver sends correctly. Earlier dates are sent as text.
    pub(crate) first_right_year: i32,
    /// `true` to pass the length of a SQL string as `SQL_NTS`. The driver keeps only 16 bits of a
    /// length, so it would silently execute only the beginning of SQL above 32,767 units.
    pub(crate) statement_by_terminator: bool,
    /// `true` if the driver truncates text parameters at a NUL. A text parameter with a NUL is then
    /// rejected.
    pub(crate) cuts_at_nul: bool,
    /// The size in bytes above which a text parameter is bound as `SQL_LONGVARCHAR` or
    /// `SQL_WLONGVARCHAR`. If 0, text above 4,000 16-bit units is bound as `nvarchar(max)` instead.
    pub(crate) long_parameter_bytes: usize,
    /// `true` if the driver returns a `timestamptz` in the session's time zone, without its offset.
    /// For such a driver, this crate sets the session's time zone to UTC.
    pub(crate) hides_offset: bool,
    /// `true` if the driver (psqlodbc) returns the current date for `infinity` and for a year above
    /// 9999. This crate reads a cell with the current date again as a number: the year or an
    /// infinity. The driver also returns a `date` BC as a date AD, which cannot be detected.
    pub(crate) fills_dates: bool,
    /// `true` to bind 64-bit floats as text, because this crate parses it faster than the driver.
    pub(crate) float_text: bool,
    /// `true` to bind 32-bit floats as `SQL_C_DOUBLE`, in which every 32-bit float is exact. This
    /// is necessary for Connector/ODBC 3.1.15: it advances by 8 bytes in an array of `SQL_C_FLOAT`,
    /// and so writes past its end. It is also `true` for unknown drivers.
    pub(crate) real_as_double: bool,
    /// The attribute for the number of rows per request; `None` if the driver has none. The number
    /// is adapted to the size of rows: a thousand rows of 1 MB are not requested together.
    pub(crate) fetch_size: Option<FetchSize>,
    /// The time that a driver call must have lasted before `SQLCancel` is called. (Between driver
    /// calls, this crate checks if the statement was cancelled.) In FreeTDS 1.3, a call hangs if
    /// `SQLCancel` is called at the moment when the call begins to wait for the network.
    pub(crate) cancel_after: Duration,
    /// `true` if rows of parameters may be bound as arrays, with one driver call for many rows.
    pub(crate) arrays: bool,
    /// A setting that is off while an array of parameters is executed, so that the driver sends
    /// many rows in one message; `None` if this is not needed.
    pub(crate) off_for_arrays: Option<Switch>,
    /// `true` if the driver describes the columns of every prepared statement that returns rows.
    pub(crate) describes_prepared: bool,
    /// `true` if a rollback or commit closes cursors that stay open according to `SQLGetInfo`.
    pub(crate) ends_cursors: bool,
    /// `true` if `SQL_ATTR_CONNECTION_DEAD` shows a lost connection reliably and without a round
    /// trip.
    pub(crate) knows_loss: bool,
    /// `true` if the driver reports success for a commit or rollback on a lost connection.
    pub(crate) hides_loss: bool,
    /// `true` if the driver returns `SQL_SUCCESS_WITH_INFO` for an error of the server whose
    /// SQLSTATE is 01000 (a warning). MariaDB's error 1265 for a refused value has this SQLSTATE.
    pub(crate) errors_as_warnings: bool,
    /// `true` if the driver counts the rows of a query's result, `false` if it reports 0 instead.
    pub(crate) counts_queries: bool,
    /// Which prepared statement handles may be executed again; they are cached by SQL text.
    pub(crate) keeps_prepared: CacheSupport,
    /// The column type, under the driver's name for it, that causes the following fault; `None` if
    /// the driver does not have the fault. psqlodbc 13.02 counts the statements that use its
    /// description of a table; each `SQLDescribeCol` of a `bit` column sets the count to 1, and
    /// DROP and ALTER TABLE then free descriptions in use. Once a column of the type was described,
    /// this crate therefore frees all statements of the connection before a table is dropped or
    /// altered.
    pub(crate) miscounts: Option<&'static str>,
    /// Specifies if the driver returns rows before it has read the whole result.
    pub(crate) streams: Streams,
    /// Warnings for the user, shown each time a connection is opened.
    pub(crate) notices: &'static [&'static str],
    /// Known faults of the driver's versions, which the command `doctor` reports.
    pub(crate) faults: &'static [Fault],
}

/// The entry for drivers that this table does not contain. Its text width is UTF-16: according to
/// the ODBC reference, the encoding of 8-bit text depends on the locale.
pub(crate) const UNKNOWN: Quirks = Quirks {
    name: "unknown driver",
    files: &[],
    registered: &[],
    schemes: &[],
    dialect: Dialect::Generic,
    width: Width::Wide,
    other_width: true,
    connect: &[],
    read_only: &[],
    block_tails_broken: false,
    any_column_broken: false,
    ss_as_binary: true,
    bind_offset: false,
    sizes_hold: false,
    describe_null: true,
    guid_parameters: false,
    first_right_year: i32::MIN,
    statement_by_terminator: false,
    cuts_at_nul: false,
    long_parameter_bytes: 8000,
    hides_offset: false,
    fills_dates: false,
    float_text: false,
    real_as_double: true,
    fetch_size: None,
    cancel_after: Duration::ZERO,
    arrays: false,
    off_for_arrays: None,
    describes_prepared: true,
    ends_cursors: false,
    knows_loss: true,
    hides_loss: false,
    errors_as_warnings: false,
    counts_queries: true,
    keeps_prepared: CacheSupport::Nothing,
    miscounts: None,
    streams: Streams::ByItself,
    notices: &[],
    faults: &[],
};

/// The properties that both psqlodbc drivers share.
///
/// * `UseDeclareFetch=1`: rows are read in batches from a server-side cursor. Reading without it is
///   as fast, but needs 224 MB for 400,000 rows. `Fetch` is the size of the first batch in rows.
/// * `ConnSettings`: makes UTF-8 the encoding of `SQL_C_CHAR` cells, if the connection was opened
///   by `SQLDriverConnect`. Without this keyword, the locale determines the encoding (`SQL_ASCII`
///   under `LC_ALL=C`). After `SQLDriverConnectW`, non-ASCII cells are NULL under `LC_ALL=C`.
/// * `BoolsAsChar=0`: booleans arrive as `SQL_BIT`.
/// * `LFConversion=0`: line ends are not converted.
const PSQLODBC: Quirks = Quirks {
    name: "psqlodbc",
    schemes: &["postgresql", "postgres"],
    dialect: Dialect::Postgres,
    width: Width::Narrow,
    other_width: false,
    connect: &[
        ("UseDeclareFetch", "1"),
        ("Fetch", "32"),
        ("BoolsAsChar", "0"),
        ("LFConversion", "0"),
        ("ConnSettings", "SET CLIENT_ENCODING TO 'UTF8'"),
    ],
    read_only: &["SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"],
    ss_as_binary: true,
    describe_null: false,
    guid_parameters: true,
    cuts_at_nul: true,
    hides_offset: true,
    fills_dates: true,
    float_text: true,
    real_as_double: false,
    fetch_size: Some(FetchSize {
        attribute: 65541, // SQL_ATTR_PGOPT_FETCH
        keyword: "Fetch",
        first: FIRST_FETCH,
    }),
    arrays: true,
    off_for_arrays: Some(Switch {
        attribute: 65540, // SQL_ATTR_PGOPT_SERVER_SIDE_PREPARE
        keyword: "UseServerSidePrepare",
    }),
    ends_cursors: true,
    hides_loss: true,
    keeps_prepared: CacheSupport::WithoutCursor {
        attribute: 65539, // SQL_ATTR_PGOPT_USE_DECLAREFETCH
    },
    // psqlodbc reports the type `bit` under this name.
    miscounts: Some("unknown"),
    streams: Streams::By {
        keyword: "UseDeclareFetch",
        off: "0",
    },
    faults: faults::PSQLODBC,
    ..UNKNOWN
};

/// The known drivers. If several installed drivers support the scheme of a URL, the first one in
/// this table is used.
pub(crate) static DRIVERS: &[Quirks] = &[
    Quirks {
        name: "psqlodbc (Unicode)",
        files: &["psqlodbcw", "psqlodbc35w"],
        registered: &["postgresql unicode"],
        // UTF-16 takes 1.2 times as long; it is for servers whose encoding is not UTF-8.
        other_width: true,
        ..PSQLODBC
    },
    Quirks {
        name: "psqlodbc (ANSI)",
        files: &["psqlodbca", "psqlodbc.so", "psqlodbc30a"],
        registered: &["postgresql ansi", "postgresql"],
        // The driver refuses SQL_C_WCHAR with 07006.
        other_width: false,
        ..PSQLODBC
    },
    Quirks {
        name: "MariaDB Connector/ODBC",
        files: &["maodbc"],
        registered: &["mariadb"],
        schemes: &["mariadb", "mysql"],
        dialect: Dialect::MySql,
        width: Width::Narrow,
        // Version 3.1.15 drops the last characters of wide text with multi-byte characters.
        other_width: false,
        // OPTION=2 (found rows): an UPDATE counts the matching rows, as in standard SQL.
        connect: &[("CHARSET", "utf8mb4"), ("OPTION", "2")],
        read_only: &["SET SESSION TRANSACTION READ ONLY"],
        arrays: true,
        // The driver's check is a round trip, and treats an unread result as a lost connection.
        knows_loss: false,
        // SQLSetPos in a block of a forward-only cursor has no effect, except that it moves the
        // start of the next block.
        block_tails_broken: true,
        bind_offset: true,
        sizes_hold: true,
        describe_null: false,
        guid_parameters: false,
        long_parameter_bytes: 65535,
        keeps_prepared: CacheSupport::NamedColumns,
        miscounts: None,
        streams: Streams::Never,
        notices: &[
            "the MariaDB ODBC driver reads whole results into memory before the first row, and has no option to stream",
        ],
        errors_as_warnings: true,
        faults: faults::MARIADB,
        ..UNKNOWN
    },
    Quirks {
        // The entry follows the driver's documentation; it was not tested.
        name: "MySQL Connector/ODBC",
        files: &["myodbc"],
        registered: &["mysql"],
        schemes: &["mysql", "mariadb"],
        dialect: Dialect::MySql,
        width: Width::Narrow,
        connect: &[
            ("CHARSET", "utf8mb4"),
            ("NO_CACHE", "1"),
            ("FORWARD_CURSOR", "1"),
            ("OPTION", "2"),
        ],
        read_only: &["SET SESSION TRANSACTION READ ONLY"],
        block_tails_broken: true,
        bind_offset: false,
        sizes_hold: true,
        describe_null: false,
        long_parameter_bytes: 65535,
        streams: Streams::By {
            keyword: "NO_CACHE",
            off: "0",
        },
        ..UNKNOWN
    },
    Quirks {
        name: "Microsoft ODBC Driver for SQL Server",
        files: &["msodbcsql"],
        registered: &[
            "odbc driver 18 for sql server",
            "odbc driver 17 for sql server",
            "for sql server",
        ],
        schemes: &["mssql", "sqlserver"],
        dialect: Dialect::SqlServer,
        width: Width::Wide,
        other_width: false,
        bind_offset: true,
        real_as_double: false,
        sizes_hold: true,
        describe_null: true,
        guid_parameters: true,
        long_parameter_bytes: 0,
        arrays: true,
        faults: faults::MICROSOFT,
        ..UNKNOWN
    },
    Quirks {
        name: "Microsoft's Rust driver for SQL Server",
        // The driver exports only the wide functions.
        files: &["mssqlodbc"],
        registered: &["mssqlodbc"],
        schemes: &["mssql", "sqlserver"],
        dialect: Dialect::SqlServer,
        width: Width::Wide,
        other_width: false,
        // Row-wise binding fails with "Row-wise binding is not yet implemented".
        bind_offset: false,
        // `SQLGetData` fails with "Invalid descriptor index" (07009).
        any_column_broken: true,
        statement_by_terminator: true,
        ss_as_binary: false,
        real_as_double: false,
        sizes_hold: true,
        describe_null: true,
        guid_parameters: true,
        long_parameter_bytes: 0,
        // SQLCancel reports success, but stops neither a waiting statement nor a fetch.
        notices: &[
            "Microsoft's Rust driver does not obey a cancel: a time limit or Ctrl-C holds when the server sends next\n\
             use Microsoft's ODBC Driver 18 or FreeTDS where queries may wait long",
        ],
        ..UNKNOWN
    },
    Quirks {
        name: "FreeTDS",
        files: &["tdsodbc"],
        registered: &["freetds", "tds"],
        schemes: &["mssql", "sqlserver"],
        dialect: Dialect::SqlServer,
        width: Width::Wide,
        other_width: true,
        connect: &[("ClientCharset", "UTF-8")],
        bind_offset: true,
        real_as_double: false,
        sizes_hold: true,
        describe_null: false,
        cancel_after: Duration::from_millis(250),
        // The driver reports 0 columns for a prepared SELECT unless the server has prepared it.
        describes_prepared: false,
        // Version 1.3 sends each date before 1600 as the previous day.
        first_right_year: 1601,
        guid_parameters: true,
        long_parameter_bytes: 8000,
        arrays: true,
        faults: faults::FREETDS,
        ..UNKNOWN
    },
    Quirks {
        name: "SQLite ODBC",
        files: &["sqlite3odbc", "sqliteodbc"],
        registered: &["sqlite"],
        dialect: Dialect::Sqlite,
        width: Width::Narrow,
        other_width: false,
        read_only: &["PRAGMA query_only = ON"],
        counts_queries: false,
        cuts_at_nul: true,
        describe_null: false,
        long_parameter_bytes: 8000,
        streams: Streams::Never,
        notices: &[
            "the SQLite ODBC driver cuts doubles to 15 digits and holds the whole result in memory\n\
             open the file with `sqlite:PATH` instead: exact, streamed and faster",
        ],
        faults: faults::SQLITE,
        ..UNKNOWN
    },
];

impl Quirks {
    /// Returns `true` if a prepared statement keeps its parameter and column types when executed.
    pub(crate) fn fixes_types(&self) -> bool {
        matches!(self.keeps_prepared, CacheSupport::WithoutCursor { .. })
    }
}

/// Returns the entry of the first driver in the table for this URL scheme.
pub(crate) fn for_scheme(scheme: &str) -> Option<&'static Quirks> {
    DRIVERS.iter().find(|d| d.schemes.contains(&scheme))
}

/// Returns the entry of a driver by its file name, path, registered name, or the result of
/// `SQL_DRIVER_NAME`; `None` if no entry matches.
pub(crate) fn known(hint: &str) -> Option<&'static Quirks> {
    let hint = hint.to_lowercase();
    let file = hint.rsplit(['/', '\\']).next().unwrap_or(&hint);
    DRIVERS
        .iter()
        .find(|d| d.files.iter().any(|f| file.contains(f)))
        .or_else(|| {
            DRIVERS
                .iter()
                .find(|d| d.registered.iter().any(|r| hint.contains(r)))
        })
}

#[cfg(test)]
#[path = "quirks_tests.rs"]
mod tests;
