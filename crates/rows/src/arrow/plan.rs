//! Chooses the Arrow type of each column. A type that the caller requests has precedence. Otherwise
//! the column's database type determines the Arrow type. If neither determines the type, the values
//! of the column do.

use super::types::is_made;
use super::types::{DataType, TimeUnit};
use crate::error::{Error, ErrorKind};
use crate::schema::{Column, ColumnType, Schema};

/// How the type of a column is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnPlan {
    /// The column has this type, which is known before the first row.
    Type(DataType),
    /// The first value that is not NULL decides the type. If `floats` is `true` and that value is a
    /// number, the type is a float type.
    FirstValue { floats: bool },
    /// A decimal type. Its precision and scale are chosen after the first batch, so that they fit
    /// every value of that batch.
    Digits,
    /// A list type; contains the plan of its element type.
    List(Box<ColumnPlan>),
}

impl ColumnPlan {
    /// Returns `true` if the plan does not determine the type, so that the values of the column
    /// must determine it.
    pub(super) fn is_open(&self) -> bool {
        match self {
            ColumnPlan::Type(_) => false,
            ColumnPlan::List(items) => items.is_open(),
            ColumnPlan::FirstValue { .. } | ColumnPlan::Digits => true,
        }
    }

    fn data_type(self) -> Option<DataType> {
        match self {
            ColumnPlan::Type(data_type) => Some(data_type),
            ColumnPlan::List(items) => items.data_type().map(Box::new).map(DataType::List),
            ColumnPlan::FirstValue { .. } | ColumnPlan::Digits => None,
        }
    }
}

/// The options for Arrow output. A type that the caller requests overrides the type that the
/// database reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrowOptions {
    /// The approximate size of a batch in bytes. A batch has at least one row, even if that row is
    /// larger.
    pub batch_bytes: usize,
    /// The Arrow types that the caller requests for columns, each with the column's name.
    pub types: Vec<(String, DataType)>,
}

impl Default for ArrowOptions {
    /// Returns options with batches of 4 MiB. This size is large enough that the fixed cost of a
    /// batch is small compared to the cost of its rows, and small enough to bound the memory.
    fn default() -> ArrowOptions {
        ArrowOptions {
            batch_bytes: 4 << 20,
            types: Vec::new(),
        }
    }
}

/// Returns, for each column of the schema, the plan for its Arrow type, and `true` if `options`
/// requests a type for this column.
///
/// # Errors
/// [`ErrorKind::Programming`] if `options.types` names a column that does not exist;
/// [`ErrorKind::NotSupported`] if it names a type that this crate can import, but not create.
pub(crate) fn plans(
    schema: &Schema,
    options: &ArrowOptions,
) -> Result<Vec<(ColumnPlan, bool)>, Error> {
    for (name, data_type) in &options.types {
        if !schema.columns.iter().any(|c| c.name == *name) {
            let message = format!("there is no column `{name}` for the type `{data_type}`");
            return Err(Error::new(ErrorKind::Programming, message));
        }
        if !is_made(data_type) {
            let message = format!("columns of the type `{data_type}` are not supported");
            return Err(Error::new(ErrorKind::NotSupported, message));
        }
    }
    let planned = schema.columns.iter().map(|column| {
        let requested = options.types.iter().find(|(name, _)| *name == column.name);
        match requested {
            Some((_, data_type)) => (ColumnPlan::Type(data_type.clone()), true),
            None => (plan(column), false),
        }
    });
    Ok(planned.collect())
}

/// Returns the Arrow type of a database column; `None` if the values decide the type.
#[must_use]
pub fn type_of(column: &Column) -> Option<DataType> {
    plan(column).data_type()
}

/// Returns `true` if Arrow output converts every number of this column to a float. This is the case
/// for a SQLite column with the declared type NUMERIC or DECIMAL.
#[must_use]
pub fn has_fractions(column: &Column) -> bool {
    plan(column) == ColumnPlan::FirstValue { floats: true }
}

/// Returns the plan for the Arrow type of `column`, for a column whose type the caller did not
/// request.
fn plan(column: &Column) -> ColumnPlan {
    ColumnPlan::Type(match column.column_type {
        ColumnType::Any => return declared(&column.type_name),
        ColumnType::Bool => DataType::Bool,
        // psqlodbc describes unsigned 32-bit numbers as signed numbers.
        ColumnType::Integer { .. }
            if matches!(column.type_name.as_str(), "oid" | "xid" | "cid") =>
        {
            DataType::uint(32)
        }
        ColumnType::Integer { bits, unsigned } => DataType::Int { bits, unsigned },
        ColumnType::Real => DataType::Float32,
        ColumnType::Double => DataType::Float64,
        ColumnType::Decimal { precision, scale } => match decimal(column, precision, scale) {
            Some(data_type) => data_type,
            None => return ColumnPlan::Digits,
        },
        // Intervals with months, times with an offset, and ranges have no Arrow type that readers
        // commonly support, so the column contains the text of the database.
        ColumnType::Text | ColumnType::Interval | ColumnType::TimeTz { .. } | ColumnType::Range => {
            DataType::Utf8
        }
        ColumnType::Binary => DataType::Binary,
        ColumnType::Date => DataType::Date32,
        ColumnType::Time { digits } => DataType::Time(TimeUnit::of_digits(digits)),
        ColumnType::Timestamp {
            digits,
            with_offset,
        } => DataType::Timestamp {
            unit: TimeUnit::of_digits(digits),
            zone: with_offset.then(|| "UTC".to_owned()),
        },
        ColumnType::Uuid => DataType::Uuid,
        ColumnType::Array(element) => {
            let items = plan(&Column::new(String::new(), element.column_type()));
            return ColumnPlan::List(Box::new(items));
        }
    })
}

/// Returns the type of a decimal column; `None` if the database does not declare its precision.
fn decimal(column: &Column, precision: u8, scale: i8) -> Option<DataType> {
    // psqlodbc describes a `numeric` without a declared precision (as each sum and average) as a
    // type of 28 digits, with the scale of the first rows.
    let is_exact = precision > 0 && !(column.type_name == "numeric" && precision == 28);
    let bits = match precision {
        _ if !is_exact => return None,
        0..=38 => 128,
        39..=76 => 256,
        _ => return None,
    };
    Some(DataType::Decimal {
        bits,
        precision,
        scale,
    })
}

/// Returns the plan for a column of SQLite. Its declared type determines the plan by the rules of
/// SQLite's column affinity.
///
/// Source: <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
fn declared(type_name: &str) -> ColumnPlan {
    let name = type_name.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    ColumnPlan::Type(if has(&["INT"]) {
        DataType::int(64)
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        DataType::Utf8
    } else if has(&["BLOB"]) {
        DataType::Binary
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        DataType::Float64
    } else {
        // Numbers in such a column usually have a fraction: a first value without a fraction must
        // not make it a column of integers.
        let floats = has(&["DEC", "NUMERIC"]);
        return ColumnPlan::FirstValue { floats };
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_of_sqlite_have_their_affinity() {
        let of = |data_type| ColumnPlan::Type(data_type);
        for (name, plan) in [
            ("INTEGER", of(DataType::int(64))),
            ("bigint unsigned", of(DataType::int(64))),
            ("varchar(20)", of(DataType::Utf8)),
            ("CLOB", of(DataType::Utf8)),
            ("blob", of(DataType::Binary)),
            ("double precision", of(DataType::Float64)),
            ("decimal(12,2)", ColumnPlan::FirstValue { floats: true }),
            ("datetime", ColumnPlan::FirstValue { floats: false }),
            ("", ColumnPlan::FirstValue { floats: false }),
        ] {
            assert_eq!(declared(name), plan, "{name}");
        }
    }
}
