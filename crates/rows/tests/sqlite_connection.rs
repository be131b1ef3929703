//! Tests of SQLite connections: opening, errors, transactions and statements.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod support;

use onecopy_rows::DatabaseConnection;
use onecopy_rows::DatabaseStatement;
use onecopy_rows::sqlite::Connection;
use onecopy_rows::{ErrorKind, Source, Value};
use support::{
    Got, count, memory, open, open_read_only, pump_all, rows, run, source_error, text, three_rows,
};

fn error_of(connection: &Connection, sql: &str) -> (ErrorKind, i32, String) {
    let error = match connection.execute(sql, &[]) {
        Err(error) => error,
        Ok(mut statement) => pump_all(&mut statement).unwrap_err(),
    };
    assert_eq!(error.sqlstate, "");
    (error.kind, error.native, error.message)
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
        // This commit ends the transaction of the previous statement, so that the SQL statement
        // `commit` finds no open transaction.
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
    let many = (0..2000).map(|i| vec![text(&format!("some text to fill pages with {i}"))]);
    connection
        .execute_many("insert into t values (?)", &mut many.map(Ok))
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
    // The first of the two statements is not executed either.
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
        error.message.contains("has 2 parameters") && error.message.contains("1 were given"),
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
    // The failed call must not have changed the cached statement.
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
            .execute_many("delete from t", &mut std::iter::once(vec![]).map(Ok))
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
