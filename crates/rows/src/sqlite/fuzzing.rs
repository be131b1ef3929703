//! An entry point for fuzz targets: parses the text after `sqlite:`, without opening a file.

use super::target::{Mode, SqliteTarget};
use crate::error::Error;

/// The parsed text after `sqlite:` of a connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedTarget {
    /// The path of the file; `:memory:` for a database in memory.
    pub path: String,
    /// `true` if the connection may write to the file.
    pub writes: bool,
    /// `true` if a missing file may be created.
    pub creates: bool,
}

/// Parses the text after `sqlite:` in a connection string.
///
/// # Errors
/// [`crate::ErrorKind::Connect`] with a description of the error in the text.
pub fn target(text: &str, read_only: bool, create: bool) -> Result<ParsedTarget, Error> {
    let target = SqliteTarget::parse(text, read_only, create)?;
    Ok(ParsedTarget {
        path: target.path,
        writes: matches!(target.mode, Mode::ReadWrite | Mode::Create),
        creates: target.mode == Mode::Create,
    })
}
