//! PostgreSQL through both psqlodbc drivers.

mod databases;

use databases::{Kept, Profile, decimal, row, rows, run, text};
use onecopy_rows::connect::Connection;

/// Runs `test` with each of the two drivers.
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
             123456789012345678901234567890123456.12::numeric(38,2), 0.5::numeric, '-1234.50'::money, 'é日😀'::varchar(40), \
             'x'::char(3), '\\x00ff'::bytea, date '2020-02-29', time '01:02:03.5', timestamp '2020-01-02 03:04:05.123456', \
             timestamptz '2020-07-02 03:04:05.5+09', '7c4a2ee7-af3d-436d-acca-4e05919bdcea'::uuid, '{\"a\": 1}'::jsonb, \
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
