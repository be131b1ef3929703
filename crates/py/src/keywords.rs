//! Parses keyword arguments: words from a fixed list, and callables.

use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::raw::{function, gil, text};

/// A callable from the caller. Its drop releases the reference immediately, and PyO3's `Py` would
/// not.
#[derive(Debug)]
pub(crate) struct Hook(Option<Py<PyAny>>);

impl Hook {
    /// Creates a hook. Raises `TypeError` if the object is not callable.
    pub(crate) fn new(object: Borrowed<'_, '_, PyAny>, parameter: &str) -> PyResult<Hook> {
        if !object.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "`{parameter}` must be callable"
            )));
        }
        Ok(Hook(Some(object.to_owned().unbind())))
    }

    /// Calls the callable with one argument.
    pub(crate) fn call<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let hook = self.0.as_ref().expect("it is taken when it is dropped");
        function::call_one(hook.bind(object.py()), object)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // Has no effect while the interpreter ends.
        let _ = gil::try_attach(|py| self.0.take().map(|hook| hook.drop_ref(py)));
    }
}

/// Returns the value of the word `object` in `choices`. `parameter` is the argument's name for
/// errors.
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

/// Converts an iterable of words to a bit set. `choices` contains the bit index of each word.
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
        // No iterator for a tuple: its creation would take most of the time.
        names.iter_borrowed().try_for_each(&mut add)?;
    } else {
        for name in object.try_iter()? {
            add(name?.as_borrowed())?;
        }
    }
    Ok(chosen)
}
