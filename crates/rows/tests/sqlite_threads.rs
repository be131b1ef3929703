//! Tests of SQLite with cancellation, locks, several threads, and an [`AttachedHost`].

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use onecopy_rows::AttachedHost;
use onecopy_rows::DatabaseConnection;
use onecopy_rows::sqlite::{Connection, Statement};
use onecopy_rows::{BlockPosition, Budget, Error, ErrorKind, Pumped, Source, Value};
use support::{Got, Rows, memory, open, pump_all, rows, run, source_error};

/// A query that returns three rows immediately, and then runs until it is cancelled.
const ENDLESS: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i < 4";
/// A query that returns no row and runs until it is cancelled.
const ENDLESS_COUNT: &str =
    "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

/// Runs `work` on a new thread, and calls `stop` repeatedly until `work` has returned. Returns the
/// result of `work`.
fn until_done<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static, stop: impl Fn()) -> T {
    let (done, result) = mpsc::channel();
    let thread = std::thread::spawn(move || done.send(work()).unwrap());
    loop {
        stop();
        match result.recv_timeout(Duration::from_millis(1)) {
            Ok(result) => {
                thread.join().unwrap();
                return result;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(gone) => panic!("the thread panicked: {gone}"),
        }
    }
}

#[test]
fn an_execution_is_cancelled_through_the_connection() {
    let connection = std::sync::Arc::new(memory());
    let cancel = connection.cancel_handle();
    let worker = connection.clone();
    let error = until_done(
        move || worker.execute(ENDLESS_COUNT, &[]).unwrap_err(),
        || cancel.cancel(),
    );
    assert_eq!((error.kind, error.native), (ErrorKind::Cancelled, 9));
    // An earlier cancel has no effect on statements that start later.
    cancel.cancel();
    assert_eq!(rows(&connection, "select 1", &[]), [[Got::I64(1)]]);
}

#[test]
fn a_fetch_is_cancelled_through_its_statement_and_stays_so() {
    let connection = memory();
    let mut other = connection.execute("select 1", &[]).unwrap();
    let mut statement = connection.execute(ENDLESS, &[]).unwrap();
    let cancel = statement.cancel_handle();
    let (error, mut statement) = until_done(
        move || (pump_all(&mut statement).unwrap_err(), statement),
        || cancel.cancel(),
    );
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert_eq!(
        pump_all(&mut statement).unwrap_err().kind,
        ErrorKind::Cancelled
    );
    assert_eq!(pump_all(&mut other).unwrap().len(), 1);
}

#[test]
fn a_cancel_before_the_first_fetch_holds() {
    let connection = memory();
    let mut statement = connection.execute("select 1", &[]).unwrap();
    let handle = statement.cancel_handle();
    handle.cancel();
    handle.cancel();
    assert_eq!(
        pump_all(&mut statement).unwrap_err().kind,
        ErrorKind::Cancelled
    );
    let mut statement = connection.execute("select 1", &[]).unwrap();
    assert_eq!(pump_all(&mut statement).unwrap().len(), 1);
    drop((statement, connection));
    handle.cancel();
}

#[test]
fn closing_stops_what_runs() {
    let connection = std::sync::Arc::new(memory());
    let mut statement = connection.execute(ENDLESS, &[]).unwrap();
    let error = until_done(
        move || pump_all(&mut statement).unwrap_err(),
        || connection.close().unwrap(),
    );
    assert_eq!(error.kind, ErrorKind::Interface);
    assert!(error.message.contains("closed"), "{error}");
}

#[test]
fn threads_share_a_connection_and_each_gets_its_own_rows() {
    let connection = memory();
    run(
        &connection,
        "create table t (a integer primary key, b text)",
    );
    let values = (0..500).map(|i| vec![Value::I64(i), Value::Text(format!("text {i}"))]);
    connection
        .execute_many("insert into t values (?, ?)", &mut values.map(Ok))
        .unwrap();
    connection.commit().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let connection = &connection;
            scope.spawn(move || {
                for round in 0..25 {
                    let low = (thread * 25 + round) % 100;
                    let sql = "select a, b from t where a >= ? order by a";
                    let mut statement = connection.execute(sql, &[Value::I64(low)]).unwrap();
                    let got = if round % 2 == 0 {
                        support::fetch_all(&mut statement).unwrap()
                    } else {
                        pump_all(&mut statement).unwrap()
                    };
                    let want =
                        (low..500).map(|i| vec![Got::I64(i), format!("text {i}").as_str().into()]);
                    assert!(want.eq(got));
                }
            });
        }
    });
}

#[test]
fn a_statement_dropped_while_another_thread_steps_frees_its_locks_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db").to_str().unwrap().to_owned();
    let connection = open(&path).unwrap();
    run(&connection, "create table t (a)");
    run(&connection, "insert into t values (1), (2)");
    connection.commit().unwrap();
    let unread = connection.execute("select a from t", &[]).unwrap();
    let mut endless = connection.execute(ENDLESS, &[]).unwrap();
    let host = Gate::default();
    std::thread::scope(|scope| {
        let stepping = scope.spawn(|| {
            endless
                .pump_attached(
                    &mut BlockPosition::default(),
                    Budget::default(),
                    &mut Rows::default(),
                    &host,
                )
                .map_err(source_error)
                .unwrap_err()
        });
        host.wait_until_in_turn();
        drop(unread); // The drop does not wait for the other thread.
        host.let_go();
        assert_eq!(stepping.join().unwrap().kind, ErrorKind::Cancelled);
    });
    // This succeeds only if the dropped statement has released its lock on the table.
    run(&connection, "drop table t");
}

/// A host whose `turn` waits until [`Gate::let_go`] is called, and then ends the statement.
#[derive(Default)]
struct Gate {
    in_turn: AtomicBool,
    open: AtomicBool,
}

impl Gate {
    fn wait_until_in_turn(&self) {
        while !self.in_turn.load(SeqCst) {
            std::thread::yield_now();
        }
    }

    fn let_go(&self) {
        self.open.store(true, SeqCst);
    }
}

impl AttachedHost for Gate {
    fn turn(&self) -> bool {
        self.in_turn.store(true, SeqCst);
        while !self.open.load(SeqCst) {
            std::thread::yield_now();
        }
        false
    }

    fn released(&self, wait: &mut (dyn FnMut() + Send)) {
        wait();
    }
}

/// A host that counts the calls to `turn` and `released`. If `end_at_turn` is set, it ends the
/// statement at the call to `turn` with this number.
#[derive(Default)]
struct Counting {
    n_turns: AtomicUsize,
    n_released: AtomicUsize,
    end_at_turn: Option<usize>,
}

impl AttachedHost for Counting {
    fn turn(&self) -> bool {
        let turn = self.n_turns.fetch_add(1, SeqCst) + 1;
        self.end_at_turn.is_none_or(|end| turn < end)
    }

    fn released(&self, wait: &mut (dyn FnMut() + Send)) {
        self.n_released.fetch_add(1, SeqCst);
        wait();
    }
}

fn pump_attached(statement: &mut Statement, host: &dyn AttachedHost) -> Result<usize, Error> {
    let mut sink = Rows::default();
    while statement
        .pump_attached(
            &mut BlockPosition::default(),
            Budget::default(),
            &mut sink,
            host,
        )
        .map_err(source_error)?
        == Pumped::More
    {}
    Ok(sink.rows.len())
}

#[test]
fn a_host_has_its_turns_and_may_end_the_statement() {
    let connection = memory();
    let host = Counting {
        end_at_turn: Some(3),
        ..Counting::default()
    };
    let mut statement = connection.execute(ENDLESS, &[]).unwrap();
    let error = pump_attached(&mut statement, &host).unwrap_err();
    assert_eq!(
        (error.kind, host.n_turns.load(SeqCst)),
        (ErrorKind::Cancelled, 3)
    );
    assert_eq!(host.n_released.load(SeqCst), 0);
    let mut statement = connection.execute("select 1", &[]).unwrap();
    assert_eq!(pump_attached(&mut statement, &host).unwrap(), 1);
}

#[test]
fn a_host_has_its_turns_over_many_short_calls_too() {
    let connection = memory();
    let host = Counting::default();
    let mut statement = connection
        .execute(&ENDLESS.replace("where i < 4", ""), &[])
        .unwrap();
    let budget = Budget {
        block_rows: 1,
        ..Budget::default()
    };
    while host.n_turns.load(SeqCst) < 3 {
        statement
            .pump_attached(
                &mut BlockPosition::default(),
                budget,
                &mut Rows::default(),
                &host,
            )
            .unwrap();
    }
}

#[test]
fn a_host_that_panics_ends_the_statement_and_nothing_else() {
    struct Panics;
    impl AttachedHost for Panics {
        fn turn(&self) -> bool {
            panic!("planted: the host's turn panics");
        }
        fn released(&self, wait: &mut (dyn FnMut() + Send)) {
            wait();
        }
    }
    let connection = memory();
    let mut statement = connection.execute(ENDLESS, &[]).unwrap();
    let error = pump_attached(&mut statement, &Panics).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert_eq!(rows(&connection, "select 1", &[]), [[Got::I64(1)]]);
}

#[test]
fn a_host_that_uses_the_connection_in_its_turn_is_told_so() {
    struct Reenters<'a>(&'a Connection, std::sync::Mutex<Option<Error>>);
    impl AttachedHost for Reenters<'_> {
        fn turn(&self) -> bool {
            *self.1.lock().unwrap() = self.0.execute("select 1", &[]).err();
            false
        }
        fn released(&self, wait: &mut (dyn FnMut() + Send)) {
            wait();
        }
    }
    let connection = memory();
    let mut statement = connection.execute(ENDLESS, &[]).unwrap();
    let host = Reenters(&connection, std::sync::Mutex::new(None));
    assert!(pump_attached(&mut statement, &host).is_err());
    let error = host.1.into_inner().unwrap().unwrap();
    assert_eq!(error.kind, ErrorKind::Interface);
}

#[test]
fn an_attached_caller_waits_for_the_connection_with_its_lock_released() {
    let connection = memory();
    let mut endless = connection.execute(ENDLESS, &[]).unwrap();
    let mut quick = connection.execute("select 1", &[]).unwrap();
    let gate = Gate::default();
    /// A host that opens the gate of the other thread when its own interpreter lock is released.
    struct LetsGo<'a>(&'a Gate);
    impl AttachedHost for LetsGo<'_> {
        fn turn(&self) -> bool {
            true
        }
        fn released(&self, wait: &mut (dyn FnMut() + Send)) {
            self.0.let_go();
            wait();
        }
    }
    std::thread::scope(|scope| {
        let stepping = scope.spawn(|| pump_attached(&mut endless, &gate).unwrap_err());
        gate.wait_until_in_turn();
        assert_eq!(pump_attached(&mut quick, &LetsGo(&gate)).unwrap(), 1);
        assert_eq!(stepping.join().unwrap().kind, ErrorKind::Cancelled);
    });
}

/// Opens two connections to one file. The first one holds an exclusive lock; the second one waits
/// `busy_timeout_ms` for locks.
fn locked(busy_timeout_ms: u32) -> (tempfile::TempDir, Connection, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db").to_str().unwrap().to_owned();
    let holder = open(&path).unwrap();
    run(&holder, "create table t (a)");
    run(&holder, "begin exclusive");
    let waiter = open(&format!("{path}?busy_timeout_ms={busy_timeout_ms}")).unwrap();
    (dir, holder, waiter)
}

#[test]
fn a_locked_database_is_an_operational_error_when_the_time_is_up() {
    let (_dir, holder, waiter) = locked(3);
    let error = waiter.execute("insert into t values (1)", &[]).unwrap_err();
    assert_eq!(
        (error.kind, error.native & 0xff),
        (ErrorKind::Operational, 5)
    );
    assert!(error.message.starts_with("database is locked\n"), "{error}");
    assert!(error.message.contains("busy_timeout_ms"), "{error}");
    holder.rollback().unwrap();
    run(&waiter, "insert into t values (1)");
    waiter.commit().unwrap();
}

#[test]
fn a_wait_for_a_lock_ends_when_it_is_freed() {
    let (_dir, holder, waiter) = locked(600_000);
    let (tried, began) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            tried.send(()).unwrap();
            pump_all(&mut waiter.execute("select count(*) from t", &[]).unwrap()).unwrap()
        });
        began.recv().unwrap();
        run(&holder, "insert into t values (1)");
        holder.commit().unwrap();
        assert_eq!(waiting.join().unwrap(), [[Got::I64(1)]]);
    });
}

#[test]
fn a_wait_for_a_lock_can_be_cancelled() {
    let (_dir, _holder, waiter) = locked(600_000);
    let cancel = waiter.cancel_handle();
    let error = until_done(
        move || waiter.execute("select * from t", &[]).unwrap_err(),
        || cancel.cancel(),
    );
    assert_eq!(error.kind, ErrorKind::Cancelled);
}
