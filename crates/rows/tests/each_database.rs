//! Tests that every database must pass: values, streams, cancellation and errors, through the enums
//! [`Connection`] and [`Statement`]. Databases with a server are tested if the environment contains
//! their connection strings.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::time::Duration;

mod databases;

use databases::{Keeper, Kept, Profile};
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{
    BlockPosition, Budget, ConnectOptions, Error, ErrorKind, Format, PumpError, Pumped, Value,
};
use onecopy_text::{Chunk, Ledger};
use onecopy_wire::{ChunkError, ChunkSource, Filled};

/// A connection to a database, and statements in its SQL dialect for the tests.
struct Database {
    name: &'static str,
    connection: Connection,
    /// A statement that returns its four parameters as one row: an integer, a float, a string and
    /// NULL.
    values: &'static str,
    /// A statement that returns the numbers from 0 to 9,999, one per row.
    numbers: &'static str,
    /// A statement that runs until it is cancelled.
    endless: &'static str,
    /// A string that is not valid SQL.
    wrong: &'static str,
}

const NUMBERS: &str = "with recursive n(i) as (select 0 union all select i + 1 from n where i < 9999) select i from n";

fn databases() -> Vec<Database> {
    let open = |target: &str| Connection::open(target, &ConnectOptions::default()).unwrap();
    let mut all = vec![
        Database {
            name: "memory",
            connection: open("memory:"),
            values: "values",
            numbers: "numbers 10000",
            endless: "endless",
            wrong: "selct 1",
        },
        Database {
            name: "SQLite",
            connection: open("sqlite::memory:"),
            values: "select ?, ?, ?, ?",
            numbers: NUMBERS,
            endless: "with recursive n(i) as (select 0 union all select i + 1 from n) select max(i) from n",
            wrong: "selct 1",
        },
    ];
    for (name, profile) in [
        ("PostgreSQL", Profile::PostgresNative),
        ("PostgreSQL by ODBC", Profile::Postgres),
    ] {
        let Some(connection) = profile.open() else {
            continue;
        };
        all.push(Database {
            name,
            connection,
            values: "select ?::int, ?::float8, ?::text, ?::text",
            numbers: NUMBERS,
            endless: "select pg_sleep(600)",
            wrong: "selct 1",
        });
    }
    if let Some(connection) = Profile::MariaDb.open() {
        all.push(Database {
            name: "MariaDB by ODBC",
            connection,
            values: "select ?, ?, ?, ?",
            numbers: "select seq from seq_0_to_9999",
            endless: "select sleep(600)",
            wrong: "selct 1",
        });
    }
    all
}

/// Returns the remaining rows of a statement, and the error that ended them; `None` if no error
/// did.
fn rows_and_error(statement: &mut Statement) -> (Vec<Vec<Kept>>, Option<Error>) {
    let mut keeper = Keeper::default();
    let mut position = BlockPosition::default();
    loop {
        let pumped = statement.pump(&mut position, Budget::default(), &mut keeper);
        match pumped {
            Ok(Pumped::More) => {}
            Ok(Pumped::End) => return (keeper.rows, None),
            Err(PumpError::Source(error)) => return (keeper.rows, Some(error)),
            Err(PumpError::Sink(never)) => match never {},
        }
    }
}

fn all_rows(statement: &mut Statement) -> Result<Vec<Vec<Kept>>, Error> {
    match rows_and_error(statement) {
        (rows, None) => Ok(rows),
        (_, Some(error)) => Err(error),
    }
}

/// Returns the bytes of a stream, and the error that ended it; `None` if no error did.
fn stream(mut chunks: Box<dyn ChunkSource>) -> (Vec<u8>, Option<ChunkError>) {
    let mut chunk = Chunk::with_capacity(4096);
    let mut bytes = Vec::new();
    loop {
        chunk.clear();
        let filled = chunks.fill(&mut chunk);
        bytes.extend_from_slice(&chunk);
        match filled {
            Ok(Filled::Done) => return (bytes, None),
            Ok(_) => {}
            Err(error) => return (bytes, Some(error)),
        }
    }
}

#[test]
fn values_come_back_as_they_were_sent() {
    for database in databases() {
        let sent = [
            Value::I64(-7),
            Value::F64(0.5),
            Value::Text("é漢🍵".to_owned()),
            Value::Null,
        ];
        let mut statement = database.connection.execute(database.values, &sent).unwrap();
        assert_eq!(statement.schema().n_columns(), 4, "{}", database.name);
        let rows = all_rows(&mut statement).unwrap();
        let row = [
            Kept::I64(-7),
            Kept::F64(0.5),
            Kept::Text("é漢🍵".to_owned()),
            Kept::Null,
        ];
        assert_eq!(rows, [row], "{}", database.name);
    }
}

#[test]
fn a_stream_has_each_row_once_in_its_order() {
    for database in databases() {
        let statement = database.connection.execute(database.numbers, &[]).unwrap();
        let chunks = statement.into_chunks(Format::Csv, &Ledger::off()).unwrap();
        let (text, error) = stream(chunks);
        assert!(error.is_none(), "{}", database.name);
        let text = String::from_utf8(text).unwrap();
        let numbers: Vec<String> = (0..10_000).map(|i| i.to_string()).collect();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, numbers, "{}", database.name);
    }
}

#[test]
fn a_statement_is_cancelled_from_another_thread() {
    for database in databases() {
        let cancel = database.connection.cancel_handle();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let canceller = std::thread::spawn(move || {
            // The cancel is repeated, because it has no effect before the statement runs.
            while is_done.recv_timeout(Duration::from_millis(20)).is_err() {
                cancel.cancel();
            }
        });
        let executed = database.connection.execute(database.endless, &[]);
        let ended = executed.and_then(|mut statement| all_rows(&mut statement));
        done.send(()).unwrap();
        canceller.join().unwrap();
        let error = ended.expect_err(database.name);
        assert_eq!(
            error.kind,
            ErrorKind::Cancelled,
            "{}: {error}",
            database.name
        );
        // The connection can be used again.
        database.connection.rollback().unwrap();
        let rows = database.connection.execute(database.numbers, &[]);
        assert_eq!(all_rows(&mut rows.unwrap()).unwrap().len(), 10_000);
    }
}

#[test]
fn a_wrong_statement_and_a_closed_connection_are_errors() {
    for database in databases() {
        let name = database.name;
        let error = database
            .connection
            .execute(database.wrong, &[])
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Programming, "{name}: {error}");
        database.connection.close().unwrap();
        database.connection.close().unwrap();
        assert!(
            database.connection.is_closed() && !database.connection.is_usable(),
            "{name}"
        );
        let error = database
            .connection
            .execute(database.numbers, &[])
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Interface, "{name}: {error}");
    }
}

#[test]
fn an_error_after_rows_leaves_those_rows_right() {
    let connection = Connection::open("memory:", &ConnectOptions::default()).unwrap();
    let (rows, error) = rows_and_error(&mut connection.execute("fail 3", &[]).unwrap());
    assert_eq!(
        (rows.len(), error.unwrap().kind),
        (3, ErrorKind::Operational)
    );
    let statement = connection.execute("fail 3", &[]).unwrap();
    let (text, error) = stream(statement.into_chunks(Format::Json, &Ledger::off()).unwrap());
    assert!(error.is_some(), "an error must not look like an end");
    assert!(!text.ends_with(b"]"), "the array must not be closed");
}

#[test]
fn results_that_are_open_at_once_have_all_their_rows() {
    for database in databases().iter().filter(|d| d.name == "PostgreSQL") {
        let sql = "select i, repeat('x', 300) from generate_series(0, 9999) i";
        let mut first = database.connection.execute(sql, &[]).unwrap();
        let mut second = database.connection.execute(sql, &[]).unwrap();
        let third = database.connection.execute(sql, &[]).unwrap();
        drop(third);
        database.connection.commit().unwrap();
        for statement in [&mut first, &mut second] {
            let rows = all_rows(statement).unwrap();
            assert_eq!(rows.len(), 10_000);
            for (i, row) in (0..).zip(&rows) {
                assert_eq!(row[0], Kept::I64(i));
            }
        }
    }
}
