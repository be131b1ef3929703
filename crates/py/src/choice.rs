//! Parses arguments with a few accepted words.

use onecopy_text::Policy;
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::raw::text;

/// Returns the value of the given word. `name` is the argument's name in errors.
///
/// # Errors
/// `ValueError` with the accepted words, if the word is unknown.
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

/// Parses the argument `errors`, a policy for malformed text.
///
/// # Errors
/// `ValueError` with the supported policies, if the policy is unknown.
pub(crate) fn policy(
    given: Borrowed<'_, '_, PyAny>,
    supported: &'static [Policy],
) -> PyResult<Policy> {
    let name = text::ascii(given).and_then(|name| str::from_utf8(name).ok());
    let policy = Policy::of_name(name.unwrap_or_default(), supported);
    policy.map_err(|e| PyValueError::new_err(e.to_string()))
}
