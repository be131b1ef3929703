//! Tests of MariaDB through its own ODBC driver.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.
#![allow(clippy::print_stdout)] // Which database it was, or why it was skipped.

mod databases;

use databases::{Kept, Profile, decimal, open_with, row, rows, run, text};
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{Budget, Date, ErrorKind, Fetched, Source, Time, Timestamp, Value};
use onecopy_rows::{ConnectOptions, ZeroDates};

#[test]
fn every_type_arrives_exact() {
    let Some(c) = Profile::MariaDb.open() else {
        return;
    };
    println!("{}", c.describe());
    assert!(c.notices().iter().any(|n| n.contains("memory")));
    run(
        &c,
        "create or replace table odbc_types (a tinyint, b tinyint unsigned, c bigint, d bigint unsigned, \
             e float, f double, \
             g decimal(65,30), h bit(1), i bit(12), j date, k time(6), l datetime(6), \
             m timestamp(3) null, n year, o char(10), \
             p varchar(40), q text, r blob, s binary(4), t enum('a','b'), u json, v uuid, w time, x date) \
             character set utf8mb4",
    );
    run(
        &c,
        "insert into odbc_types values (-128, 255, -9223372036854775808, 18446744073709551615, \
             1.5, -1829.3043138126723, \
             12345678901234567890123456789012345.123456789012345678901234567890, 1, b'100000000001', '9999-12-31', \
             '23:59:59.999999', '1000-01-01 00:00:00.000001', '2020-01-02 03:04:05.5', 2155, \
             'x', 'é日😀', '', x'00ff', x'01020304', \
             'b', '{\"a\": 1}', '7c4a2ee7-af3d-436d-acca-4e05919bdcea', '-12:34:56', '2020-02-29')",
    );
    let got = row(&c, "select * from odbc_types", &[]);
    let expected = vec![
        Kept::I64(-128),
        Kept::I64(255),
        Kept::I64(i64::MIN),
        Kept::U64(u64::MAX),
        Kept::F32(1.5),
        Kept::F64(-1829.3043138126723),
        decimal("12345678901234567890123456789012345.123456789012345678901234567890"),
        Kept::Bool(true),
        Kept::Bytes(vec![0x08, 0x01]),
        Kept::Date(9999, 12, 31),
        Kept::Time("23:59:59.999999000/6".to_owned()),
        Kept::Timestamp("1000-01-01 00:00:00.000001000/6".to_owned()),
        Kept::Timestamp("2020-01-02 03:04:05.500000000/3".to_owned()),
        Kept::I64(2155),
        text("x"),
        text("é日😀"),
        text(""),
        Kept::Bytes(vec![0, 255]),
        Kept::Bytes(vec![1, 2, 3, 4]),
        text("b"),
        text("{\"a\": 1}"),
        text("7c4a2ee7-af3d-436d-acca-4e05919bdcea"),
        Kept::Interval(-1, 41_104_000_000, "-12:34:56".to_owned()),
        Kept::Date(2020, 2, 29),
    ];
    assert_eq!(got, expected);
    run(&c, "drop table odbc_types");
}

#[test]
fn rows_of_many_blocks_arrive_in_order() {
    let Some(c) = Profile::MariaDb.open() else {
        return;
    };
    for column in [
        "cast(repeat('é', seq % 50) as char(60))",
        "cast(repeat('é', seq % 50 + if(seq % 700 = 0, 5000, 0)) as char(20000))",
    ] {
        let got = rows(
            &c,
            &format!("select seq, {column} from seq_1_to_10000"),
            &[],
        );
        assert_eq!(got.len(), 10_000);
        for (i, row) in got.iter().enumerate() {
            let n = i + 1;
            let long = if column.contains("5000") && n % 700 == 0 {
                5000
            } else {
                0
            };
            assert_eq!(row[0], Kept::I64(n as i64));
            assert_eq!(row[1], Kept::Text("é".repeat(n % 50 + long)), "row {n}");
        }
    }
}

#[test]
fn parameters_of_every_kind_arrive_exact() {
    let Some(c) = Profile::MariaDb.open() else {
        return;
    };
    let (date, time) = (
        Date {
            year: 2020,
            month: 2,
            day: 29,
        },
        Time {
            hour: 1,
            minute: 2,
            second: 3,
            nanosecond: 456_789_000,
        },
    );
    let naive = Timestamp {
        date,
        time,
        offset_minutes: None,
    };
    for (kind, value, expected) in [
        ("tinyint", Value::Bool(true), Kept::I64(1)),
        ("bit(1)", Value::Bool(true), Kept::Bool(true)),
        ("bigint", Value::I64(i64::MIN), Kept::I64(i64::MIN)),
        (
            "bigint unsigned",
            Value::Decimal("18446744073709551615".to_owned()),
            Kept::U64(u64::MAX),
        ),
        (
            "double",
            Value::F64(-1829.3043138126723),
            Kept::F64(-1829.3043138126723),
        ),
        (
            "decimal(65,30)",
            Value::Decimal("-12.340".to_owned()),
            decimal(&format!("-12.34{}", "0".repeat(28))),
        ),
        (
            "varchar(50)",
            Value::Text("é日😀'\\%".to_owned()),
            text("é日😀'\\%"),
        ),
        ("varchar(50)", Value::Text(String::new()), text("")),
        (
            "blob",
            Value::Bytes((0..=255).collect()),
            Kept::Bytes((0..=255).collect()),
        ),
        ("date", Value::Date(date), Kept::Date(2020, 2, 29)),
        (
            "time(6)",
            Value::Time(time),
            Kept::Time("01:02:03.456789000/6".to_owned()),
        ),
        (
            "datetime(6)",
            Value::Timestamp(naive),
            Kept::Timestamp("2020-02-29 01:02:03.456789000/6".to_owned()),
        ),
        (
            "uuid",
            Value::Uuid([0x12; 16]),
            text("12121212-1212-1212-1212-121212121212"),
        ),
    ] {
        run(
            &c,
            &format!("create or replace table odbc_parameters (v {kind}) character set utf8mb4"),
        );
        c.execute(
            "insert into odbc_parameters values (?), (?)",
            &[value.clone(), Value::Null],
        )
        .unwrap_or_else(|e| panic!("{kind}: {e}"));
        let got = rows(&c, "select v from odbc_parameters", &[]);
        assert_eq!(got, [vec![expected], vec![Kept::Null]], "{kind}");
    }
    run(&c, "drop table odbc_parameters");
}

#[test]
fn dates_of_zeros_are_null_unless_told_and_partial_ones_keep_their_year() {
    let Some(string) = Profile::MariaDb.string() else {
        return;
    };
    let sql = "select cast('0000-00-00' as date), cast('2020-01-00' as date), \
               cast('0000-00-00 00:00:00' as datetime), date '2020-02-29'";
    let good = Kept::Date(2020, 2, 29);
    let partial = Kept::Date(2020, 1, 0);
    for (zero_dates, expected) in [
        (ZeroDates::Null, [Kept::Null, partial.clone(), Kept::Null]),
        (
            ZeroDates::Error,
            [
                Kept::Date(0, 0, 0),
                partial,
                Kept::Timestamp("0000-00-00 00:00:00.000000000/0".to_owned()),
            ],
        ),
        (
            ZeroDates::Text,
            [
                text("0000-00-00"),
                text("2020-01-00"),
                text("0000-00-00 00:00:00"),
            ],
        ),
    ] {
        let options = ConnectOptions {
            zero_dates,
            ..ConnectOptions::default()
        };
        let got = row(&open_with(&string, &options), sql, &[]);
        assert_eq!(got[..3], expected, "{zero_dates:?}");
        assert_eq!(got[3], good);
    }
}

/// Returns the number of statements that this connection has prepared on the server so far.
fn n_prepared(c: &Connection) -> i64 {
    let sql = "show session status like 'Com_stmt_prepare'";
    match &row(c, sql, &[])[1] {
        Kept::Text(n) => n.parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_text_that_was_prepared_is_not_prepared_again() {
    let Some(c) = Profile::MariaDb.open() else {
        return;
    };
    let sql = "select id, name from t1000 where id = ?";
    let first = row(&c, sql, &[Value::I64(7)]);
    // `n_prepared` prepares statements itself; `asking` is the number of statements that one call
    // of it prepares.
    let asking = n_prepared(&c);
    let asking = n_prepared(&c) - asking;
    let before = n_prepared(&c);
    for n in 1..=20 {
        assert_eq!(row(&c, sql, &[Value::I64(n)])[0], Kept::I64(n));
    }
    assert_eq!(row(&c, sql, &[Value::I64(7)]), first);
    // The prepared statement is reused for parameters of other types, for a value that matches no
    // row, and for NULL.
    assert_eq!(row(&c, sql, &[Value::Text("7".to_owned())]), first);
    assert_eq!(row(&c, sql, &[Value::F64(7.0)]), first);
    assert_eq!(rows(&c, sql, &[Value::I64(-1)]), Vec::<Vec<Kept>>::new());
    assert_eq!(rows(&c, sql, &[Value::Null]), Vec::<Vec<Kept>>::new());
    assert_eq!(n_prepared(&c), before + asking);
    // An execution of a cached statement also reports a wrong number of parameters.
    let error = c.execute(sql, &[Value::I64(1), Value::I64(2)]).unwrap_err();
    assert_eq!(error.sqlstate, "07002");
    assert_eq!(row(&c, sql, &[Value::I64(7)]), first);
}

#[test]
fn two_statements_of_one_text_are_open_at_once() {
    let Some(c) = Profile::MariaDb.open() else {
        return;
    };
    let sql = "select id from t1000 where id <= ? order by id";
    let open = |n: i64| c.execute(sql, &[Value::I64(n)]).unwrap();
    for _ in 0..3 {
        let (one, other) = (open(3), open(2));
        let Statement::Odbc(mut one) = one else {
            unreachable!()
        };
        let cancel = one.cancel_handle();
        assert_eq!(one.fetch(Budget::default()).unwrap(), Fetched::Rows(3));
        drop(one);
        // A later statement reuses the ODBC handle of the dropped statement. The cancel handle of
        // the dropped statement must not cancel the later one.
        cancel.cancel();
        let again = open(1);
        cancel.cancel();
        for (statement, n) in [(other, 2), (again, 1)] {
            let Statement::Odbc(mut statement) = statement else {
                unreachable!()
            };
            assert_eq!(
                statement.fetch(Budget::default()).unwrap(),
                Fetched::Rows(n)
            );
            assert_eq!(statement.fetch(Budget::default()).unwrap(), Fetched::End);
        }
    }
}

#[test]
fn a_table_that_has_changed_is_read_as_it_is_now() {
    let (Some(c), Some(other)) = (Profile::MariaDb.open(), Profile::MariaDb.open()) else {
        return;
    };
    for sql in [
        "drop table if exists odbc_changed",
        "create table odbc_changed (a integer)",
    ] {
        run(&other, sql);
    }
    run(&other, "insert into odbc_changed values (1)");
    other.commit().unwrap();
    let sql = "select * from odbc_changed where a = ?";
    assert_eq!(row(&c, sql, &[Value::I64(1)]), [Kept::I64(1)]);
    for (change, expected) in [
        (
            "add column b varchar(10) default 'b'",
            vec![Kept::I64(1), text("b")],
        ),
        ("modify column a varchar(10)", vec![text("1"), text("b")]),
        ("drop column b", vec![text("1")]),
    ] {
        c.commit().unwrap();
        run(&other, &format!("alter table odbc_changed {change}"));
        assert_eq!(row(&c, sql, &[Value::I64(1)]), expected, "{change}");
    }
    c.commit().unwrap();
    run(&other, "drop table odbc_changed");
    let error = c.execute(sql, &[Value::I64(1)]).unwrap_err();
    assert_eq!(error.sqlstate, "42S02");
}

#[test]
fn changes_run_again_and_their_errors_are_their_own() {
    let Some(c) = Profile::MariaDb.open() else {
        return;
    };
    run(
        &c,
        "create temporary table odbc_again (a integer primary key, b longtext)",
    );
    let sql = "insert into odbc_again values (?, ?)";
    let long = "é".repeat(100_000);
    for n in 0..5 {
        for (a, b) in [(2 * n, "short".to_owned()), (2 * n + 1, long.clone())] {
            let statement = c.execute(sql, &[Value::I64(a), Value::Text(b)]).unwrap();
            assert_eq!(statement.row_count(), Some(1));
        }
        let error = c.execute(sql, &[Value::I64(n), Value::Null]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Integrity, "{error}");
    }
    let select = "select b from odbc_again where a = ?";
    for n in 0..10 {
        let expected = if n % 2 == 0 { "short" } else { long.as_str() };
        assert_eq!(row(&c, select, &[Value::I64(n)]), [text(expected)]);
    }
    // A statement with RETURNING returns the columns that the table has now, and is executed only
    // once.
    let Some(other) = Profile::MariaDb.open() else {
        return;
    };
    run(
        &other,
        "create or replace table odbc_again_kept (a integer)",
    );
    let sql = "insert into odbc_again_kept values (?) returning *";
    assert_eq!(row(&c, sql, &[Value::I64(1)]), [Kept::I64(1)]);
    c.commit().unwrap();
    run(
        &other,
        "alter table odbc_again_kept add column b integer default 7",
    );
    let sql = "insert into odbc_again_kept (a) values (?) returning *";
    assert_eq!(row(&c, sql, &[Value::I64(2)]), [Kept::I64(2), Kept::I64(7)]);
    c.commit().unwrap();
    run(
        &other,
        "alter table odbc_again_kept add column c integer default 8",
    );
    assert_eq!(
        row(&c, sql, &[Value::I64(3)]),
        [Kept::I64(3), Kept::I64(7), Kept::I64(8)]
    );
    let count = "select count(*) from odbc_again_kept";
    assert_eq!(row(&c, count, &[]), [Kept::I64(3)]);
    c.commit().unwrap();
    run(&other, "drop table odbc_again_kept");
    // Executes more SQL texts than the statement cache can contain.
    for n in 0..40 {
        let sql = format!("select ? + {}", n % 20);
        assert_eq!(row(&c, &sql, &[Value::I64(1)]), [Kept::I64(1 + n % 20)]);
    }
}
