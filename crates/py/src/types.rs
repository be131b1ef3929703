//! Maps column types to the type codes and items of PEP 249's `description`.

use onecopy_rows::{Column, ColumnType, Schema};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Returns the type code of a column for `onecopy.dbapi`. For SQLite, the code is `any`.
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
        ColumnType::TimeTz { .. } => "timetz",
        ColumnType::Timestamp {
            with_offset: false, ..
        } => "timestamp",
        ColumnType::Timestamp {
            with_offset: true, ..
        } => "timestamptz",
        ColumnType::Interval => "interval",
        ColumnType::Uuid => "uuid",
        ColumnType::Range => "range",
        ColumnType::Array(_) => "array",
        _ => "other",
    }
}

/// Returns the type code for the affinity of a SQLite column. `any` for NUMERIC and without a
/// declared type.
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

/// Returns `Cursor.description`: seven items for each column. `None` for a statement without rows.
pub(crate) fn description<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    if !schema.has_rows() {
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
        ColumnType::Time { digits }
        | ColumnType::TimeTz { digits }
        | ColumnType::Timestamp { digits, .. } => (Some(i64::from(digits)), None),
        _ => (None, None),
    };
    let size = (column.size > 0).then_some(column.size);
    (
        column.name.as_str(),
        match column.column_type {
            ColumnType::Any => affinity(&column.type_name),
            column_type => type_code(column_type),
        },
        None::<usize>, // the display size, which would require a query
        size,
        precision,
        scale,
        column.nullable,
    )
        .into_pyobject(py)
}
