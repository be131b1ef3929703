//! `RowStream.write_to`: writes the chunks of a stream to a file, a descriptor or a Python object.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onecopy_export::{Compression, Encoder, FileFormat};
use onecopy_files::{AtomicFile, OnFailure};
use onecopy_text::{Chunk, planted};
use onecopy_wire::Filled;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{CHUNK_BYTES, Failure, RowStream, StreamRest, failed};
use crate::raw::gil;
use crate::stream_output;

/// The interval at which a long write checks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

impl RowStream {
    /// Writes all bytes to a file, and returns the length of the file in bytes. The file appears
    /// complete or not at all. It is compressed if its name ends with the extension of a compressed
    /// file.
    ///
    /// # Errors
    /// `ValueError` if the extension does not belong to the stream's format.
    pub(super) fn write_to_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        // The file is created only if the stream can be read: `with` returns an error before for a
        // stream that was closed or has failed.
        self.with(py, |rest| {
            let compression = self.compression_of(&path)?;
            let mut file = gil::detach(py, || {
                let file =
                    AtomicFile::create(&path, OnFailure::Remove).map_err(std::io::Error::from)?;
                Encoder::new(compression, file)
            })?;
            self.write_detached(py, rest, |bytes| {
                file.write_all(bytes).map(|()| bytes.len())
            })?;
            gil::detach(py, || {
                let file = file.finish()?;
                let n_bytes = file.len_bytes();
                file.commit().map_err(std::io::Error::from)?;
                Ok::<_, std::io::Error>(n_bytes)
            })
            .map_err(PyErr::from)
        })
    }

    /// Returns the compression that the extension of a file name implies. Returns an error if the
    /// extension does not belong to the format of the stream.
    fn compression_of(&self, path: &Path) -> PyResult<Compression> {
        let file = FileFormat::of_path(path).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let format = file.format().name();
        if format != self.format.name() {
            let message = format!(
                "`{}` is the name of a {format} file, and the stream is {}\n\
                 use another name, or an open file",
                path.display(),
                self.format.name()
            );
            return Err(PyValueError::new_err(message));
        }
        Ok(file.compression())
    }

    /// Writes all chunks with the function `write`. Each call to `write` must write at least one
    /// byte of its argument; it may block until this is possible. If the statement fails, the rows
    /// before the failure are still written.
    pub(super) fn write_detached(
        &self,
        py: Python<'_>,
        rest: &mut StreamRest,
        mut write: impl FnMut(&[u8]) -> std::io::Result<usize> + Send,
    ) -> PyResult<u64> {
        rest.is_touched = true;
        let mut n_bytes = match rest.ready.take() {
            Some(ready) => {
                let done = ready.write(py, &self.cancel, &mut write);
                failed(py, &mut rest.state, done)?
            }
            None => 0,
        };
        let mut chunk = Chunk::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
        let mut written = 0; // bytes of `chunk` that were written
        let mut filled = Filled::More;
        let mut failure = None;
        loop {
            // The GIL is released once for many chunks: to acquire it while another thread is busy
            // takes milliseconds.
            let done = self.pump(py, &mut rest.state, |source| {
                let until = Instant::now() + SIGNALS_EVERY;
                loop {
                    while written < chunk.len() {
                        match write(&chunk[written..]) {
                            Ok(n) => written += n,
                            // The signal handler runs when this thread has acquired the GIL again.
                            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {
                                return Ok(Filled::More);
                            }
                            Err(e) => return Err(Failure::Output(e)),
                        }
                    }
                    n_bytes += written as u64;
                    written = 0;
                    chunk.clear();
                    if let Some(failure) = failure.take() {
                        return Err(Failure::Source(failure));
                    }
                    if filled == Filled::Done || Instant::now() > until {
                        return Ok(filled);
                    }
                    let n_rows = source.n_rows();
                    match source.fill(&mut chunk) {
                        Ok(more) => filled = more,
                        Err(e) if source.n_rows() > n_rows => failure = Some(e),
                        Err(e) => return Err(Failure::Source(e)),
                    }
                    planted::extra_work_on_chunk(&chunk);
                }
            })?;
            if done == Filled::Done {
                return Ok(n_bytes);
            }
        }
    }

    /// Writes all chunks by calling `write`, which is a method of a Python object.
    pub(super) fn write_to_object(
        &self,
        py: Python<'_>,
        write: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let mut n_bytes = 0;
        loop {
            // The stream is not locked while Python code runs.
            let chunk = self.with(py, |rest| self.next_chunk(py, rest))?;
            let Some(chunk) = chunk else {
                return Ok(n_bytes);
            };
            n_bytes += chunk.len()? as u64;
            stream_output::write_all(write, chunk.as_any())?;
        }
    }
}
