//! `onecopy.send_file`, `recv_file` and `copy_file`: bytes that the kernel transfers.
//!
//! | module | contents |
//! |---|---|
//! | `ends` | the ends of a transfer: a descriptor for the kernel, or an object with methods |
//! | `drive` | the loop of a transfer with the GIL released: waits, timeouts, signals |
//! | `objects` | transfers through an object's methods, one piece at a time |

mod drive;
mod ends;
mod objects;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use onecopy_files::sendfile::{self, FileReceiver, FileSender, Moved, Readiness};
use onecopy_text::{Stage, Tally};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::ledger;
use crate::raw::gil;
use drive::{Drive, LOOK_EVERY};
use ends::{FileEnd, SocketEnd};

/// Adds the transferred bytes to the active `onecopy.ledger()`.
fn enter(py: Python<'_>, moved: Moved) -> PyResult<()> {
    let mut tally = Tally::default();
    tally.moved(moved.n_bytes - moved.n_copied);
    tally.copied(usize::try_from(moved.n_copied).unwrap_or(usize::MAX));
    ledger::enter(py, &mut tally, Stage::Move)
}

/// Converts a count or an offset to an unsigned integer.
fn natural(value: i64, name: &str) -> PyResult<u64> {
    u64::try_from(value)
        .map_err(|_| PyValueError::new_err(format!("`{name}` must not be negative: {value}")))
}

/// Sends ``count`` bytes of ``file`` from ``offset`` on through ``sock``. Returns the number of
/// bytes sent.
///
/// Args:
///     sock: a connected stream socket. For a plain `socket.socket` the kernel sends the bytes
///         directly from the file (`sendfile(2)`), with the GIL released. For TCP connections to
///         the same machine, the bytes are sent through a buffer of 512 KiB, which is faster
///         because the kernel copies each byte in any case. For any other socket class
///         (`ssl.SSLSocket`), ``sendall`` is called with up to 256 KiB at a time.
///     file: a regular file, opened in binary mode. Its position is neither used nor changed. Any
///         other object with ``read`` is also accepted. It is read in parts, and needs ``seek``
///         unless ``offset`` is 0.
///     offset: the position of the first byte to send, from 0.
///     count: the number of bytes; ``None`` for all bytes up to the current end of the file.
///
/// Returns:
///     The number of bytes sent: ``count``, or fewer if the file is shorter, or is truncated during
///     the transfer. On a non-blocking socket: the number of bytes that could be sent without
///     waiting.
///
/// Raises:
///     BlockingIOError: no byte could be sent on a non-blocking socket (for a socket of `ssl`:
///         `ssl.SSLWantWriteError`).
///     TimeoutError: the socket accepted no bytes within its timeout. As with ``sendall``, the
///         number of bytes sent is then unknown.
///     OSError: the peer has disconnected, or the file cannot be read.
///     ValueError: a number is negative, the socket is closed or a datagram socket, or ``offset``
///         is above 0 for an object without ``seek``.
///     TypeError: ``file`` is a text file, or an argument is not a file or socket.
///
/// Signals are handled during waits and every 50 ms; Ctrl-C raises `KeyboardInterrupt`. Copies:
/// none if the kernel transfers the bytes; one through a buffer, or through ``read`` and
/// ``sendall``. The ledger counts these copies.
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
    // A non-blocking socket gets no buffer: bytes that the socket refuses would be lost.
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

/// Receives ``count`` bytes from ``sock``, and writes them to ``file`` at its position, which
/// advances. Returns the number of bytes received.
///
/// Args:
///     sock: a connected stream socket. For a plain `socket.socket` the kernel transfers the bytes
///         (`splice(2)`), with the GIL released. For any other socket class (`ssl.SSLSocket`),
///         ``recv`` is called for each part.
///     file: a file opened in binary mode for writing. It is flushed first. Any other object with
///         ``write`` is also accepted.
///     count: the number of bytes.
///
/// Returns:
///     The number of bytes received: ``count``, or fewer if the peer closes the connection before
///     that. On a non-blocking socket: the number of bytes that had arrived.
///
/// Raises:
///     BlockingIOError: nothing has arrived on a non-blocking socket (for a socket of `ssl`:
///         `ssl.SSLWantReadError`).
///     TimeoutError: nothing arrived within the socket's timeout. The bytes received earlier are in
///         the file.
///     OSError: the connection failed, or the file cannot be written; up to 1 MiB of received bytes
///         is then lost.
///     ValueError: ``count`` is negative, or the socket is closed or a datagram socket.
///     TypeError: ``file`` is a text file, or an argument is not a file or socket.
///
/// Ctrl-C raises `KeyboardInterrupt`. Copies: none if the kernel transfers the bytes. One if they
/// pass through ``recv`` and ``write``, or the file is open for appending. The ledger counts these
/// copies.
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
    // The kernel has advanced the descriptor, so the file object's position is updated.
    ends::stand_behind(file)?;
    done
}

/// Copies the file ``src`` to ``dst``, and returns its length in bytes.
///
/// ``dst`` appears complete or not at all: it is written under a temporary name in its folder,
/// synced and renamed. A new file gets the permissions of ``src``; an existing file keeps its
/// permissions. If the file system supports it, the files share their blocks (a reflink); otherwise
/// the kernel copies the blocks (`copy_file_range(2)`, `sendfile(2)`). Holes of a sparse file
/// remain holes.
///
/// Raises:
///     OSError: an error of the system; the previous content of ``dst`` is unchanged.
///     IsADirectoryError: ``src`` is a directory.
///     ValueError: ``src`` is a pipe or a device, or ``src`` and ``dst`` are the same file.
///
/// The GIL is released; Ctrl-C raises `KeyboardInterrupt` and leaves ``dst`` unchanged. Copies:
/// none in this process if the kernel can copy the file; otherwise one, which the ledger counts.
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
    let copied = gil::detach(py, || {
        let mut looked = Instant::now();
        sendfile::copy_file(&src, &dst, |_| {
            if looked.elapsed() < LOOK_EVERY {
                return Ok(());
            }
            looked = Instant::now();
            gil::attach(|py| py.check_signals()).map_err(|error| {
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
