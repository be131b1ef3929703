//! The socket and the file of a transfer. The kernel transfers between descriptors. For other
//! objects, the transfer calls methods.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::raw::descriptor::{duplicate, regular_file};

/// The file and socket classes of Python's standard library. The kernel can transfer the bytes of
/// their instances, except for `text`.
struct DescriptorClasses {
    socket: Py<PyType>,
    file: Py<PyType>,
    reader: Py<PyType>,
    writer: Py<PyType>,
    random: Py<PyType>,
    text: Py<PyType>,
}

fn classes(py: Python<'_>) -> PyResult<&DescriptorClasses> {
    static CLASSES: PyOnceLock<DescriptorClasses> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        let io = py.import("io")?;
        let of = |name| -> PyResult<Py<PyType>> { Ok(io.getattr(name)?.cast_into()?.unbind()) };
        let socket = py.import("socket")?.getattr("socket")?;
        Ok(DescriptorClasses {
            socket: socket.cast_into()?.unbind(),
            file: of("FileIO")?,
            reader: of("BufferedReader")?,
            writer: of("BufferedWriter")?,
            random: of("BufferedRandom")?,
            text: of("TextIOBase")?,
        })
    })
}

/// A plain socket with a duplicate descriptor. Other threads may close the original during the
/// transfer.
pub(super) struct PlainSocket {
    pub(super) fd: OwnedFd,
    /// `Some(0)` for a non-blocking socket, `None` without a timeout.
    pub(super) timeout: Option<Duration>,
    /// `true` if the descriptor is in blocking mode.
    pub(super) blocks: bool,
}

/// The socket that sends or receives the bytes.
pub(super) enum SocketEnd {
    Descriptor(PlainSocket),
    /// Another object, for example a TLS socket. The transfer calls its methods.
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
                "a `{}` is not a socket\n\
                 pass a `socket.socket`; for a stream of asyncio, a socket of your own",
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
        Ok(SocketEnd::Descriptor(PlainSocket {
            fd: duplicate(fd)?,
            timeout: timeout.map(Duration::from_secs_f64),
            blocks: timeout.is_none(),
        }))
    }

    /// Returns `true` if a call on the socket may wait.
    pub(super) fn blocks(&self) -> bool {
        match self {
            SocketEnd::Descriptor(socket) => socket.timeout != Some(Duration::ZERO),
            SocketEnd::Object { blocks } => *blocks,
        }
    }
}

/// The file that is read or written.
pub(super) enum FileEnd<'py> {
    /// A regular file. The duplicate descriptor shares its position with the original.
    Descriptor(File),
    Object(Bound<'py, PyAny>),
}

impl<'py> FileEnd<'py> {
    /// Returns the file whose bytes are sent.
    ///
    /// # Errors
    /// `TypeError` for a text file, and for an object without `read`.
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

    /// Returns the file that receives the bytes.
    ///
    /// # Errors
    /// `TypeError` for a text file, and for an object without `write`.
    pub(super) fn to_write(file: &Bound<'py, PyAny>) -> PyResult<FileEnd<'py>> {
        check(file, "write", "writable", "writing")?;
        let py = file.py();
        let known = classes(py)?;
        let class = file.get_type();
        let plain = [&known.file, &known.writer, &known.random];
        if plain.iter().any(|c| class.is(c.bind(py))) {
            // `flush` also moves the position back by the bytes that were read in advance.
            file.call_method0("flush")?;
            let fd = file.call_method0("fileno")?.extract()?;
            if let Some(file) = regular_file(fd)? {
                return Ok(FileEnd::Descriptor(file));
            }
        }
        Ok(FileEnd::Object(file.clone()))
    }
}

/// Checks that an object is an open binary file with the method `method`. `question` is `readable`
/// or `writable`.
///
/// # Errors
/// `TypeError` for a text file, and for an object without the method. `ValueError` for the wrong
/// mode.
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

/// Moves the position of a buffered file object to that of its descriptor. Needed after a write to
/// the descriptor.
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
