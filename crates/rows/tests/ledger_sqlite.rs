//! Tests with SQLite that each text is converted or copied only once, directly into the chunk to
//! send, and that the output is correct. The ledger counts the converted and copied bytes.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod support;

use onecopy_rows::connect::Connection;
use onecopy_rows::{ConnectOptions, Format};
use onecopy_rows::{ErrorKind, Value};
use onecopy_text::{Chunk, Entry, Ledger, Policy, Stage};
use onecopy_wire::{ChunkErrorKind, Filled};
use serde_json::{Value as Json, json};

const FORMATS: [Format; 3] = [Format::Json, Format::Ndjson, Format::Csv];

/// Opens a SQLite database in memory as a [`Connection`], the enum that represents any database.
fn memory() -> Connection {
    Connection::open("sqlite::memory:", &ConnectOptions::default()).unwrap()
}

/// Executes `sql` and streams its rows. Returns the whole output, the size of the largest chunk in
/// bytes, and the ledger.
fn stream(connection: &Connection, sql: &str, format: Format) -> (String, usize, Ledger) {
    let ledger = Ledger::within(&Ledger::off());
    let statement = connection.execute(sql, &[]).unwrap();
    let mut stream = statement.into_chunks(format, &ledger).unwrap();
    let (mut all, mut largest, mut chunk) = (Vec::new(), 0, Chunk::with_capacity(64 << 10));
    loop {
        chunk.clear();
        let filled = stream.fill(&mut chunk).unwrap();
        largest = largest.max(chunk.len());
        all.extend_from_slice(&chunk);
        if filled == Filled::Done {
            return (String::from_utf8(all).unwrap(), largest, ledger);
        }
    }
}

/// Asserts that the stage `Encode` has converted or copied each of the `payload` bytes of text
/// once, and that no other stage has handled text.
fn assert_once(ledger: &Ledger, payload: usize, format: Format) {
    let encode = ledger.stage(Stage::Encode);
    let payload = payload as u64;
    assert_eq!(encode.taken, payload, "{format:?}");
    assert!(
        encode.converted <= payload && encode.copied <= payload,
        "{format:?}: {encode:?}"
    );
    assert_eq!(
        encode.converted + encode.copied,
        payload,
        "{format:?}: {encode:?}"
    );
    for stage in Stage::ALL {
        if stage != Stage::Encode {
            assert_eq!(
                ledger.stage(stage),
                Entry::default(),
                "{format:?} {stage:?}"
            );
        }
    }
}

/// Names in several scripts, some with quotes, commas or line ends; one is empty, one is NULL.
const NAMES: [Option<&str>; 6] = [
    Some("plain ASCII"),
    Some("Zürich, \"Limmat\"\nSee"),
    Some("Съешь ещё этих мягких французских булок"),
    Some("漢字かな交じり文 😀"),
    None,
    Some(""),
];

fn names_table(connection: &Connection, n_rows: i64) -> usize {
    connection
        .execute(
            "create table t (id integer primary key, name text, price real, raw blob)",
            &[],
        )
        .unwrap();
    let name = |i: i64| NAMES[i as usize % NAMES.len()];
    let rows = (0..n_rows).map(|i| {
        vec![
            Value::I64(i),
            name(i).map_or(Value::Null, |n| Value::Text(n.to_owned())),
            Value::F64(i as f64 / 8.0),
            Value::Bytes(vec![i as u8; 3]),
        ]
    });
    connection
        .execute_many("insert into t values (?, ?, ?, ?)", &mut rows.map(Ok))
        .unwrap();
    (0..n_rows).map(|i| name(i).map_or(0, str::len)).sum()
}

#[test]
fn each_text_of_sqlite_goes_once_into_the_outgoing_chunk() {
    let connection = memory();
    let payload = names_table(&connection, 5000);
    for format in FORMATS {
        let (text, largest, ledger) = stream(&connection, "select * from t", format);
        assert_once(&ledger, payload, format);
        assert!(largest <= 64 << 10, "{largest}");
        if format == Format::Json {
            let Json::Array(rows) = serde_json::from_str(&text).unwrap() else {
                panic!("an array")
            };
            assert_eq!(rows.len(), 5000);
            assert_eq!(
                rows[1],
                json!({"id": 1, "name": NAMES[1], "price": 0.125, "raw": "AQEB"})
            );
            for (row, i) in rows.iter().zip(0..) {
                assert_eq!(row["name"], json!(NAMES[i % NAMES.len()]));
            }
        } else {
            assert!(text.contains("漢字かな交じり文 😀"));
        }
    }
}

#[test]
fn numbers_and_bytes_are_no_text() {
    let connection = memory();
    for format in FORMATS {
        let sql = "select 1 as a, 0.5 as b, x'00ff' as c, null as d";
        let (_, _, ledger) = stream(&connection, sql, format);
        assert_eq!(ledger.total(), Entry::default(), "{format:?}");
    }
}

#[test]
fn a_long_text_passes_once_through_bounded_chunks() {
    let connection = memory();
    let unit = "é漢\"😀";
    let sql =
        format!("select 7 as id, replace(hex(zeroblob(500000)), '0', '{unit}') as long, 'z' as z");
    let payload = 1_000_000 * unit.len() + 1;
    for format in FORMATS {
        let (text, largest, ledger) = stream(&connection, &sql, format);
        assert_once(&ledger, payload, format);
        // The output of a part of 32 KiB may be longer than the part, because each quote becomes
        // two bytes.
        assert!(largest <= 128 << 10, "{format:?}: {largest}");
        if format == Format::Ndjson {
            let row: Json = serde_json::from_str(&text).unwrap();
            assert_eq!(
                row,
                json!({"id": 7, "long": unit.repeat(1_000_000), "z": "z"})
            );
        }
    }
}

#[test]
fn a_utf16_database_is_converted_once_too() {
    let connection = memory();
    connection
        .execute("pragma encoding = 'UTF-16le'", &[])
        .unwrap();
    let utf8 = names_table(&connection, 600);
    let utf16: usize = (0..600)
        .map(|i| NAMES[i % NAMES.len()].map_or(0, |n| 2 * n.encode_utf16().count()))
        .sum();
    assert_ne!(utf8, utf16);
    for format in FORMATS {
        let (text, _, ledger) = stream(&connection, "select name, id from t", format);
        assert_once(&ledger, utf16, format);
        assert!(text.contains("Съешь ещё") && text.contains('😀'));
    }
}

#[test]
fn malformed_text_ends_a_strict_stream_and_is_replaced_where_asked() {
    let sql = "select 1 as id, 'good' as a union all select 2, cast(x'62ff61' as text)";
    let fill = |policy| {
        let options = ConnectOptions {
            text_policy: policy,
            ..ConnectOptions::default()
        };
        let connection = Connection::open("sqlite::memory:", &options).unwrap();
        let statement = connection.execute(sql, &[]).unwrap();
        let mut stream = statement.into_chunks(Format::Json, &Ledger::off()).unwrap();
        let mut chunk = Chunk::with_capacity(4096);
        stream
            .fill(&mut chunk)
            .map(|_| String::from_utf8(chunk.to_vec()).unwrap())
    };
    let replaced: Json = serde_json::from_str(&fill(Policy::Replace).unwrap()).unwrap();
    assert_eq!(replaced[1]["a"], "b\u{fffd}a");
    let error = fill(Policy::Strict).unwrap_err();
    assert_eq!(error.kind, ChunkErrorKind::Value);
    let error = error.source.downcast::<onecopy_rows::Error>().unwrap();
    assert_eq!((error.kind, error.row), (ErrorKind::Malformed, Some(1)));
    assert_eq!(error.column.as_deref(), Some(&(1, "a".to_owned())));
}
