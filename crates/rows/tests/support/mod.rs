//! Helpers for the tests of SQLite: a sink that stores rows, and functions that open databases and
//! read rows.
#![allow(dead_code)] // Each test file uses only some of these items.

use onecopy_rows::ConnectOptions;
use onecopy_rows::DatabaseConnection;
use onecopy_rows::sqlite::{Connection, Statement};
use onecopy_rows::{
    BlockPosition, Budget, Cell, Error, Fetched, LongKind, PumpError, Pumped, RowSink, Source,
    Value,
};
use onecopy_text::Units;

/// A value that the sink [`Rows`] received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Got {
    Null,
    I64(i64),
    F64(f64),
    Utf8(Vec<u8>),
    Utf16(Vec<u16>),
    Bytes(Vec<u8>),
    /// A long value: its kind, the number of its parts, and the bytes of all parts.
    Long(LongKind, usize, Vec<u8>),
}

impl From<&str> for Got {
    fn from(s: &str) -> Got {
        Got::Utf8(s.as_bytes().to_vec())
    }
}

/// A sink that stores all rows and the names of the called methods.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Vec<Got>>,
    pub(crate) calls: Vec<&'static str>,
    /// The number of rows after which the sink accepts no more rows in the current call; `None` for
    /// no limit.
    pub(crate) enough_at: Option<usize>,
}

impl RowSink for Rows {
    type Error = std::convert::Infallible;

    fn begin_row(&mut self) -> Result<(), Self::Error> {
        self.calls.push("begin_row");
        self.rows.push(Vec::new());
        Ok(())
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Self::Error> {
        self.calls.push("cell");
        let row = self.rows.last_mut().unwrap();
        assert_eq!(row.len(), column);
        row.push(match cell {
            Cell::Null => Got::Null,
            Cell::I64(i) => Got::I64(i),
            Cell::F64(f) => Got::F64(f),
            Cell::Text(Units::Utf8(u)) => Got::Utf8(u.to_vec()),
            Cell::Text(Units::Utf16(u)) => Got::Utf16(u.to_vec()),
            Cell::Bytes(b) => Got::Bytes(b.to_vec()),
            other => panic!("SQLite has no {other:?}"),
        });
        Ok(())
    }

    fn long_begin(&mut self, column: usize, kind: LongKind) -> Result<(), Self::Error> {
        self.calls.push("long_begin");
        let row = self.rows.last_mut().unwrap();
        assert_eq!(row.len(), column);
        row.push(Got::Long(kind, 0, Vec::new()));
        Ok(())
    }

    fn long_part(&mut self, column: usize, part: Cell<'_>) -> Result<(), Self::Error> {
        self.calls.push("long_part");
        let Some(Got::Long(kind, n_parts, bytes)) = self.rows.last_mut().unwrap().get_mut(column)
        else {
            panic!("no long value was begun");
        };
        *n_parts += 1;
        match (kind, part) {
            (LongKind::Text, Cell::Text(Units::Utf8(u))) => bytes.extend_from_slice(u),
            (LongKind::Text, Cell::Text(Units::Utf16(u))) => {
                bytes.extend(u.iter().flat_map(|u| u.to_le_bytes()));
            }
            (LongKind::Bytes, Cell::Bytes(b)) => bytes.extend_from_slice(b),
            (kind, part) => panic!("{part:?} is no part of {kind:?}"),
        }
        Ok(())
    }

    fn long_end(&mut self, _: usize) -> Result<(), Self::Error> {
        self.calls.push("long_end");
        Ok(())
    }

    fn end_row(&mut self) -> Result<bool, Self::Error> {
        self.calls.push("end_row");
        Ok(self
            .enough_at
            .is_none_or(|n| !self.rows.len().is_multiple_of(n)))
    }
}

/// Opens a database in memory, with autocommit off.
pub(crate) fn memory() -> Connection {
    open(":memory:").unwrap()
}

/// Opens the database of `target`, the text after `sqlite:` in a connection string, with default
/// options.
pub(crate) fn open(target: &str) -> Result<Connection, Error> {
    Connection::open_path(target, &ConnectOptions::default())
}

/// Opens the database of `target` as [`open`] does, but read-only.
pub(crate) fn open_read_only(target: &str) -> Result<Connection, Error> {
    let options = ConnectOptions {
        read_only: true,
        ..ConnectOptions::default()
    };
    Connection::open_path(target, &options)
}

/// Returns the error of the source. The sink of these tests cannot fail, so no other error exists.
pub(crate) fn source_error(error: PumpError<std::convert::Infallible>) -> Error {
    match error {
        PumpError::Source(error) => error,
        PumpError::Sink(never) => match never {},
    }
}

/// Returns the remaining rows, read by `pump`.
pub(crate) fn pump_all(statement: &mut Statement) -> Result<Vec<Vec<Got>>, Error> {
    let mut sink = Rows::default();
    let mut position = BlockPosition::default();
    while statement
        .pump(&mut position, Budget::default(), &mut sink)
        .map_err(source_error)?
        == Pumped::More
    {}
    Ok(sink.rows)
}

/// Returns the remaining rows, read by `fetch` and `emit`.
pub(crate) fn fetch_all(statement: &mut Statement) -> Result<Vec<Vec<Got>>, Error> {
    use onecopy_rows::Block;
    let mut sink = Rows::default();
    while let Fetched::Rows(n) = statement.fetch(Budget::default())? {
        assert_eq!(n, statement.block().n_rows());
        let Ok(_) = statement.block().emit(0, &mut sink);
    }
    Ok(sink.rows)
}

/// Executes `sql` and returns its rows. Asserts that reading by `pump` and reading by `fetch` and
/// `emit` return the same rows.
pub(crate) fn rows(connection: &Connection, sql: &str, parameters: &[Value]) -> Vec<Vec<Got>> {
    let pumped = pump_all(&mut connection.execute(sql, parameters).unwrap()).unwrap();
    let fetched = fetch_all(&mut connection.execute(sql, parameters).unwrap()).unwrap();
    assert_eq!(pumped, fetched, "{sql}");
    pumped
}

/// Executes `sql` to its end, and ignores its rows.
pub(crate) fn run(connection: &Connection, sql: &str) {
    pump_all(&mut connection.execute(sql, &[]).unwrap()).unwrap();
}

/// Returns a string as a parameter value.
pub(crate) fn text(s: &str) -> Value {
    Value::Text(s.to_owned())
}

/// Creates a database file with a table `t` of three rows, whose `a` is 1, 2 and 3. Returns the
/// path of the file.
pub(crate) fn three_rows(dir: &tempfile::TempDir) -> String {
    let path = dir.path().join("three.db").to_str().unwrap().to_owned();
    let connection = open(&path).unwrap();
    run(
        &connection,
        "create table t (a integer primary key, b text not null default '')",
    );
    run(&connection, "insert into t (a) values (1), (2), (3)");
    connection.commit().unwrap();
    connection.close().unwrap();
    path
}

/// Returns the number of rows in the table `t`.
pub(crate) fn count(connection: &Connection) -> Got {
    rows(connection, "select count(*) from t", &[])
        .remove(0)
        .remove(0)
}
