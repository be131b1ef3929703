//! Formats the path to a value in an object, for error messages.

/// Shortens a long path in the middle, with an ellipsis.
pub(crate) fn shortened(path: &str) -> String {
    const END_CHARS: usize = 60;
    let n = path.chars().count();
    if n <= 2 * END_CHARS {
        return path.to_owned();
    }
    let head: String = path.chars().take(END_CHARS).collect();
    let tail: String = path.chars().skip(n - END_CHARS).collect();
    format!("{head}…{tail}")
}
