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

    /// Creates a file that is named `path` when it is finished. `-` is stdout.
    pub(crate) fn file(path: &Path) -> Result<Output, Failure> {
        if input::is_dash(path) {
            return Output::stdout();
        }
        let file = AtomicFile::create(path, OnFailure::Remove)?;
        Ok(Output::File(Box::new(file)))
    }

    /// Opens stdout, or creates a file that is named `path` when it is finished. If a signal
    /// arrives before that, the file is deleted and the process ends immediately. A command uses
    /// this function only if it writes no other output that would then be incomplete.
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

    /// Returns the output as a writer. The caller passes the errors of this writer to
    /// [`Output::failure`].
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

    /// Finishes the output: a file gets its final name. If the `Output` is dropped without this
    /// call, the file is deleted.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Output::Stdout(_) => Ok(()),
            Output::File(file) => Ok(file.commit()?),
        }
    }
}
