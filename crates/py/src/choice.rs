//! Parses an argument that must be one of several words.

use onecopy_text::Policy;
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::raw::text;

/// Returns the value that `choices` assigns to the word that was passed as the argument `name`.
///
/// # Errors
/// `ValueError`, with the accepted words, if the argument is none of these words.
pub(crate) fn choice<T: Copy>(
    given: Borrowed<'_, '_, PyAny>,
    name: &str,
    choices: &[(&[u8], T)],
) -> PyResult<T> {
    let found = text::ascii(given).and_then(|word| choices.iter().find(|(name, _)| *name == word));
    if let Some((_, choice)) = found {
        return Ok(*choice);
    }
    let words: Vec<_> = choices
        .iter()
        .map(|(word, _)| format!("'{}'", word.escape_ascii()))
        .collect();
    Err(PyValueError::new_err(format!(
        "{name} must be one of {}, not {}",
        words.join(", "),
        given.repr()?
    )))
}

/// Returns the policy for malformed text that was passed as the argument `errors`.
///
/// # Errors
/// `ValueError`, with the supported policies, if the argument is not the name of one of them.
pub(crate) fn policy(
    given: Borrowed<'_, '_, PyAny>,
    supported: &'static [Policy],
) -> PyResult<Policy> {
    let name = text::ascii(given).and_then(|name| str::from_utf8(name).ok());
    let policy = Policy::of_name(name.unwrap_or_default(), supported);
    policy.map_err(|e| PyValueError::new_err(e.to_string()))
}
