//! Tests of three ODBC drivers for SQL Server with the test server of `tests/support/tds`: types,
//! long values, and parameters.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.
#![allow(clippy::print_stdout)] // Which database it was, or why it was skipped.

mod databases;

use databases::{Keeper, Kept, Profile, decimal, drain, row, rows, text};
use onecopy_rows::connect::Connection;
use onecopy_rows::{Budget, Date, LongValues, Time, Timestamp, Value};

fn each(test: impl Fn(Profile, &Connection)) {
    for profile in [Profile::TdsMicrosoft, Profile::TdsRust, Profile::TdsFreeTds] {
        if let Some(connection) = profile.open() {
            println!("{}", connection.describe());
            test(profile, &connection);
        }
    }
}

#[test]
fn every_type_arrives_exact() {
    each(|profile, c| {
        let one = |sql: &str| row(c, sql, &[]).remove(0);
        for (sql, expected) in [
            ("select cast(1 as bit)", Kept::Bool(true)),
            ("select cast(255 as tinyint)", Kept::I64(255)),
            ("select cast(-32768 as smallint)", Kept::I64(-32768)),
            ("select cast(-2147483648 as int)", Kept::I64(-2147483648)),
            (
                "select cast(9223372036854775807 as bigint)",
                Kept::I64(i64::MAX),
            ),
            ("select cast(1.5 as real)", Kept::F32(1.5)),
            (
                "select cast(-1829.3043138126723 as float)",
                Kept::F64(-1829.3043138126723),
            ),
            ("select cast('0.50' as decimal(10,2))", decimal("0.50")),
            ("select cast('-0.50' as decimal(10,2))", decimal("-0.50")),
            (
                "select cast('123456789012345678901234567890123456.12' as decimal(38,2))",
                decimal("123456789012345678901234567890123456.12"),
            ),
            (
                "select cast('-922337203685477.5808' as money)",
                decimal("-922337203685477.5808"),
            ),
            ("select cast('2020-02-29' as date)", Kept::Date(2020, 2, 29)),
            ("select cast('0001-01-01' as date)", Kept::Date(1, 1, 1)),
            (
                "select cast('2020-01-02 03:04:05.123456' as datetime2(7))",
                Kept::Timestamp("2020-01-02 03:04:05.123456000/7".to_owned()),
            ),
            (
                "select cast('2020-01-02 03:04:05' as datetime2(0))",
                Kept::Timestamp("2020-01-02 03:04:05.000000000/0".to_owned()),
            ),
            ("select cast(N'é日😀' as nvarchar(40))", text("é日😀")),
            ("select cast('caf' as varchar(40))", text("caf")),
            ("select cast(N'' as nvarchar(40))", text("")),
            ("select null", Kept::Null),
            ("select 0x00ff", Kept::Bytes(vec![0, 255])),
            (
                "select cast('7c4a2ee7-af3d-436d-acca-4e05919bdcea' as uniqueidentifier)",
                Kept::Uuid("7c4a2ee7af3d436dacca4e05919bdcea".to_owned()),
            ),
        ] {
            assert_eq!(one(sql), expected, "{profile:?}: {sql}");
        }
    });
}

#[test]
fn times_and_offsets_keep_their_fraction() {
    each(|profile, c| {
        let one = |sql: &str| row(c, sql, &[]).remove(0);
        assert_eq!(
            one("select cast('23:59:59.123456' as time(7))"),
            Kept::Time("23:59:59.123456000/7".to_owned()),
            "{profile:?}"
        );
        assert_eq!(
            one("select cast('2020-01-02 03:04:05.123456 -05:30' as datetimeoffset(7))"),
            Kept::Timestamp("2020-01-02 03:04:05.123456000/7-330".to_owned()),
            "{profile:?}"
        );
    });
}

#[test]
fn long_values_arrive_whole_and_in_parts() {
    each(|profile, c| {
        for n in [
            0usize, 1, 511, 512, 513, 4000, 4001, 8191, 100_000, 1_000_000,
        ] {
            let sql = format!(
                "select 7 as a, replicate(N'é', {n}) as t, 8 as b, \
                 cast(replicate(N'x', {n}) as varchar(max)) as v, N'ende' as s"
            );
            let expected = vec![vec![
                Kept::I64(7),
                Kept::Text("é".repeat(n)),
                Kept::I64(8),
                Kept::Text("x".repeat(n)),
                text("ende"),
            ]];
            let got = rows(c, &sql, &[]);
            assert!(got == expected, "{profile:?}: {n} characters");
            let mut keeper = Keeper::default();
            drain(
                c.execute(&sql, &[]).unwrap(),
                Budget::default(),
                LongValues::Parts { part_bytes: 65_536 },
                &mut keeper,
            );
            assert!(
                keeper.rows == expected,
                "{profile:?}: {n} characters in parts"
            );
            assert!(keeper.largest_part <= 65_536);
        }
    });
}

#[test]
fn rows_of_many_blocks_arrive_in_order() {
    each(|profile, c| {
        let statement = c.execute("select * from t31000", &[]).unwrap();
        let mut keeper = Keeper::default();
        drain(statement, Budget::default(), LongValues::Whole, &mut keeper);
        assert_eq!(keeper.rows.len(), 31_000, "{profile:?}");
        for (i, row) in keeper.rows.iter().enumerate() {
            assert_eq!(row[0], Kept::I64(i as i64 + 1), "{profile:?}");
        }
    });
}

#[test]
fn parameters_come_back_as_they_went() {
    each(|profile, c| {
        let one = |v: Value| row(c, "select ?", &[v]).remove(0);
        assert_eq!(one(Value::I64(7)), Kept::I64(7), "{profile:?}");
        assert_eq!(
            one(Value::I64(i64::MIN)),
            Kept::I64(i64::MIN),
            "{profile:?}"
        );
        assert_eq!(
            one(Value::F64(-1829.3043138126723)),
            Kept::F64(-1829.3043138126723),
            "{profile:?}"
        );
        assert_eq!(
            one(Value::Text("é日😀".to_owned())),
            text("é日😀"),
            "{profile:?}"
        );
        assert_eq!(one(Value::Text(String::new())), text(""), "{profile:?}");
        assert_eq!(
            one(Value::Text("é".repeat(5000))),
            Kept::Text("é".repeat(5000)),
            "{profile:?}"
        );
        assert_eq!(
            one(Value::Decimal("-12.340".to_owned())),
            decimal("-12.340"),
            "{profile:?}"
        );
        assert_eq!(
            one(Value::Bytes(vec![0, 1, 255])),
            Kept::Bytes(vec![0, 1, 255]),
            "{profile:?}"
        );
        assert_eq!(
            one(Value::Bytes(vec![7; 9000])),
            Kept::Bytes(vec![7; 9000]),
            "{profile:?}"
        );
        // Microsoft's driver in Rust sends a `bit` parameter as an `int`.
        let bit = one(Value::Bool(true));
        assert!(
            matches!(bit, Kept::Bool(true) | Kept::I64(1)),
            "{profile:?}: {bit:?}"
        );
        assert_eq!(one(Value::Null), Kept::Null, "{profile:?}");
        assert_eq!(
            one(Value::Date(Date {
                year: 2020,
                month: 2,
                day: 29
            })),
            Kept::Date(2020, 2, 29),
            "{profile:?}"
        );
        let timestamp = Timestamp {
            date: Date {
                year: 2020,
                month: 1,
                day: 2,
            },
            time: Time {
                hour: 3,
                minute: 4,
                second: 5,
                nanosecond: 123_456_700,
            },
            offset_minutes: None,
        };
        let Kept::Timestamp(got) = one(Value::Timestamp(timestamp)) else {
            panic!("{profile:?}")
        };
        assert!(
            got.starts_with("2020-01-02 03:04:05.1234567"),
            "{profile:?}: {got}"
        );
        assert_eq!(
            one(Value::Uuid([0x12; 16])),
            Kept::Uuid("12".repeat(16)),
            "{profile:?}"
        );
    });
}

#[test]
fn a_failure_inside_the_rows_is_an_error_and_no_end() {
    use onecopy_rows::{Fetched, Source};
    each(|profile, c| {
        let statement = c.execute("select * from t31000 /* error after 500 */", &[]);
        let Ok(onecopy_rows::connect::Statement::Odbc(mut statement)) = statement else {
            panic!("{profile:?}: the first rows are right");
        };
        let error = loop {
            match statement.fetch(Budget::default()) {
                Ok(Fetched::Rows(_)) => {}
                Ok(Fetched::End) => panic!("{profile:?}: a truncated result looks complete"),
                Err(error) => break error,
            }
        };
        println!("{profile:?}: {error:?}");
    });
}
