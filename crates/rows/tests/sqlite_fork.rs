//! Tests that a forked child cannot use a SQLite connection of its parent: calls return an error
//! and do not use SQLite's handles.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod support;

use onecopy_rows::DatabaseConnection;
use onecopy_rows::{ErrorKind, Source};
use support::{Got, open, pump_all, rows, run};

/// The only test of this file, so that no thread of another test holds a lock during the fork.
#[test]
fn a_forked_child_is_refused_and_the_parent_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db").to_str().unwrap().to_owned();
    let connection = open(&path).unwrap();
    run(&connection, "create table t (a)");
    run(&connection, "insert into t values (1), (2), (3)");
    let mut statement = connection.execute("select a from t", &[]).unwrap();

    // SAFETY: the child acquires no lock that another thread could hold, and ends by _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let refused = |kind: ErrorKind| u8::from(kind != ErrorKind::Interface);
            let mut code = refused(pump_all(&mut statement).unwrap_err().kind);
            code |= refused(support::fetch_all(&mut statement).unwrap_err().kind) << 1;
            code |= refused(connection.execute("select 1", &[]).unwrap_err().kind) << 2;
            code |= refused(connection.commit().unwrap_err().kind) << 3;
            code |= refused(connection.close().unwrap_err().kind) << 4;
            statement.cancel_handle().cancel();
            drop(statement);
            drop(connection);
            // The child can open a new connection.
            let own = open(&format!("{path}?mode=ro")).unwrap();
            code | u8::from(rows(&own, "select count(*) from t", &[]) != [[Got::I64(0)]]) << 5
        }));
        // SAFETY: ends the child at once, without running destructors of the parent's values.
        unsafe { libc::_exit(code.map_or(64, i32::from)) };
    }
    let mut status = 0;
    // SAFETY: `pid` is the child of this process, and `status` is memory for its exit status.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!(waited, pid);
    assert!(libc::WIFEXITED(status), "{status}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "bits of what was not refused");

    assert_eq!(pump_all(&mut statement).unwrap().len(), 3);
    connection.commit().unwrap();
    assert_eq!(
        rows(&connection, "select count(*) from t", &[]),
        [[Got::I64(3)]]
    );
    assert_eq!(
        rows(&connection, "pragma integrity_check", &[]),
        [["ok".into()]]
    );
}
