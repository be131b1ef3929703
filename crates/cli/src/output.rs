//! [`Output`]: stdout, or a file that gets its name only when it is complete.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use onecopy_files::{AtomicFile, OnFailure};
use onecopy_wire::CancelHandle;

use crate::exit;
use crate::failure::Failure;
use crate::input;
use crate::interrupt::Interrupt;

/// The destination of a command's output.
pub(crate) enum Output {
    /// Stdout, without the buffer of the standard library: each write is a whole chunk, so a buffer
    /// would only add a copy.
    Stdout(File),
    /// A file, which has a temporary name until it is finished.
    File(Box<AtomicFile>),
}

impl Output {
    /// Opens stdout.
    pub(crate) fn stdout() -> Result<Output, Failure> {
        let fd = io::stdout().as_fd().try_clone_to_owned();
        fd.map(|fd| Output::Stdout(File::from(fd)))
            .map_err(Failure::Stdout)
    }

    /// Creates an output file, which has a temporary name until it is complete, and then the name
    /// `path`. If `path` is `-`, opens stdout instead.
    pub(crate) fn file(path: &Path) -> Result<Output, Failure> {
        if input::is_dash(path) {
            return Output::stdout();
        }
        let file = AtomicFile::create(path, OnFailure::Remove)?;
        Ok(Output::File(Box::new(file)))
    }

    /// Opens stdout, or creates a temporary file that is renamed to `path` when it is complete. If
    /// a signal arrives earlier, the temporary file is deleted and the process ends immediately.
    /// Only a command with no other output may use this function.
    pub(crate) fn removed_on_signal(
        path: Option<&Path>,
        interrupt: &Interrupt,
    ) -> Result<Output, Failure> {
        let Some(path) = path.filter(|path| !input::is_dash(path)) else {
            return Output::stdout();
        };
        let output = Output::file(path)?;
        if let Output::File(file) = &output {
            let temporary = file.temporary_path().to_owned();
            interrupt.cancels(CancelHandle::new(move || {
                let _ = std::fs::remove_file(&temporary);
                signal_hook::low_level::exit(exit::STOPPED);
            }));
        }
        Ok(output)
    }

    /// Writes all of `bytes` to stdout or to the file.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.as_write().write_all(bytes);
        written.map_err(|source| self.failure(source))
    }

    /// Returns the writer of this output. If a write fails, the caller passes the I/O error to
    /// [`Output::failure`], which returns the error of the command.
    pub(crate) fn as_write(&mut self) -> &mut (dyn Write + Send) {
        match self {
            Output::Stdout(file) => file,
            Output::File(file) => file.as_mut(),
        }
    }

    /// Returns `true` if the output is stdout, `false` if it is a file.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Output::Stdout(_))
    }

    /// Converts an error of a write to this output to the failure of the command.
    pub(crate) fn failure(&self, source: io::Error) -> Failure {
        match self {
            Output::Stdout(_) => Failure::Stdout(source),
            Output::File(_) => Failure::File(source),
        }
    }

    /// Completes the output. A file gets its final name. If the `Output` is dropped without a call
    /// to this method, the file is deleted.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Output::Stdout(_) => Ok(()),
            Output::File(file) => Ok(file.commit()?),
        }
    }
}
