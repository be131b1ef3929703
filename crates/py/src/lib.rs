//! The extension module `onecopy._core`: the Python interface of the Rust crates.
//!
//! | module | contents |
//! |---|---|
//! | `arrow` | rows as Arrow batches and as columns, and back |
//! | `bson` | `onecopy.bson`: Python objects to BSON and back |
//! | `connection` | `connect` and `Connection` |
//! | `cursor` | `Cursor` of PEP 249 |
//! | `active_statement`, `next_rows` | a statement whose rows are read; the fetch of its next rows |
//! | `pending` | calls that an event loop runs, suspended where they would block |
//! | `rows` | the row sink that creates Python objects from cells |
//! | `parameters`, `array`, `range`, `json_value` | Python objects to parameters; `Range`, `Json` |
//! | `types` | column types for `description` |
//! | `stream`, `stream_output` | `RowStream`, and the destinations it can be written to |
//! | `ledger` | `onecopy.ledger()` |
//! | `limit` | time limits of driver calls |
//! | `moving` | `send_file`, `recv_file`, `copy_file`: bytes that the kernel transfers |
//! | `errors` | the table from error kinds to exception classes |
//! | `json` | `onecopy.json`: Python objects to JSON and back |
//! | `keywords`, `recent` | values of keywords; the length of recent results |
//! | `parts` | `onecopy.parts`: the plan of a statement, and the execution of its parts |
//! | `row_maker` | row objects from tuples, by a row factory and converters |
//! | `text` | `onecopy.text`: text between buffers and `str` |
//! | `thread_switch` | lets other threads run while SQLite is stepped with the GIL held |
//! | `choice` | arguments that are one of several words |
//! | `guard` | the lock of each object; no thread waits for it while it holds the GIL |
//! | `command` | the command-line program, for the script of the wheel |
//! | `fuzzing` | the module for fuzz targets that embed an interpreter |
//! | `wsgi` | WSGI applications on the server |
//! | `raw` | access to CPython's data structures: the only module with `unsafe` |
#![deny(unsafe_code)]

mod active_statement;
mod array;
mod arrow;
mod bson;
mod choice;
mod command;
mod connection;
mod cursor;
mod errors;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guard;
mod json;
mod json_value;
mod keywords;
mod ledger;
mod limit;
mod moving;
mod next_rows;
mod numpy_scalar;
mod object_path;
mod parameter_rows;
mod parameters;
mod parts;
mod pending;
mod python_class;
mod range;
#[allow(unsafe_code)] // Unsafe boundary: CPython's data structures, signal handlers, descriptors.
mod raw;
mod recent;
mod row_maker;
mod rows;
mod stream;
mod stream_output;
mod text;
mod thread_switch;
mod types;
mod wsgi;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The extension module of onecopy: rows of PostgreSQL, SQLite and any ODBC database.
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::arrow::ArrowStream;
    #[pymodule_export]
    use super::command::run_command;
    #[pymodule_export]
    use super::connection::{Blob, Connection, Notification, begin_connect, connect};
    #[pymodule_export]
    use super::cursor::{CopyOut, Cursor, LongValue, PendingColumns};
    #[pymodule_export]
    use super::errors::error_classes;
    #[pymodule_export]
    use super::json_value::Json;
    #[pymodule_export]
    use super::ledger::{LedgerScope, ledger};
    #[pymodule_export]
    use super::moving::{copy_file, recv_file, send_file};
    #[pymodule_export]
    use super::parts::{execute_part, plan_query};
    #[pymodule_export]
    use super::pending::PendingCall;
    #[pymodule_export]
    use super::range::Range;
    #[pymodule_export]
    use super::raw::number_column::Column;
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
        raw::encode::check_layout(module.py())?;
        raw::process::watch_forks();
        raw::gil::watch(module.py())?;
        raw::reserve::refill();
        raw::fresh::take_headers(module.py())?;
        raw::fresh_bytes::take_header(module.py())?;
        raw::objects::fresh_number::take(module.py())?;
        text::add(module)?;
        json::add(module)?;
        bson::add(module)
    }
}
