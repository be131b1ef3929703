//! Executes short queries and returns their rows as values that can be parameters of later
//! statements.

use std::convert::Infallible;

use onecopy_rows::connect::Connection;
use onecopy_rows::{
    BlockPosition, Budget, Cell, Column, ColumnType, LongKind, LongValues, PumpError, Pumped,
    RowSink, Schema, Value,
};
use onecopy_text::{Policy, Units, convert};

use crate::error::Error;

/// The values of a row. `None` is a value that cannot be a parameter of a later statement, such as
/// malformed text.
pub(crate) type Row = Vec<Option<Value>>;

/// Executes a query and returns all its rows, and its columns.
///
/// # Errors
/// The error of the database.
pub(crate) fn rows(
    connection: &Connection,
    sql: &str,
    values: &[Value],
) -> Result<(Schema, Vec<Row>), Error> {
    let mut statement = connection.execute(sql, values)?;
    let schema = statement.schema().clone();
    statement.set_long_values(LongValues::Whole);
    let mut sink = Values {
        binds_text: schema.columns.iter().map(binds_text).collect(),
        rows: Vec::new(),
    };
    let mut position = BlockPosition::default();
    loop {
        match statement.pump(&mut position, Budget::default(), &mut sink) {
            Ok(Pumped::More) => {}
            Ok(Pumped::End) => return Ok((schema, sink.rows)),
            Err(PumpError::Source(error)) => return Err(error.into()),
            Err(PumpError::Sink(never)) => match never {},
        }
    }
}

/// Returns a value as text. Returns an empty string for NULL, and for a value that is neither text
/// nor a number nor bytes.
pub(crate) fn text(value: Option<&Option<Value>>) -> String {
    match value {
        Some(Some(Value::Text(text) | Value::Decimal(text))) => text.clone(),
        Some(Some(Value::I64(n))) => n.to_string(),
        Some(Some(Value::F64(n))) => n.to_string(),
        Some(Some(Value::Bytes(bytes))) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// Returns a number or a Boolean as an integer; `None` for NULL and for other values.
pub(crate) fn int(value: Option<&Option<Value>>) -> Option<i64> {
    match value {
        Some(Some(Value::I64(n))) => Some(*n),
        Some(Some(Value::Bool(b))) => Some(i64::from(*b)),
        Some(Some(Value::F64(n))) => Some(*n as i64),
        Some(Some(Value::Decimal(digits) | Value::Text(digits))) => {
            digits.split('.').next()?.parse().ok()
        }
        _ => None,
    }
}

/// The row sink of [`rows`]. It collects the rows of a result.
struct Values {
    binds_text: Vec<bool>,
    rows: Vec<Row>,
}

impl RowSink for Values {
    type Error = Infallible;

    fn begin_row(&mut self) -> Result<(), Infallible> {
        self.rows.push(Vec::with_capacity(self.binds_text.len()));
        Ok(())
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Infallible> {
        let value = value(cell, self.binds_text.get(column) == Some(&true));
        if let Some(row) = self.rows.last_mut() {
            row.push(value);
        }
        Ok(())
    }

    // `LongValues::Whole` is set, so no value is split. If a source splits one nevertheless,
    // malformed text replaces it, which makes the value `None`.
    fn long_begin(&mut self, column: usize, _kind: LongKind) -> Result<(), Infallible> {
        self.cell(column, Cell::Text(Units::Utf8(&[0xff])))
    }

    fn long_part(&mut self, _column: usize, _part: Cell<'_>) -> Result<(), Infallible> {
        Ok(())
    }

    fn long_end(&mut self, _column: usize) -> Result<(), Infallible> {
        Ok(())
    }

    fn end_row(&mut self) -> Result<bool, Infallible> {
        Ok(true)
    }
}

/// Returns `true` if a decimal from this column must be bound as text. This applies to PostgreSQL's
/// `money`, which cannot be compared with `numeric`, and to columns whose type is not decimal.
fn binds_text(column: &Column) -> bool {
    column.type_name.eq_ignore_ascii_case("money")
        || !matches!(column.column_type, ColumnType::Decimal { .. })
}

/// Converts a cell to a parameter value that the database considers equal to the cell; `None` if
/// there is no such value.
fn value(cell: Cell<'_>, binds_text: bool) -> Option<Value> {
    Some(match cell.or_text() {
        Cell::Null => Value::Null,
        Cell::Bool(b) => Value::Bool(b),
        Cell::I64(n) => Value::I64(n),
        Cell::U64(n) => Value::Decimal(n.to_string()),
        Cell::F32(f) => Value::F64(f64::from(f)),
        Cell::F64(f) => Value::F64(f),
        Cell::Decimal(digits) => {
            let digits = std::str::from_utf8(digits).ok()?.to_owned();
            match binds_text {
                true => Value::Text(digits),
                false => Value::Decimal(digits),
            }
        }
        Cell::Text(units) => {
            let mut bytes = Vec::new();
            convert::to_utf8(units, Policy::Strict, &mut bytes).ok()?;
            let text = String::from_utf8(bytes).ok()?;
            (!text.contains('\0')).then_some(Value::Text(text))?
        }
        Cell::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Cell::Date(date) => Value::Date(date),
        Cell::Time(time, _) => Value::Time(time),
        Cell::Timestamp(timestamp, _) => Value::Timestamp(timestamp),
        Cell::Uuid(uuid) => Value::Uuid(uuid),
        _ => return None,
    })
}
