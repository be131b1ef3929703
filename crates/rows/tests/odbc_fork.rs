//! Tests that a forked child cannot use an ODBC connection of its parent: calls return an error and
//! do not use the driver's handles. The child can open its own connection.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use databases::{Kept, Profile, open_with, row};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Statement;
use onecopy_rows::{Budget, ErrorKind, Source};

/// The only test of this file, so that no thread of another test holds a lock during the fork.
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
        // After this number of blocks, a thread prefetches the next blocks if the machine has two
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
            // SAFETY: ends the child at once, without running destructors of the parent's values.
            unsafe { libc::_exit(code.map_or(64, i32::from)) };
        }
        let mut status = 0;
        // SAFETY: `pid` is the child that was created above, and `status` is memory for its exit
        // status.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "{profile:?}: status {status:#x}"
        );
        statement.fetch(budget).unwrap();
        assert_eq!(row(&c, "select 7 as a", &[]), [Kept::I64(7)]);
    }
}
