//! Tests of prefetched blocks: the rows and errors are the same as without prefetch, and the
//! prefetch thread ends.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use databases::{Keeper, Kept, Profile, open_with, row, run};
use onecopy_rows::ConnectOptions;
use onecopy_rows::DatabaseStatement;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_rows::{Block, Budget, Error, ErrorKind, Fetched, LongValues, Source};

/// A budget for small blocks, so that a result has many blocks.
const BUDGET: Budget = Budget {
    block_bytes: 64 << 10,
    block_rows: 500,
};

const ALL: [Profile; 7] = [
    Profile::Postgres,
    Profile::PostgresAnsi,
    Profile::MariaDb,
    Profile::SqliteOdbc,
    Profile::TdsFreeTds,
    Profile::TdsMicrosoft,
    Profile::TdsRust,
];
const SQL_SERVER: [Profile; 3] = [Profile::TdsFreeTds, Profile::TdsMicrosoft, Profile::TdsRust];

fn odbc(c: &Connection, sql: &str) -> onecopy_rows::odbc::Statement {
    let Statement::Odbc(statement) = c.execute(sql, &[]).unwrap() else {
        panic!("these tests are for ODBC");
    };
    statement
}

/// Reads up to `n_blocks` blocks. Returns their rows, and the error of the last fetch; `None` if it
/// did not fail.
fn read(
    statement: &mut onecopy_rows::odbc::Statement,
    n_blocks: usize,
) -> (Vec<Vec<Kept>>, Result<(), Error>) {
    let mut keeper = Keeper::default();
    for _ in 0..n_blocks {
        match statement.fetch(BUDGET) {
            Ok(Fetched::Rows(_)) => drop(statement.block().emit(0, &mut keeper).unwrap()),
            Ok(Fetched::End) => return (keeper.rows, Ok(())),
            Err(error) => return (keeper.rows, Err(error)),
        }
    }
    (keeper.rows, Ok(()))
}

/// Returns the number of prefetch threads in this process. Other tests of this file start such
/// threads too, so the tests run one after the other (see [`turn`]).
fn n_reading() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .filter(|name| name.trim() == "onecopy-fetch")
        .count()
}

fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the set of processors on which this thread may run.
fn processors() -> libc::cpu_set_t {
    // SAFETY: the call writes to `set`, which has the given size.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    }
}

/// Calls `work` while this thread may run on only one processor.
fn on_one<T>(work: impl FnOnce() -> T) -> T {
    let before = processors();
    let set = |set: &libc::cpu_set_t| {
        // SAFETY: the call reads `set`, which has the given size.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
    };
    // SAFETY: the zeroed set is empty, and `n` is less than the number of processors that a set can
    // contain.
    let first = unsafe {
        let mut first: libc::cpu_set_t = std::mem::zeroed();
        let n = (0..1024).find(|n| libc::CPU_ISSET(*n, &before)).unwrap();
        libc::CPU_SET(n, &mut first);
        first
    };
    set(&first);
    let done = work();
    set(&before);
    done
}

fn has_two() -> bool {
    // SAFETY: `processors` returns an initialised set.
    unsafe { libc::CPU_COUNT(&processors()) > 1 }
}

#[test]
fn blocks_read_ahead_hold_the_same_rows() {
    let _turn = turn();
    for profile in ALL {
        let Some(c) = profile.open() else { continue };
        let sql = "select * from t1000 order by id";
        let sql = match SQL_SERVER.contains(&profile) {
            true => "select * from t1000",
            false => sql,
        };
        let one_processor = on_one(|| {
            let mut statement = odbc(&c, sql);
            let read = read(&mut statement, usize::MAX);
            assert_eq!(n_reading(), 0, "{profile:?}");
            read
        });
        let mut statement = odbc(&c, sql);
        let (mut rows, _) = read(&mut statement, 3);
        let expected = usize::from(has_two() && rows.len() < one_processor.0.len());
        assert_eq!(n_reading(), expected, "{profile:?}: {} rows", rows.len());
        let (rest, end) = read(&mut statement, usize::MAX);
        rows.extend(rest);
        end.unwrap();
        drop(statement);
        assert_eq!(n_reading(), 0, "{profile:?}");
        assert_eq!(rows.len(), 1000, "{profile:?}");
        assert_eq!(rows, one_processor.0, "{profile:?}");
    }
}

#[test]
fn long_values_in_parts_are_the_same() {
    let _turn = turn();
    let sql = "select n, repeat('é', n % 7 * n) as x from generate_series(1, 3000) as g(n)";
    for profile in [Profile::Postgres, Profile::PostgresAnsi] {
        let Some(c) = profile.open() else { continue };
        let parts = |c: &Connection| {
            let mut statement = odbc(c, sql);
            statement.set_long_values(LongValues::Parts { part_bytes: 4096 });
            read(&mut statement, usize::MAX).0
        };
        let one_processor = on_one(|| parts(&c));
        assert_eq!(one_processor.len(), 3000, "{profile:?}");
        assert_eq!(parts(&c), one_processor, "{profile:?}");
    }
}

#[test]
fn a_failure_comes_behind_the_rows_before_it() {
    let _turn = turn();
    for profile in SQL_SERVER {
        let Some(c) = profile.open() else { continue };
        for n in [1999_usize, 7001] {
            let sql = format!("select 1 as n from repeat(9000) /* error after {n} */");
            let (rows, end) = read(&mut odbc(&c, &sql), usize::MAX);
            let error = end.unwrap_err();
            assert_eq!(
                (rows.len(), error.native),
                (n, 50000),
                "{profile:?}: {error}"
            );
        }
    }
    let Some(c) = Profile::Postgres.open() else {
        return;
    };
    let sql = "select 1 / (7001 - n) from generate_series(1, 9000) as g(n)";
    let (rows, end) = read(&mut odbc(&c, sql), usize::MAX);
    let error = end.unwrap_err();
    assert_eq!(error.sqlstate, "22012", "{error}");
    assert!(rows.len() <= 7000 && rows.len() > 5000, "{}", rows.len());
}

#[test]
fn a_cursor_that_was_ended_or_cancelled_gives_nothing_that_was_read_ahead() {
    let _turn = turn();
    let Some(c) = Profile::Postgres.open() else {
        return;
    };
    let after = |work: &dyn Fn(&onecopy_rows::odbc::Statement)| {
        let sql = "select n from generate_series(1, 9000) as g(n)";
        let mut statement = odbc(&c, sql);
        assert_eq!(read(&mut statement, 3).0.len(), 1500);
        work(&statement);
        statement.fetch(BUDGET).unwrap_err().kind
    };
    assert_eq!(after(&|_| c.rollback().unwrap()), ErrorKind::Interface);
    let cancelled = after(&|statement| statement.cancel_handle().cancel());
    assert_eq!(cancelled, ErrorKind::Cancelled);
    assert_eq!(after(&|_| c.close().unwrap()), ErrorKind::Interface);
    assert_eq!(n_reading(), 0);
}

#[test]
fn another_statement_runs_between_blocks() {
    let _turn = turn();
    for profile in [Profile::Postgres, Profile::PostgresAnsi, Profile::MariaDb] {
        let Some(c) = profile.open() else { continue };
        let mut statement = odbc(&c, "select id from t1000 order by id");
        let small = Budget {
            block_rows: 50,
            ..BUDGET
        };
        let mut keeper = Keeper::default();
        while let Fetched::Rows(_) = statement.fetch(small).unwrap() {
            statement.block().emit(0, &mut keeper).unwrap();
            assert_eq!(row(&c, "select 5 as n", &[]), [Kept::I64(5)], "{profile:?}");
        }
        assert_eq!(keeper.rows.len(), 1000, "{profile:?}");
    }
}

#[test]
fn the_next_result_stands_behind_rows_that_nobody_asked_for() {
    let _turn = turn();
    let options = ConnectOptions::default();
    for profile in SQL_SERVER {
        let Some(string) = profile.string() else {
            continue;
        };
        let c = open_with(&string, &options);
        // The first result has four blocks. After only some of its blocks were read, the prefetch
        // thread still reads this result; after all of them, it has reached the next result.
        for n_blocks in [3, 4, 5] {
            let sql = "select 1 as n from repeat(2000); select 2 as n from repeat(3)";
            let mut statement = odbc(&c, sql);
            statement.set_takes_more(true);
            let (rows, end) = read(&mut statement, n_blocks);
            end.unwrap();
            assert_eq!(rows.len(), (500 * n_blocks).min(2000), "{profile:?}");
            assert!(statement.next_set().unwrap(), "{profile:?} {n_blocks}");
            let (rows, end) = read(&mut statement, usize::MAX);
            end.unwrap();
            assert_eq!(rows, vec![vec![Kept::I64(2)]; 3], "{profile:?} {n_blocks}");
            assert!(!statement.next_set().unwrap(), "{profile:?} {n_blocks}");
        }
        run(&c, "select 1 as n");
    }
}
