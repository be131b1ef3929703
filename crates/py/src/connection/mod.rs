//! `onecopy.connect` and `Connection`.
//!
//! | module | contents |
//! |---|---|
//! | `open` | `connect` |
//! | `methods` | the methods of `Connection` in Python |
//! | `execute` | the execution of statements for cursors |
//! | `reading` | calls that read data from Python objects while they run |
//! | `sqlite` | the methods that only SQLite has, and `Blob` |
//! | `postgres` | the methods that only PostgreSQL has, and `Notification` |

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use onecopy_rows::Names;
use onecopy_rows::connect::{self as db};
use onecopy_text::Policy;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::limit::TimeLimit;
use crate::raw::process;

mod execute;
mod methods;
mod open;
mod postgres;
mod reading;
mod sqlite;

pub(crate) use execute::Said;
pub(crate) use open::{begin_connect, connect};
pub(crate) use postgres::Notification;
pub(crate) use reading::{Changes, ReadingCall};
pub(crate) use sqlite::Blob;

/// A connection to a database (PEP 249).
///
/// As a context manager, it commits when the block ends. If the block raises an exception, it rolls
/// back. The connection remains open. Threads may share a connection. Their calls run one after
/// another. In a forked child every use raises `InterfaceError`.
///
/// >>> con = onecopy.connect("sqlite::memory:")
/// >>> with con:
/// ...     _ = con.execute("create table city (name text)")
/// ...     _ = con.executemany("insert into city values (?)", [["Ærø"], ["東京"]])
/// >>> con.execute("select count(*) from city").fetchone()
/// (2,)
#[pyclass(frozen, weakref, module = "onecopy")]
pub(crate) struct Connection {
    /// The database connection; `None` only during `drop`.
    db: Option<Arc<db::Connection>>,
    /// `true` after the pool has the connection back. Another object then uses it.
    is_returned: AtomicBool,
    /// The database and driver versions for `repr`, without a password.
    about: String,
    policy: Policy,
    generation: u32,
    /// A dict from classes to converters of parameters.
    adapters: Py<PyDict>,
    converters: Py<PyDict>,
    row_factory: Mutex<Option<Py<PyAny>>>,
    /// The initial time limit of new cursors (`query_timeout`).
    pub(crate) limit: TimeLimit,
    names: Names,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let db = self.db.take();
        if self.generation != process::generation() {
            // A forked child keeps the connection open. Closing it would end the parent's session.
            std::mem::forget(db);
            return;
        }
        drop(crate::active_statement::Detached::new(db));
    }
}
