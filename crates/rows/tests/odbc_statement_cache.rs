//! Tests of the cache of prepared statements on PostgreSQL through psqlodbc. A SQL string is
//! prepared and cached if its last results were short; otherwise it is executed with a server-side
//! cursor.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.
#![allow(clippy::print_stdout)] // Which database it was, or why it was skipped.

mod databases;

use databases::{Kept, Profile, open_with, row, rows, run, text};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{Budget, Date, ErrorKind, Fetched, Source, Value};

/// The number of consecutive short results of a SQL string after which the driver layer expects
/// another short result, and prepares the statement without a cursor.
const ENOUGH: usize = 3;

/// Runs `test` with each of the two psqlodbc drivers, with autocommit off and on.
fn each(test: impl Fn(&Connection)) {
    for profile in [Profile::Postgres, Profile::PostgresAnsi] {
        for autocommit in [false, true] {
            let Some(connection) = profile.open() else {
                continue;
            };
            connection.set_autocommit(autocommit).unwrap();
            println!("{} {autocommit}", connection.describe());
            test(&connection);
        }
    }
}

fn streaming(stream: bool) -> Option<Connection> {
    let options = ConnectOptions {
        stream: Some(stream),
        ..ConnectOptions::default()
    };
    Some(open_with(&Profile::Postgres.string()?, &options))
}

/// Returns the prepared statements of this session on the server: the SQL text and the number of
/// executions of each.
fn prepared(c: &Connection) -> Vec<(String, i64)> {
    let sql = "select statement, generic_plans + custom_plans from pg_prepared_statements order by prepare_time";
    let executed = |row: Vec<Kept>| match (&row[0], &row[1]) {
        (Kept::Text(sql), Kept::I64(n)) => (sql.clone(), *n),
        other => panic!("{other:?}"),
    };
    rows(c, sql, &[]).into_iter().map(executed).collect()
}

/// Executes a SQL string with short results [`ENOUGH`] times, so that its next execution uses no
/// cursor.
fn teach(c: &Connection, sql: &str, parameters: &[Value]) {
    for _ in 0..ENOUGH {
        rows(c, sql, parameters);
    }
}

const POINT: &str = "select id, name from t1000 where id = ?";

#[test]
fn a_text_with_short_results_is_prepared_once_and_its_plan_kept() {
    each(|c| {
        let first = row(c, POINT, &[Value::I64(7)]);
        for _ in 1..ENOUGH {
            row(c, POINT, &[Value::I64(7)]);
        }
        assert_eq!(prepared(c), []);
        for n in 1..=10 {
            assert_eq!(row(c, POINT, &[Value::I64(n)])[0], Kept::I64(n));
        }
        assert_eq!(row(c, POINT, &[Value::I64(7)]), first);
        assert_eq!(rows(c, POINT, &[Value::I64(-1)]), Vec::<Vec<Kept>>::new());
        let kept = prepared(c);
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(kept[0].1, 12, "{kept:?}");
    });
}

#[test]
fn a_result_of_which_not_all_was_seen_is_not_short() {
    each(|c| {
        let sql = "select id from t1000 where id > ? order by id";
        for _ in 0..2 * ENOUGH {
            let Statement::Odbc(mut statement) = c.execute(sql, &[Value::I64(0)]).unwrap() else {
                unreachable!()
            };
            assert!(matches!(
                statement.fetch(Budget::default()).unwrap(),
                Fetched::Rows(1..)
            ));
        }
        assert_eq!(prepared(c), []);
        // A long result does not count as short if only one of its rows is fetched.
        let few = Budget {
            block_rows: 1,
            ..Budget::default()
        };
        for _ in 0..2 * ENOUGH {
            let Statement::Odbc(mut statement) = c.execute(sql, &[Value::I64(0)]).unwrap() else {
                unreachable!()
            };
            assert_eq!(statement.fetch(few).unwrap(), Fetched::Rows(1));
        }
        assert_eq!(prepared(c), []);
    });
}

#[test]
fn a_long_result_sends_its_text_back_to_cursors_for_good() {
    each(|c| {
        let sql = "select id from t31000 where id <= ? order by id";
        teach(c, sql, &[Value::I64(3)]);
        let all = rows(c, sql, &[Value::I64(5000)]);
        assert_eq!(all.len(), 5000);
        assert_eq!(all[4999], [Kept::I64(5000)]);
        assert_eq!(prepared(c), []);
        teach(c, sql, &[Value::I64(3)]);
        teach(c, sql, &[Value::I64(3)]);
        assert_eq!(prepared(c), []);
        // A result of medium length (499 rows) does not make the next execution use a cursor.
        let other = "select id from t31000 where id < ? order by id";
        teach(c, other, &[Value::I64(3)]);
        assert_eq!(rows(c, other, &[Value::I64(500)]).len(), 499);
        assert_eq!(rows(c, other, &[Value::I64(3)]).len(), 2);
        assert_eq!(prepared(c).len(), 1);
    });
}

#[test]
fn types_of_parameters_are_those_of_each_execution() {
    each(|c| {
        let outcome = |c: &Connection, sql: &str, value: &Value| match c
            .execute(sql, std::slice::from_ref(value))
        {
            Err(error) => {
                c.rollback().unwrap();
                Err(error.sqlstate)
            }
            Ok(_) => Ok(rows(c, sql, std::slice::from_ref(value))),
        };
        run(
            c,
            "create temporary table odbc_kept_types (s smallint, r real, t text, d date, b bytea)",
        );
        run(
            c,
            "insert into odbc_kept_types values (7, 16777216, '7', '2020-01-02', 'x')",
        );
        c.commit().unwrap();
        // A connection that caches no statements.
        let other = streaming(true).unwrap();
        run(
            &other,
            "create temporary table odbc_kept_types (s smallint, r real, t text, d date, b bytea)",
        );
        run(
            &other,
            "insert into odbc_kept_types values (7, 16777216, '7', '2020-01-02', 'x')",
        );
        other.commit().unwrap();
        for sql in [
            POINT,
            "select ?",
            "select 1 + ?",
            "select abs(?)",
            "select to_hex(?)",
            "select s from odbc_kept_types where s < ?",
            "select r from odbc_kept_types where r = ?",
            "select t from odbc_kept_types where t = ?",
            "select d from odbc_kept_types where d > ?",
            "select d from odbc_kept_types where b = ?",
            "select s / ? from odbc_kept_types",
            "select (d + ?)::text from odbc_kept_types",
            "select coalesce(s, ?) from odbc_kept_types",
            "select repeat('a', ?)",
        ] {
            for value in [
                Value::I64(7),
                Value::I64(100_000),
                Value::I64(16_777_217),
                Value::I64(1 << 40),
                Value::I64(-1),
                Value::F64(7.0),
                Value::F64(7.5),
                Value::Decimal("7.0".to_owned()),
                Value::Text("7".to_owned()),
                Value::Text("seven".to_owned()),
                Value::Bytes(b"x".to_vec()),
                Value::Bool(true),
                Value::Null,
                Value::Date(Date {
                    year: 2020,
                    month: 1,
                    day: 1,
                }),
                Value::I64(8),
            ] {
                let expected = outcome(&other, sql, &value);
                for _ in 0..ENOUGH {
                    assert_eq!(outcome(c, sql, &value), expected, "{sql} {value:?}");
                }
            }
        }
        let sql = "select 1 where ?::bigint > 0";
        teach(c, sql, &[Value::I64(1)]);
        for n in [1, 1 << 40, i64::MAX, 1] {
            assert_eq!(row(c, sql, &[Value::I64(n)]), [Kept::I64(1)]);
        }
        let error = c.execute(sql, &[Value::I64(1), Value::I64(2)]).unwrap_err();
        assert_eq!(error.sqlstate, "07002");
        c.rollback().unwrap();
        assert_eq!(row(c, sql, &[Value::I64(1)]), [Kept::I64(1)]);
    });
}

#[test]
fn a_table_that_has_changed_is_read_as_it_is_now() {
    each(|c| {
        let other = Profile::Postgres.open().unwrap();
        other.set_autocommit(true).unwrap();
        run(&other, "drop table if exists odbc_kept_changed");
        run(&other, "create table odbc_kept_changed (a integer)");
        run(&other, "insert into odbc_kept_changed values (1)");
        let sql = "select * from odbc_kept_changed where a::text = ?::text";
        let one = [Value::I64(1)];
        teach(c, sql, &one);
        assert_eq!(row(c, sql, &one), [Kept::I64(1)]);
        for (change, expected) in [
            (
                "add column b varchar(10) default 'b'",
                vec![Kept::I64(1), text("b")],
            ),
            (
                "alter column a type varchar(10)",
                vec![text("1"), text("b")],
            ),
            ("drop column b", vec![text("1")]),
        ] {
            c.commit().unwrap();
            run(&other, &format!("alter table odbc_kept_changed {change}"));
            assert_eq!(row(c, sql, &one), expected, "{change}");
            // This execution uses the statement that was prepared again.
            assert_eq!(row(c, sql, &one), expected, "{change}");
        }
        c.commit().unwrap();
        run(c, "deallocate all");
        assert_eq!(row(c, sql, &one), [text("1")]);
        c.commit().unwrap();
        run(&other, "drop table odbc_kept_changed");
        let error = c.execute(sql, &one).unwrap_err();
        assert_eq!(error.sqlstate, "42P01");
    });
}

#[test]
fn where_the_driver_sets_no_savepoints_the_stale_statement_is_the_error() {
    let Some(string) = Profile::Postgres.string() else {
        return;
    };
    let options = ConnectOptions::default();
    let c = open_with(&format!("{string};Protocol=7.4-0"), &options);
    let other = open_with(&string, &options);
    other.set_autocommit(true).unwrap();
    run(&other, "drop table if exists odbc_kept_stale");
    run(&other, "create table odbc_kept_stale (a integer)");
    let sql = "select * from odbc_kept_stale where a > ?";
    let zero = [Value::I64(0)];
    teach(&c, sql, &zero);
    rows(&c, sql, &zero);
    c.commit().unwrap();
    run(&other, "alter table odbc_kept_stale add column b integer");
    let error = c.execute(sql, &zero).unwrap_err();
    assert_eq!(error.sqlstate, "0A000", "{error}");
    c.rollback().unwrap();
    assert_eq!(rows(&c, sql, &zero), Vec::<Vec<Kept>>::new());
    c.rollback().unwrap();
    run(&other, "drop table odbc_kept_stale");
}

#[test]
fn a_rollback_leaves_what_is_kept() {
    each(|c| {
        teach(c, POINT, &[Value::I64(7)]);
        let first = row(c, POINT, &[Value::I64(7)]);
        c.rollback().unwrap();
        assert_eq!(row(c, POINT, &[Value::I64(7)]), first);
        let error = c.execute("select 1 / ?", &[Value::I64(0)]).unwrap_err();
        assert_eq!(error.sqlstate, "22012");
        assert_eq!(row(c, POINT, &[Value::I64(7)]), first);
        c.commit().unwrap();
        assert_eq!(row(c, POINT, &[Value::I64(7)]), first);
        assert_eq!(prepared(c).len(), 1);
    });
}

#[test]
fn two_statements_of_one_text_are_open_at_once() {
    each(|c| {
        let sql = "select id from t1000 where id <= ? order by id";
        teach(c, sql, &[Value::I64(3)]);
        let open = |n: i64| match c.execute(sql, &[Value::I64(n)]).unwrap() {
            Statement::Odbc(statement) => statement,
            _ => unreachable!(),
        };
        for _ in 0..3 {
            let (mut one, mut other) = (open(3), open(2));
            let cancel = one.cancel_handle();
            assert_eq!(one.fetch(Budget::default()).unwrap(), Fetched::Rows(3));
            drop(one);
            // A later statement reuses the ODBC handle of the dropped statement. The cancel handle
            // of the dropped statement must not cancel the later one.
            cancel.cancel();
            let mut again = open(1);
            cancel.cancel();
            for (statement, n) in [(&mut other, 2), (&mut again, 1)] {
                assert_eq!(
                    statement.fetch(Budget::default()).unwrap(),
                    Fetched::Rows(n)
                );
                assert_eq!(statement.fetch(Budget::default()).unwrap(), Fetched::End);
            }
        }
    });
}

#[test]
fn changes_are_kept_at_once_and_those_that_give_rows_are_not() {
    each(|c| {
        run(
            c,
            "create temporary table odbc_kept (a integer primary key, b text)",
        );
        let sql = "insert into odbc_kept values (?, ?)";
        for n in 0..5 {
            let values = [Value::I64(n), Value::Text("é".repeat(9000))];
            let statement = c.execute(sql, &values).unwrap();
            assert_eq!(statement.row_count(), Some(1));
            drop(statement);
            assert_eq!(prepared(c).len(), 1);
            // A statement whose execution failed is not cached.
            let error = c.execute(sql, &values).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Integrity, "{error}");
            assert_eq!(prepared(c).len(), 0);
        }
        for n in 5..10 {
            drop(c.execute(sql, &[Value::I64(n), Value::Text("b".to_owned())]));
        }
        let kept = prepared(c);
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(kept[0].1, 5);
        let sql = "update odbc_kept set b = 'x' where a = ? returning a, b";
        for n in 0..5 {
            assert_eq!(row(c, sql, &[Value::I64(n)]), [Kept::I64(n), text("x")]);
        }
        assert_eq!(prepared(c), kept);
    });
}

#[test]
fn what_is_written_is_right_for_the_columns_as_they_are_now() {
    each(|c| {
        let other = Profile::Postgres.open().unwrap();
        other.set_autocommit(true).unwrap();
        run(&other, "drop table if exists odbc_kept_written");
        run(
            &other,
            "create table odbc_kept_written (n integer, a float8, t text)",
        );
        let sql = "insert into odbc_kept_written values (1, ?, ?)";
        let exact = "0.12345678901234567890123";
        for (change, value, expected) in [
            ("float8", Value::F64(0.1 + 0.2), "0.30000000000000004"),
            ("numeric", Value::F64(0.1 + 0.2), "0.30000000000000004"),
            (
                "float8",
                Value::Decimal(exact.to_owned()),
                "0.12345678901234568",
            ),
            ("numeric", Value::Decimal(exact.to_owned()), exact),
            ("smallint", Value::I64(7), "7"),
            ("integer", Value::I64(100_000), "100000"),
            ("bigint", Value::I64(1 << 40), "1099511627776"),
            ("numeric", Value::I64(1 << 40), "1099511627776"),
            ("text", Value::Text("x".to_owned()), "x"),
            ("varchar(3)", Value::Text("y".to_owned()), "y"),
            ("text", Value::I64(7), "7"),
        ] {
            run(&other, "delete from odbc_kept_written");
            let change = format!("alter column a type {change} using null");
            run(&other, &format!("alter table odbc_kept_written {change}"));
            for _ in 0..2 {
                let values = [value.clone(), Value::Text("é".to_owned())];
                let statement = c.execute(sql, &values);
                drop(statement.unwrap_or_else(|e| panic!("{change} {value:?}: {e}")));
            }
            c.commit().unwrap();
            let found = rows(c, "select a::text from odbc_kept_written", &[]);
            assert_eq!(found, vec![vec![text(expected)]; 2], "{change} {value:?}");
            c.commit().unwrap();
        }
        run(&other, "drop table odbc_kept_written");
    });
}

#[test]
fn a_connection_that_streams_by_its_users_word_keeps_nothing_and_one_that_does_not_keeps_all() {
    let (Some(streams), Some(whole)) = (streaming(true), streaming(false)) else {
        return;
    };
    let options = ConnectOptions {
        guesses_short: false,
        ..ConnectOptions::default()
    };
    let careful = open_with(&Profile::Postgres.string().unwrap(), &options);
    for _ in 0..ENOUGH + 2 {
        row(&streams, POINT, &[Value::I64(7)]);
        row(&careful, POINT, &[Value::I64(7)]);
        row(&whole, POINT, &[Value::I64(7)]);
    }
    assert_eq!(prepared(&streams), []);
    assert_eq!(prepared(&careful), []);
    let kept = prepared(&whole);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].1, 5);
}

#[test]
fn a_short_result_without_a_cursor_is_at_hand() {
    each(|c| {
        let open = |sql: &str, n: i64| match c.execute(sql, &[Value::I64(n)]).unwrap() {
            Statement::Odbc(statement) => statement,
            _ => unreachable!(),
        };
        assert!(!open(POINT, 7).is_at_hand());
        teach(c, POINT, &[Value::I64(7)]);
        let mut one = open(POINT, 7);
        assert!(one.is_at_hand());
        assert_eq!(one.fetch(Budget::default()).unwrap(), Fetched::Rows(1));
        assert_eq!(one.fetch(Budget::default()).unwrap(), Fetched::End);
        assert!(open(POINT, -8).is_at_hand());
        let sql = "select id from t1000 where id <= ?";
        teach(c, sql, &[Value::I64(3)]);
        assert!(open(sql, 3).is_at_hand());
        assert!(!open(sql, 32).is_at_hand());
        // The transaction of this statement has ended before its rows are fetched.
        let mut ended = open(POINT, 8);
        c.rollback().unwrap();
        let error = ended.fetch(Budget::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Interface, "{error}");
    });
}
