//! `RowStream.write_to`: writes a stream to a file, a descriptor or a Python object.

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

/// The interval between checks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

impl RowStream {
    /// Writes all bytes to a file, and returns its length. The file appears complete or not at all.
    /// The extension of its name selects the compression.
    ///
    /// # Errors
    /// `ValueError` if the extension does not fit the stream's format.
    pub(super) fn write_to_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        // Checked first: `with` fails for a closed or failed stream, and no file is created.
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

    /// Returns the compression for a file name. Fails if the extension does not fit the stream's
    /// format.
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

    /// Writes all chunks with `write`, which may block but must write at least one byte. If the
    /// statement fails, the rows before the failure are written.
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
            // One release of the GIL for many chunks: to acquire it from a busy thread takes
            // milliseconds.
            let done = self.pump(py, &mut rest.state, |source| {
                let until = Instant::now() + SIGNALS_EVERY;
                loop {
                    while written < chunk.len() {
                        match write(&chunk[written..]) {
                            Ok(n) => written += n,
                            // The signal handler runs when this thread acquires the GIL again.
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

    /// Writes all chunks with `write`, a method of a Python object.
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
