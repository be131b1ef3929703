//! Tests that a forked child cannot use an ODBC connection of its parent: calls return an error and
//! do not use the driver's handles. The child can open its own connection.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use databases::{Kept, Profile, open_with, row};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Statement;
use onecopy_rows::{Budget, ErrorKind, Source};

/// This is the only test of the file, so that no thread of another test holds a lock during the
/// fork.
#[test]
fn a_forked_child_is_refused_and_the_parent_goes_on() {
    for profile in [Profile::Postgres, Profile::MariaDb] {
        let Some(string) = profile.string() else {
            continue;
        };
        let c = open_with(&string, &ConnectOptions::default());
        let Statement::Odbc(mut statement) = c.execute("select * from t1000", &[]).unwrap() else {
            unreachable!()
        };
        // Enough blocks are fetched that a thread prefetches the next ones, if there are two
        // processors.
        let budget = Budget {
            block_rows: 50,
            ..Budget::default()
        };
        for _ in 0..4 {
            statement.fetch(budget).unwrap();
        }
        // SAFETY: the child acquires no lock that the prefetch thread could hold, and ends by
        // _exit.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let wrong = |kind: ErrorKind| u8::from(kind != ErrorKind::Interface);
                let mut code = wrong(statement.fetch(budget).unwrap_err().kind);
                code |= wrong(c.execute("select 1", &[]).unwrap_err().kind) << 1;
                code |= wrong(c.commit().unwrap_err().kind) << 2;
                code |= wrong(c.close().unwrap_err().kind) << 3;
                statement.cancel_handle().cancel();
                drop(statement);
                drop(c);
                let own = open_with(&string, &ConnectOptions::default());
                code | u8::from(row(&own, "select 7 as a", &[]) != [Kept::I64(7)]) << 4
            }));
            // SAFETY: ends the child at once, with no destructor of the parent's.
            unsafe { libc::_exit(code.map_or(64, i32::from)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "{profile:?}: status {status:#x}"
        );
        statement.fetch(budget).unwrap();
        assert_eq!(row(&c, "select 7 as a", &[]), [Kept::I64(7)]);
    }
}
