//! A door for the fuzz targets: what follows `sqlite:`, taken apart, with nothing opened.

use super::target::{Mode, Target};
use crate::error::Error;

/// A database that would be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Path of the file; `:memory:` for none.
    pub path: String,
    /// Whether a file could be written to.
    pub writes: bool,
    /// Whether a missing file would be made.
    pub creates: bool,
}

/// Takes apart what follows `sqlite:`.
///
/// # Errors
/// What is wrong with it.
pub fn target(text: &str, read_only: bool, create: bool) -> Result<Seen, Error> {
    let target = Target::parse(text, read_only, create)?;
    Ok(Seen {
        path: target.path,
        writes: matches!(target.mode, Mode::ReadWrite | Mode::Create),
        creates: target.mode == Mode::Create,
    })
}
