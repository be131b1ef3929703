//! Tests of PostgreSQL through both psqlodbc drivers (`psqlodbcw` and `psqlodbca`).

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.
#![allow(clippy::print_stdout)] // Which database it was, or why it was skipped.

mod databases;

use databases::{Keeper, Kept, Profile, decimal, open_with, row, rows, run, text};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{Block, Budget, Date, ErrorKind, Fetched, Source, Time, Timestamp, Value};

/// Runs `test` with a connection of each of the two drivers.
fn both(test: impl Fn(&Connection)) {
    for profile in [Profile::Postgres, Profile::PostgresAnsi] {
        if let Some(connection) = profile.open() {
            println!("{}", connection.describe());
            test(&connection);
        }
    }
}

#[test]
fn every_type_arrives_exact() {
    both(|c| {
        let got = row(
            c,
            "select true, 1::int2, -2147483648, 9223372036854775807, 1.5::float4, -1829.3043138126723::float8, \
             123456789012345678901234567890123456.12::numeric(38,2), 0.5::numeric, \
             '-1234.50'::money, 'é日😀'::varchar(40), \
             'x'::char(3), '\\x00ff'::bytea, date '2020-02-29', time '01:02:03.5', \
             timestamp '2020-01-02 03:04:05.123456', \
             timestamptz '2020-07-02 03:04:05.5+09', \
             '7c4a2ee7-af3d-436d-acca-4e05919bdcea'::uuid, '{\"a\": 1}'::jsonb, \
             4294967295::oid, null::int, ''::text",
            &[],
        );
        let expected = vec![
            Kept::Bool(true),
            Kept::I64(1),
            Kept::I64(-2147483648),
            Kept::I64(i64::MAX),
            Kept::F32(1.5),
            Kept::F64(-1829.3043138126723),
            decimal("123456789012345678901234567890123456.12"),
            decimal("0.5"),
            decimal("-1234.50"),
            text("é日😀"),
            text("x  "),
            Kept::Bytes(vec![0, 255]),
            Kept::Date(2020, 2, 29),
            Kept::Time("01:02:03.500000000/6".to_owned()),
            Kept::Timestamp("2020-01-02 03:04:05.123456000/6".to_owned()),
            Kept::Timestamp("2020-07-01 18:04:05.500000000/6+0".to_owned()),
            Kept::Uuid("7c4a2ee7af3d436dacca4e05919bdcea".to_owned()),
            text("{\"a\": 1}"),
            Kept::I64(4294967295),
            Kept::Null,
            text(""),
        ];
        assert_eq!(got, expected);
    });
}

#[test]
fn rows_of_many_blocks_arrive_in_order() {
    both(|c| {
        let got = rows(
            c,
            "select g, repeat('é', g % 50)::varchar(60) from generate_series(1, 10000) g",
            &[],
        );
        assert_eq!(got.len(), 10_000);
        for (i, row) in got.iter().enumerate() {
            let n = i + 1;
            assert_eq!(row[0], Kept::I64(n as i64));
            assert_eq!(row[1], Kept::Text("é".repeat(n % 50)));
        }
        run(c, "select 1");
    });
}

#[test]
fn dates_that_the_driver_makes_up_are_refused() {
    both(|c| {
        for value in [
            "date 'infinity'",
            "date '12020-01-01'",
            "timestamp '120020-01-01'",
            "timestamptz '12000-05-06 01:02:03+00'",
        ] {
            // The invalid value is in row 899 (from 0), so it is not the first row of its block.
            let sql = format!(
                "select g, case when g = 900 then {value} end as \"wann\" from generate_series(1, 1000) g"
            );
            let Statement::Odbc(mut s) = c.execute(&sql, &[]).unwrap() else {
                unreachable!()
            };
            // The rows before the invalid one are returned before the error.
            let mut before = 0;
            let error = loop {
                match s.fetch(Budget::default()) {
                    Ok(Fetched::Rows(n)) => before += n,
                    Ok(Fetched::End) => panic!("{value}"),
                    Err(error) => break error,
                }
            };
            assert_eq!((before, error.row), (899, Some(899)), "{value}");
            assert_eq!(error.kind, ErrorKind::Data, "{value}");
            assert_eq!(error.column.as_deref(), Some(&(1, "wann".to_owned())));
        }
        // The current date itself is a valid value, although the driver also returns it for dates
        // that it cannot parse.
        let got = row(
            c,
            "select current_date = ?::date, current_date::timestamp",
            &[Value::Date(today(c))],
        );
        assert_eq!(got[0], Kept::Bool(true));
    });
}

fn today(c: &Connection) -> Date {
    let got = row(
        c,
        "select extract(year from current_date)::int, extract(month from current_date)::int, \
         extract(day from current_date)::int",
        &[],
    );
    let [Kept::I64(year), Kept::I64(month), Kept::I64(day)] = got[..] else {
        panic!("{got:?}")
    };
    Date {
        year: year as i32,
        month: month as u8,
        day: day as u8,
    }
}

#[test]
fn offsets_are_right_in_every_time_zone_of_the_server() {
    for profile in [Profile::Postgres, Profile::PostgresAnsi] {
        let Some(string) = profile.string() else {
            continue;
        };
        // An administrator may set the time zone of a role or a database.
        let c = open_with(
            &format!(
                "{string};ConnSettings={{SET CLIENT_ENCODING TO 'UTF8'; SET TIME ZONE 'Asia/Kolkata'}}"
            ),
            &ConnectOptions::default(),
        );
        assert!(
            c.notices().iter().any(|n| n.contains("Asia/Kolkata")),
            "{:?}",
            c.notices()
        );
        let got = row(
            &c,
            "select timestamptz '2020-07-02 03:04:05.5+09', timestamp '2020-07-02 03:04:05.5'",
            &[],
        );
        assert_eq!(
            got,
            [
                Kept::Timestamp("2020-07-01 18:04:05.500000000/6+0".to_owned()),
                Kept::Timestamp("2020-07-02 03:04:05.500000000/6".to_owned()),
            ]
        );
    }
}

#[test]
fn parameters_of_every_kind_arrive_exact() {
    both(|c| {
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
        let aware = Timestamp {
            date,
            time,
            offset_minutes: Some(-330),
        };
        for (sql, value, expected) in [
            ("select ?::bool", Value::Bool(true), Kept::Bool(true)),
            ("select ?::bool", Value::Bool(false), Kept::Bool(false)),
            ("select ?::int8", Value::I64(i64::MIN), Kept::I64(i64::MIN)),
            ("select repeat('x', ?)", Value::I64(3), text("xxx")),
            (
                "select ?::float8",
                Value::F64(-1829.3043138126723),
                Kept::F64(-1829.3043138126723),
            ),
            (
                "select ?::numeric",
                Value::Decimal("-12.340".to_owned()),
                decimal("-12.340"),
            ),
            (
                "select ?::numeric",
                Value::Decimal("9".repeat(60)),
                Kept::Decimal("9".repeat(60)),
            ),
            (
                "select ?::text",
                Value::Text("é日😀'\\%".to_owned()),
                text("é日😀'\\%"),
            ),
            ("select ?::text", Value::Text(String::new()), text("")),
            (
                "select ?::bytea",
                Value::Bytes((0..=255).collect()),
                Kept::Bytes((0..=255).collect()),
            ),
            ("select ?::date", Value::Date(date), Kept::Date(2020, 2, 29)),
            (
                "select ?::time",
                Value::Time(time),
                Kept::Time("01:02:03.456789000/6".to_owned()),
            ),
            (
                "select ?::timestamp",
                Value::Timestamp(naive),
                Kept::Timestamp("2020-02-29 01:02:03.456789000/6".to_owned()),
            ),
            (
                "select ?::timestamptz",
                Value::Timestamp(aware),
                Kept::Timestamp("2020-02-29 06:32:03.456789000/6+0".to_owned()),
            ),
            (
                "select ?::uuid",
                Value::Uuid([0x12; 16]),
                Kept::Uuid("12".repeat(16)),
            ),
        ] {
            assert_eq!(
                row(c, sql, std::slice::from_ref(&value)),
                [expected],
                "{sql} {value:?}"
            );
        }
        for kind in [
            "bool",
            "int",
            "float8",
            "numeric",
            "text",
            "bytea",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "uuid",
            "jsonb",
        ] {
            run(c, "drop table if exists odbc_nulls");
            run(c, &format!("create table odbc_nulls (n {kind})"));
            c.execute("insert into odbc_nulls values (?)", &[Value::Null])
                .unwrap_or_else(|e| panic!("{kind}: {e}"));
            assert_eq!(
                row(c, "select n from odbc_nulls", &[]),
                [Kept::Null],
                "{kind}"
            );
        }
        c.rollback().unwrap();
    });
}

#[test]
fn two_statements_are_read_in_turn() {
    both(|c| {
        let open = |n: i32| {
            let Statement::Odbc(s) = c
                .execute(
                    &format!("select g, repeat('é', 3000) from generate_series({n}, {n} + 4999) g"),
                    &[],
                )
                .unwrap()
            else {
                unreachable!()
            };
            s
        };
        let (mut a, mut b) = (open(1), open(100_001));
        let (mut rows_a, mut rows_b) = (Keeper::default(), Keeper::default());
        loop {
            let mut ended = 0;
            for (s, keeper) in [(&mut a, &mut rows_a), (&mut b, &mut rows_b)] {
                match s.fetch(Budget::default()).unwrap() {
                    Fetched::Rows(_) => {
                        s.block().emit(0, keeper).unwrap();
                    }
                    Fetched::End => ended += 1,
                }
            }
            if ended == 2 {
                break;
            }
        }
        for (keeper, first) in [(&rows_a, 1), (&rows_b, 100_001)] {
            assert_eq!(keeper.rows.len(), 5000);
            assert!(
                keeper
                    .rows
                    .iter()
                    .enumerate()
                    .all(|(i, r)| r[0] == Kept::I64(first + i as i64))
            );
        }
    });
}

#[test]
fn a_server_that_goes_away_inside_the_rows_is_an_error() {
    both(|c| {
        let Some(other) = Profile::Postgres.open() else {
            return;
        };
        let [Kept::I64(pid)] = row(c, "select pg_backend_pid()", &[])[..] else {
            panic!()
        };
        let Statement::Odbc(mut s) = c
            .execute(
                "select g, repeat('x', 200) from generate_series(1, 1000000) g",
                &[],
            )
            .unwrap()
        else {
            unreachable!()
        };
        s.fetch(Budget::default()).unwrap();
        assert_eq!(
            row(&other, "select pg_terminate_backend(?)", &[Value::I64(pid)]),
            [Kept::Bool(true)]
        );
        let error = loop {
            match s.fetch(Budget::default()) {
                Ok(Fetched::Rows(_)) => {}
                Ok(Fetched::End) => panic!("a truncated result looks complete"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error.kind, ErrorKind::Operational), "{error:?}");
        assert!(c.execute("select 1", &[]).is_err());
        let _ = c.close();
    });
}
