//! Tests of ODBC connections: opening, transactions, read-only sessions, cancellation, closing, and
//! use in another process.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use databases::{Kept, Profile, open_with, row, rows, run, text};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{Budget, ErrorKind, Fetched, Source, Value};

const SERVERS: [Profile; 3] = [Profile::Postgres, Profile::PostgresAnsi, Profile::MariaDb];

fn read_only() -> ConnectOptions {
    ConnectOptions {
        read_only: true,
        ..ConnectOptions::default()
    }
}

/// Returns the value of the keyword `key` in a connection string whose values contain no braces.
fn keyword<'a>(string: &'a str, key: &str) -> &'a str {
    string
        .split(';')
        .find_map(|p| p.strip_prefix(key)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("{key} in the test's string"))
}

#[test]
fn a_commit_keeps_and_a_rollback_takes_back() {
    for profile in SERVERS {
        let Some(c) = profile.open() else { continue };
        assert!(!c.autocommit());
        run(&c, "drop table if exists odbc_tx");
        run(&c, "create table odbc_tx (n integer)");
        c.commit().unwrap();
        run(&c, "insert into odbc_tx values (1)");
        c.rollback().unwrap();
        assert_eq!(row(&c, "select count(*) from odbc_tx", &[]), [Kept::I64(0)]);
        let inserted = c.execute("insert into odbc_tx values (2)", &[]).unwrap();
        assert_eq!(inserted.row_count(), Some(1));
        c.commit().unwrap();
        c.rollback().unwrap();
        assert_eq!(row(&c, "select count(*) from odbc_tx", &[]), [Kept::I64(1)]);
        c.set_autocommit(true).unwrap();
        run(&c, "insert into odbc_tx values (3)");
        c.rollback().unwrap();
        assert_eq!(row(&c, "select count(*) from odbc_tx", &[]), [Kept::I64(2)]);
        run(&c, "drop table odbc_tx");
    }
}

#[test]
fn a_cursor_ended_by_a_rollback_says_so() {
    for profile in [Profile::Postgres, Profile::PostgresAnsi] {
        let Some(c) = profile.open() else { continue };
        for end in [Connection::rollback, Connection::commit] {
            let Statement::Odbc(mut s) = c
                .execute("select g from generate_series(1, 5000) g", &[])
                .unwrap()
            else {
                unreachable!()
            };
            let budget = Budget {
                block_bytes: 1 << 20,
                block_rows: 10,
            };
            assert_eq!(s.fetch(budget).unwrap(), Fetched::Rows(10));
            end(&c).unwrap();
            let error = s.fetch(budget).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Interface);
            assert!(
                error.message.contains("ended by a commit or rollback"),
                "{error}"
            );
        }
    }
}

#[test]
fn read_only_connections_refuse_writes() {
    for profile in SERVERS {
        let Some(c) = profile.open() else { continue };
        run(&c, "drop table if exists odbc_read_only");
        run(&c, "create table odbc_read_only (n integer)");
        c.commit().unwrap();
        let reader = open_with(&profile.string().unwrap(), &read_only());
        for sql in [
            "insert into odbc_read_only values (1)",
            "create table odbc_read_only_2 (n integer)",
            "drop table odbc_read_only",
        ] {
            let error = reader.execute(sql, &[]).unwrap_err();
            assert!(!error.sqlstate.is_empty(), "{profile:?} {sql}: {error}");
            assert_eq!(
                error.kind,
                ErrorKind::ReadOnly,
                "{profile:?} {sql}: {error}"
            );
            reader.rollback().unwrap();
        }
        assert_eq!(
            row(&reader, "select count(*) from odbc_read_only", &[]),
            [Kept::I64(0)]
        );
        let error = reader.execute("select 1; select 2", &[]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Programming);
        assert_eq!(
            reader.set_autocommit(true).unwrap_err().kind,
            ErrorKind::NotSupported
        );
        reader.close().unwrap();
        run(&c, "drop table odbc_read_only");
        c.commit().unwrap();
    }
}

#[test]
fn a_write_that_the_sqlite_driver_refuses_is_of_the_kind_read_only() {
    let Some(string) = Profile::SqliteOdbc.string() else {
        return;
    };
    let reader = open_with(&string, &read_only());
    let error = reader
        .execute("create table odbc_read_only (n integer)", &[])
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::ReadOnly, "{error}");
}

#[test]
fn errors_have_state_code_and_the_whole_message() {
    for (profile, state, native) in [
        (Profile::Postgres, "42P01", 1),
        (Profile::MariaDb, "42S02", 1146),
    ] {
        let Some(c) = profile.open() else { continue };
        let error = c.execute("select * from no_such_täble", &[]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Programming, "{error}");
        assert_eq!(
            (error.sqlstate.as_str(), error.native),
            (state, native),
            "{error}"
        );
        assert!(error.message.contains("no_such_täble"), "{error}");
        c.rollback().unwrap();
    }
    let Some(c) = Profile::Postgres.open() else {
        return;
    };
    let error = c.execute("select 1/0", &[]).unwrap_err();
    assert_eq!(
        (error.kind, error.sqlstate.as_str()),
        (ErrorKind::Data, "22012")
    );
}

#[test]
fn a_wrong_number_of_parameters_is_refused() {
    for profile in [Profile::Postgres, Profile::MariaDb] {
        let Some(c) = profile.open() else { continue };
        for parameters in [vec![Value::I64(1)], vec![Value::I64(1); 3]] {
            let error = c
                .execute("select 1 where 1 = ? and 2 = ?", &parameters)
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::Programming, "{profile:?}: {error}");
            c.rollback().unwrap();
        }
        assert!(
            c.execute("select 1 where 1 = ?", &[]).is_err(),
            "{profile:?}"
        );
    }
}

#[test]
fn execute_many_counts_rows_and_names_the_one_at_fault() {
    for profile in SERVERS {
        let Some(c) = profile.open() else { continue };
        run(&c, "drop table if exists odbc_many");
        run(
            &c,
            "create table odbc_many (n integer primary key, t varchar(20))",
        );
        c.commit().unwrap();
        let values = (0..100).map(|i| {
            vec![
                Value::I64(i),
                if i % 3 == 0 {
                    Value::Null
                } else {
                    Value::Text(format!("é{i}"))
                },
            ]
        });
        assert_eq!(
            c.execute_many("insert into odbc_many values (?, ?)", &mut values.map(Ok))
                .unwrap(),
            Some(100)
        );
        assert_eq!(
            row(&c, "select count(*), count(t) from odbc_many", &[]),
            [Kept::I64(100), Kept::I64(66)]
        );
        assert_eq!(
            row(&c, "select t from odbc_many where n = ?", &[Value::I64(4)]),
            [text("é4")]
        );
        c.commit().unwrap();
        let values = [200, 201, 7]
            .into_iter()
            .map(|i| vec![Value::I64(i), Value::Null]);
        let error = c
            .execute_many("insert into odbc_many values (?, ?)", &mut values.map(Ok))
            .unwrap_err();
        assert_eq!(
            (error.kind, error.row),
            (ErrorKind::Integrity, Some(2)),
            "{error}"
        );
        c.rollback().unwrap();
        run(&c, "drop table odbc_many");
        c.commit().unwrap();
    }
}

#[test]
fn a_cancel_from_another_thread_stops_a_running_statement() {
    for (profile, sql) in [
        (Profile::Postgres, "select pg_sleep(60)"),
        (Profile::PostgresAnsi, "select pg_sleep(60)"),
        (
            Profile::MariaDb,
            "select sum(a.seq * b.seq) from seq_1_to_1000000 a, seq_1_to_1000000 b",
        ),
        (Profile::TdsMicrosoft, "waitfor delay '00:01:00'"),
        (Profile::TdsFreeTds, "waitfor delay '00:01:00'"),
    ] {
        let Some(c) = profile.open() else { continue };
        let cancel = c.cancel_handle();
        let done = std::sync::atomic::AtomicBool::new(false);
        let started = std::time::Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The cancel is repeated, because it has no effect before the statement runs.
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    cancel.cancel();
                    std::thread::park_timeout(std::time::Duration::from_millis(50));
                }
            });
            let result = c.execute(sql, &[]);
            done.store(true, std::sync::atomic::Ordering::SeqCst);
            let error = result.expect_err("it runs for a minute");
            assert_eq!(error.kind, ErrorKind::Cancelled, "{profile:?}: {error}");
        });
        assert!(started.elapsed().as_secs() < 50, "{profile:?}");
        // The connection is still usable.
        c.rollback().unwrap();
        assert_eq!(row(&c, "select 7 as a", &[]), [Kept::I64(7)], "{profile:?}");
    }
}

#[test]
fn a_cancelled_statement_stays_cancelled() {
    let Some(c) = Profile::Postgres.open() else {
        return;
    };
    let Statement::Odbc(mut s) = c
        .execute("select g from generate_series(1, 100000) g", &[])
        .unwrap()
    else {
        unreachable!()
    };
    s.fetch(Budget::default()).unwrap();
    let cancel = s.cancel_handle();
    cancel.cancel();
    for _ in 0..2 {
        assert_eq!(
            s.fetch(Budget::default()).unwrap_err().kind,
            ErrorKind::Cancelled
        );
    }
    drop(s);
    // A cancel handle has no effect after its statement was dropped.
    cancel.cancel();
    assert_eq!(row(&c, "select 7", &[]), [Kept::I64(7)]);
}

#[test]
fn a_closed_connection_ends_its_statements_clearly() {
    for profile in SERVERS {
        let Some(c) = profile.open() else { continue };
        let Statement::Odbc(mut s) = c.execute("select 1 as a", &[]).unwrap() else {
            unreachable!()
        };
        c.close().unwrap();
        c.close().unwrap();
        for error in [
            s.fetch(Budget::default()).unwrap_err(),
            c.execute("select 1", &[]).unwrap_err(),
            c.commit().unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::Interface, "{profile:?}: {error}");
        }
        drop(c);
        drop(s);
        // A statement keeps its connection open.
        let Some(c) = profile.open() else { continue };
        let Statement::Odbc(mut s) = c.execute("select 1 as a", &[]).unwrap() else {
            unreachable!()
        };
        drop(c);
        assert_eq!(s.fetch(Budget::default()).unwrap(), Fetched::Rows(1));
    }
}

#[test]
fn a_wrong_password_is_refused_and_shown_nowhere() {
    for profile in SERVERS {
        let Some(string) = profile.string() else {
            continue;
        };
        let right = keyword(&string, "Pwd");
        for password in ["plänted;}s3cret", "correct horse"] {
            let string = string.replace(
                &format!("Pwd={right}"),
                &format!("Pwd={{{}}}", password.replace('}', "}}")),
            );
            let error = Connection::open(&string, &ConnectOptions::default()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Connect, "{error}");
            for shown in [
                format!("{error}"),
                format!("{error:?}"),
                format!("{error:#?}"),
            ] {
                assert!(!shown.contains(password), "{profile:?}: {shown}");
            }
        }
        let c = open_with(&string, &ConnectOptions::default());
        for shown in [c.describe(), format!("{c:?}"), c.notices().join("\n")] {
            assert!(!shown.contains(right), "{profile:?}: {shown}");
        }
    }
}

#[test]
fn a_password_that_a_server_repeats_is_starred() {
    let Some(string) = Profile::Postgres.string() else {
        return;
    };
    let c = open_with(&string, &ConnectOptions::default());
    let password = keyword(&string, "Pwd");
    let error = c
        .execute(&format!("select \"{password}\""), &[])
        .unwrap_err();
    assert!(
        !error.message.contains(password) && error.message.contains("***"),
        "{error}"
    );
}

#[test]
fn a_driver_that_is_not_there_is_answered_with_those_found() {
    if Profile::Postgres.string().is_none() {
        return;
    }
    for target in [
        "Driver=libnosuchthing.so;Server=x",
        "Driver={No Such Driver};Pwd=hunter22",
        "DSN=no_such_source",
    ] {
        let error = Connection::open(target, &ConnectOptions::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Connect);
        assert!(error.message.contains("psqlodbcw"), "{error}");
        assert!(!error.message.contains("hunter22"), "{error}");
    }
    let error =
        Connection::open("oracle://u:hunter22@h/d", &ConnectOptions::default()).unwrap_err();
    assert!(
        error.message.contains("no driver for `oracle://`"),
        "{error}"
    );
    assert!(!error.message.contains("hunter22"), "{error}");
}

#[test]
fn urls_reach_the_driver_found() {
    for (profile, scheme) in [
        (Profile::Postgres, "odbc+postgresql"),
        (Profile::MariaDb, "mysql"),
        (Profile::MariaDb, "mariadb"),
    ] {
        let Some(s) = profile.string() else { continue };
        let url = format!(
            "{scheme}://{}:{}@{}:{}/{}",
            keyword(&s, "Uid"),
            keyword(&s, "Pwd"),
            keyword(&s, "Server"),
            keyword(&s, "Port"),
            keyword(&s, "Database")
        );
        let c = open_with(&url, &ConnectOptions::default());
        assert_eq!(row(&c, "select 'é日😀'", &[]), [text("é日😀")]);
    }
}

#[test]
fn prepare_check_runs_nothing_and_counts_parameters() {
    let Some(c) = Profile::Postgres.open() else {
        return;
    };
    let prepared = c
        .prepare_check("select 1 as a, 'x'::text as b where 1 = ?")
        .unwrap();
    assert_eq!(prepared.schema.unwrap().n_columns(), 2);
    assert_eq!(prepared.n_parameters, Some(1));
    assert_eq!(
        c.prepare_check("select * from no_such_table")
            .unwrap_err()
            .kind,
        ErrorKind::Programming
    );
}

#[test]
fn many_threads_share_a_connection_one_call_at_a_time() {
    let Some(c) = Profile::Postgres.open() else {
        return;
    };
    std::thread::scope(|scope| {
        for t in 0..4i64 {
            let c = &c;
            scope.spawn(move || {
                for i in 0..20i64 {
                    let got = rows(
                        c,
                        "select g, ?::int from generate_series(1, 300) g",
                        &[Value::I64(t * 100 + i)],
                    );
                    assert_eq!(got.len(), 300);
                    assert_eq!(got[299], [Kept::I64(300), Kept::I64(t * 100 + i)]);
                }
            });
        }
    });
}
