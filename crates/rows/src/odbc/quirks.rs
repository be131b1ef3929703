//! What drivers do differently: the one table. A driver is known by the name of its file; one that is not known gets
//! [`UNKNOWN`], whose choices follow the ODBC reference.
//!
//! What the user writes in a connection string always wins over `connect` here.

use std::time::Duration;

use super::faults::{self, Fault};
use crate::sql::dialect::Dialect;

/// Which form of text passes between us and a driver: in calls, cells, parameters and messages.
///
/// A driver holds its text in one of the two; asking for the other makes it convert first, which costs 2 to 5 times as
/// much and with some drivers loses data (anchors: rows, sections 2 and 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// `SQL_C_CHAR`, UTF-8.
    Narrow,
    /// `SQL_C_WCHAR`, UTF-16.
    Wide,
}

impl Width {
    /// The other one.
    pub(crate) fn other(self) -> Width {
        match self {
            Width::Narrow => Width::Wide,
            Width::Wide => Width::Narrow,
        }
    }
}

/// Rows of the first block, and rows that a driver with a server-side cursor asks for, before any was seen.
pub(crate) const FIRST_FETCH: usize = 32;

/// Which prepared handles of a driver may be executed again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CacheSupport {
    /// None.
    Nothing,
    /// All.
    All,
    /// Those that read without a server-side cursor, which this connection attribute switches. Types of parameters are fixed
    /// when it is prepared.
    WithoutCursor { attribute: i32 },
}

/// How a driver brings the rows of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Streams {
    /// As they are read, with nothing to be said.
    ByItself,
    /// As they are read, by a keyword of the connection string (one of `Quirks::connect`), which this value switches off.
    By {
        keyword: &'static str,
        off: &'static str,
    },
    /// All of them before the first, whatever is said.
    Never,
}

/// A setting of a driver that is on, and can be switched at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Switch {
    /// Connection attribute.
    pub(crate) attribute: i32,
    /// Keyword of the connection string: a user who gives it is left alone.
    pub(crate) keyword: &'static str,
}

/// How a driver is told how many rows to ask the server for at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchSize {
    /// Connection attribute.
    pub(crate) attribute: i32,
    /// Keyword of the connection string: a user who gives it is left alone.
    pub(crate) keyword: &'static str,
    /// Rows at first, before any was seen: the keyword's value.
    pub(crate) first: usize,
}

/// One driver's ways.
#[derive(Debug)]
pub(crate) struct Quirks {
    /// For people.
    pub(crate) name: &'static str,
    /// Lower-case parts of its file's name; any of them.
    pub(crate) files: &'static [&'static str],
    /// Lower-case parts of the names it is registered under (`odbcinst.ini`); any of them.
    pub(crate) registered: &'static [&'static str],
    /// URL schemes it serves.
    pub(crate) schemes: &'static [&'static str],
    /// Whose SQL.
    pub(crate) dialect: Dialect,
    /// Text that is the driver's own form.
    pub(crate) width: Width,
    /// Whether the other width may be tried when the probe finds this one wrong.
    pub(crate) other_width: bool,
    /// Keywords added to the connection string where the user gives none.
    pub(crate) connect: &'static [(&'static str, &'static str)],
    /// Statements that make the session refuse writes, run after a read-only connect.
    pub(crate) read_only: &'static [&'static str],
    /// The driver says by SQLGetInfo that it can fetch the tail of a long value anywhere in a block, and cannot: rows
    /// with a column that may be longer than its buffer are read one by one (a bound column costs almost nothing more
    /// that way).
    pub(crate) block_tails_broken: bool,
    /// The driver says that SQLGetData may read any column, and refuses those before the last bound one.
    pub(crate) any_column_broken: bool,
    /// `time(n)` and `datetimeoffset` are bound as `SQL_C_BINARY`, as Microsoft's reference has it for applications that do
    /// not know their C types (FreeTDS knows nothing else); by those C types where not.
    pub(crate) ss_as_binary: bool,
    /// `SQL_ATTR_ROW_BIND_OFFSET_PTR` was seen to work together with SQLGetData of a bound column (SQLite ODBC writes the
    /// indicator of a cut piece to the first row's place). Without it rows that need it come one a block.
    pub(crate) bind_offset: bool,
    /// No value of text or bytes is longer than its column is described. Where that is not sure, rows are read as if every
    /// such column had no limit.
    pub(crate) sizes_hold: bool,
    /// Types of NULL parameters are asked for with SQLDescribeParam: the server refuses an untyped NULL in places.
    pub(crate) describe_null: bool,
    /// UUID parameters go as `SQL_GUID`; as text where not.
    pub(crate) guid_parameters: bool,
    /// The first year whose dates arrive as they are sent; earlier ones go as text.
    pub(crate) first_right_year: i32,
    /// A statement's length is passed as `SQL_NTS`, since the driver keeps only 16 bits of a number:
    /// it executes the beginning of a text of more than 32,767 units, without an error.
    pub(crate) statement_by_terminator: bool,
    /// A text parameter is cut at its first NUL, without a word: one that has any is refused before.
    pub(crate) cuts_at_nul: bool,
    /// Text parameters above this many bytes are described as `SQL_LONGVARCHAR`/`SQL_WLONGVARCHAR`; 0: described as
    /// `(n)varchar(max)`, which is size 0.
    pub(crate) long_parameter_bytes: usize,
    /// `timestamptz` arrives in the session's time zone without its offset: the session is set to UTC.
    pub(crate) hides_offset: bool,
    /// In the struct of a date that it cannot parse (`infinity`, a year above 9999) psqlodbc leaves today's date. A value
    /// that could be such a one is looked at again as text, where it leaves zeros. (Its `timestamp 'infinity'` is
    /// 9999-12-31 23:59:59 in either form, and a `date` before Christ loses its sign: nothing can be done about those.)
    pub(crate) fills_dates: bool,
    /// Floats of 64 bit are bound as text, all 17 digits of which arrive: the driver holds text, and its own conversion is
    /// the dearer one.
    pub(crate) float_text: bool,
    /// Floats of 32 bits are bound as `SQL_C_DOUBLE`. Connector/ODBC 3.1.15 steps 8 bytes through an
    /// array of `SQL_C_FLOAT`: it writes past the end of the buffer and leaves zeros between values.
    /// A float fits a double exactly, so an unknown driver is not trusted with 4 bytes.
    pub(crate) real_as_double: bool,
    /// The connection attribute by which the driver takes how many rows it asks the server for at once, at any time: it is
    /// set by the size of the rows seen, so that rows of a megabyte do not come a thousand at a time.
    pub(crate) fetch_size: Option<FetchSize>,
    /// SQLCancel is called for a driver call only when that has lasted so long; a statement sees between its calls that it was
    /// cancelled. In FreeTDS 1.3 a reader that is not waiting for the network, but about to, waits for ever when another
    /// thread cancels just then. One that has been in a call this long waits for the network already.
    pub(crate) cancel_after: Duration,
    /// Rows of parameters may be bound as arrays: one call of the driver for many rows.
    pub(crate) arrays: bool,
    /// What is switched off while an array runs, so that the driver sends many rows in one message.
    pub(crate) off_for_arrays: Option<Switch>,
    /// That a prepared statement has no columns can be believed before it runs.
    pub(crate) describes_prepared: bool,
    /// A rollback or commit ends cursors although SQLGetInfo says that they are kept.
    pub(crate) ends_cursors: bool,
    /// `SQL_ATTR_CONNECTION_DEAD` is answered from what the driver knows, and was seen to be true.
    pub(crate) knows_loss: bool,
    /// A commit or rollback on a connection that is gone is called a success: it is asked behind each.
    pub(crate) hides_loss: bool,
    /// Which prepared handles may be executed again: they are kept by their texts.
    pub(crate) keeps_prepared: CacheSupport,
    /// Once a column of this type was described, all statements of the connection are freed before it
    /// drops or alters a table. psqlodbc 13.02 counts the statements that use its description of a
    /// table; each SQLDescribeCol of a `bit` column sets that count to 1. DROP and ALTER TABLE then
    /// free descriptions that statements still use.
    pub(crate) miscounts: Option<&'static str>,
    /// Whether rows come as they are read, or all of them before the first.
    pub(crate) streams: Streams,
    /// What a user should know at connect.
    pub(crate) notices: &'static [&'static str],
    /// What `doctor` tells besides: what versions of it get wrong.
    pub(crate) faults: &'static [Fault],
}

/// A driver that is in no table: wide text is UTF-16 by the ODBC reference, narrow text is in whatever encoding the
/// driver takes for the locale's. The probe decides.
pub(crate) static UNKNOWN: Quirks = Quirks {
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
    keeps_prepared: CacheSupport::Nothing,
    miscounts: None,
    streams: Streams::ByItself,
    notices: &[],
    faults: &[],
};

/// Shared by both psqlodbc drivers.
///
/// * `UseDeclareFetch=1`: rows come by a server-side cursor, some at a time, at no cost; without it the driver holds the
///   whole result (224 MB for 400,000 rows). `Fetch` is how many come first; see `fetch_size`.
/// * `ConnSettings`: connected narrow, the driver takes the encoding from the locale (it calls `setlocale` itself), and
///   under `LC_ALL=C` asks the server for `SQL_ASCII`; connected wide, narrow cells are then lost (NULL in place of
///   the text). Connected narrow with this setting, cells are UTF-8 in every locale, and no conversion is left.
/// * `BoolsAsChar=0`: booleans as `SQL_BIT`.
/// * `LFConversion=0`: line ends as they are.
const PSQLODBC: Quirks = Quirks {
    name: "psqlodbc",
    files: &[],
    registered: &[],
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
    block_tails_broken: false,
    any_column_broken: false,
    ss_as_binary: true,
    bind_offset: false,
    sizes_hold: false,
    describe_null: false,
    guid_parameters: true,
    first_right_year: i32::MIN,
    statement_by_terminator: false,
    cuts_at_nul: true,
    long_parameter_bytes: 8000,
    hides_offset: true,
    fills_dates: true,
    float_text: true,
    real_as_double: false,
    fetch_size: Some(FetchSize {
        attribute: 65541, // SQL_ATTR_PGOPT_FETCH
        keyword: "Fetch",
        first: FIRST_FETCH,
    }),
    cancel_after: Duration::ZERO,
    arrays: true,
    off_for_arrays: Some(Switch {
        attribute: 65540, // SQL_ATTR_PGOPT_SERVER_SIDE_PREPARE
        keyword: "UseServerSidePrepare",
    }),
    describes_prepared: true,
    ends_cursors: true,
    knows_loss: true,
    hides_loss: true,
    keeps_prepared: CacheSupport::WithoutCursor {
        attribute: 65539, // SQL_ATTR_PGOPT_USE_DECLAREFETCH
    },
    // The name that it has for `bit`.
    miscounts: Some("unknown"),
    streams: Streams::By {
        keyword: "UseDeclareFetch",
        off: "0",
    },
    notices: &[],
    faults: faults::PSQLODBC,
};

/// The drivers known, in the order in which one is chosen for a URL.
pub(crate) static DRIVERS: &[Quirks] = &[
    Quirks {
        name: "psqlodbc (Unicode)",
        files: &["psqlodbcw", "psqlodbc35w"],
        registered: &["postgresql unicode"],
        // The wide form is right as well, 1.2 times dearer; it is for a server whose encoding has no UTF-8 form.
        other_width: true,
        ..PSQLODBC
    },
    Quirks {
        name: "psqlodbc (ANSI)",
        files: &["psqlodbca", "psqlodbc.so", "psqlodbc30a"],
        registered: &["postgresql ansi", "postgresql"],
        // It refuses SQL_C_WCHAR with 07006.
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
        // 3.1.15 silently loses the last characters of wide text that holds multi-byte characters.
        other_width: false,
        // OPTION=2, found rows: an UPDATE counts the rows that match, as standard SQL has it.
        connect: &[("CHARSET", "utf8mb4"), ("OPTION", "2")],
        read_only: &["SET SESSION TRANSACTION READ ONLY"],
        arrays: true,
        // It asks the server, and takes an answer under way for a loss.
        knows_loss: false,
        // SQLSetPos in a block of a forward-only cursor is ignored, and moves the place where the next block begins.
        block_tails_broken: true,
        bind_offset: true,
        sizes_hold: true,
        describe_null: false,
        guid_parameters: false,
        long_parameter_bytes: 65535,
        keeps_prepared: CacheSupport::All,
        miscounts: None,
        streams: Streams::Never,
        notices: &[
            "the MariaDB ODBC driver holds the whole result in memory before the first row: no option of it streams",
        ],
        faults: faults::MARIADB,
        ..UNKNOWN
    },
    Quirks {
        // Not measured by us: by its documentation.
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
        // It has wide entry points alone.
        files: &["mssqlodbc"],
        registered: &["mssqlodbc"],
        schemes: &["mssql", "sqlserver"],
        dialect: Dialect::SqlServer,
        width: Width::Wide,
        other_width: false,
        // "Row-wise binding is not yet implemented".
        bind_offset: false,
        // "Invalid descriptor index" (07009).
        any_column_broken: true,
        statement_by_terminator: true,
        ss_as_binary: false,
        real_as_double: false,
        sizes_hold: true,
        describe_null: true,
        guid_parameters: true,
        long_parameter_bytes: 0,
        // SQLCancel succeeds and stops nothing, neither a statement that waits nor a fetch.
        notices: &[
            "Microsoft's Rust driver does not obey a cancel: a time limit or Ctrl-C holds when the server sends next\nuse Microsoft's ODBC Driver 18 or FreeTDS where queries may wait long",
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
        // 0 columns for a SELECT, unless the server prepares it.
        describes_prepared: false,
        // 1.3 sends each day before 1600 as the one before it.
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
        cuts_at_nul: true,
        describe_null: false,
        long_parameter_bytes: 8000,
        streams: Streams::Never,
        notices: &[
            "the SQLite ODBC driver cuts doubles to 15 digits and holds the whole result in memory\nopen the file with `sqlite:PATH` instead: exact, streamed and faster",
        ],
        ..UNKNOWN
    },
];

impl Quirks {
    /// Whether a statement that was prepared keeps the types of its parameters and of its result's columns.
    pub(crate) fn fixes_types(&self) -> bool {
        matches!(self.keeps_prepared, CacheSupport::WithoutCursor { .. })
    }
}

/// The driver that serves URLs of this scheme.
pub(crate) fn for_scheme(scheme: &str) -> Option<&'static Quirks> {
    DRIVERS.iter().find(|d| d.schemes.contains(&scheme))
}

/// The quirks of a driver by a hint: its file, a path to it, the name it is registered under, or what SQL_DRIVER_NAME
/// says. `None` where no entry knows it.
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
