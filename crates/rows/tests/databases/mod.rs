//! Helpers for the integration tests: the real databases to test against (`Profile`), and a sink
//! that stores values (`Keeper`).
#![allow(dead_code)] // Each test file uses only some of these items.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

#[path = "../../../text/tests/support/skips.rs"]
pub(crate) mod skips;

use onecopy_rows::ConnectOptions;
use onecopy_rows::DatabaseStatement;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{
    Block, Budget, Cell, Emitted, Fetched, LongKind, LongValues, RowSink, Source, Value,
};
use onecopy_text::{Policy, Units, naive};
use skips::skip;

/// A database and driver to test against. For each profile, an environment variable contains the
/// connection string (`python3 -m tests.support.servers env` prints these variables).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Postgres,
    PostgresNative,
    PostgresAnsi,
    MariaDb,
    SqliteOdbc,
    TdsFreeTds,
    TdsMicrosoft,
    TdsRust,
}

impl Profile {
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Profile::Postgres => "ONECOPY_TEST_POSTGRES",
            Profile::PostgresNative => "ONECOPY_TEST_POSTGRES_NATIVE",
            Profile::PostgresAnsi => "ONECOPY_TEST_POSTGRES_ANSI",
            Profile::MariaDb => "ONECOPY_TEST_MARIADB",
            Profile::SqliteOdbc => "ONECOPY_TEST_SQLITE_ODBC",
            Profile::TdsFreeTds => "ONECOPY_TEST_TDS_FREETDS",
            Profile::TdsMicrosoft => "ONECOPY_TEST_TDS_MSODBC",
            Profile::TdsRust => "ONECOPY_TEST_TDS_RUST",
        }
    }

    /// Returns the connection string. If the database is not available, prints the reason and
    /// returns `None`; with `CI=true` in the environment, panics instead.
    pub(crate) fn string(self) -> Option<String> {
        match std::env::var(self.variable()) {
            Ok(s) if !s.is_empty() => Some(s),
            _ => {
                let reason = format!("{} is not set: start the databases", self.variable());
                skip(&reason);
                None
            }
        }
    }

    pub(crate) fn open(self) -> Option<Connection> {
        Some(open_with(&self.string()?, &ConnectOptions::default()))
    }
}

impl Profile {
    /// Opens a connection to a database to which no other test writes at the same time. For SQLite,
    /// which locks the whole file, the database is a new file in a temporary folder. The second
    /// returned value is that folder, which is deleted when the value is dropped.
    pub(crate) fn open_own(self) -> Option<(Connection, Option<tempfile::TempDir>)> {
        if self != Profile::SqliteOdbc {
            return Some((self.open()?, None));
        }
        let string = self.string()?;
        let (start, _) = string
            .split_once("Database=")
            .expect("the test's string names a file");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("own.db");
        let string = format!("{start}Database={}", file.display());
        Some((open_with(&string, &ConnectOptions::default()), Some(dir)))
    }
}

pub(crate) fn open_with(string: &str, options: &ConnectOptions) -> Connection {
    Connection::open(string, options).unwrap_or_else(|e| panic!("{e}"))
}

/// The value of a cell, as [`Keeper`] stores it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kept {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    Decimal(String),
    Text(String),
    Bytes(Vec<u8>),
    Date(i32, u8, u8),
    /// The text `hh:mm:ss.nnnnnnnnn/digits`.
    Time(String),
    /// The text `yyyy-mm-dd hh:mm:ss.nnnnnnnnn/digits[+minutes]`, with the offset from UTC in
    /// minutes.
    Timestamp(String),
    /// The interval in microseconds, and its text from the database.
    Interval(i32, i64, String),
    Uuid(String),
}

pub(crate) fn text(s: &str) -> Kept {
    Kept::Text(s.to_owned())
}

pub(crate) fn decimal(s: &str) -> Kept {
    Kept::Decimal(s.to_owned())
}

fn utf8(units: Units<'_>) -> String {
    String::from_utf8(naive::to_utf8(units, Policy::Strict).expect("text is well-formed")).unwrap()
}

fn keep(cell: Cell<'_>) -> Kept {
    let time = |t: onecopy_rows::Time| {
        format!(
            "{:02}:{:02}:{:02}.{:09}",
            t.hour, t.minute, t.second, t.nanosecond
        )
    };
    match cell {
        Cell::Null => Kept::Null,
        Cell::Bool(b) => Kept::Bool(b),
        Cell::I64(n) => Kept::I64(n),
        Cell::U64(n) => Kept::U64(n),
        Cell::F32(f) => Kept::F32(f),
        Cell::F64(f) => Kept::F64(f),
        Cell::Decimal(d) => Kept::Decimal(String::from_utf8(d.to_vec()).unwrap()),
        Cell::Text(units) => Kept::Text(utf8(units)),
        Cell::Bytes(b) => Kept::Bytes(b.to_vec()),
        Cell::Date(d) => Kept::Date(d.year, d.month, d.day),
        Cell::Time(t, digits) => Kept::Time(format!("{}/{digits}", time(t))),
        Cell::Timestamp(t, digits) => {
            let offset = t.offset_minutes.map_or(String::new(), |m| format!("{m:+}"));
            Kept::Timestamp(format!(
                "{:04}-{:02}-{:02} {}/{digits}{offset}",
                t.date.year,
                t.date.month,
                t.date.day,
                time(t.time)
            ))
        }
        Cell::Interval {
            days,
            microseconds,
            text,
        } => {
            let text = String::from_utf8(text.to_vec()).unwrap();
            Kept::Interval(days, microseconds, text)
        }
        Cell::Uuid(u) => Kept::Uuid(u.iter().map(|b| format!("{b:02x}")).collect()),
        other => panic!("a cell that these tests do not know: {other:?}"),
    }
}

/// A row sink that stores all rows, and records the number of parts of long values and the size of
/// the largest part in bytes.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    pub(crate) rows: Vec<Vec<Kept>>,
    row: Vec<Kept>,
    parts: Vec<u8>,
    wide: Vec<u16>,
    kind: Option<LongKind>,
    pub(crate) largest_part: usize,
    pub(crate) n_parts: usize,
    /// The number of rows after which the sink reports that it is full; 0 to accept all rows.
    pub(crate) pause_after: usize,
    taken: usize,
}

impl RowSink for Keeper {
    type Error = std::convert::Infallible;

    fn begin_row(&mut self) -> Result<(), Self::Error> {
        assert!(self.row.is_empty(), "the row before was not ended");
        Ok(())
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Self::Error> {
        assert_eq!(column, self.row.len());
        assert!(self.kind.is_none(), "a long value is under way");
        self.row.push(keep(cell));
        Ok(())
    }

    fn long_begin(&mut self, column: usize, kind: LongKind) -> Result<(), Self::Error> {
        assert_eq!(column, self.row.len());
        self.kind = Some(kind);
        Ok(())
    }

    fn long_part(&mut self, column: usize, part: Cell<'_>) -> Result<(), Self::Error> {
        assert_eq!(column, self.row.len());
        let bytes = match (part, self.kind) {
            (Cell::Bytes(b), Some(LongKind::Bytes))
            | (Cell::Text(Units::Utf8(b)), Some(LongKind::Text)) => {
                self.parts.extend_from_slice(b);
                b.len()
            }
            (Cell::Text(Units::Utf16(u)), Some(LongKind::Text)) => {
                self.wide.extend_from_slice(u);
                u.len() * 2
            }
            other => panic!("a part that was not announced: {other:?}"),
        };
        self.largest_part = self.largest_part.max(bytes);
        self.n_parts += 1;
        Ok(())
    }

    fn long_end(&mut self, column: usize) -> Result<(), Self::Error> {
        assert_eq!(column, self.row.len());
        let parts = std::mem::take(&mut self.parts);
        let wide = std::mem::take(&mut self.wide);
        self.row.push(match self.kind.take() {
            Some(LongKind::Bytes) => Kept::Bytes(parts),
            _ if wide.is_empty() => Kept::Text(String::from_utf8(parts).unwrap()),
            _ => Kept::Text(String::from_utf16(&wide).unwrap()),
        });
        Ok(())
    }

    fn end_row(&mut self) -> Result<bool, Self::Error> {
        self.rows.push(std::mem::take(&mut self.row));
        self.taken += 1;
        if self.pause_after > 0 && self.taken == self.pause_after {
            self.taken = 0;
            return Ok(false);
        }
        Ok(true)
    }
}

/// Reads the remaining rows of the statement into `keeper`.
pub(crate) fn drain(
    statement: Statement,
    budget: Budget,
    long_values: LongValues,
    keeper: &mut Keeper,
) {
    let Statement::Odbc(mut statement) = statement else {
        panic!("these tests are for ODBC");
    };
    statement.set_long_values(long_values);
    while let Fetched::Rows(n) = statement.fetch(budget).unwrap_or_else(|e| panic!("{e}")) {
        let block = statement.block();
        assert_eq!(block.n_rows(), n);
        assert!(n > 0);
        let mut next = 0;
        while next < n {
            match block.emit(next, keeper).unwrap() {
                Emitted::All => next = n,
                Emitted::Paused { next_row } => {
                    assert!(next_row > next && next_row < n);
                    next = next_row;
                }
            }
        }
    }
    // A fetch after the end returns the end again.
    assert_eq!(statement.fetch(budget).unwrap(), Fetched::End);
}

/// Executes a query and returns all rows; long values are read whole.
pub(crate) fn rows(connection: &Connection, sql: &str, parameters: &[Value]) -> Vec<Vec<Kept>> {
    let statement = connection
        .execute(sql, parameters)
        .unwrap_or_else(|e| panic!("{e}\n{sql}"));
    let mut keeper = Keeper::default();
    drain(statement, Budget::default(), LongValues::Whole, &mut keeper);
    keeper.rows
}

/// Executes a query that returns one row, and returns this row.
pub(crate) fn row(connection: &Connection, sql: &str, parameters: &[Value]) -> Vec<Kept> {
    let mut rows = rows(connection, sql, parameters);
    assert_eq!(rows.len(), 1, "{sql}");
    rows.remove(0)
}

/// Executes a statement, and ignores its rows.
pub(crate) fn run(connection: &Connection, sql: &str) {
    connection
        .execute(sql, &[])
        .unwrap_or_else(|e| panic!("{e}\n{sql}"));
}
