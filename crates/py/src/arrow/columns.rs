//! `PyColumns`: the row sink of `fetch_columns`.

use onecopy_rows::arrow::{self, DataType, NumberColumn, NumberMisfit};
use onecopy_rows::{
    Cell, Column as Described, ColumnType, Error, ErrorKind, LongKind, RowSink, Schema,
};
use onecopy_text::Policy;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors;
use crate::raw::number_column::Column;
use crate::raw::text_cache::TextCache;
use crate::rows::{CellError, PyRows};
use crate::types::type_code;

/// The values of one column.
enum Made {
    /// All values so far are NULL. The field is their number.
    Undecided(usize),
    Numbers(Box<NumberColumn>),
    Objects(Vec<Py<PyAny>>),
}

/// The columns of all rows so far. Each fetch appends rows to them.
pub(crate) struct ColumnValues {
    columns: Vec<Made>,
    n_rows: usize,
    /// A cache of recent strings for each column.
    seen: Vec<TextCache>,
}

impl ColumnValues {
    /// Creates empty columns for `schema`.
    pub(crate) fn new(schema: &Schema) -> ColumnValues {
        let columns = schema
            .columns
            .iter()
            .map(|column| match arrow::type_of(column) {
                Some(data_type) => match NumberColumn::new(&data_type) {
                    Some(numbers) => Made::Numbers(Box::new(numbers)),
                    None => Made::Objects(Vec::new()),
                },
                None if column.column_type == ColumnType::Any => Made::Undecided(0),
                None => Made::Objects(Vec::new()),
            });
        ColumnValues {
            columns: columns.collect(),
            n_rows: 0,
            seen: Vec::new(),
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the columns as Python objects, in the order of the result.
    pub(crate) fn finish<'py>(
        self,
        py: Python<'py>,
        schema: &Schema,
    ) -> PyResult<Bound<'py, PyList>> {
        let n_rows = self.n_rows;
        let made = self.columns.into_iter().zip(schema.columns.iter());
        let made = made.map(|(made, described)| match made {
            Made::Numbers(numbers) => number_column(py, described, *numbers),
            Made::Objects(objects) => Ok(PyList::new(py, objects)?.into_any()),
            Made::Undecided(_) => Ok(PyList::new(py, nones(py, n_rows)?)?.into_any()),
        });
        PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)
    }
}

/// The reason why a column cannot store a cell.
pub(crate) enum ColumnError {
    Misfit { column: usize, misfit: NumberMisfit },
    Cell(CellError),
}

impl ColumnError {
    /// Converts the error to an exception with the column and the row index.
    pub(crate) fn into_py(self, py: Python<'_>, schema: &Schema, row: u64) -> PyErr {
        let (column, misfit) = match self {
            ColumnError::Cell(error) => return error.into_py(py, schema, row),
            ColumnError::Misfit { column, misfit } => (column, misfit),
        };
        let described = schema.columns.get(column);
        let (name, type_name) = described.map_or(("", ""), |c| (&c.name, &c.type_name));
        let what = match misfit {
            NumberMisfit::Memory => return no_memory(),
            NumberMisfit::Invalid => {
                let why = onecopy_wire::WriteError::NotADate.to_string();
                return errors::to_py(py, &schema.invalid_value(&why, column, row));
            }
            NumberMisfit::Range => "a value is outside of the range of its column's buffer",
            NumberMisfit::Kind => "a value does not go into a column of numbers",
        };
        let message =
            format!("{what} (declared `{type_name}`)\ncast it in the query, or fetch rows");
        let error = Error::new(ErrorKind::Data, message);
        errors::to_py(py, &error.at_column(column, name).at_row(row))
    }
}

/// A row sink that builds one Python object per column.
pub(crate) struct PyColumns<'py> {
    py: Python<'py>,
    schema: Schema,
    values: ColumnValues,
    /// The row sink for the cells that are not numbers.
    pub(crate) objects: PyRows<'py>,
    limit: usize,
    policy: Policy,
}

impl<'py> PyColumns<'py> {
    /// Creates a sink that appends to `values` up to `limit` rows.
    pub(crate) fn new(
        py: Python<'py>,
        schema: &Schema,
        policy: Policy,
        limit: usize,
        mut values: ColumnValues,
    ) -> PyResult<PyColumns<'py>> {
        let n_columns = schema.n_columns();
        let mut objects = PyRows::new(py, n_columns, policy)?;
        objects.remember(n_columns, &mut values.seen);
        Ok(PyColumns {
            py,
            values,
            schema: schema.clone(),
            objects,
            limit,
            policy,
        })
    }

    /// Returns the policy for malformed text in a cell.
    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.values.n_rows
    }

    /// Returns the number of rows below `limit`.
    pub(crate) fn n_left(&self) -> usize {
        self.limit - self.values.n_rows
    }

    /// Returns the columns for the next fetch.
    pub(crate) fn into_values(mut self) -> ColumnValues {
        self.values.seen = self.objects.seen();
        self.values
    }

    #[inline]
    fn put(&mut self, column: usize, cell: Cell<'_>) -> Result<(), ColumnError> {
        let misfit = |misfit| ColumnError::Misfit { column, misfit };
        match &mut self.values.columns[column] {
            Made::Numbers(numbers) => numbers.put(cell).map_err(misfit),
            Made::Objects(objects) => {
                let object = self.objects.object_of(column, cell);
                let object = object.map_err(ColumnError::Cell)?;
                let reserved = objects.try_reserve(1);
                reserved.map_err(|_| misfit(NumberMisfit::Memory))?;
                objects.push(object.unbind());
                Ok(())
            }
            Made::Undecided(n_nulls) if cell == Cell::Null => {
                *n_nulls += 1;
                Ok(())
            }
            Made::Undecided(n_nulls) => {
                let n_nulls = *n_nulls;
                let floats = arrow::has_fractions(&self.schema.columns[column]);
                let numbers = NumberColumn::of_first(&cell, floats, n_nulls);
                self.values.columns[column] = match numbers.map_err(misfit)? {
                    Some(numbers) => Made::Numbers(Box::new(numbers)),
                    None => {
                        let nones = nones(self.py, n_nulls);
                        Made::Objects(nones.map_err(|_| misfit(NumberMisfit::Memory))?)
                    }
                };
                self.put(column, cell)
            }
        }
    }

    fn parts(&self, column: usize) -> ColumnError {
        ColumnError::Cell(CellError::in_parts(column))
    }
}

fn no_memory() -> PyErr {
    PyMemoryError::new_err("no memory for the values of a column")
}

/// Returns `n` references to `None`.
fn nones(py: Python<'_>, n: usize) -> PyResult<Vec<Py<PyAny>>> {
    let mut nones = Vec::new();
    nones.try_reserve_exact(n).map_err(|_| no_memory())?;
    nones.resize_with(n, || py.None());
    Ok(nones)
}

fn number_column<'py>(
    py: Python<'py>,
    described: &Described,
    numbers: NumberColumn,
) -> PyResult<Bound<'py, PyAny>> {
    let data_type = numbers.data_type();
    let code = match (described.column_type, &data_type) {
        (ColumnType::Any, DataType::Float64) => "double",
        (ColumnType::Any, _) => "integer",
        (column_type, _) => type_code(column_type),
    };
    let timestamp = match &data_type {
        DataType::Timestamp { unit, zone } => Some((*unit, zone.is_some())),
        _ => None,
    };
    let numbers = numbers.finish().map_err(|_| no_memory())?;
    let column = Column::new(py, &described.name, code, timestamp, numbers)?;
    Ok(Bound::new(py, column)?.into_any())
}

impl RowSink for PyColumns<'_> {
    type Error = ColumnError;

    const COLUMNS: bool = true;

    #[inline]
    fn begin_row(&mut self) -> Result<(), ColumnError> {
        Ok(())
    }

    #[inline]
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), ColumnError> {
        self.put(column, cell)
    }

    fn long_begin(&mut self, column: usize, _kind: LongKind) -> Result<(), ColumnError> {
        Err(self.parts(column))
    }

    fn long_part(&mut self, column: usize, _part: Cell<'_>) -> Result<(), ColumnError> {
        Err(self.parts(column))
    }

    fn long_end(&mut self, column: usize) -> Result<(), ColumnError> {
        Err(self.parts(column))
    }

    #[inline]
    fn end_row(&mut self) -> Result<bool, ColumnError> {
        self.values.n_rows += 1;
        Ok(self.values.n_rows < self.limit)
    }

    #[inline]
    fn column_cell(
        &mut self,
        _row: usize,
        column: usize,
        cell: Cell<'_>,
    ) -> Result<(), ColumnError> {
        self.put(column, cell)
    }

    fn begin_columns(&mut self, n_rows: usize) -> Result<(), ColumnError> {
        // An error in a column ends the fetch, so the count needs no correction.
        self.values.n_rows += n_rows;
        Ok(())
    }
}
