//! Tests that each driver returns the same cells for the same table, `t31000`.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use databases::skips::skip;
use databases::{Kept, Profile, rows};

/// The query for the rows of the table. `python3 -m tests.support.servers load 31000` creates the
/// table.
const TABLE: &str = "select * from t31000 order by id";

#[test]
fn every_driver_gives_the_same_rows() {
    let mut reference: Option<(Profile, Vec<Vec<Kept>>)> = None;
    for profile in [
        Profile::Postgres,
        Profile::PostgresAnsi,
        Profile::MariaDb,
        Profile::TdsMicrosoft,
        Profile::TdsRust,
        Profile::TdsFreeTds,
    ] {
        let Some(c) = profile.open() else { continue };
        if let Err(error) = c.execute("select id from t31000 where id = 1", &[]) {
            skip(&format!("{profile:?} has no t31000 (load it): {error}"));
            continue;
        }
        let query = if format!("{profile:?}").starts_with("Tds") {
            "select * from t31000"
        } else {
            TABLE
        };
        let got: Vec<Vec<Kept>> = rows(&c, query, &[]).into_iter().map(comparable).collect();
        assert_eq!(got.len(), 31_000, "{profile:?}");
        match &reference {
            None => reference = Some((profile, got)),
            Some((first, expected)) => {
                for (number, (g, e)) in got.iter().zip(expected).enumerate() {
                    assert_eq!(g, e, "{profile:?} and {first:?} differ in row {number}");
                }
            }
        }
    }
}

/// Removes from timestamps the declared number of digits of the fraction, which may differ between
/// databases.
fn comparable(row: Vec<Kept>) -> Vec<Kept> {
    row.into_iter()
        .map(|cell| match cell {
            Kept::Timestamp(t) => {
                Kept::Timestamp(t.split('/').next().unwrap_or_default().to_owned())
            }
            other => other,
        })
        .collect()
}
