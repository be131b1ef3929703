//! Transfers files with the methods of Python objects, up to [`PIECE_BYTES`] per call.

use std::os::unix::fs::FileExt;

use onecopy_files::sendfile::Moved;
use pyo3::exceptions::{PyBlockingIOError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::ends::FileEnd;
use crate::raw::gil;
use crate::stream_output::write_all;

/// The number of bytes per read from the source.
const PIECE_BYTES: u64 = 256 * 1024;

/// Sends the file in parts with the method `sendall` or `send`. `moved` counts the bytes sent, even
/// after an error.
pub(super) fn send<'py>(
    socket: &Bound<'py, PyAny>,
    blocks: bool,
    file: &FileEnd<'py>,
    offset: u64,
    count: Option<u64>,
    moved: &mut Moved,
) -> PyResult<u64> {
    let method = socket.getattr(if blocks { "sendall" } else { "send" })?;
    pieces(socket.py(), blocks, file, offset, count, moved, |piece| {
        let sent = method.call1((piece,))?;
        if sent.is_none() {
            return Ok(piece.len()? as u64);
        }
        sent.extract()
    })
}

fn pieces<'py>(
    py: Python<'py>,
    blocks: bool,
    file: &FileEnd<'py>,
    offset: u64,
    count: Option<u64>,
    moved: &mut Moved,
    mut send: impl FnMut(&Bound<'py, PyAny>) -> PyResult<u64>,
) -> PyResult<u64> {
    if let FileEnd::Object(object) = file {
        let can_seek = match object.getattr_opt("seekable")? {
            Some(seekable) => seekable.call0()?.is_truthy()?,
            None => object.hasattr("seek")?,
        };
        if can_seek {
            object.call_method1("seek", (offset,))?;
        } else if offset != 0 {
            return Err(PyValueError::new_err(
                "this file has no `seek`: `offset` must be 0, and bytes are read from its current position",
            ));
        } else if !blocks {
            return Err(PyValueError::new_err(
                "what is read from a file without `seek` would be lost where a non-blocking socket takes less\n\
                 set a timeout, or give a file with `seek`",
            ));
        }
    }
    loop {
        let left = count.map_or(PIECE_BYTES, |count| {
            (count - moved.n_bytes).min(PIECE_BYTES)
        });
        if left == 0 {
            break;
        }
        let piece = read(py, file, offset + moved.n_bytes, left)?;
        let len_bytes = piece.len()? as u64;
        if len_bytes == 0 {
            break;
        }
        if len_bytes > left {
            return Err(PyTypeError::new_err(format!(
                "`read({left})` gave {len_bytes} bytes"
            )));
        }
        let sent = match send(&piece) {
            Ok(n) => n,
            Err(e) if !blocks && moved.n_bytes > 0 && would_block(py, &e)? => break,
            Err(e) => return Err(e),
        };
        moved.n_bytes += sent;
        moved.n_copied += sent;
        if sent < len_bytes {
            break;
        }
    }
    Ok(moved.n_bytes)
}

/// Returns `true` for an exception of a non-blocking socket that would block:
/// `BlockingIOError`, `ssl.SSLWantReadError` or `ssl.SSLWantWriteError`.
fn would_block(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    if error.is_instance_of::<PyBlockingIOError>(py) {
        return Ok(true);
    }
    let name = error.get_type(py).name()?;
    Ok(name.as_any().eq("SSLWantReadError")? || name.as_any().eq("SSLWantWriteError")?)
}

fn read<'py>(
    py: Python<'py>,
    file: &FileEnd<'py>,
    at: u64,
    most_bytes: u64,
) -> PyResult<Bound<'py, PyAny>> {
    match file {
        FileEnd::Object(object) => {
            let piece = object.call_method1("read", (most_bytes,))?;
            if piece.is_none() {
                return Err(PyBlockingIOError::new_err("`read` gives nothing now"));
            }
            Ok(piece)
        }
        FileEnd::Descriptor(file) => {
            let n_bytes = most_bytes.min(PIECE_BYTES) as usize;
            let mut buffer = Vec::new();
            let reserved = buffer.try_reserve_exact(n_bytes);
            reserved.map_err(|_| PyMemoryError::new_err(()))?;
            buffer.resize(n_bytes, 0);
            let n = gil::detach(py, || file.read_at(&mut buffer, at))?;
            let piece = PyBytes::new_with(py, n, |piece| {
                piece.copy_from_slice(&buffer[..n]);
                Ok(())
            })?;
            Ok(piece.into_any())
        }
    }
}

/// Receives bytes with the socket's methods, and writes them to the file.
pub(super) fn receive(
    socket: &Bound<'_, PyAny>,
    blocks: bool,
    file: &Bound<'_, PyAny>,
    count: u64,
    moved: &mut Moved,
) -> PyResult<u64> {
    let write = file.getattr("write")?;
    while moved.n_bytes < count {
        let most = (count - moved.n_bytes).min(PIECE_BYTES);
        let piece = match socket.call_method1("recv", (most,)) {
            Ok(piece) => piece,
            Err(e) if !blocks && moved.n_bytes > 0 && would_block(socket.py(), &e)? => break,
            Err(e) => return Err(e),
        };
        let len_bytes = piece.len()? as u64;
        if len_bytes == 0 {
            break;
        }
        write_all(&write, &piece)?;
        moved.n_bytes += len_bytes;
        moved.n_copied += len_bytes;
    }
    Ok(moved.n_bytes)
}
