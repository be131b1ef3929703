//! What a Python object is: a descriptor that the kernel can use, or an object with methods.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::raw::output::{duplicate, regular_file};

/// The classes whose instances do nothing to the bytes that go through their descriptor.
struct Classes {
    socket: Py<PyType>,
    file: Py<PyType>,
    reader: Py<PyType>,
    writer: Py<PyType>,
    random: Py<PyType>,
    text: Py<PyType>,
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        let io = py.import("io")?;
        let of = |name| -> PyResult<Py<PyType>> { Ok(io.getattr(name)?.cast_into()?.unbind()) };
        let socket = py.import("socket")?.getattr("socket")?;
        Ok(Classes {
            socket: socket.cast_into()?.unbind(),
            file: of("FileIO")?,
            reader: of("BufferedReader")?,
            writer: of("BufferedWriter")?,
            random: of("BufferedRandom")?,
            text: of("TextIOBase")?,
        })
    })
}

/// A plain socket: a descriptor of its own, so that another thread may close the object.
pub(super) struct Socket {
    pub(super) fd: OwnedFd,
    /// `Some(0)`: it does not block, and neither does the call.
    pub(super) timeout: Option<Duration>,
    /// Whether the descriptor itself blocks.
    pub(super) blocks: bool,
}

/// What is sent to or received from.
pub(super) enum SocketEnd {
    Descriptor(Socket),
    /// One that is more than a socket: its methods are called.
    Object {
        blocks: bool,
    },
}

impl SocketEnd {
    pub(super) fn of(socket: &Bound<'_, PyAny>) -> PyResult<SocketEnd> {
        let py = socket.py();
        let class = classes(py)?.socket.bind(py);
        if !socket.is_instance(class)? {
            if socket.hasattr("sendall")? && socket.hasattr("recv")? {
                let timeout: Option<f64> = match socket.getattr_opt("gettimeout")? {
                    Some(get) => get.call0()?.extract()?,
                    None => None,
                };
                return Ok(SocketEnd::Object {
                    blocks: timeout != Some(0.0),
                });
            }
            return Err(PyTypeError::new_err(format!(
                "a `{}` is no socket\ngive a `socket.socket`; of a stream of asyncio's, a socket of your own",
                socket.get_type().name()?
            )));
        }
        let fd: i32 = socket.call_method0("fileno")?.extract()?;
        if fd < 0 {
            return Err(PyValueError::new_err("the socket is closed"));
        }
        let stream = py.import("socket")?.getattr("SOCK_STREAM")?;
        if !socket.getattr("type")?.eq(stream)? {
            return Err(PyValueError::new_err(
                "the socket is no stream: datagrams would be cut anywhere",
            ));
        }
        let timeout: Option<f64> = socket.call_method0("gettimeout")?.extract()?;
        if !socket.get_type().is(class) {
            return Ok(SocketEnd::Object {
                blocks: timeout != Some(0.0),
            });
        }
        Ok(SocketEnd::Descriptor(Socket {
            fd: duplicate(fd)?,
            timeout: timeout.map(Duration::from_secs_f64),
            blocks: timeout.is_none(),
        }))
    }

    /// Whether a call on it waits.
    pub(super) fn blocks(&self) -> bool {
        match self {
            SocketEnd::Descriptor(socket) => socket.timeout != Some(Duration::ZERO),
            SocketEnd::Object { blocks } => *blocks,
        }
    }
}

/// A file to read from or to write to.
pub(super) enum FileEnd<'py> {
    /// A regular file: a descriptor of its own over the same position.
    Descriptor(File),
    Object(Bound<'py, PyAny>),
}

impl<'py> FileEnd<'py> {
    /// # Errors
    /// `TypeError` for a text file, and for what has no `read`.
    pub(super) fn to_read(file: &Bound<'py, PyAny>) -> PyResult<FileEnd<'py>> {
        check(file, "read", "readable", "reading")?;
        let py = file.py();
        let known = classes(py)?;
        let class = file.get_type();
        let plain = [&known.file, &known.reader, &known.random];
        if plain.iter().any(|c| class.is(c.bind(py))) {
            if class.is(known.random.bind(py)) {
                file.call_method0("flush")?;
            }
            let fd = file.call_method0("fileno")?.extract()?;
            if let Some(file) = regular_file(fd)? {
                return Ok(FileEnd::Descriptor(file));
            }
        }
        Ok(FileEnd::Object(file.clone()))
    }

    /// # Errors
    /// `TypeError` for a text file, and for what has no `write`.
    pub(super) fn to_write(file: &Bound<'py, PyAny>) -> PyResult<FileEnd<'py>> {
        check(file, "write", "writable", "writing")?;
        let py = file.py();
        let known = classes(py)?;
        let class = file.get_type();
        let plain = [&known.file, &known.writer, &known.random];
        if plain.iter().any(|c| class.is(c.bind(py))) {
            // What was written before stands before; what was read ahead is given back.
            file.call_method0("flush")?;
            let fd = file.call_method0("fileno")?.extract()?;
            if let Some(file) = regular_file(fd)? {
                return Ok(FileEnd::Descriptor(file));
            }
        }
        Ok(FileEnd::Object(file.clone()))
    }
}

/// # Errors
/// `TypeError` for a text file and for what has no such method, `ValueError` for a file that was opened otherwise.
fn check(file: &Bound<'_, PyAny>, method: &str, question: &str, what: &str) -> PyResult<()> {
    let py = file.py();
    if file.is_instance(classes(py)?.text.bind(py))? {
        return Err(PyTypeError::new_err(
            "a text file has no bytes to move\nopen it in binary mode",
        ));
    }
    if !file.hasattr(method)? {
        return Err(PyTypeError::new_err(format!(
            "a `{}` is no file: it has no `{method}`",
            file.get_type().name()?
        )));
    }
    match file.getattr_opt(question)? {
        Some(question) if !question.call0()?.is_truthy()? => Err(PyValueError::new_err(format!(
            "the file is not open for {what}"
        ))),
        _ => Ok(()),
    }
}

/// Tells a buffered file where its descriptor stands now.
pub(super) fn stand_behind(file: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = file.py();
    let known = classes(py)?;
    let class = file.get_type();
    if [&known.writer, &known.random]
        .iter()
        .any(|c| class.is(c.bind(py)))
    {
        let at = file.getattr("raw")?.call_method0("tell")?;
        file.call_method1("seek", (at,))?;
    }
    Ok(())
}
