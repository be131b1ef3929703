//! Values of options that several commands have.

use clap::ValueEnum;
use onecopy_text::Policy;

/// The treatment of malformed text in a database or a document (`--errors`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Errors {
    /// Fail, and report the position
    Strict,
    /// Replace it with U+FFFD
    Replace,
}

impl From<Errors> for Policy {
    fn from(arg: Errors) -> Policy {
        match arg {
            Errors::Strict => Policy::Strict,
            Errors::Replace => Policy::Replace,
        }
    }
}

/// Parses a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(std::time::Duration::from_secs_f64(seconds))
    } else {
        Err("must be above 0 and at most 86400".to_owned())
    }
}
