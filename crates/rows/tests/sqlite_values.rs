//! Tests that the sink receives the values of SQLite as Python's `sqlite3` returns them.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod support;

use onecopy_rows::DatabaseConnection;
use onecopy_rows::DatabaseStatement;
use onecopy_rows::{
    BlockPosition, Budget, Date, LongKind, LongValues, Pumped, Source, Time, Timestamp, Value,
};
use proptest::prelude::*;
use support::{Got, memory, pump_all, rows, run, text};

fn one(sql: &str, parameters: &[Value]) -> Got {
    let mut all = rows(&memory(), sql, parameters);
    assert_eq!((all.len(), all[0].len()), (1, 1), "{sql}");
    all.remove(0).remove(0)
}

#[test]
fn storage_classes_are_kept_exactly() {
    for (sql, want) in [
        ("select null", Got::Null),
        ("select 1", Got::I64(1)),
        ("select 9223372036854775807", Got::I64(i64::MAX)),
        ("select -9223372036854775808", Got::I64(i64::MIN)),
        (
            "select 9223372036854775808",
            Got::F64(9_223_372_036_854_775_808.0),
        ),
        ("select 1.0", Got::F64(1.0)),
        ("select 0.1", Got::F64(0.1)),
        (
            "select 1829.3043138126723",
            Got::F64(1_829.304_313_812_672_3),
        ),
        ("select 5e-324", Got::F64(5e-324)),
        ("select 1.7976931348623157e308", Got::F64(f64::MAX)),
        ("select 9e999", Got::F64(f64::INFINITY)),
        ("select -9e999", Got::F64(f64::NEG_INFINITY)),
        ("select 9e999 - 9e999", Got::Null), // SQLite has no NaN.
        ("select ''", "".into()),
        ("select 'plain'", "plain".into()),
        ("select 'Žluť 漢字 😀'", "Žluť 漢字 😀".into()),
        ("select x''", Got::Bytes(vec![])),
        ("select x'00ff80'", Got::Bytes(vec![0, 0xff, 0x80])),
        ("select zeroblob(3)", Got::Bytes(vec![0, 0, 0])),
        ("select true", Got::I64(1)),
        ("select date('2024-02-29')", "2024-02-29".into()),
    ] {
        assert_eq!(one(sql, &[]), want, "{sql}");
    }
}

#[test]
fn negative_zero_keeps_its_sign_as_a_parameter() {
    let Got::F64(zero) = one("select ?", &[Value::F64(-0.0)]) else {
        panic!("a double was bound");
    };
    assert!(zero == 0.0 && zero.is_sign_negative());
}

#[test]
fn parameters_come_back_as_they_were_bound() {
    let date = Date {
        year: 2024,
        month: 2,
        day: 29,
    };
    let time = Time {
        hour: 23,
        minute: 59,
        second: 58,
        nanosecond: 120_000_000,
    };
    for (value, want) in [
        (Value::Null, Got::Null),
        (Value::Bool(true), Got::I64(1)),
        (Value::I64(i64::MIN), Got::I64(i64::MIN)),
        (Value::F64(0.1), Got::F64(0.1)),
        (Value::F64(f64::NAN), Got::Null), // SQLite stores NaN as NULL.
        (Value::Decimal("-12.2500".into()), Got::F64(-12.25)),
        (Value::Decimal("7.00".into()), Got::I64(7)),
        (text(""), "".into()),
        (text("a\0b"), "a\0b".into()),
        (text("漢"), "漢".into()),
        (Value::Bytes(vec![]), Got::Bytes(vec![])),
        (Value::Bytes(vec![0, 255]), Got::Bytes(vec![0, 255])),
        (Value::Date(date), "2024-02-29".into()),
        (Value::Time(time), "23:59:58.120000".into()),
        (
            Value::Timestamp(Timestamp {
                date,
                time,
                offset_minutes: Some(90),
            }),
            "2024-02-29 23:59:58.120000+01:30".into(),
        ),
        (
            Value::Uuid([0xab; 16]),
            "abababab-abab-abab-abab-abababababab".into(),
        ),
    ] {
        assert_eq!(
            one("select ?", std::slice::from_ref(&value)),
            want,
            "{value:?}"
        );
    }
}

#[test]
fn malformed_utf8_and_embedded_nuls_reach_the_sink_whole() {
    assert_eq!(
        one("select cast(x'61ff00c328' as text)", &[]),
        Got::Utf8(vec![0x61, 0xff, 0x00, 0xc3, 0x28])
    );
}

#[test]
fn a_utf16_database_is_read_wide() {
    for encoding in ["UTF-16le", "UTF-16be"] {
        let connection = memory();
        run(&connection, &format!("pragma encoding = '{encoding}'"));
        run(&connection, "create table t (a text, b blob, c)");
        connection
            .execute(
                "insert into t values (?, x'0102', 'x' || ?)",
                &[text("né😀"), text("漢")],
            )
            .unwrap();
        let utf16 = |s: &str| Got::Utf16(s.encode_utf16().collect());
        assert_eq!(
            rows(
                &connection,
                "select a, b, c, length(a) from t order by c",
                &[]
            ),
            [[
                utf16("né😀"),
                Got::Bytes(vec![1, 2]),
                utf16("x漢"),
                Got::I64(3)
            ]]
        );
    }
}

#[test]
fn a_row_may_have_many_columns_or_a_result_none() {
    let connection = memory();
    let columns: Vec<String> = (0..100).map(|i| format!("{i} as c{i}")).collect();
    let all = rows(&connection, &format!("select {}", columns.join(", ")), &[]);
    assert_eq!(all, [(0..100).map(Got::I64).collect::<Vec<_>>()]);

    let statement = connection.execute("create table t (a)", &[]).unwrap();
    assert_eq!(statement.schema().n_columns(), 0);
    assert_eq!(statement.row_count(), None);
    let mut statement = connection.execute("select a, a as b from t", &[]).unwrap();
    assert_eq!(statement.schema().n_columns(), 2);
    assert!(pump_all(&mut statement).unwrap().is_empty());
    assert!(pump_all(&mut statement).unwrap().is_empty());
}

#[test]
fn names_and_declared_types_are_told() {
    let connection = memory();
    run(
        &connection,
        "create table t (id integer primary key, \"große Zahl\" decimal(10, 2), c)",
    );
    let statement = connection
        .execute("select id, \"große Zahl\", c, 1 + 1, id from t", &[])
        .unwrap();
    let columns: Vec<_> = statement
        .schema()
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.type_name.as_str()))
        .collect();
    assert_eq!(
        columns,
        [
            ("id", "INTEGER"),
            ("große Zahl", "decimal(10, 2)"),
            ("c", ""),
            ("1 + 1", ""),
            ("id", "INTEGER")
        ]
    );
}

#[test]
fn columns_added_between_two_executions_of_a_cached_statement_are_seen() {
    let connection = memory();
    run(&connection, "create table t (a)");
    run(&connection, "insert into t values (1)");
    assert_eq!(rows(&connection, "select * from t", &[]), [[Got::I64(1)]]);
    run(&connection, "alter table t add column b default 2");
    assert_eq!(
        rows(&connection, "select * from t", &[]),
        [[Got::I64(1), Got::I64(2)]]
    );
    run(&connection, "alter table t rename column b to c");
    let statement = connection.execute("select * from t", &[]).unwrap();
    assert_eq!(statement.schema().columns[1].name, "c");
}

#[test]
fn pragma_explain_and_ddl_are_statements_like_others() {
    let connection = memory();
    assert_eq!(
        rows(&connection, "pragma user_version", &[]),
        [[Got::I64(0)]]
    );
    assert!(rows(&connection, "explain select 1", &[]).len() > 3);
    assert_eq!(
        rows(&connection, "explain query plan select 1", &[]).len(),
        1
    );
    run(&connection, "create view v as select 7 as x");
    assert_eq!(rows(&connection, "select * from v", &[]), [[Got::I64(7)]]);
    run(&connection, "vacuum");
    run(&connection, "analyze");
}

#[test]
fn a_sixty_megabyte_cell_comes_in_bounded_parts() {
    let connection = memory();
    let mut statement = connection
        .execute(
            "select 1, replace(hex(zeroblob(10000000)), '0', 'aé'), 'z', zeroblob(100001)",
            &[],
        )
        .unwrap();
    statement.set_long_values(LongValues::Parts {
        part_bytes: 32 << 10,
    });
    let all = pump_all(&mut statement).unwrap();
    assert_eq!(all.len(), 1);
    let [
        Got::I64(1),
        Got::Long(LongKind::Text, n_parts, bytes),
        Got::Utf8(z),
        Got::Long(LongKind::Bytes, 4, blob),
    ] = &all[0][..]
    else {
        panic!("unexpected cells");
    };
    assert_eq!(
        (bytes.len(), z.as_slice(), blob.len()),
        (60_000_000, &b"z"[..], 100_001)
    );
    assert!((1832..1900).contains(n_parts), "{n_parts}");
    assert_eq!(std::str::from_utf8(bytes).unwrap(), "aé".repeat(20_000_000));
}

/// Generates a value to bind as a parameter, and the value that the sink must receive for it.
fn value() -> impl Strategy<Value = (Value, Got)> {
    prop_oneof![
        Just((Value::Null, Got::Null)),
        any::<i64>().prop_map(|i| (Value::I64(i), Got::I64(i))),
        // SQLite has no NaN: it stores NULL.
        any::<f64>().prop_map(|f| (
            Value::F64(f),
            if f.is_nan() { Got::Null } else { Got::F64(f) }
        )),
        "\\PC{0,40}".prop_map(|s| (text(&s), s.as_str().into())),
        proptest::collection::vec(any::<u8>(), 0..60)
            .prop_map(|b| (Value::Bytes(b.clone()), Got::Bytes(b))),
    ]
}

/// Converts a long value that the sink received in parts to the value that the sink would receive
/// as one cell.
fn whole(got: Got) -> Got {
    match got {
        Got::Long(LongKind::Text, _, bytes) => Got::Utf8(bytes),
        Got::Long(LongKind::Bytes, _, bytes) => Got::Bytes(bytes),
        other => other,
    }
}

proptest! {
    #[test]
    fn whatever_is_bound_comes_back_whole_by_fetch_and_by_pump_in_parts_of_any_size(
        values in proptest::collection::vec(proptest::collection::vec(value(), 3), 0..8),
        part_bytes in 1_usize..70,
        block_rows in 1_usize..5,
    ) {
        let connection = memory();
        run(&connection, "create table t (id integer primary key, a blob, b blob, c blob)");
        let bound = values.iter().zip(0..).map(|(row, id)| {
            let mut all = vec![Value::I64(id)];
            all.extend(row.iter().map(|(value, _)| value.clone()));
            all
        });
        connection.execute_many("insert into t values (?, ?, ?, ?)", &mut bound.map(Ok)).unwrap();
        let want: Vec<Vec<Got>> =
            values.iter().map(|row| row.iter().map(|(_, got)| got.clone()).collect()).collect();

        let sql = "select a, b, c from t order by id";
        let whole_rows = |rows: Vec<Vec<Got>>| -> Vec<Vec<Got>> {
            rows.into_iter().map(|row| row.into_iter().map(whole).collect()).collect()
        };
        let long_values = LongValues::Parts { part_bytes };
        let mut fetched = connection.execute(sql, &[]).unwrap();
        fetched.set_long_values(long_values);
        prop_assert_eq!(whole_rows(support::fetch_all(&mut fetched).unwrap()), want.clone());

        let mut pumped = connection.execute(sql, &[]).unwrap();
        pumped.set_long_values(long_values);
        let mut sink = support::Rows::default();
        let budget = Budget { block_rows, ..Budget::default() };
        while pumped.pump(&mut BlockPosition::default(), budget, &mut sink).unwrap() == Pumped::More {}
        prop_assert_eq!(whole_rows(sink.rows), want);
    }
}
