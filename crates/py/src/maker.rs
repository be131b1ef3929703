//! Rows as something else than plain tuples: row factories and converters.
//!
//! What stands here runs Python code of the user's, so it runs outside of the cursor's lock.

use onecopy_rows::{ErrorKind, Schema};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::raw::method::call_one;
use crate::{errors, types};

/// What becomes of the tuples of one result.
pub(crate) struct Maker {
    /// Columns whose values are given to a function first.
    converters: Vec<(usize, Py<PyAny>)>,
    form: Form,
}

enum Form {
    Tuple,
    /// With these keys.
    Dict(Vec<Py<PyString>>),
    /// What the row factory gave for this result: takes a tuple.
    Python(Py<PyAny>),
}

/// The function in `onecopy.rows` that stands for dicts, which are made here.
fn dict_row<'py>(py: Python<'py>) -> PyResult<&'py Bound<'py, PyAny>> {
    static DICT_ROW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let found = DICT_ROW.get_or_try_init(py, || -> PyResult<_> {
        Ok(py.import("onecopy.rows")?.getattr("dict_row")?.unbind())
    })?;
    Ok(found.bind(py))
}

impl Maker {
    /// What the row factory of `cursor` and the converters make of a result; `None` where rows stay tuples.
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
            None => Form::Tuple,
            Some(factory) if factory.is(dict_row(py)?) => Form::Dict(keys(py, schema)?),
            Some(factory) => Form::Python(call_one(factory, cursor)?.unbind()),
        };
        if converters.is_empty() && matches!(form, Form::Tuple) {
            return Ok(None);
        }
        Ok(Some(Maker { converters, form }))
    }

    /// A row of a tuple that nobody else has seen.
    pub(crate) fn make<'py>(&self, row: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = row.py();
        let row = if self.converters.is_empty() {
            row
        } else {
            let mut items: Vec<Bound<'py, PyAny>> = row.iter().collect();
            for (column, convert) in &self.converters {
                // NULL stays None, and what was left out stays left out.
                if !items[*column].is_none() && !items[*column].is(py.Ellipsis()) {
                    items[*column] = call_one(convert.bind(py), &items[*column])?;
                }
            }
            PyTuple::new(py, items)?
        };
        match &self.form {
            Form::Tuple => Ok(row.into_any()),
            Form::Dict(keys) => {
                let dict = PyDict::new(py);
                for (key, item) in keys.iter().zip(row.iter_borrowed()) {
                    dict.set_item(key, item)?;
                }
                Ok(dict.into_any())
            }
            Form::Python(make) => call_one(make.bind(py), &row),
        }
    }
}

/// The names of the columns, each of which must be there, once.
fn keys(py: Python<'_>, schema: &Schema) -> PyResult<Vec<Py<PyString>>> {
    if let Some((i, name)) = schema.unfit_name() {
        let message = if name.is_empty() {
            "the column has no name, which a dict needs\ngive it one in the query: `… as name`"
        } else {
            "two columns have this name, and a dict keeps one value for each\ngive one of them another name in the query: `… as name`"
        };
        let error = onecopy_rows::Error::new(ErrorKind::Programming, message);
        return Err(errors::to_py(py, &error.at_column(i, name)));
    }
    let key = |column: &onecopy_rows::Column| PyString::intern(py, &column.name).unbind();
    Ok(schema.columns.iter().map(key).collect())
}
