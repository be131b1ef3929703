//! Opening, errors, transactions and statements of the embedded database.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod support;

use onecopy_rows::connect::ConnectOptions;
use onecopy_rows::sqlite::Connection;
use onecopy_rows::{ErrorKind, Source, Value};
use support::{Got, memory, open, open_read_only, pump_all, rows, run, source_error, text};

/// A database file with a table `t (a)` of three rows.
fn three_rows(dir: &tempfile::TempDir) -> String {
    let path = dir.path().join("three.db").to_str().unwrap().to_owned();
    let connection = open(&path).unwrap();
    run(
        &connection,
        "create table t (a integer primary key, b text not null default '')",
    );
    run(&connection, "insert into t (a) values (1), (2), (3)");
    connection.commit().unwrap();
    connection.close().unwrap();
    path
}

fn error_of(connection: &Connection, sql: &str) -> (ErrorKind, i32, String) {
    let error = match connection.execute(sql, &[]) {
        Err(error) => error,
        Ok(mut statement) => pump_all(&mut statement).unwrap_err(),
    };
    assert_eq!(error.sqlstate, "");
    (error.kind, error.native, error.message)
}

fn count(connection: &Connection) -> Got {
    rows(connection, "select count(*) from t", &[])
        .remove(0)
        .remove(0)
}

#[test]
fn open_names_the_path_and_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.db");
    let missing = missing.to_str().unwrap();
    for target in [format!("{missing}?mode=ro"), format!("{missing}?mode=rw")] {
        let error = open(&target).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(
            error.message.contains(missing) && error.message.contains("mode=rwc"),
            "{error}"
        );
    }
    assert!(
        open_read_only(missing)
            .unwrap_err()
            .message
            .contains("no such file")
    );
    assert!(!std::path::Path::new(missing).exists());

    let directory = dir.path().to_str().unwrap();
    let error = open(directory).unwrap_err();
    assert!(
        error.kind == ErrorKind::Connect && error.message.contains("directory"),
        "{error}"
    );
    let error = open(&format!("{directory}/no/such.db")).unwrap_err();
    assert!(error.message.contains("/no` does not exist"), "{error}");

    let other = dir.path().join("text.db");
    std::fs::write(
        &other,
        "no database, but a text that is longer than a header".repeat(50),
    )
    .unwrap();
    let error = open(other.to_str().unwrap()).unwrap_err();
    assert_eq!((error.kind, error.native), (ErrorKind::Connect, 26));
    assert!(error.message.contains("text.db"), "{error}");
}

#[test]
fn a_missing_file_is_created_by_default_and_names_may_be_odd() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "plain.db",
        "with space.db",
        "file:x.db",
        "100%25.db",
        "quest%3Fion.db",
        "háček.db",
    ] {
        let path = format!("{}/{name}", dir.path().display());
        let connection = open(&path).unwrap();
        run(&connection, "create table t (a)");
        connection.close().unwrap();
        assert_eq!(count(&open_read_only(&path).unwrap()), Got::I64(0));
        assert_eq!(
            count(&open(&format!("{path}?immutable=1")).unwrap()),
            Got::I64(0)
        );
    }
    let mut names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "100%.db",
            "file:x.db",
            "háček.db",
            "plain.db",
            "quest?ion.db",
            "with space.db"
        ]
    );
}

#[test]
fn a_read_only_connection_refuses_to_write_and_stays_usable() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_rows(&dir);
    for connection in [
        open_read_only(&path).unwrap(),
        open(&format!("{path}?mode=ro")).unwrap(),
    ] {
        for sql in [
            "insert into t (a) values (4)",
            "delete from t",
            "create table u (a)",
            "drop table t",
        ] {
            let (kind, native, message) = error_of(&connection, sql);
            assert_eq!(
                (kind, native & 0xff),
                (ErrorKind::ReadOnly, 8),
                "{sql}: {message}"
            );
            assert!(message.contains("read-only"), "{message}");
        }
        assert_eq!(count(&connection), Got::I64(3));
    }
    let copy = dir.path().join("copy.db");
    for (sql, expected) in [
        (
            format!("vacuum into '{}'", copy.display()),
            ErrorKind::ReadOnly,
        ),
        (
            format!("attach '{}' as copy", copy.display()),
            ErrorKind::Operational,
        ),
    ] {
        let (kind, _, message) = error_of(&open_read_only(&path).unwrap(), &sql);
        assert_eq!(kind, expected, "{sql}: {message}");
        assert!(!copy.exists(), "{sql}");
    }
    let connection = open_read_only(":memory:").unwrap();
    assert_eq!(error_of(&connection, "create table u (a)").1 & 0xff, 8);
}

#[test]
fn errors_have_the_kind_of_their_cause() {
    let connection = memory();
    run(
        &connection,
        "create table t (a integer primary key, b text not null, c check (c > 0), d unique)",
    );
    run(&connection, "create table s (a int) strict");
    run(&connection, "insert into t values (1, 'x', 1, 1)");
    let programming = (ErrorKind::Programming, 1);
    for (sql, (kind, native)) in [
        ("selec 1", programming),
        ("select * from nowhere", programming),
        ("select nothing from t", programming),
        ("select nofunc(1)", programming),
        (
            "insert into t values (1, 'x', 1, 2)",
            (ErrorKind::Integrity, 1555),
        ),
        (
            "insert into t values (2, null, 1, 2)",
            (ErrorKind::Integrity, 1299),
        ),
        (
            "insert into t values (2, 'x', 0, 2)",
            (ErrorKind::Integrity, 275),
        ),
        (
            "insert into t values (2, 'x', 1, 1)",
            (ErrorKind::Integrity, 2067),
        ),
        ("insert into s values ('x')", (ErrorKind::Integrity, 3091)),
        (
            "insert into t (a, b) values ('x', 'y')",
            (ErrorKind::Integrity, 20),
        ),
        (
            "select abs(-9223372036854775808)",
            (ErrorKind::Operational, 1),
        ),
        ("select zeroblob(3000000000)", (ErrorKind::Data, 18)),
        ("commit", (ErrorKind::Operational, 1)),
        ("select json('{')", (ErrorKind::Operational, 1)),
    ] {
        // A transaction begun by the failed statement is gone, so "commit" has none to commit.
        connection.commit().unwrap();
        let got = error_of(&connection, sql);
        assert_eq!((got.0, got.1), (kind, native), "{sql}: {}", got.2);
    }
    let message = error_of(&connection, "select * from nowhere").2;
    assert_eq!(message, "no such table: nowhere");
}

#[test]
fn a_table_in_use_by_a_cursor_is_locked_until_it_is_read_or_dropped() {
    let connection = memory();
    run(&connection, "create table t (a)");
    run(&connection, "insert into t values (1), (2)");
    connection.commit().unwrap();
    let cursor = connection.execute("select a from t", &[]).unwrap();
    let (kind, native, message) = error_of(&connection, "drop table t");
    assert_eq!((kind, native & 0xff), (ErrorKind::Operational, 6));
    assert!(message.contains("finish it first"), "{message}");
    drop(cursor);
    run(&connection, "drop table t");
}

#[test]
fn a_damaged_file_is_an_operational_error_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db").to_str().unwrap().to_owned();
    let connection = open(&path).unwrap();
    run(&connection, "create table t (a)");
    let mut many = (0..2000).map(|i| vec![text(&format!("some text to fill pages with {i}"))]);
    connection
        .execute_many("insert into t values (?)", &mut many)
        .unwrap();
    connection.commit().unwrap();
    connection.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let (kind, native, message) = error_of(&open(&path).unwrap(), "select a from t");
    assert_eq!((kind, native & 0xff), (ErrorKind::Operational, 11));
    assert!(message.contains("integrity_check"), "{message}");
}

#[test]
fn a_database_in_wal_mode_is_read_beside_its_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_rows(&dir);
    let writer = open(&path).unwrap();
    assert_eq!(
        rows(&writer, "pragma journal_mode = wal", &[]),
        [["wal".into()]]
    );
    let reader = open_read_only(&path).unwrap();
    run(&writer, "insert into t (a) values (4)");
    assert_eq!(count(&reader), Got::I64(3));
    writer.commit().unwrap();
    assert_eq!(count(&reader), Got::I64(4));
}

#[test]
fn an_error_in_a_later_row_comes_after_the_rows_before_it() {
    let connection = memory();
    let sql = "select abs(column1) from (values (1), (-2), (-9223372036854775808), (4))";
    let mut statement = connection.execute(sql, &[]).unwrap();
    let mut sink = support::Rows::default();
    let mut pump = || {
        statement
            .pump(&mut Default::default(), Default::default(), &mut sink)
            .map_err(source_error)
            .unwrap_err()
    };
    let (first, again) = (pump(), pump());
    assert_eq!(first.message, "integer overflow");
    assert_eq!(again.message, first.message);
    assert_eq!(sink.rows, [[Got::I64(1)], [Got::I64(2)]]);
}

#[test]
fn one_statement_a_call_and_the_second_is_named() {
    let connection = memory();
    for sql in [
        "select 1;",
        "select 1 ; -- done",
        "/* a */ select 1; /* b */ ;;\n",
        "select 1 /* open",
    ] {
        assert_eq!(rows(&connection, sql, &[]), [[Got::I64(1)]], "{sql}");
    }
    let (kind, _, message) = error_of(&connection, "select 1; drop table t");
    assert!(
        kind == ErrorKind::Programming && message.contains("`drop table t`"),
        "{message}"
    );
    // The first one did not run either.
    assert_eq!(
        error_of(&connection, "create table u (a); selec").0,
        ErrorKind::Programming
    );
    assert_eq!(
        error_of(&connection, "select * from u").2,
        "no such table: u"
    );
    for sql in ["", "  ", ";", "-- only a comment"] {
        let (kind, _, message) = error_of(&connection, sql);
        assert!(
            kind == ErrorKind::Programming && message.contains("no statement"),
            "{message}"
        );
    }
    assert!(error_of(&connection, "select 1 \0").2.contains("NUL"));
}

#[test]
fn parameters_are_counted_and_numbered() {
    let connection = memory();
    let error = connection
        .execute("select ?, ?", &[Value::Null])
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Programming);
    assert!(
        error.message.contains("takes 2") && error.message.contains("1 were given"),
        "{error}"
    );
    assert!(connection.execute("select 1", &[Value::Null]).is_err());
    assert_eq!(
        rows(
            &connection,
            "select ?2, ?1, :name",
            &[text("a"), text("b"), text("c")]
        ),
        [["b", "a", "c"].map(Got::from)]
    );
    // The wrong call left nothing behind in the cached statement.
    assert_eq!(
        rows(&connection, "select ?, ?", &[Value::I64(1), Value::Null]),
        [[Got::I64(1), Got::Null]]
    );
}

#[test]
fn a_check_prepares_and_runs_nothing() {
    let connection = memory();
    run(&connection, "create table t (a, b)");
    let check = connection
        .prepare_check("insert into t values (?, ?) returning a")
        .unwrap();
    assert_eq!(
        (check.n_parameters, check.read_only),
        (Some(2), Some(false))
    );
    assert_eq!(check.schema.unwrap().columns[0].name, "a");
    assert_eq!(count(&connection), Got::I64(0));
    assert_eq!(
        connection.prepare_check("select 1").unwrap().read_only,
        Some(true)
    );
    assert_eq!(
        connection.prepare_check("select").unwrap_err().kind,
        ErrorKind::Programming
    );
}

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
    // Reading and DDL begin none.
    run(&connection, "create table u (a)");
    assert_eq!(rows(&other, "select * from u", &[]).len(), 0);
    // No transaction, no effect.
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
    let connection = Connection::open(&path, &options).unwrap();
    let other = open(&path).unwrap();
    run(&connection, "insert into t (a) values (4)");
    assert_eq!(count(&other), Got::I64(4));
    connection.set_autocommit(false).unwrap();
    run(&connection, "insert into t (a) values (5)");
    assert_eq!(count(&other), Got::I64(4));
    connection.set_autocommit(true).unwrap(); // Commits what is open.
    assert_eq!(count(&other), Got::I64(5));
    assert!(connection.autocommit());
    // An explicit transaction is left alone.
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
    let told = |sql: &str| {
        let statement = connection.execute(sql, &[]).unwrap();
        (statement.row_count(), statement.last_row_id())
    };
    assert_eq!(
        told("insert into t values (7, 1), (9, 2)"),
        (Some(2), Some(9))
    );
    assert_eq!(told("replace into t values (7, 3)"), (Some(1), Some(7)));
    assert_eq!(told("update t set b = 0"), (Some(2), None));
    assert_eq!(told("delete from t where a = 100"), (Some(0), None));
    assert_eq!(told("select * from t"), (None, None));
    assert_eq!(told("create table u (a)"), (None, None));

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
        connection.execute_many(insert, &mut ids(0..1000)).unwrap(),
        Some(1000)
    );
    connection.commit().unwrap();

    let mut clash = ids(2000..2100).chain(ids(5..6)).chain(ids(3000..3100));
    let error = connection.execute_many(insert, &mut clash).unwrap_err();
    assert_eq!((error.kind, error.row), (ErrorKind::Integrity, Some(100)));
    connection.rollback().unwrap();
    assert_eq!(count(&connection), Got::I64(1000));

    let mut uneven = [vec![Value::I64(-1)], vec![]].into_iter();
    let error = connection.execute_many(insert, &mut uneven).unwrap_err();
    assert_eq!((error.kind, error.row), (ErrorKind::Programming, Some(1)));
    connection.rollback().unwrap();

    for sql in ["select ?", "create table u (a)", "begin"] {
        let error = connection.execute_many(sql, &mut ids(0..1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Programming, "{sql}");
    }
    assert_eq!(
        connection.execute_many(insert, &mut ids(0..0)).unwrap(),
        Some(0)
    );
    assert!(
        connection
            .execute_many("insert into nowhere values (?)", &mut ids(0..0))
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
    let mut clash = (10..200).chain([1]).map(|i| vec![Value::I64(i)]);
    assert!(connection.execute_many(insert, &mut clash).is_err());
    assert_eq!(count(&other), Got::I64(3));
    let mut good = (10..200).map(|i| vec![Value::I64(i)]);
    assert_eq!(
        connection.execute_many(insert, &mut good).unwrap(),
        Some(190)
    );
    assert_eq!(count(&other), Got::I64(193));
}

#[test]
fn the_iterator_of_execute_many_may_use_the_connection() {
    let connection = memory();
    run(&connection, "create table t (a)");
    let mut from_itself = (0..200).map(|i| {
        let Got::I64(n) = count(&connection) else {
            panic!("a count is an integer")
        };
        vec![Value::I64(n * 1000 + i)]
    });
    connection
        .execute_many("insert into t values (?)", &mut from_itself)
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
    // A commit ends none.
    run(&connection, "insert into t values (4)");
    let mut cursor = connection.execute("select a from t", &[]).unwrap();
    connection.commit().unwrap();
    assert_eq!(pump_all(&mut cursor).unwrap().len(), 4);
    // Rolling back to a savepoint ends none either.
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
fn closing_ends_statements_and_frees_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_rows(&dir);
    let connection = open(&path).unwrap();
    let mut begun = connection.execute("select a from t", &[]).unwrap();
    let unread = connection
        .execute("select a from t order by b", &[])
        .unwrap();
    let is_open = || {
        std::fs::read_dir("/proc/self/fd").unwrap().any(|fd| {
            std::fs::read_link(fd.unwrap().path()).is_ok_and(|to| to.to_str() == Some(&path))
        })
    };
    assert!(is_open());
    connection.close().unwrap();
    assert!(!is_open());
    connection.close().unwrap();
    for error in [
        pump_all(&mut begun).unwrap_err(),
        support::fetch_all(&mut begun).unwrap_err(),
        connection.execute("select 1", &[]).unwrap_err(),
        connection.commit().unwrap_err(),
        connection.rollback().unwrap_err(),
        connection.prepare_check("select 1").unwrap_err(),
        connection
            .execute_many("delete from t", &mut std::iter::once(vec![]))
            .unwrap_err(),
    ] {
        assert_eq!(error.kind, ErrorKind::Interface);
        assert!(error.message.contains("closed"), "{error}");
    }
    connection.cancel_handle().cancel();
    begun.cancel_handle().cancel();
    drop(unread);
}

#[test]
fn statements_keep_the_connection_alive() {
    let connection = memory();
    run(&connection, "create table t (a)");
    run(&connection, "insert into t values (1), (2)");
    let mut statement = connection.execute("select a from t", &[]).unwrap();
    drop(connection);
    assert_eq!(pump_all(&mut statement).unwrap().len(), 2);
}

#[test]
fn the_same_text_in_use_twice_is_two_cursors() {
    let connection = memory();
    let sql = "select * from (values (1), (2))";
    let mut first = connection.execute(sql, &[]).unwrap();
    let mut second = connection.execute(sql, &[]).unwrap();
    assert_eq!(pump_all(&mut first).unwrap().len(), 2);
    assert_eq!(pump_all(&mut second).unwrap().len(), 2);
    drop((first, second));
    assert_eq!(rows(&connection, sql, &[]).len(), 2);
}

#[test]
fn a_sink_that_has_enough_goes_on_where_it_stopped() {
    let connection = memory();
    let sql = "with recursive n(i) as (select 0 union all select i + 1 from n where i < 99) select i from n";
    let mut statement = connection.execute(sql, &[]).unwrap();
    let mut sink = support::Rows {
        enough_at: Some(7),
        ..Default::default()
    };
    let mut n_pumps = 0;
    while statement
        .pump(&mut Default::default(), Default::default(), &mut sink)
        .unwrap()
        == onecopy_rows::Pumped::More
    {
        n_pumps += 1;
    }
    assert_eq!(
        sink.rows,
        (0..100).map(|i| vec![Got::I64(i)]).collect::<Vec<_>>()
    );
    assert_eq!(n_pumps, 100 / 7);
}

#[test]
fn parts_are_called_in_order_and_end_a_pump_each() {
    use onecopy_rows::{LongValues, Pumped};
    let connection = memory();
    let mut statement = connection
        .execute("select 'abcdefghi', 1, x'' from (values (1), (2))", &[])
        .unwrap();
    statement.set_long_values(LongValues::Parts { part_bytes: 4 });
    let mut sink = support::Rows::default();
    let mut n_pumps = 0;
    while statement
        .pump(&mut Default::default(), Default::default(), &mut sink)
        .unwrap()
        == Pumped::More
    {
        n_pumps += 1;
    }
    let row = [
        "begin_row",
        "long_begin",
        "long_part",
        "long_part",
        "long_part",
        "long_end",
        "cell",
        "cell",
        "end_row",
    ];
    assert_eq!(sink.calls, [row, row].concat());
    assert_eq!(n_pumps, 4);
}

#[test]
fn describe_names_sqlite() {
    let connection = memory();
    assert!(
        connection.describe().starts_with("SQLite 3."),
        "{}",
        connection.describe()
    );
    assert!(connection.notices().is_empty());
}

#[test]
fn execute_many_under_autocommit_leaves_nothing_when_its_iterator_panics() {
    let connection = memory();
    connection.set_autocommit(true).unwrap();
    run(&connection, "create table t (a)");
    let mut planted = (0..100).map(|i| {
        assert!(i < 90, "planted: the iterator panics");
        vec![Value::I64(i)]
    });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        connection.execute_many("insert into t values (?)", &mut planted)
    }));
    assert!(panicked.is_err());
    assert_eq!(count(&connection), Got::I64(0));
}
