//! Tests of SQL strings with several statements, and of statements that fail after some rows: no
//! row and no error may be lost.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use databases::{Keeper, Kept, Profile, open_with, row, run};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{Block, Budget, Error, ErrorKind, Fetched, Source, Value};

const SQL_SERVER: [Profile; 3] = [Profile::TdsFreeTds, Profile::TdsMicrosoft, Profile::TdsRust];

/// Returns the rows of a statement, and the error that ended them, if any.
fn read(statement: Statement) -> (Vec<Vec<Kept>>, Result<(), Error>) {
    let Statement::Odbc(mut statement) = statement else {
        panic!("these tests are for ODBC");
    };
    let mut keeper = Keeper::default();
    loop {
        match statement.fetch(Budget::default()) {
            Ok(Fetched::Rows(_)) => drop(statement.block().emit(0, &mut keeper).unwrap()),
            Ok(Fetched::End) => return (keeper.rows, Ok(())),
            Err(error) => return (keeper.rows, Err(error)),
        }
    }
}

fn numbers(rows: &[Vec<Kept>]) -> Vec<i64> {
    rows.iter()
        .map(|row| match row[0] {
            Kept::I64(n) => n,
            ref other => panic!("{other:?}"),
        })
        .collect()
}

/// Executes SQL that must fail, at its execution or while its rows are read. Returns the rows
/// before the failure, and the error.
fn fails(c: &Connection, sql: &str) -> (Vec<i64>, Error) {
    match c.execute(sql, &[]) {
        Err(error) => (Vec::new(), error),
        Ok(statement) => {
            let (rows, end) = read(statement);
            (numbers(&rows), end.expect_err(sql))
        }
    }
}

/// Calls `test` for each server that executes several statements of one SQL string, with a
/// connection that has an empty temporary table `odbc_results`.
fn with_table(test: impl Fn(Profile, &Connection)) {
    for profile in [Profile::Postgres, Profile::PostgresAnsi, Profile::MariaDb] {
        let Some(mut string) = profile.string() else {
            continue;
        };
        if profile == Profile::MariaDb {
            string.push_str(";OPTION=67108864"); // FLAG_MULTI_STATEMENTS
        }
        let c = open_with(&string, &ConnectOptions::default());
        run(&c, "create temporary table odbc_results (n integer)");
        c.commit().unwrap();
        test(profile, &c);
    }
}

fn count(c: &Connection) -> Kept {
    row(c, "select count(*) from odbc_results", &[]).remove(0)
}

#[test]
fn every_statement_of_a_text_runs() {
    with_table(|profile, c| {
        let two = "insert into odbc_results values (1); insert into odbc_results values (2), (3);";
        let statement = c.execute(two, &[]).unwrap();
        assert_eq!(statement.row_count(), Some(3), "{profile:?}");
        drop(statement);
        assert_eq!(count(c), Kept::I64(3), "{profile:?}");
        let following = "insert into odbc_results values (4); select 7 as n";
        let (rows, end) = read(c.execute(following, &[]).unwrap());
        end.unwrap();
        assert_eq!(numbers(&rows), [7], "{profile:?}");
        let before = "select 8 as n; insert into odbc_results values (5)";
        let (rows, end) = read(c.execute(before, &[]).unwrap());
        end.unwrap();
        assert_eq!(numbers(&rows), [8], "{profile:?}");
        assert_eq!(count(c), Kept::I64(5), "{profile:?}");
    });
}

#[test]
fn a_later_statement_that_fails_is_an_error_wherever_it_stands() {
    with_table(|profile, c| {
        for sql in [
            "insert into odbc_results values (1); insert into nowhere values (1)",
            "insert into odbc_results values (1); insert into odbc_results values (2); selec",
            "select 1 as n; insert into nowhere values (1)",
            "select 1 as n; selec",
        ] {
            let (_, error) = fails(c, sql);
            // For an error of a later statement, MariaDB's driver reports only HY000 and no native
            // code.
            let at_fault = ["nowhere", "selec"]
                .iter()
                .any(|w| error.message.contains(w));
            assert!(at_fault, "{profile:?} {sql}: {error}");
            if profile != Profile::MariaDb {
                assert_eq!(
                    error.kind,
                    ErrorKind::Programming,
                    "{profile:?} {sql}: {error}"
                );
            }
            c.rollback().unwrap();
        }
        assert_eq!(count(c), Kept::I64(0), "{profile:?}");
    });
}

#[test]
fn rows_of_a_second_statement_are_an_error_behind_those_of_the_first() {
    with_table(|profile, c| {
        let (rows, error) = fails(c, "select 1 as n union all select 2; select 3 as n");
        assert_eq!(rows, [1, 2], "{profile:?}");
        assert_eq!(error.kind, ErrorKind::NotSupported, "{profile:?}: {error}");
        assert!(error.message.contains("one by one"), "{error}");
        // The connection can execute another statement.
        assert_eq!(count(c), Kept::I64(0), "{profile:?}");
    });
}

#[test]
fn executing_many_runs_all_statements_of_each_row() {
    with_table(|profile, c| {
        let sql = "insert into odbc_results values (?); insert into odbc_results values (?)";
        let pair = |a, b| vec![Value::I64(a), Value::I64(b)];
        let pairs = [pair(1, 2), pair(3, 4)].into_iter();
        match c.execute_many(sql, &mut pairs.map(Ok)) {
            Ok(changed) => {
                assert_eq!(changed, Some(4), "{profile:?}");
                assert_eq!(count(c), Kept::I64(4), "{profile:?}");
            }
            // A server that cannot prepare several statements together reports an error.
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Programming, "{profile:?}: {error}");
                c.rollback().unwrap();
                assert_eq!(count(c), Kept::I64(0), "{profile:?}");
            }
        }
    });
}

#[test]
fn drivers_that_take_one_statement_refuse_the_text() {
    for profile in [Profile::MariaDb, Profile::SqliteOdbc] {
        let Some(c) = profile.open() else { continue };
        run(&c, "drop table if exists odbc_refused");
        run(&c, "create table odbc_refused (n integer)");
        c.commit().unwrap();
        for sql in [
            "insert into odbc_refused values (1); insert into odbc_refused values (2)",
            "select 1; insert into odbc_refused values (1)",
        ] {
            assert!(c.execute(sql, &[]).is_err(), "{profile:?} {sql}");
        }
        let rows = row(&c, "select count(*) from odbc_refused", &[]);
        assert_eq!(rows, [Kept::I64(0)], "{profile:?}");
        run(&c, "drop table odbc_refused");
        c.commit().unwrap();
    }
}

#[test]
fn a_batch_of_sql_server_runs_to_its_end() {
    for profile in SQL_SERVER {
        let Some(c) = profile.open() else { continue };
        let counts = "insert into x values (1); update x set n = 2; set nocount off";
        let statement = c.execute(counts, &[]).unwrap();
        assert_eq!(statement.row_count(), Some(2), "{profile:?}");
        drop(statement);
        let sql = "set nocount on; insert into x values (1); select 7 as n from repeat(3); update x set n = 3";
        let (rows, end) = read(c.execute(sql, &[]).unwrap());
        end.unwrap();
        assert_eq!(numbers(&rows), [7, 7, 7], "{profile:?}");
        let (rows, error) = fails(&c, "select 1 as n from repeat(2000); select 2 as n");
        assert_eq!(rows.len(), 2000, "{profile:?}");
        assert_eq!(error.kind, ErrorKind::NotSupported, "{profile:?}: {error}");
        // The first statement returns no rows, and the second one fails before its first row.
        let (_, error) = fails(
            &c,
            "insert into x values (1); select 2 as n from repeat(3) /* error after 0 */",
        );
        assert_eq!(error.native, 50000, "{profile:?}: {error}");
        assert_eq!(row(&c, "select 5 as n", &[]), [Kept::I64(5)], "{profile:?}");
    }
}

#[test]
fn the_rows_before_an_error_of_the_server_come_first() {
    for profile in SQL_SERVER {
        let Some(c) = profile.open() else { continue };
        for n in [1, 31, 3000, 4999] {
            let sql = format!("select 7 as n from repeat(5000) /* error after {n} */");
            let (rows, error) = fails(&c, &sql);
            assert_eq!(error.native, 50000, "{profile:?}: {error}");
            assert_eq!(rows.len(), n, "{profile:?}");
            let sql = format!(
                "select 7 as n, replicate(N'é', 3000) as t from repeat(5000) /* error after {n} */"
            );
            let (rows, error) = fails(&c, &sql);
            assert_eq!(error.native, 50000, "{profile:?}: {error}");
            assert_eq!(rows.len(), n, "{profile:?}");
        }
    }
    for profile in [Profile::Postgres, Profile::PostgresAnsi] {
        let Some(c) = profile.open() else { continue };
        for n in [1, 31, 32, 33, 900, 3000, 8999_i64] {
            for text in ["", ", repeat('é', 10) as t"] {
                let sql =
                    format!("select g + 0 / ({n} - g) as n{text} from generate_series(0, 9000) g");
                let n = usize::try_from(n).unwrap();
                let (rows, error) = fails(&c, &sql);
                assert_eq!(error.sqlstate, "22012", "{profile:?}: {error}");
                // If the fetch of a block fails, the driver discards the rows of that block that it
                // has received; the rows of earlier blocks are returned. The first block has 32
                // rows, later blocks have up to 1,000 rows. Blocks without a text column have up to
                // 4,096 rows.
                let lost = if text.is_empty() || n < 32 {
                    n.min(4096)
                } else {
                    (n - 32).min(999)
                };
                assert!(
                    rows.len() <= n && rows.len() + lost >= n,
                    "{profile:?} {n}: {}",
                    rows.len()
                );
                assert!(
                    rows.iter().zip(0..).all(|(row, i)| *row == i),
                    "{profile:?} {n}"
                );
                c.rollback().unwrap();
            }
        }
    }
}
