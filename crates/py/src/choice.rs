//! Parses arguments whose value must be one of several fixed words.

use onecopy_text::Policy;
use pyo3::Borrowed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::raw::text;

/// Returns the value that `choices` pairs with the given word. `name` is the name of the argument,
/// for the error message.
///
/// # Errors
/// `ValueError`, which lists the accepted words, if the argument is none of them.
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

/// Parses the argument `errors`, which is the name of a policy for malformed text. Returns the
/// policy.
///
/// # Errors
/// `ValueError`, which lists the supported policies, if the argument is none of them.
pub(crate) fn policy(
    given: Borrowed<'_, '_, PyAny>,
    supported: &'static [Policy],
) -> PyResult<Policy> {
    let name = text::ascii(given).and_then(|name| str::from_utf8(name).ok());
    let policy = Policy::of_name(name.unwrap_or_default(), supported);
    policy.map_err(|e| PyValueError::new_err(e.to_string()))
}
