//! The Python module `onecopy._core`.
//!
//! | module | what it holds |
//! |---|---|
//! | `arrow` | rows as Arrow's batches and as columns, and back |
//! | `bson` | `onecopy.bson`: objects to BSON and back |
//! | `connection` | `connect` and `Connection` |
//! | `cursor` | `Cursor`: PEP 249 over pulled rows |
//! | `fetch`, `pull` | a statement whose rows are read; rows pulled out of it, with the GIL released once per block |
//! | `rows` | the row sink that makes objects of cells |
//! | `parameters` | objects to parameter values |
//! | `types` | column types to `description` |
//! | `stream`, `output` | `RowStream`, and where it can be written to |
//! | `ledger` | `onecopy.ledger()` |
//! | `moving` | `send_file`, `recv_file`, `copy_file`: bytes that the kernel moves |
//! | `errors` | one table from error kinds to exception classes |
//! | `json` | `onecopy.json`: objects to JSON and back |
//! | `keywords`, `recent` | what keywords are given; how long results were of late |
//! | `text` | `onecopy.text`: text between buffers and `str` |
//! | `turn` | a turn for other threads while SQLite steps attached |
//! | `choice` | arguments that are one of several words |
//! | `guard` | the lock behind each object: never waited for while attached |
//! | `command` | the command, for the wheel's script |
//! | `fuzzing` | the module for an interpreter in a fuzz target's own process; compiled for those alone |
//! | `wsgi` | WSGI applications behind the server |
//! | `raw` | CPython's own data structures: the only place with `unsafe` |
#![deny(unsafe_code)]

mod arrow;
mod bson;
mod choice;
mod command;
mod connection;
mod cursor;
mod errors;
mod fetch;
#[cfg(fuzzing)]
pub mod fuzzing;
mod guard;
mod json;
mod keywords;
mod ledger;
mod limit;
mod maker;
mod moving;
mod output;
mod parameters;
mod pull;
#[allow(unsafe_code)] // Fence: CPython's data structures, signal handlers, descriptors.
mod raw;
mod recent;
mod rows;
mod stream;
mod text;
mod turn;
mod types;
mod wsgi;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Rows of any ODBC database and of SQLite, converted once.
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::arrow::ArrowStream;
    #[pymodule_export]
    use super::command::run_command;
    #[pymodule_export]
    use super::connection::{Blob, Connection, connect};
    #[pymodule_export]
    use super::cursor::{Cursor, LongValue, run_call};
    #[pymodule_export]
    use super::errors::error_classes;
    #[pymodule_export]
    use super::ledger::{LedgerScope, ledger};
    #[pymodule_export]
    use super::moving::{copy_file, recv_file, send_file};
    #[pymodule_export]
    use super::raw::column::Column;
    #[pymodule_export]
    use super::stream::RowStream;
    #[pymodule_export]
    use super::wsgi::{
        FileAnswer, FileWrapper, Files, Input, Metrics, Server, StartResponse, raise_open_files,
    };

    #[pymodule_export]
    #[allow(non_upper_case_globals)] // The name that Python expects.
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if !raw::process::is_main_interpreter(module.py()) {
            return Err(PyImportError::new_err(
                "onecopy does not work in subinterpreters\nimport it in the main interpreter",
            ));
        }
        raw::temporal::import(module.py())?;
        raw::walk::check_layout(module.py())?;
        raw::process::watch_forks();
        raw::ending::watch(module.py())?;
        raw::reserve::refill();
        raw::fresh::take_headers(module.py())?;
        raw::fresh_bytes::take_header(module.py())?;
        raw::objects::fresh_number::take(module.py())?;
        text::add(module)?;
        json::add(module)?;
        bson::add(module)
    }
}
