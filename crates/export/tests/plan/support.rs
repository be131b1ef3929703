//! Statements over SQLite, and the check that each row is in exactly one part.

use std::convert::Infallible;

use onecopy_export::plan::{PartSpec, Plan, PlanOptions};
use onecopy_rows::connect::Connection;
use onecopy_rows::{
    BlockPosition, Budget, Cell, ConnectOptions, LongKind, PumpError, Pumped, RowSink, Value,
};

/// A sink for the integers of the first column.
struct Ids(Vec<i64>);

impl RowSink for Ids {
    type Error = Infallible;

    fn begin_row(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Infallible> {
        match (column, cell) {
            (0, Cell::I64(id)) => self.0.push(id),
            (0, cell) => panic!("{cell:?} is not an integer"),
            _ => {}
        }
        Ok(())
    }

    fn long_begin(&mut self, _column: usize, _kind: LongKind) -> Result<(), Infallible> {
        Ok(())
    }

    fn long_part(&mut self, _column: usize, _part: Cell<'_>) -> Result<(), Infallible> {
        Ok(())
    }

    fn long_end(&mut self, _column: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn end_row(&mut self) -> Result<bool, Infallible> {
        Ok(true)
    }
}

pub(crate) fn database() -> Connection {
    let connection = Connection::open("sqlite::memory:", &ConnectOptions::default()).unwrap();
    let reversed = |a: &str, b: &str| Ok(b.chars().rev().cmp(a.chars().rev()));
    let sqlite = connection.sqlite().unwrap();
    sqlite
        .create_collation("reversed", Some(Box::new(reversed)))
        .unwrap();
    connection
}

pub(crate) fn execute(connection: &Connection, sql: &str) {
    connection.execute(sql, &[]).unwrap();
}

pub(crate) fn ids(connection: &Connection, sql: &str, values: &[Value]) -> Vec<i64> {
    let mut statement = connection.execute(sql, values).unwrap();
    let (mut position, mut sink) = (BlockPosition::default(), Ids(Vec::new()));
    loop {
        match statement.pump(&mut position, Budget::default(), &mut sink) {
            Ok(Pumped::More) => {}
            Ok(Pumped::End) => break,
            Err(PumpError::Source(error)) => panic!("{error}"),
            Err(PumpError::Sink(never)) => match never {},
        }
    }
    sink.0.sort_unstable();
    sink.0
}

pub(crate) fn options(n_parts: usize, key: &[&str]) -> PlanOptions {
    PlanOptions {
        n_parts,
        key: key.iter().map(|&name| name.to_owned()).collect(),
        ..PlanOptions::default()
    }
}

/// Returns the number of rows of each part, after a check that each row of the statement is in
/// exactly one of them.
pub(crate) fn check(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    plan: &Plan,
) -> Vec<usize> {
    let whole = ids(connection, &sql.replace("{part}", "1 = 1"), values);
    let parts: Vec<Vec<i64>> = plan
        .parts
        .iter()
        .map(|part| {
            let part = PartSpec::from_json(&part.to_json()).unwrap();
            ids(connection, &part.sql, &part.values)
        })
        .collect();
    let mut union: Vec<i64> = parts.iter().flatten().copied().collect();
    union.sort_unstable();
    assert_eq!(union, whole, "{sql}\n{}", plan.to_json());
    parts.iter().map(Vec::len).collect()
}
