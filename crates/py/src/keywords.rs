//! Parses the values of keyword arguments that are words from a fixed list, or callables.

use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::raw::{function, gil, text};

/// A callable that the caller has passed. Dropping a `Hook` releases the reference to the callable
/// immediately. PyO3's `Py` would defer the release until the next call through PyO3, and
/// `raw::function` calls Rust functions without PyO3.
#[derive(Debug)]
pub(crate) struct Hook(Option<Py<PyAny>>);

impl Hook {
    /// Creates a hook from a callable. Raises `TypeError` for any other object.
    pub(crate) fn new(object: Borrowed<'_, '_, PyAny>, parameter: &str) -> PyResult<Hook> {
        if !object.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "`{parameter}` must be callable"
            )));
        }
        Ok(Hook(Some(object.to_owned().unbind())))
    }

    /// Calls the callable with `object` as its only argument.
    pub(crate) fn call<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let hook = self.0.as_ref().expect("it is taken when it is dropped");
        function::call_one(hook.bind(object.py()), object)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // While the interpreter ends, references are not released any more.
        let _ = gil::try_attach(|py| self.0.take().map(|hook| hook.drop_ref(py)));
    }
}

/// Parses an argument that must be one of the words in `choices`, and returns the value that
/// belongs to the word. `object` is the argument, and `parameter` is its name. Returns an error if
/// `object` is not one of the words.
pub(crate) fn choose<T: Copy>(
    object: Borrowed<'_, '_, PyAny>,
    parameter: &str,
    choices: &[(&str, T)],
) -> PyResult<T> {
    let found = text::ascii(object)
        .and_then(|u| choices.iter().find(|(name, _)| name.as_bytes() == u))
        .map(|&(_, choice)| choice);
    found.ok_or_else(|| {
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        PyValueError::new_err(format!("`{parameter}` must be one of {}", names.join(", ")))
    })
}

/// Converts an iterable of words to a bit set. `choices` pairs each permitted word with a number,
/// which is the index of the bit that the word sets.
pub(crate) fn choose_many<T: Copy + Into<u16>>(
    object: Borrowed<'_, '_, PyAny>,
    parameter: &str,
    choices: &[(&str, T)],
) -> PyResult<u16> {
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "`{parameter}` must be several names: `{parameter}=(\"{}\",)`",
            choices[0].0
        )));
    }
    let mut chosen = 0;
    let mut add = |name: Borrowed<'_, '_, PyAny>| -> PyResult<()> {
        chosen |= 1 << choose(name, parameter, choices)?.into();
        Ok(())
    };
    if let Ok(names) = object.cast_exact::<PyTuple>() {
        // A tuple is read without an iterator, whose creation would be most of the time of a call
        // with this keyword.
        names.iter_borrowed().try_for_each(&mut add)?;
    } else {
        for name in object.try_iter()? {
            add(name?.as_borrowed())?;
        }
    }
    Ok(chosen)
}
