//! Tests of transactions in SQLite, and of statements that are executed for many rows of
//! parameters.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod support;

use onecopy_rows::ConnectOptions;
use onecopy_rows::DatabaseConnection;
use onecopy_rows::DatabaseStatement;
use onecopy_rows::sqlite::Connection;
use onecopy_rows::{ErrorKind, Source, Value};
use support::{Got, count, memory, open, pump_all, rows, run, three_rows};

#[test]
fn a_transaction_begins_before_the_first_change_and_ends_by_commit_or_rollback() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_rows(&dir);
    let connection = open(&path).unwrap();
    let other = open(&path).unwrap();
    for sql in [
        "insert into t (a) values (4)",
        "-- note\nreplace into t (a) values (4)",
        "update t set b = 'x' where a > 0",
        "delete from t where a > 3",
        "with n as (select 5 as a) insert into t (a) select a from n",
    ] {
        run(&connection, sql);
        let seen = rows(&other, "select a, b from t", &[]);
        assert_eq!(
            seen,
            [1, 2, 3].map(|a| vec![Got::I64(a), "".into()]),
            "{sql}"
        );
        connection.rollback().unwrap();
        assert_eq!(count(&connection), Got::I64(3));
    }
    run(&connection, "insert into t (a) values (4)");
    connection.commit().unwrap();
    assert_eq!(count(&other), Got::I64(4));
    // Queries and DDL begin no transaction.
    run(&connection, "create table u (a)");
    assert_eq!(rows(&other, "select * from u", &[]).len(), 0);
    // Without a transaction, commit and rollback have no effect.
    connection.commit().unwrap();
    connection.rollback().unwrap();
}

#[test]
fn autocommit_makes_each_statement_its_own_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_rows(&dir);
    let options = ConnectOptions {
        autocommit: true,
        ..ConnectOptions::default()
    };
    let connection = Connection::open_path(&path, &options).unwrap();
    let other = open(&path).unwrap();
    run(&connection, "insert into t (a) values (4)");
    assert_eq!(count(&other), Got::I64(4));
    connection.set_autocommit(false).unwrap();
    run(&connection, "insert into t (a) values (5)");
    assert_eq!(count(&other), Got::I64(4));
    connection.set_autocommit(true).unwrap(); // Commits the open transaction.
    assert_eq!(count(&other), Got::I64(5));
    assert!(connection.autocommit());
    // A transaction that the statement `begin` starts is respected in autocommit mode too.
    run(&connection, "begin");
    run(&connection, "delete from t");
    connection.rollback().unwrap();
    assert_eq!(count(&connection), Got::I64(5));
}

#[test]
fn closing_rolls_back_what_was_not_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_rows(&dir);
    let connection = open(&path).unwrap();
    run(&connection, "delete from t");
    drop(connection);
    assert_eq!(count(&open(&path).unwrap()), Got::I64(3));
}

#[test]
fn counts_and_row_ids_are_told_where_sqlite_knows_them() {
    let connection = memory();
    run(&connection, "create table t (a integer primary key, b)");
    let counts = |sql: &str| {
        let statement = connection.execute(sql, &[]).unwrap();
        (statement.row_count(), statement.last_row_id())
    };
    assert_eq!(
        counts("insert into t values (7, 1), (9, 2)"),
        (Some(2), Some(9))
    );
    assert_eq!(counts("replace into t values (7, 3)"), (Some(1), Some(7)));
    assert_eq!(counts("update t set b = 0"), (Some(2), None));
    assert_eq!(counts("delete from t where a = 100"), (Some(0), None));
    assert_eq!(counts("select * from t"), (None, None));
    assert_eq!(counts("create table u (a)"), (None, None));

    let mut statement = connection
        .execute("insert into t (b) values (1), (2) returning a", &[])
        .unwrap();
    assert_eq!(statement.row_count(), None);
    assert_eq!(
        pump_all(&mut statement).unwrap(),
        [[Got::I64(10)], [Got::I64(11)]]
    );
    assert_eq!(
        (statement.row_count(), statement.last_row_id()),
        (Some(2), Some(11))
    );
}

#[test]
fn a_returning_statement_left_unread_is_named_by_commit() {
    let connection = memory();
    run(&connection, "create table t (a)");
    let mut statement = connection
        .execute("insert into t values (1), (2) returning a", &[])
        .unwrap();
    let error = connection.commit().unwrap_err();
    assert!(error.message.contains("RETURNING"), "{error}");
    pump_all(&mut statement).unwrap();
    connection.commit().unwrap();
    assert_eq!(count(&connection), Got::I64(2));
}

#[test]
fn execute_many_sums_the_changes_and_names_the_row_at_fault() {
    let connection = memory();
    run(&connection, "create table t (a integer primary key)");
    let ids = |range: std::ops::Range<i64>| range.map(|i| vec![Value::I64(i)]);
    let insert = "insert into t values (?)";
    assert_eq!(
        connection
            .execute_many(insert, &mut ids(0..1000).map(Ok))
            .unwrap(),
        Some(1000)
    );
    connection.commit().unwrap();

    let clash = ids(2000..2100).chain(ids(5..6)).chain(ids(3000..3100));
    let error = connection
        .execute_many(insert, &mut clash.map(Ok))
        .unwrap_err();
    assert_eq!((error.kind, error.row), (ErrorKind::Integrity, Some(100)));
    connection.rollback().unwrap();
    assert_eq!(count(&connection), Got::I64(1000));

    let uneven = [vec![Value::I64(-1)], vec![]].into_iter();
    let error = connection
        .execute_many(insert, &mut uneven.map(Ok))
        .unwrap_err();
    assert_eq!((error.kind, error.row), (ErrorKind::Programming, Some(1)));
    connection.rollback().unwrap();

    for sql in ["select ?", "create table u (a)", "begin"] {
        let error = connection
            .execute_many(sql, &mut ids(0..1).map(Ok))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Programming, "{sql}");
    }
    assert_eq!(
        connection
            .execute_many(insert, &mut ids(0..0).map(Ok))
            .unwrap(),
        Some(0)
    );
    assert!(
        connection
            .execute_many("insert into nowhere values (?)", &mut ids(0..0).map(Ok))
            .is_err()
    );
}

#[test]
fn execute_many_under_autocommit_is_all_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_rows(&dir);
    let connection = open(&path).unwrap();
    let other = open(&path).unwrap();
    connection.set_autocommit(true).unwrap();
    let insert = "insert into t (a) values (?)";
    let clash = (10..200).chain([1]).map(|i| vec![Value::I64(i)]);
    assert!(connection.execute_many(insert, &mut clash.map(Ok)).is_err());
    assert_eq!(count(&other), Got::I64(3));
    let good = (10..200).map(|i| vec![Value::I64(i)]);
    assert_eq!(
        connection.execute_many(insert, &mut good.map(Ok)).unwrap(),
        Some(190)
    );
    assert_eq!(count(&other), Got::I64(193));
}

#[test]
fn the_iterator_of_execute_many_may_use_the_connection() {
    let connection = memory();
    run(&connection, "create table t (a)");
    let from_itself = (0..200).map(|i| {
        let Got::I64(n) = count(&connection) else {
            panic!("a count is an integer")
        };
        vec![Value::I64(n * 1000 + i)]
    });
    connection
        .execute_many("insert into t values (?)", &mut from_itself.map(Ok))
        .unwrap();
    assert_eq!(count(&connection), Got::I64(200));
}

#[test]
fn a_cursor_ended_by_a_rollback_says_so_and_others_go_on() {
    let connection = memory();
    run(&connection, "create table t (a)");
    run(&connection, "insert into t values (1), (2), (3)");
    connection.commit().unwrap();
    for rollback in [
        &(|c: &Connection| c.rollback().unwrap()) as &dyn Fn(&Connection),
        &|c: &Connection| run(c, "ROLLBACK"),
    ] {
        run(&connection, "insert into t values (4)");
        let mut open_cursor = connection.execute("select a from t", &[]).unwrap();
        let mut read_cursor = connection.execute("select 1", &[]).unwrap();
        assert_eq!(pump_all(&mut read_cursor).unwrap().len(), 1);
        rollback(&connection);
        let error = pump_all(&mut open_cursor).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Interface);
        assert!(error.message.contains("rolled back"), "{error}");
        assert!(support::fetch_all(&mut open_cursor).is_err());
        assert!(pump_all(&mut read_cursor).unwrap().is_empty());
    }
    // A commit does not end open cursors.
    run(&connection, "insert into t values (4)");
    let mut cursor = connection.execute("select a from t", &[]).unwrap();
    connection.commit().unwrap();
    assert_eq!(pump_all(&mut cursor).unwrap().len(), 4);
    // A rollback to a savepoint does not end open cursors.
    run(&connection, "savepoint s");
    let mut cursor = connection.execute("select a from t", &[]).unwrap();
    run(&connection, "rollback to s");
    assert_eq!(pump_all(&mut cursor).unwrap().len(), 4);
}

#[test]
fn rolling_back_between_fetch_and_emit_gives_no_row_of_it() {
    use onecopy_rows::{Block, Budget, Fetched};
    let connection = memory();
    run(&connection, "create table t (a)");
    run(&connection, "insert into t values (1)");
    let mut statement = connection.execute("select a from t", &[]).unwrap();
    assert_eq!(
        statement.fetch(Budget::default()).unwrap(),
        Fetched::Rows(1)
    );
    connection.rollback().unwrap();
    let mut sink = support::Rows::default();
    let Ok(_) = statement.block().emit(0, &mut sink);
    assert!(sink.rows.is_empty());
    assert_eq!(
        statement.fetch(Budget::default()).unwrap_err().kind,
        ErrorKind::Interface
    );
}

#[test]
fn execute_many_under_autocommit_leaves_nothing_when_its_iterator_panics() {
    let connection = memory();
    connection.set_autocommit(true).unwrap();
    run(&connection, "create table t (a)");
    let planted = (0..100).map(|i| {
        assert!(i < 90, "planted: the iterator panics");
        vec![Value::I64(i)]
    });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        connection.execute_many("insert into t values (?)", &mut planted.map(Ok))
    }));
    assert!(panicked.is_err());
    assert_eq!(count(&connection), Got::I64(0));
}
