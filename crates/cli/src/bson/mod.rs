//! `onecopy bson2json` and `onecopy json2bson`: convert BSON documents to MongoDB Extended JSON and
//! back, one document after the other.
//!
//! | module | contents |
//! |---|---|
//! | `to_json` | BSON documents to Extended JSON |
//! | `from_json` | Extended JSON to BSON documents |
//! | `input` | the buffer through which the input is read |

mod from_json;
mod input;
mod to_json;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use onecopy_files::{AtomicFile, OnFailure};
use onecopy_wire::CancelHandle;

pub(crate) use from_json::run as run_from_json;
pub(crate) use to_json::run as run_to_json;

use crate::console::error;
use crate::exit;
use crate::interrupt::Interrupt;
use crate::output::Output;
use input::Input;

/// The reason for which `bson2json` or `json2bson` fails.
enum ConversionFailure {
    /// The input cannot be opened or read.
    Read(String, io::Error),
    /// The input is invalid.
    Data(String),
    /// Memory for a document is exhausted.
    Memory(String),
    /// Stdout cannot be written.
    Stdout(io::Error),
    /// The output file cannot be written; the error names the file and the operation.
    File(io::Error),
    /// Signal handlers cannot be installed.
    System(io::Error),
    /// A signal stopped the command.
    Stopped,
}

impl From<onecopy_files::Error> for ConversionFailure {
    fn from(error: onecopy_files::Error) -> ConversionFailure {
        ConversionFailure::File(error.into())
    }
}

impl fmt::Display for ConversionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConversionFailure::Read(name, e) => write!(f, "`{name}` cannot be read: {e}"),
            ConversionFailure::Data(message) => f.write_str(message),
            ConversionFailure::Memory(name) => write!(f, "no memory for a document of `{name}`"),
            ConversionFailure::Stdout(source) => write!(f, "stdout cannot be written: {source}"),
            ConversionFailure::File(source) => source.fmt(f),
            ConversionFailure::System(source) => write!(f, "cannot start: {source}"),
            ConversionFailure::Stopped => f.write_str("stopped"),
        }
    }
}

impl ConversionFailure {
    fn exit_code(&self) -> i32 {
        match self {
            ConversionFailure::Stopped => exit::STOPPED,
            ConversionFailure::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                exit::PIPE_CLOSED
            }
            _ => exit::FAILED,
        }
    }
}

/// Returns the text of an error without the advice that follows "; see". The advice names options
/// of the Python functions, which the command does not have.
fn without_options(reason: &impl fmt::Display) -> String {
    let text = reason.to_string();
    match text.split_once("; see `") {
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

/// The input and the output of a conversion.
struct Conversion {
    input: Input,
    output: Writing,
}

/// The output of a conversion: the destination `to`, and the converted bytes `made` that were not
/// yet written to the destination.
struct Writing {
    made: Vec<u8>,
    to: Output,
    failed: fn(io::Error) -> ConversionFailure,
}

impl Writing {
    /// The smallest number of converted bytes that is written, except before a read and at the end.
    const LEAST_BYTES: usize = 128 << 10;

    /// Writes the converted bytes if there are at least [`Writing::LEAST_BYTES`].
    fn flush_large(&mut self) -> Result<(), ConversionFailure> {
        match self.made.len() >= Writing::LEAST_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), ConversionFailure> {
        self.to.write_all(&self.made).map_err(self.failed)?;
        self.made.clear();
        Ok(())
    }
}

/// Runs a conversion; returns the exit code.
fn run(
    input: Option<&PathBuf>,
    output: Option<&PathBuf>,
    quiet: bool,
    convert: impl FnOnce(&mut Conversion) -> Result<(), ConversionFailure>,
) -> i32 {
    let done = try_run(input, output, quiet, convert);
    let Err(failure) = done else {
        return exit::OK;
    };
    let code = failure.exit_code();
    if code != exit::PIPE_CLOSED {
        error(&failure.to_string());
    }
    code
}

fn try_run(
    input: Option<&PathBuf>,
    output: Option<&PathBuf>,
    quiet: bool,
    convert: impl FnOnce(&mut Conversion) -> Result<(), ConversionFailure>,
) -> Result<(), ConversionFailure> {
    let interrupt = Interrupt::start(None).map_err(ConversionFailure::System)?;
    let stdin = Path::new("-");
    let input = Input::open(input.map_or(stdin, PathBuf::as_path), quiet)?;
    let (to, failed): (_, fn(io::Error) -> ConversionFailure) = match output {
        Some(path) => {
            let file = AtomicFile::create(path, OnFailure::Remove)?;
            // A signal removes the temporary file and ends the process immediately, because no
            // other state is incomplete.
            let temporary = file.temporary_path().to_owned();
            interrupt.cancels(CancelHandle::new(move || {
                let _ = std::fs::remove_file(&temporary);
                signal_hook::low_level::exit(exit::STOPPED);
            }));
            (Output::File(Box::new(file)), ConversionFailure::File)
        }
        None => (
            Output::stdout().map_err(ConversionFailure::Stdout)?,
            ConversionFailure::Stdout,
        ),
    };
    let made = Vec::with_capacity(2 * Writing::LEAST_BYTES);
    let output = Writing { made, to, failed };
    let mut conversion = Conversion { input, output };
    let done = convert(&mut conversion);
    let Conversion { input, mut output } = conversion;
    input.end();
    // The output before an error is valid, so it is written.
    let flushed = output.flush();
    done?;
    flushed?;
    if interrupt.stopped().is_some() {
        return Err(ConversionFailure::Stopped);
    }
    output.to.finish()?;
    Ok(())
}
