//! Column types to PEP 249's `description`.

use onecopy_rows::{Column, ColumnType, Schema};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The type code of a column: a `str` that compares equal to one of the type objects of `onecopy.dbapi`, or `any` for
/// SQLite, where each value has its own type.
pub(crate) fn type_code(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Any => "any",
        ColumnType::Bool => "bool",
        ColumnType::Integer { .. } => "integer",
        ColumnType::Real => "real",
        ColumnType::Double => "double",
        ColumnType::Decimal { .. } => "decimal",
        ColumnType::Text => "text",
        ColumnType::Binary => "binary",
        ColumnType::Date => "date",
        ColumnType::Time { .. } => "time",
        ColumnType::Timestamp {
            with_offset: false, ..
        } => "timestamp",
        ColumnType::Timestamp {
            with_offset: true, ..
        } => "timestamptz",
        ColumnType::Interval => "interval",
        ColumnType::Uuid => "uuid",
        _ => "other",
    }
}

/// The type code of the type that a column of SQLite was declared with, by its affinity; `any` for
/// the affinity NUMERIC, and without a type.
///
/// Source: <https://sqlite.org/datatype3.html#determination_of_column_affinity>
fn affinity(declared: &str) -> &'static str {
    let declared = declared.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    if has(&["INT"]) {
        "integer"
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        "text"
    } else if has(&["BLOB"]) {
        "binary"
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        "double"
    } else {
        "any"
    }
}

/// Seven items for each column, or `None` for a statement without rows.
pub(crate) fn description<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    if schema.n_columns() == 0 {
        return Ok(None);
    }
    let columns: Vec<_> = schema
        .columns
        .iter()
        .map(|c| column(py, c))
        .collect::<PyResult<_>>()?;
    PyTuple::new(py, columns).map(Some)
}

fn column<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyTuple>> {
    let (precision, scale) = match column.column_type {
        ColumnType::Decimal { precision, scale } if precision > 0 => {
            (Some(i64::from(precision)), Some(i64::from(scale)))
        }
        ColumnType::Time { digits } | ColumnType::Timestamp { digits, .. } => {
            (Some(i64::from(digits)), None)
        }
        _ => (None, None),
    };
    let size = (column.size > 0).then_some(column.size);
    (
        column.name.as_str(),
        match column.column_type {
            ColumnType::Any => affinity(&column.type_name),
            column_type => type_code(column_type),
        },
        None::<usize>, // display size: no database needs to be asked for it
        size,
        precision,
        scale,
        column.nullable,
    )
        .into_pyobject(py)
}
