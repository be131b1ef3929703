//! Methods of `Connection` for SQLite: Python functions, collations, backups, incremental BLOBs.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use onecopy_rows::sqlite::{
    self, Aggregate, BackupProgress, Collation, Function, NewAggregate, Scalar,
};
use onecopy_rows::{Error, ErrorKind, Value};
use onecopy_wire::CancelHandle;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::Connection;
use crate::active_statement::Detached;
use crate::raw::buffer::BufferBytes;
use crate::raw::{binary, gil, interrupt};
use crate::{errors, parameters};

#[pymethods]
impl Connection {
    /// Creates a function that SQL can call, on a connection to SQLite.
    ///
    /// The function is called with SQLite's types (``None``, `int`, `float`, `str`, `bytes`). It
    /// returns a value that is accepted as a parameter. It runs on the thread that executes the
    /// statement or fetches its rows, and must not use this connection. An exception in it ends the
    /// statement with an `OperationalError`, which names the function and the exception.
    ///
    /// Args:
    ///     name: the function's name in SQL.
    ///     narg: the number of arguments; -1 for any number.
    ///     func: the Python function; ``None`` removes the SQL function.
    ///     deterministic: ``True`` if the result depends only on the arguments. Only then may an
    ///         index use the function.
    ///
    /// Raises:
    ///     NotSupportedError: the database is not SQLite.
    ///     OperationalError: a statement that is being executed uses the function.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.create_function("shout", 1, lambda text: text.upper() + "!")
    /// >>> con.execute("select shout('hello')").fetchone()
    /// ('HELLO!',)
    ///
    /// Source: https://docs.python.org/3/library/sqlite3.html#sqlite3.Connection.create_function
    #[pyo3(signature = (name, narg, func, *, deterministic=false))]
    fn create_function(
        &self,
        py: Python<'_>,
        name: String,
        narg: i32,
        func: Option<Py<PyAny>>,
        deterministic: bool,
    ) -> PyResult<()> {
        let function = match func {
            None => Function::Removed,
            Some(func) => {
                check_callable(func.bind(py))?;
                let label = name.clone();
                let call: Box<Scalar> = Box::new(move |arguments| {
                    run("function", &label, |py| {
                        let given = func.bind(py).call1(to_python(py, arguments)?)?;
                        parameters::result_of_function(&given)
                    })
                });
                Function::Scalar {
                    call,
                    is_deterministic: deterministic,
                }
            }
        };
        self.call(py, move |db| {
            db.sqlite()?.create_function(&name, narg, function)
        })
    }

    /// Creates an aggregate function that SQL can call, on a connection to SQLite.
    ///
    /// An instance of the class is created for each group. Its ``step`` is called with the
    /// arguments of each row, and its ``finalize`` returns the result.
    ///
    /// Args:
    ///     name: the function's name in SQL.
    ///     narg: the number of arguments; -1 for any number.
    ///     aggregate_class: a class with ``step`` and ``finalize``; ``None`` removes the function.
    ///
    /// Raises:
    ///     NotSupportedError: the database is not SQLite.
    ///     OperationalError: a statement that is being executed uses the function.
    ///
    /// >>> class Longest:
    /// ...     def __init__(self): self.text = ""
    /// ...     def step(self, text): self.text = max(self.text, text, key=len)
    /// ...     def finalize(self): return self.text
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.create_aggregate("longest", 1, Longest)
    /// >>> con.execute("select longest(x) from (select 'a' as x union select 'bcd')").fetchone()
    /// ('bcd',)
    #[pyo3(signature = (name, narg, aggregate_class))]
    fn create_aggregate(
        &self,
        py: Python<'_>,
        name: String,
        narg: i32,
        aggregate_class: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let function = match aggregate_class {
            None => Function::Removed,
            Some(class) => {
                check_callable(class.bind(py))?;
                let label: Arc<str> = name.as_str().into();
                let new: Box<NewAggregate> = Box::new(move || {
                    run("function", &label, |py| {
                        let state: Box<dyn Aggregate> = Box::new(Group {
                            instance: class.call0(py)?,
                            label: label.clone(),
                        });
                        Ok(state)
                    })
                });
                Function::Aggregate(new)
            }
        };
        self.call(py, move |db| {
            db.sqlite()?.create_function(&name, narg, function)
        })
    }

    /// Creates a collation, which defines the order of strings, on a connection to SQLite.
    ///
    /// Args:
    ///     name: the collation's name in SQL.
    ///     callable: a function of two `str` that returns a negative number, 0 or a positive
    ///         number; ``None`` removes the collation. If it raises an exception, the statement
    ///         that compares the strings raises OperationalError with the text of the exception. With
    ///         autocommit, its changes are rolled back; in a transaction, roll back.
    ///
    /// Raises:
    ///     NotSupportedError: the database is not SQLite.
    ///     OperationalError: a statement that is being executed uses the collation.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> con.create_collation("by_length", lambda a, b: len(a) - len(b))
    /// >>> sql = "select x from (select 'ccc' as x union select 'b') order by x collate by_length"
    /// >>> con.execute(sql).fetchall()
    /// [('b',), ('ccc',)]
    #[pyo3(signature = (name, callable, /))]
    fn create_collation(
        &self,
        py: Python<'_>,
        name: String,
        callable: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        if let Some(callable) = &callable {
            check_callable(callable.bind(py))?;
        }
        let label = name.clone();
        let collation = callable.map(|callable| -> Box<Collation> {
            Box::new(move |left, right| {
                run("collation", &label, |py| {
                    let given = callable.bind(py).call1((left, right))?;
                    Ok(match given.lt(0)? {
                        true => Ordering::Less,
                        false if given.gt(0)? => Ordering::Greater,
                        false => Ordering::Equal,
                    })
                })
            })
        });
        self.call(py, move |db| {
            db.sqlite()?.create_collation(&name, collation)
        })
    }

    /// Copies the SQLite database of this connection to the database of the connection ``target``.
    /// Other connections may use the copied database during the backup.
    ///
    /// Args:
    ///     target: a connection to SQLite, whose database is replaced.
    ///     pages: the number of pages copied per step; below 1 for all pages in one step.
    ///     progress: a function that is called after each step with SQLite's result code, the
    ///         number of remaining pages and the number of all pages; an exception from it ends the
    ///         backup.
    ///     name: the database: ``"main"``, ``"temp"`` or the name of an attached one.
    ///     sleep: seconds before a step is repeated if another connection holds a lock.
    ///
    /// Raises:
    ///     NotSupportedError: a database is not SQLite.
    ///     ProgrammingError: the target is this connection.
    ///     OperationalError: SQLite reports an error.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> _ = con.execute("create table city (name text)")
    /// >>> copy = onecopy.connect("sqlite::memory:")
    /// >>> con.backup(copy)
    /// >>> copy.execute("select count(*) from city").fetchone()
    /// (0,)
    ///
    /// Source: https://docs.python.org/3/library/sqlite3.html#sqlite3.Connection.backup
    #[pyo3(signature = (target, *, pages=-1, progress=None, name="main", sleep=0.25))]
    fn backup(
        &self,
        py: Python<'_>,
        target: &Bound<'_, Connection>,
        pages: i32,
        progress: Option<Py<PyAny>>,
        name: &str,
        sleep: f64,
    ) -> PyResult<()> {
        let pause = Duration::try_from_secs_f64(sleep)
            .map_err(|_| PyValueError::new_err("`sleep` is a number of seconds, from 0"))?;
        let (from, to) = (self.db(py)?, target.get().db(py)?);
        let (cancels, cancelled) = mpsc::channel();
        let mut raised = None;
        let failed = &mut raised;
        let mut goes_on = move |at: BackupProgress| {
            let called = progress.as_ref().map_or(Ok(()), |progress| {
                let arguments = (at.status, at.n_remaining, at.n_pages);
                gil::attach(|py| progress.call1(py, arguments).map(drop))
            });
            let wait = if at.is_blocked() {
                pause
            } else {
                Duration::ZERO
            };
            match called {
                Ok(()) if cancelled.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) => Ok(()),
                called => {
                    *failed = called.err();
                    Err(Error::new(ErrorKind::Cancelled, "the backup was cancelled"))
                }
            }
        };
        let cancel = || {
            let cancels = cancels.clone();
            // After the end of the backup, `send` fails, which is ignored.
            CancelHandle::new(move || _ = cancels.send(()))
        };
        let done = interrupt::detached(py, cancel, || {
            from.sqlite()?
                .backup(to.sqlite()?, name, pages, &mut goes_on)
        })?;
        match raised {
            Some(raised) => Err(raised),
            None => done.map_err(|e| errors::to_py(py, &e)),
        }
    }

    /// Opens a BLOB or text in a table of SQLite, to read and write parts in place.
    ///
    /// Args:
    ///     table: the name of the table.
    ///     column: the name of the column.
    ///     row: the row id (``rowid``) of the row.
    ///     read_only: ``True`` to open the value for reading only.
    ///     name: the database: ``"main"``, ``"temp"`` or the name of an attached one.
    ///
    /// Returns:
    ///     A `Blob` with the length of the value. Writing does not change this length.
    ///
    /// Raises:
    ///     NotSupportedError: the database is not SQLite.
    ///     DatabaseError: there is no such table, column or row.
    ///
    /// >>> con = onecopy.connect("sqlite::memory:")
    /// >>> _ = con.execute("create table t (x blob)")
    /// >>> _ = con.execute("insert into t values (zeroblob(10))")
    /// >>> with con.blob_open("t", "x", 1) as blob:
    /// ...     blob.write(b"abc")
    /// >>> con.execute("select hex(substr(x, 1, 3)), length(x) from t").fetchone()
    /// ('616263', 10)
    ///
    /// Source: https://docs.python.org/3/library/sqlite3.html#sqlite3.Connection.blobopen
    #[pyo3(signature = (table, column, row, /, *, read_only=false, name="main"))]
    fn blob_open(
        &self,
        py: Python<'_>,
        table: &str,
        column: &str,
        row: i64,
        read_only: bool,
        name: &str,
    ) -> PyResult<Blob> {
        let opened = self.call(py, |db| {
            db.sqlite()?.open_blob(name, table, column, row, !read_only)
        })?;
        Ok(Blob {
            blob: Some(opened),
            at: AtomicUsize::new(0),
        })
    }

    /// The total number of rows that have been inserted, changed or deleted since the connection to
    /// SQLite was opened.
    ///
    /// Raises:
    ///     NotSupportedError: the database is not SQLite.
    #[getter]
    fn total_changes(&self, py: Python<'_>) -> PyResult<i64> {
        self.call(py, |db| db.sqlite()?.total_changes())
    }

    /// Cancels the statement that runs on this connection. Equivalent to `cancel`; the name is that
    /// of the method in Python's `sqlite3`.
    fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        self.cancel(py)
    }
}

/// A BLOB or text value in an SQLite table. It is read and written in place, at a position like
/// that of a file.
///
/// A `Blob` is closed by the end of a ``with`` block, by `close`, or when its connection is closed.
#[pyclass(frozen, module = "onecopy")]
pub(crate) struct Blob {
    /// The open BLOB or text; `None` only during `drop`.
    blob: Option<sqlite::Blob>,
    at: AtomicUsize,
}

impl Blob {
    fn value(&self) -> &sqlite::Blob {
        self.blob.as_ref().expect("it is taken in `drop` only")
    }

    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&sqlite::Blob) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        gil::detach(py, || call(self.value())).map_err(|e| errors::to_py(py, &e))
    }
}

#[pymethods]
impl Blob {
    /// Reads up to ``size`` bytes from the current position on, or all remaining bytes if ``size``
    /// is -1.
    #[pyo3(signature = (size=-1, /))]
    fn read<'py>(&self, py: Python<'py>, size: isize) -> PyResult<Bound<'py, PyBytes>> {
        let at = self.at.load(Relaxed);
        let left = self.value().len_bytes() - at;
        let n_bytes = usize::try_from(size).map_or(left, |size| size.min(left));
        let made = PyBytes::new_with(py, n_bytes, |out| self.call(py, |blob| blob.read(at, out)))?;
        self.at.store(at + n_bytes, Relaxed);
        Ok(made)
    }

    /// Writes bytes at the current position, and moves the position to the end of these bytes.
    ///
    /// Raises:
    ///     ValueError: the data would extend past the end of the value; nothing was written.
    #[pyo3(signature = (data, /))]
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let at = self.at.load(Relaxed);
        let bytes = BufferBytes::of(data.as_borrowed())?;
        let bytes = bytes.as_slice();
        if bytes.len() > self.value().len_bytes() - at {
            return Err(PyValueError::new_err(
                "the data extends past the end of the value, whose length cannot change",
            ));
        }
        self.call(py, |blob| blob.write(at, bytes))?;
        self.at.store(at + bytes.len(), Relaxed);
        Ok(())
    }

    /// Sets the position relative to the start (``whence`` 0), the current position (1) or the end
    /// (2). Returns the new position.
    #[pyo3(signature = (offset, whence=0, /))]
    fn seek(&self, offset: i64, whence: i32) -> PyResult<usize> {
        let len = self.value().len_bytes();
        let from = match whence {
            0 => 0,
            1 => self.at.load(Relaxed),
            2 => len,
            _ => return Err(PyValueError::new_err("`whence` is 0, 1 or 2")),
        };
        let at = i64::try_from(from)
            .ok()
            .and_then(|from| from.checked_add(offset));
        let at = at
            .and_then(|at| usize::try_from(at).ok())
            .filter(|&at| at <= len);
        let at = at.ok_or_else(|| PyValueError::new_err("the position is outside of the value"))?;
        self.at.store(at, Relaxed);
        Ok(at)
    }

    /// The current position in the value, in bytes from its start.
    fn tell(&self) -> usize {
        self.at.load(Relaxed)
    }

    fn __len__(&self) -> usize {
        self.value().len_bytes()
    }

    /// Closes the BLOB or text. Closing it twice is not an error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, sqlite::Blob::close)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        drop(Detached::new(self.blob.take()));
    }
}

/// The state of an aggregate function for one group of rows.
struct Group {
    instance: Py<PyAny>,
    label: Arc<str>,
}

impl Aggregate for Group {
    fn step(&mut self, arguments: Vec<Value>) -> Result<(), String> {
        run("function", &self.label, |py| {
            let step = self.instance.bind(py).getattr("step")?;
            step.call1(to_python(py, arguments)?).map(drop)
        })
    }

    fn finish(&mut self) -> Result<Value, String> {
        run("function", &self.label, |py| {
            let result = self.instance.bind(py).call_method0("finalize")?;
            parameters::result_of_function(&result)
        })
    }
}

fn check_callable(func: &Bound<'_, PyAny>) -> PyResult<()> {
    match func.is_callable() {
        true => Ok(()),
        false => Err(PyTypeError::new_err("a callable or None is required")),
    }
}

/// Runs `work` with the GIL. Error messages contain `kind` ("function" or "collation") and `label`,
/// the name in SQL.
fn run<T>(
    kind: &str,
    label: &str,
    work: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> Result<T, String> {
    gil::attach(|py| {
        work(py).map_err(|e| {
            let class = e.get_type(py);
            let class = class
                .name()
                .map_or_else(|_| "?".to_owned(), |n| n.to_string());
            format!("the {kind} `{label}` raised {class}: {}", e.value(py))
        })
    })
}

fn to_python(py: Python<'_>, arguments: Vec<Value>) -> PyResult<Bound<'_, PyTuple>> {
    let items = arguments.into_iter().map(|value| {
        Ok(match value {
            Value::I64(i) => i.into_pyobject(py)?.into_any(),
            Value::F64(f) => f.into_pyobject(py)?.into_any(),
            Value::Text(text) => PyString::new(py, &text).into_any(),
            Value::Bytes(bytes) => binary::make(py, &bytes)?,
            _ => py.None().into_bound(py),
        })
    });
    PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)
}
