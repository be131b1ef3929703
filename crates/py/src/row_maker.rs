//! `Maker`: converts row tuples with a row factory and converters.
//!
//! It calls Python code of the user. The cursor must not be locked then.

use onecopy_rows::{ErrorKind, Schema};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::raw::function::call_one;
use crate::{errors, types};

/// Converts the row tuples of one result.
pub(crate) struct Maker {
    /// The converter functions, each with the index of its column (from 0).
    converters: Vec<(usize, Py<PyAny>)>,
    form: RowForm,
}

enum RowForm {
    Tuple,
    /// Each row becomes a dict with these keys.
    Dict(Vec<Py<PyString>>),
    /// The function from the row factory. It receives the tuple of each row.
    Python(Py<PyAny>),
}

/// Returns `onecopy.rows.dict_row`. For this row factory, Rust creates the dicts.
fn dict_row<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static DICT_ROW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let found = DICT_ROW.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("onecopy.rows")?.getattr("dict_row")?.unbind())
    })?;
    Ok(found.bind(py))
}

impl Maker {
    /// Creates the `Maker` for a result of `cursor`. `None` if there is no row factory and no
    /// converter.
    pub(crate) fn of(
        cursor: &Bound<'_, PyAny>,
        schema: &Schema,
        row_factory: Option<&Bound<'_, PyAny>>,
        of_cursor: Option<&Bound<'_, PyDict>>,
        of_connection: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<Maker>> {
        let py = cursor.py();
        let mut converters = Vec::new();
        for (i, column) in schema.columns.iter().enumerate() {
            let mut found = None;
            if let Some(of_cursor) = of_cursor {
                found = match of_cursor.get_item(i)? {
                    None => of_cursor.get_item(column.name.as_str())?,
                    found => found,
                };
            }
            if let (None, Some(of_connection)) = (&found, of_connection) {
                found = match of_connection.get_item(column.type_name.to_lowercase())? {
                    None => of_connection.get_item(types::type_code(column.column_type))?,
                    found => found,
                };
            }
            if let Some(found) = found.filter(|f| !f.is_none()) {
                converters.push((i, found.unbind()));
            }
        }
        let form = match row_factory {
            None => RowForm::Tuple,
            Some(factory) if factory.is(dict_row(py)?) => RowForm::Dict(keys(py, schema)?),
            Some(factory) => RowForm::Python(call_one(factory, cursor)?.unbind()),
        };
        if converters.is_empty() && matches!(form, RowForm::Tuple) {
            return Ok(None);
        }
        Ok(Some(Maker { converters, form }))
    }

    /// Converts a row tuple. No other code may refer to the tuple.
    pub(crate) fn make<'py>(&self, row: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = row.py();
        let row = if self.converters.is_empty() {
            row
        } else {
            let mut items: Vec<Bound<'py, PyAny>> = row.iter().collect();
            for (column, convert) in &self.converters {
                // Converters are not called for NULL and for deferred values.
                if !items[*column].is_none() && !items[*column].is(py.Ellipsis()) {
                    items[*column] = call_one(convert.bind(py), &items[*column])
                        .map_err(|e| of_converter(convert.bind(py), e))?;
                }
            }
            PyTuple::new(py, items)?
        };
        match &self.form {
            RowForm::Tuple => Ok(row.into_any()),
            RowForm::Dict(keys) => {
                let dict = PyDict::new(py);
                for (key, item) in keys.iter().zip(row.iter_borrowed()) {
                    dict.set_item(key, item)?;
                }
                Ok(dict.into_any())
            }
            RowForm::Python(make) => call_one(make.bind(py), &row),
        }
    }
}

/// Converts the exception of a converter. `onecopy.json` fails with a `DataError`; a user's
/// exception is kept.
#[cold]
fn of_converter(convert: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = convert.py();
    let loads = py.import("onecopy.json").and_then(|m| m.getattr("loads"));
    match loads.is_ok_and(|loads| convert.is(&loads)) {
        true => errors::of_json(py, error),
        false => error,
    }
}

/// Returns the column names. Fails if a name is empty or occurs twice.
fn keys(py: Python<'_>, schema: &Schema) -> PyResult<Vec<Py<PyString>>> {
    if let Some((i, name)) = schema.unfit_name() {
        let message = if name.is_empty() {
            "the column has no name, which a dict needs\ngive it one in the query: `… as name`"
        } else {
            "two columns have this name, and a dict keeps one value for each\n\
             give one of them another name in the query: `… as name`"
        };
        let error = onecopy_rows::Error::new(ErrorKind::Programming, message);
        return Err(errors::to_py(py, &error.at_column(i, name)));
    }
    let key = |column: &onecopy_rows::Column| PyString::intern(py, &column.name).unbind();
    Ok(schema.columns.iter().map(key).collect())
}
