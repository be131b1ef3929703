//! `onecopy bson2json` and `onecopy json2bson`: documents to text and back, a document at a time.
//!
//! | module | what it holds |
//! |---|---|
//! | `to_json` | documents to text |
//! | `from_json` | text to documents |
//! | `input` | the part of the input that is looked at |

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

/// Why a command fails.
enum Failure {
    /// The input cannot be opened or read.
    Read(String, io::Error),
    /// What it holds is wrong.
    Data(String),
    /// There is no memory for a document.
    Memory(String),
    /// Stdout.
    Stdout(io::Error),
    /// A file that is written; it names the file and what was being done.
    File(io::Error),
    /// Signal handlers.
    System(io::Error),
    /// A signal came.
    Stopped,
}

impl From<onecopy_files::Error> for Failure {
    fn from(error: onecopy_files::Error) -> Failure {
        Failure::File(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Read(name, e) => write!(f, "`{name}` cannot be read: {e}"),
            Failure::Data(message) => f.write_str(message),
            Failure::Memory(name) => write!(f, "no memory for a document of `{name}`"),
            Failure::Stdout(source) => write!(f, "stdout cannot be written: {source}"),
            Failure::File(source) => source.fmt(f),
            Failure::System(source) => write!(f, "cannot start: {source}"),
            Failure::Stopped => f.write_str("stopped"),
        }
    }
}

impl Failure {
    fn exit_code(&self) -> i32 {
        match self {
            Failure::Stopped => exit::STOPPED,
            Failure::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe => exit::PIPE_CLOSED,
            _ => exit::FAILED,
        }
    }
}

/// What is wrong, without the options of Python's functions.
fn without_options(reason: &impl fmt::Display) -> String {
    let text = reason.to_string();
    match text.split_once("; see `") {
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

/// What is converted, and where it goes.
struct Conversion {
    input: Input,
    output: Writing,
}

/// What was made, until it is written.
struct Writing {
    made: Vec<u8>,
    to: Output,
    failed: fn(io::Error) -> Failure,
}

impl Writing {
    /// Bytes that are written at a time, at least.
    const LEAST_BYTES: usize = 128 << 10;

    /// Writes what was made, where it is worth it.
    fn flush_large(&mut self) -> Result<(), Failure> {
        match self.made.len() >= Writing::LEAST_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.to.write_all(&self.made).map_err(self.failed)?;
        self.made.clear();
        Ok(())
    }
}

/// Runs a conversion; the exit code.
fn run(
    input: Option<&PathBuf>,
    output: Option<&PathBuf>,
    quiet: bool,
    convert: impl FnOnce(&mut Conversion) -> Result<(), Failure>,
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
    convert: impl FnOnce(&mut Conversion) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let interrupt = Interrupt::start(None).map_err(Failure::System)?;
    let stdin = Path::new("-");
    let input = Input::open(input.map_or(stdin, PathBuf::as_path), quiet)?;
    let (to, failed): (_, fn(io::Error) -> Failure) = match output {
        Some(path) => {
            let file = AtomicFile::create(path, OnFailure::Remove)?;
            // A stop leaves no file under a temporary name. The process ends there and then: nothing else is half done.
            let temporary = file.temporary_path().to_owned();
            interrupt.cancels(CancelHandle::new(move || {
                let _ = std::fs::remove_file(&temporary);
                signal_hook::low_level::exit(exit::STOPPED);
            }));
            (Output::File(Box::new(file)), Failure::File)
        }
        None => (Output::stdout().map_err(Failure::Stdout)?, Failure::Stdout),
    };
    let made = Vec::with_capacity(2 * Writing::LEAST_BYTES);
    let output = Writing { made, to, failed };
    let mut conversion = Conversion { input, output };
    let done = convert(&mut conversion);
    let Conversion { input, mut output } = conversion;
    input.end();
    // What came before an error is good.
    let flushed = output.flush();
    done?;
    flushed?;
    if interrupt.stopped().is_some() {
        return Err(Failure::Stopped);
    }
    output.to.finish()?;
    Ok(())
}
