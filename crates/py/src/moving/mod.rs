//! `onecopy.send_file`, `recv_file`, `copy_file`: bytes that the kernel moves.
//!
//! | module | what it holds |
//! |---|---|
//! | `ends` | what a Python object is: a descriptor that the kernel can use, or an object with methods |
//! | `drive` | steps with the GIL released: waits, timeouts, signals |
//! | `objects` | the way through objects, piece by piece |

mod drive;
mod ends;
mod objects;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use onecopy_files::moving::{self, FileReceiver, FileSender, Moved, Readiness};
use onecopy_text::{Stage, Tally};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::ledger;
use crate::raw::ending;
use drive::{Drive, LOOK_EVERY};
use ends::{FileEnd, SocketEnd};

/// Enters what moved under the stage of files.
fn enter(py: Python<'_>, moved: Moved) -> PyResult<()> {
    let mut tally = Tally::default();
    tally.moved(moved.n_bytes - moved.n_copied);
    tally.copied(usize::try_from(moved.n_copied).unwrap_or(usize::MAX));
    ledger::enter(py, &mut tally, Stage::Move)
}

/// A count or an offset.
fn natural(value: i64, name: &str) -> PyResult<u64> {
    u64::try_from(value)
        .map_err(|_| PyValueError::new_err(format!("`{name}` must not be negative: {value}")))
}

/// Sends ``count`` bytes of ``file`` from ``offset`` on through ``sock``, and returns how many went.
///
/// Args:
///     sock: a connected stream socket. Of a plain `socket.socket` the kernel takes the bytes straight from the file
///         (`sendfile(2)`), with the GIL released; over TCP to this machine itself, where it copies each byte in any case, they go
///         through a buffer of 512 KiB, which is faster. One that is more (`ssl.SSLSocket`) is given them piece by piece, by ``sendall``.
///     file: a regular file, opened in binary mode; its position is neither looked at nor moved. An object with ``read`` does too
///         (piece by piece; ``seek`` is called where it has one, else ``offset`` must be 0).
///     offset: the first byte to send, from 0.
///     count: how many bytes; ``None``: up to the end that the file has now.
///
/// Returns:
///     Bytes sent: ``count``, or fewer where the file ends before that, because it is shorter or becomes so meanwhile. To a
///     non-blocking socket: those that went at once.
///
/// Raises:
///     BlockingIOError: a non-blocking socket takes nothing now (`ssl.SSLWantWriteError` from a socket of `ssl`).
///     TimeoutError: the socket's timeout passed while it took nothing. How many bytes went is then not told, as with
///         ``sendall``.
///     OSError: the peer left, the file cannot be read.
///     ValueError: a negative number, a closed or datagram socket, an ``offset`` for what has no ``seek``.
///     TypeError: a text file, or no file or socket at all.
///
/// A signal is looked at while it waits and every 50 ms; Ctrl-C raises `KeyboardInterrupt`. Copies: none; one through a buffer, or
/// ``read`` and ``sendall``, which the ledger counts.
///
/// >>> import socket, tempfile
/// >>> here, there = socket.socketpair()
/// >>> file = tempfile.TemporaryFile()
/// >>> _ = file.write(b"0123456789"), file.flush()
/// >>> onecopy.send_file(here, file, 2, 5), there.recv(100)
/// (5, b'23456')
#[pyfunction]
#[pyo3(signature = (sock, file, offset=0, count=None))]
pub(crate) fn send_file(
    py: Python<'_>,
    sock: &Bound<'_, PyAny>,
    file: &Bound<'_, PyAny>,
    offset: i64,
    count: Option<i64>,
) -> PyResult<u64> {
    let offset = natural(offset, "offset")?;
    let count = count.map(|n| natural(n, "count")).transpose()?;
    let socket = SocketEnd::of(sock)?;
    let source = FileEnd::to_read(file)?;
    let (SocketEnd::Descriptor(socket), FileEnd::Descriptor(source)) = (&socket, &source) else {
        let mut moved = Moved::default();
        let done = objects::send(sock, socket.blocks(), &source, offset, count, &mut moved);
        enter(py, moved)?;
        return done;
    };
    let len_bytes = source.metadata()?.len();
    let count = count.unwrap_or_else(|| len_bytes.saturating_sub(offset));
    // What a non-blocking socket does not take would have been read in vain.
    let mut sender = match socket.timeout {
        Some(Duration::ZERO) => FileSender::new(),
        _ => FileSender::fastest_for(&socket.fd),
    };
    let mut drive = Drive::new(socket, Readiness::Writable, count);
    let done = drive.run(py, |n_moved, most| {
        sender.step(&socket.fd, source, offset + n_moved, most)
    });
    enter(py, drive.moved)?;
    done
}

/// Receives ``count`` bytes from ``sock`` into ``file``, at its position, which goes on by as much; returns how many came.
///
/// Args:
///     sock: a connected stream socket. Of a plain `socket.socket` the kernel moves the bytes (`splice(2)`), with the GIL
///         released. One that is more (`ssl.SSLSocket`) is asked for them piece by piece, by ``recv``.
///     file: a file opened in binary mode for writing, which is flushed first. An object with ``write`` does too.
///     count: how many bytes.
///
/// Returns:
///     Bytes received: ``count``, or fewer where the peer ends before that: compare. From a non-blocking socket: those that were
///     there.
///
/// Raises:
///     BlockingIOError: nothing has come on a non-blocking socket (`ssl.SSLWantReadError` from a socket of `ssl`).
///     TimeoutError: the socket's timeout passed while nothing came. What had come stands in the file.
///     OSError: the connection broke, or the file cannot be written: up to 1 MiB that had come is then lost.
///     ValueError: a negative number, a closed or datagram socket.
///     TypeError: a text file, or no file or socket at all.
///
/// Ctrl-C raises `KeyboardInterrupt`. Copies: none in the process; through ``recv`` and ``write``, and for a file opened for
/// appending, one, which the ledger counts.
///
/// >>> import socket, tempfile
/// >>> here, there = socket.socketpair()
/// >>> there.sendall(b"0123456789")
/// >>> file = tempfile.TemporaryFile()
/// >>> onecopy.recv_file(here, file, 7), file.seek(0), file.read()
/// (7, 0, b'0123456')
#[pyfunction]
pub(crate) fn recv_file(
    py: Python<'_>,
    sock: &Bound<'_, PyAny>,
    file: &Bound<'_, PyAny>,
    count: i64,
) -> PyResult<u64> {
    let count = natural(count, "count")?;
    let socket = SocketEnd::of(sock)?;
    let target = FileEnd::to_write(file)?;
    let (SocketEnd::Descriptor(socket), FileEnd::Descriptor(target)) = (&socket, &target) else {
        let mut moved = Moved::default();
        let done = objects::receive(sock, socket.blocks(), file, count, &mut moved);
        enter(py, moved)?;
        return done;
    };
    let mut receiver = FileReceiver::new()?;
    let mut drive = Drive::new(socket, Readiness::Readable, count);
    let done = drive.run(py, |_, most| receiver.step(&socket.fd, target, None, most));
    enter(py, drive.moved)?;
    // A buffered file is told where it stands now.
    ends::stand_behind(file)?;
    done
}

/// Copies the file ``src`` to ``dst``, and returns its length in bytes.
///
/// ``dst`` appears whole or not at all: it is written under a temporary name in its folder, synced and renamed. Where it is new it
/// gets the permissions of ``src``, else it keeps its own. Blocks are shared where the file system can (a reflink); else the
/// kernel copies them (`copy_file_range(2)`, `sendfile(2)`). Holes stay holes.
///
/// Raises:
///     OSError: the system's; what stood under ``dst`` is as it was.
///     IsADirectoryError: ``src`` is a directory.
///     ValueError: ``src`` is a pipe or a device, or both are the same file.
///
/// The GIL is released; Ctrl-C raises `KeyboardInterrupt` and leaves ``dst`` alone. Copies: none in the process; one on file
/// systems where the kernel cannot do it, which the ledger counts.
///
/// >>> import pathlib, tempfile
/// >>> folder = pathlib.Path(tempfile.mkdtemp())
/// >>> _ = (folder / "a").write_bytes(b"0123456789")
/// >>> onecopy.copy_file(folder / "a", folder / "b"), (folder / "b").read_bytes()
/// (10, b'0123456789')
#[pyfunction]
#[pyo3(signature = (src, dst, /))]
pub(crate) fn copy_file(py: Python<'_>, src: PathBuf, dst: PathBuf) -> PyResult<u64> {
    let mut raised = None;
    let copied = ending::detach(py, || {
        let mut looked = Instant::now();
        moving::copy_file(&src, &dst, |_| {
            if looked.elapsed() < LOOK_EVERY {
                return Ok(());
            }
            looked = Instant::now();
            ending::attach(|py| py.check_signals()).map_err(|error| {
                raised = Some(error);
                io::Error::other("stopped by a signal")
            })
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    match copied {
        Ok(moved) => {
            enter(py, moved)?;
            Ok(moved.n_bytes)
        }
        Err(e) if e.kind() == io::ErrorKind::InvalidInput && e.raw_os_error().is_none() => {
            Err(PyValueError::new_err(e.to_string()))
        }
        Err(e) => Err(e.into()),
    }
}
