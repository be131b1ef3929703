//! Tests of values that are longer than their buffers, through each driver that supports such
//! values. The values are read whole and in parts, and their lengths are around the sizes of the
//! buffers.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use databases::{Keeper, Kept, Profile, drain, rows, run, text};
use onecopy_rows::connect::Connection;
use onecopy_rows::{Budget, LongValues, Value};

const PROFILES: [Profile; 4] = [
    Profile::Postgres,
    Profile::PostgresAnsi,
    Profile::MariaDb,
    Profile::SqliteOdbc,
];

/// The tested lengths in characters. They are around the sizes of the buffers that this crate uses
/// for a value or a part of it, and around 8,190, a limit of psqlodbc.
const LENGTHS: [usize; 19] = [
    0, 1, 255, 256, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 8189, 8190, 8191, 16_383, 16_384,
    65_535, 65_536, 200_001,
];

fn table(profile: Profile, c: &Connection, name: &str) {
    run(c, &format!("drop table if exists {name}"));
    let (text_type, bytes_type, tail) = match profile {
        Profile::MariaDb => ("longtext", "longblob", " character set utf8mb4"),
        Profile::SqliteOdbc => ("text", "blob", ""),
        _ => ("text", "bytea", ""),
    };
    run(
        c,
        &format!(
            "create table {name} (id integer, t {text_type}, n integer, b {bytes_type}, s varchar(20)){tail}"
        ),
    );
}

fn sample(length: usize, seed: usize) -> String {
    let alphabet = ["a", "é", "日", "😀", "z"];
    (0..length)
        .map(|i| alphabet[(i + i / 7 + seed) % 5])
        .collect()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 % 256) as u8).collect()
}

fn fill(c: &Connection, name: &str) -> Vec<Vec<Kept>> {
    let mut expected = Vec::new();
    for (i, length) in LENGTHS.into_iter().enumerate() {
        let (t, b) = (sample(length, i), bytes(length));
        let null = i % 5 == 4;
        let value = |v: Value| if null { Value::Null } else { v };
        c.execute(
            &format!("insert into {name} values (?, ?, ?, ?, ?)"),
            &[
                Value::I64(i as i64),
                Value::Text(t.clone()),
                Value::I64(-(i as i64)),
                value(Value::Bytes(b.clone())),
                Value::Text(format!("ende {i}")),
            ],
        )
        .unwrap_or_else(|e| panic!("{length}: {e}"));
        expected.push(vec![
            Kept::I64(i as i64),
            Kept::Text(t),
            Kept::I64(-(i as i64)),
            if null { Kept::Null } else { Kept::Bytes(b) },
            text(&format!("ende {i}")),
        ]);
    }
    c.commit().unwrap();
    expected
}

fn assert_rows(got: &[Vec<Kept>], expected: &[Vec<Kept>], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (row, (g, e)) in got.iter().zip(expected).enumerate() {
        for (column, (g, e)) in g.iter().zip(e).enumerate() {
            assert!(
                g == e,
                "{what}: row {row}, column {column}: {}",
                difference(g, e)
            );
        }
    }
}

fn difference(g: &Kept, e: &Kept) -> String {
    match (g, e) {
        (Kept::Text(g), Kept::Text(e)) => {
            let at = g.bytes().zip(e.bytes()).position(|(a, b)| a != b);
            format!(
                "{} bytes for {}, first difference at {at:?}",
                g.len(),
                e.len()
            )
        }
        (Kept::Bytes(g), Kept::Bytes(e)) => format!("{} bytes for {}", g.len(), e.len()),
        _ => format!("{g:?} for {e:?}"),
    }
}

#[test]
fn long_values_arrive_whole_at_every_length() {
    for profile in PROFILES {
        let Some((c, _own)) = profile.open_own() else {
            continue;
        };
        table(profile, &c, "odbc_long_whole");
        let expected = fill(&c, "odbc_long_whole");
        let got = rows(&c, "select * from odbc_long_whole order by id", &[]);
        assert_rows(&got, &expected, &format!("{profile:?}"));
        run(&c, "drop table odbc_long_whole");
        c.commit().unwrap();
    }
}

#[test]
fn long_values_arrive_in_parts_of_bounded_size() {
    for profile in PROFILES {
        let Some((c, _own)) = profile.open_own() else {
            continue;
        };
        table(profile, &c, "odbc_long_parts");
        let expected = fill(&c, "odbc_long_parts");
        for part_bytes in [1000, 4096, 65_536] {
            for pause_after in [0, 1] {
                let statement = c
                    .execute("select * from odbc_long_parts order by id", &[])
                    .unwrap();
                let mut keeper = Keeper::default();
                keeper.pause_after = pause_after;
                drain(
                    statement,
                    Budget::default(),
                    LongValues::Parts { part_bytes },
                    &mut keeper,
                );
                assert_rows(
                    &keeper.rows,
                    &expected,
                    &format!("{profile:?}, parts of {part_bytes}"),
                );
                assert!(
                    keeper.largest_part <= part_bytes,
                    "{profile:?}: {}",
                    keeper.largest_part
                );
                assert!(keeper.n_parts > 10, "{profile:?}: {}", keeper.n_parts);
            }
        }
        run(&c, "drop table odbc_long_parts");
        c.commit().unwrap();
    }
}

#[test]
fn small_budgets_give_the_same_rows() {
    for profile in PROFILES {
        let Some((c, _own)) = profile.open_own() else {
            continue;
        };
        table(profile, &c, "odbc_long_small");
        let expected = fill(&c, "odbc_long_small");
        for (block_bytes, block_rows) in [(1, 1), (3000, 3), (100_000, 7)] {
            let statement = c
                .execute("select * from odbc_long_small order by id", &[])
                .unwrap();
            let budget = Budget {
                block_bytes,
                block_rows,
            };
            let mut keeper = Keeper::default();
            drain(statement, budget, LongValues::Whole, &mut keeper);
            assert_rows(&keeper.rows, &expected, &format!("{profile:?} {budget:?}"));
        }
        run(&c, "drop table odbc_long_small");
        c.commit().unwrap();
    }
}

#[test]
fn a_cell_of_three_megabytes_passes_whole() {
    for profile in PROFILES {
        let Some((c, _own)) = profile.open_own() else {
            continue;
        };
        table(profile, &c, "odbc_long_big");
        let (t, b) = (sample(1_000_000, 0), bytes(3 << 20));
        let parameters = [
            Value::I64(1),
            Value::Text(t.clone()),
            Value::Bytes(b.clone()),
        ];
        c.execute(
            "insert into odbc_long_big (id, t, b) values (?, ?, ?)",
            &parameters,
        )
        .unwrap_or_else(|e| panic!("{profile:?}: {e}"));
        let got = rows(&c, "select id, t, n, b, s from odbc_long_big", &[]);
        let expected = vec![vec![
            Kept::I64(1),
            Kept::Text(t),
            Kept::Null,
            Kept::Bytes(b),
            Kept::Null,
        ]];
        assert_rows(&got, &expected, &format!("{profile:?}"));
        c.rollback().unwrap();
        run(&c, "drop table if exists odbc_long_big");
        c.commit().unwrap();
    }
}
