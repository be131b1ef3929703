//! `Output`: the destination to which a stream is written.

use std::fs::File;
use std::time::Duration;

use pyo3::exceptions::{PyBlockingIOError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyType};

use crate::raw::binary;
use crate::raw::descriptor::{Descriptor, Writer, known_len, regular_file};
use crate::raw::gil;

pub(crate) enum Output<'py> {
    /// A file or socket. Its descriptor is written to without the GIL, and without a copy.
    Descriptor(Descriptor),
    /// Any other object, with the method `write`. For a TLS socket, the method is `sendall`.
    Object(Bound<'py, PyAny>),
}

/// Python's file and socket classes that write bytes unchanged to their descriptor.
struct OutputClasses {
    file: Py<PyType>,
    buffered: [Py<PyType>; 2],
    reader: Py<PyType>,
    text: Py<PyType>,
    socket: Py<PyType>,
}

fn classes(py: Python<'_>) -> PyResult<&OutputClasses> {
    static CLASSES: PyOnceLock<OutputClasses> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        let io = py.import("io")?;
        let of = |name| -> PyResult<Py<PyType>> { Ok(io.getattr(name)?.cast_into()?.unbind()) };
        Ok(OutputClasses {
            file: of("FileIO")?,
            buffered: [of("BufferedWriter")?, of("BufferedRandom")?],
            reader: of("BufferedReader")?,
            text: of("TextIOBase")?,
            socket: py
                .import("socket")?
                .getattr("socket")?
                .cast_into()?
                .unbind(),
        })
    })
}

impl<'py> Output<'py> {
    /// Chooses the kind of destination from the exact class of `target`. A derived class may
    /// transform the bytes (TLS, compression).
    ///
    /// # Errors
    /// `TypeError` for a text file, and for an object that cannot be written to.
    pub(crate) fn of(target: &Bound<'py, PyAny>) -> PyResult<Output<'py>> {
        let py = target.py();
        let classes = classes(py)?;
        let class = target.get_type();
        if class.is(classes.file.bind(py)) {
            return Output::file(target);
        }
        if classes.buffered.iter().any(|c| class.is(c.bind(py))) {
            let raw = target.getattr("raw")?;
            // Bytes in the file object's buffer are flushed first.
            target.call_method0("flush")?;
            if raw.get_type().is(classes.file.bind(py)) {
                return Output::file(&raw);
            }
            return Ok(Output::Object(target.getattr("write")?));
        }
        if target.is_instance(classes.socket.bind(py))? {
            return Output::socket(target, class.is(classes.socket.bind(py)));
        }
        if target.is_instance(classes.text.bind(py))? {
            return Err(PyTypeError::new_err(
                "a text file cannot take bytes\nopen it in binary mode: `open(path, \"wb\")`",
            ));
        }
        match target.getattr_opt("write")? {
            Some(write) => Ok(Output::Object(write)),
            None => Err(PyTypeError::new_err(format!(
                "cannot write to a `{}`\n\
                 give a file opened by `open(path, \"wb\")`, a socket, or an object with `write`",
                class.name()?
            ))),
        }
    }

    /// Returns a regular file's duplicated descriptor, its position, and the number of bytes after
    /// it. Returns `None` if `object` is not a plain binary file of known length.
    pub(crate) fn source(object: &Bound<'py, PyAny>) -> PyResult<Option<(File, u64, u64)>> {
        let classes = classes(object.py())?;
        let class = object.get_type();
        let [_, random] = &classes.buffered;
        let plain = [&classes.file, &classes.reader, random];
        if !plain.iter().any(|c| class.is(c.bind(object.py()))) {
            return Ok(None);
        }
        let fd = object.call_method0("fileno")?.extract()?;
        let Some(file) = regular_file(fd)? else {
            return Ok(None);
        };
        let Some(len_bytes) = known_len(&file)? else {
            return Ok(None);
        };
        let at: u64 = object.call_method0("tell")?.extract()?;
        let n_bytes = len_bytes.saturating_sub(at);
        Ok(Some((file, at, n_bytes)))
    }

    fn file(file: &Bound<'py, PyAny>) -> PyResult<Output<'py>> {
        let fd = file.call_method0("fileno")?.extract()?;
        Ok(Output::Descriptor(Descriptor {
            fd,
            is_socket: false,
            timeout: None,
        }))
    }

    fn socket(socket: &Bound<'py, PyAny>, is_plain: bool) -> PyResult<Output<'py>> {
        let timeout: Option<f64> = socket.call_method0("gettimeout")?.extract()?;
        if timeout == Some(0.0) {
            return Err(PyValueError::new_err(
                "a non-blocking socket cannot be written to in one call\n\
                 set a timeout, or iterate over the stream",
            ));
        }
        if !is_plain {
            return Ok(Output::Object(socket.getattr("sendall")?));
        }
        let fd: i32 = socket.call_method0("fileno")?.extract()?;
        if fd < 0 {
            return Err(PyValueError::new_err("the socket is closed"));
        }
        let timeout = timeout.map(Duration::from_secs_f64);
        Ok(Output::Descriptor(Descriptor {
            fd,
            is_socket: true,
            timeout,
        }))
    }
}

/// Calls `write` until all bytes of `chunk` are accepted.
pub(crate) fn write_all(write: &Bound<'_, PyAny>, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
    let len = chunk.len()?;
    let mut taken = write.call1((chunk,))?;
    let mut done = 0;
    loop {
        // `sendall` returns None when all bytes are sent. A raw file returns None if it accepts no
        // byte.
        let Ok(n) = taken.cast::<PyInt>() else {
            return Ok(());
        };
        let n: usize = n.extract()?;
        if n == 0 {
            return Err(PyBlockingIOError::new_err("`write` takes no bytes"));
        }
        done += n;
        if done >= len {
            return Ok(());
        }
        let view = pyo3::types::PyMemoryView::from(chunk)?;
        let rest = view.get_item(pyo3::types::PySlice::new(
            chunk.py(),
            isize::try_from(done)?,
            isize::try_from(len)?,
            1,
        ))?;
        taken = write.call1((rest,))?;
    }
}

/// An [`Output`] for code that holds the GIL.
pub(crate) enum FlushTo<'py> {
    Descriptor(Writer),
    Object(Bound<'py, PyAny>),
}

impl<'py> FlushTo<'py> {
    /// Chooses the kind of destination, like [`Output::of`].
    ///
    /// # Errors
    /// The same errors as [`Output::of`].
    pub(crate) fn of(target: &Bound<'py, PyAny>) -> PyResult<FlushTo<'py>> {
        Ok(match Output::of(target)? {
            Output::Descriptor(to) => FlushTo::Descriptor(Writer::new(to)),
            Output::Object(write) => FlushTo::Object(write),
        })
    }

    /// Writes all bytes of `chunk`. The GIL is released for a descriptor. Copies: none for a
    /// descriptor; one for an object with `write`.
    pub(crate) fn write(&mut self, py: Python<'py>, chunk: &[u8]) -> PyResult<()> {
        match self {
            FlushTo::Descriptor(to) => {
                let mut rest = chunk;
                while !rest.is_empty() {
                    match gil::detach(py, || to.write_some(rest)) {
                        Ok(n) => rest = &rest[n..],
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {
                            py.check_signals()?;
                        }
                        Err(e) => return Err(e.into()),
                    }
                }
                Ok(())
            }
            FlushTo::Object(write) => write_all(write, &binary::make(py, chunk)?),
        }
    }
}
