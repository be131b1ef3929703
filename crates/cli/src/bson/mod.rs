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
use std::path::{Path, PathBuf};

pub(crate) use from_json::run as run_from_json;
pub(crate) use to_json::run as run_to_json;

use crate::exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use input::Input;

/// Returns the text of an error without the advice that follows "; see". The advice names options
/// of the Python functions, which the command does not have.
fn without_options(reason: &impl fmt::Display) -> String {
    let text = reason.to_string();
    match text.split_once("; see `") {
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

/// Returns the failure of a conversion that ran out of memory.
fn no_memory(input: &str) -> Failure {
    Failure::Other(format!("no memory for a document of `{input}`"))
}

/// The input and the output of a conversion.
struct Conversion {
    input: Input,
    output: Writing,
}

/// The output of a conversion: `to` is the destination, and `made` contains the converted bytes
/// that were not yet written to it.
struct Writing {
    made: Vec<u8>,
    to: Output,
}

impl Writing {
    /// Converted bytes are collected until there are at least this many, and are then written.
    /// Before a read, and at the end of the input, all converted bytes are written.
    const LEAST_BYTES: usize = 128 << 10;

    /// Writes the converted bytes if there are at least [`Writing::LEAST_BYTES`].
    fn flush_large(&mut self) -> Result<(), Failure> {
        match self.made.len() >= Writing::LEAST_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.to.write(&self.made)?;
        self.made.clear();
        Ok(())
    }
}

/// Runs a conversion between BSON and JSON; returns the exit code.
fn run(
    input: Option<&PathBuf>,
    output: Option<&PathBuf>,
    quiet: bool,
    convert: impl FnOnce(&mut Conversion) -> Result<(), Failure>,
) -> i32 {
    match try_run(input, output, quiet, convert) {
        Ok(()) => exit::OK,
        Err(failure) => failure.report(),
    }
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
    // No state besides the output file is incomplete when a signal arrives.
    let to = Output::removed_on_signal(output.map(PathBuf::as_path), &interrupt)?;
    let made = Vec::with_capacity(2 * Writing::LEAST_BYTES);
    let output = Writing { made, to };
    let mut conversion = Conversion { input, output };
    let done = convert(&mut conversion);
    let Conversion { input, mut output } = conversion;
    input.end();
    // The output before an error is valid, so it is written.
    let flushed = output.flush();
    done?;
    flushed?;
    if interrupt.stopped().is_some() {
        return Err(Failure::Stopped(""));
    }
    output.to.finish()?;
    Ok(())
}
